//! Next times of schedules.
use jiff::Timestamp;
use proptest::prelude::*;

use super::CronScaler;
use super::schedule::{CronSchedule, zone};
use crate::test_support::trigger;

fn next(schedule: &str, zone_name: &str, now: &str) -> Option<String> {
    let now: Timestamp = now.parse().unwrap();
    let next = CronSchedule::parse(schedule).unwrap().next(now, &zone(zone_name).unwrap());
    next.map(|next| next.to_string())
}

#[test]
fn the_next_time_is_later_than_now() {
    let at = |schedule: &str, now: &str| next(schedule, "UTC", now).unwrap();
    assert_eq!(at("0 8 * * *", "2025-06-03T07:59:59.5Z"), "2025-06-03T08:00:00Z");
    assert_eq!(at("0 8 * * *", "2025-06-03T08:00:00Z"), "2025-06-04T08:00:00Z");
    assert_eq!(at("*/15 * * * *", "2025-12-31T23:46:00Z"), "2026-01-01T00:00:00Z");
    assert_eq!(at("0 0 29 2 *", "2025-06-03T00:00:00Z"), "2028-02-29T00:00:00Z");
    assert_eq!(at("5/20 1-3 * JAN,jul mon-FRI", "2025-06-03T00:00:00Z"), "2025-07-01T01:05:00Z");
    assert_eq!(next("0 0 30 2 *", "UTC", "2025-06-03T00:00:00Z"), None);
}

#[test]
fn day_of_month_or_week_matches_if_both_are_given() {
    // Friday 13 June: the schedule matches any Friday and any 13th.
    let at = |schedule: &str, now: &str| next(schedule, "UTC", now).unwrap();
    assert_eq!(at("0 0 13 * 5", "2025-06-01T00:00:00Z"), "2025-06-06T00:00:00Z");
    assert_eq!(at("0 0 13 * *", "2025-06-01T00:00:00Z"), "2025-06-13T00:00:00Z");
    // A field with a step does not count as `*`.
    assert_eq!(at("0 0 */10 * 5", "2025-06-01T00:00:00Z"), "2025-06-06T00:00:00Z");
    assert_eq!(at("0 0 ? * 1", "2025-06-01T00:00:00Z"), "2025-06-02T00:00:00Z");
}

#[test]
fn clock_changes() {
    // In Berlin 02:30 does not exist on that day in spring, and occurs twice in autumn.
    let at = |schedule: &str, now: &str| next(schedule, "Europe/Berlin", now).unwrap();
    assert_eq!(at("30 2 * * *", "2025-03-30T00:00:00Z"), "2025-03-31T00:30:00Z");
    assert_eq!(at("30 2 * * *", "2025-10-25T22:00:00Z"), "2025-10-26T00:30:00Z");
    assert_eq!(at("30 2 * * *", "2025-10-26T00:30:00Z"), "2025-10-26T01:30:00Z");
}

#[test]
fn a_schedule_may_have_its_own_zone() {
    let tokyo = next("TZ=Asia/Tokyo 0 8 * * *", "UTC", "2025-06-03T00:00:00Z");
    assert_eq!(tokyo.as_deref(), Some("2025-06-03T23:00:00Z"));
    for (schedule, trigger, expected) in [
        ("TZ= 0 8 * * *", "Asia/Tokyo", "2025-06-03T08:00:00Z"),
        ("TZ=Local 0 8 * * *", "Asia/Tokyo", "2025-06-03T23:00:00Z"),
        ("0 8 * * *", "Local", "2025-06-03T08:00:00Z"),
    ] {
        assert_eq!(next(schedule, trigger, "2025-06-03T00:00:00Z").as_deref(), Some(expected), "{schedule}");
    }
    for bad in ["TZ=UTC", "TZ=Mars/Phobos 0 8 * * *"] {
        assert!(CronSchedule::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn invalid_schedules_are_refused() {
    for bad in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 7",
        "@daily",
        "5-1 * * * *",
        "*/0 * * * *",
        "1-2-3 * * * *",
        "*/1/2 * * * *",
        "-1 * * * *",
        "1.5 * * * *",
        "* * * FOO *",
        "99999999999999999999 * * * *",
        "0 8 L * *",
    ] {
        assert!(CronSchedule::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn zones_have_exact_names() {
    for good in ["", "Local", "UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"] {
        assert!(zone(good).is_some(), "{good}");
    }
    for bad in ["utc", "local", "europe/london", "+02:00", "../etc/passwd", "UTC+1", "Mars/Phobos"] {
        assert!(zone(bad).is_none(), "{bad}");
    }
}

#[test]
fn active_between_start_and_end() {
    let metadata =
        [("start", "0 8 * * *"), ("end", "0 18 * * *"), ("timezone", "UTC"), ("desiredReplicas", "4")];
    let cron = CronScaler::new(&trigger("cron", &metadata)).unwrap();
    let at = |now: &str| {
        let read = cron.at("m", now.parse().unwrap()).unwrap();
        (read.values.first().unwrap().value.to_string(), read.active)
    };
    assert_eq!(at("2025-06-03T07:59:59Z"), ("0".into(), false));
    assert_eq!(at("2025-06-03T08:00:00Z"), ("4".into(), true));
    assert_eq!(at("2025-06-03T17:59:59Z"), ("4".into(), true));
    assert_eq!(at("2025-06-03T18:00:00Z"), ("0".into(), false));
}

proptest! {
    #[test]
    fn next_time_is_a_later_whole_minute(
        text in "[0-9*/,?-]{1,6} [0-9*/,?-]{1,6} [0-9*/,?-]{1,6} [0-9*/,?-]{1,6} [0-6*/,?-]{1,4}",
        second in -10_000_000_000_i64..10_000_000_000,
    ) {
        if let Ok(schedule) = CronSchedule::parse(&text) {
            let now = Timestamp::from_second(second).unwrap();
            let zone = zone("America/Sao_Paulo").unwrap();
            if let Some(next) = schedule.next(now, &zone) {
                prop_assert!(next > now);
                prop_assert_eq!(zone.to_datetime(next).second(), 0);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,60}") {
        let _ = CronSchedule::parse(&text);
    }
}
