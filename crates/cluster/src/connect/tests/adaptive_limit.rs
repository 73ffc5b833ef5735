use std::time::Duration;

use tokio::time::Instant;

use crate::connect::adaptive_limit::{AdaptiveLimit, Admission, RequestOutcome};

const SECOND: Duration = Duration::from_secs(1);

/// As many requests as may pass.
fn fill(pressure: &mut AdaptiveLimit, now: Instant) -> usize {
    (0..1000).take_while(|_| pressure.admit(now) == Admission::Now).count()
}

#[test]
fn the_initial_limit_is_thirty_two() {
    let now = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    assert_eq!(fill(&mut pressure, now), 32);
    assert_eq!(pressure.admit(now), Admission::Full);
    pressure.finish(now, now, RequestOutcome::Answered);
    assert_eq!(pressure.admit(now), Admission::Now);
}

#[test]
fn the_limit_grows_slowly_up_to_256() {
    let now = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    let round = |pressure: &mut AdaptiveLimit| {
        let passed = fill(pressure, now);
        for _ in 0..passed {
            pressure.finish(now, now, RequestOutcome::Answered);
        }
        passed
    };
    let tenth = (0..10).map(|_| round(&mut pressure)).last().unwrap();
    assert!((34..=42).contains(&tenth), "{tenth}");
    for _ in 0..1000 {
        round(&mut pressure);
    }
    assert_eq!(round(&mut pressure), 256);
}

#[test]
fn an_unused_limit_does_not_grow() {
    let now = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    for _ in 0..10_000 {
        pressure.admit(now);
        pressure.finish(now, now, RequestOutcome::Answered);
    }
    assert_eq!(pressure.snapshot().limit, 32);
}

#[test]
fn concurrent_overloads_halve_the_limit_once() {
    let start = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    let passed = fill(&mut pressure, start);
    for _ in 0..passed {
        pressure.finish(start + SECOND, start, RequestOutcome::Overloaded(None));
    }
    assert_eq!(pressure.snapshot().limit, 16);
    let next = start + 2 * SECOND;
    assert_eq!(fill(&mut pressure, next), 16);
    pressure.finish(next + SECOND, next, RequestOutcome::TimedOut);
    assert_eq!(pressure.snapshot().limit, 8);
    assert_eq!((pressure.snapshot().overloaded, pressure.snapshot().timed_out), (32, 1));
}

#[test]
fn the_limit_is_at_least_two() {
    let mut now = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    for _ in 0..20 {
        now += SECOND;
        assert_eq!(pressure.admit(now), Admission::Now);
        pressure.finish(now + SECOND / 2, now, RequestOutcome::Overloaded(None));
    }
    assert_eq!(fill(&mut pressure, now), 2);
}

#[test]
fn retry_after_is_followed_for_at_most_a_minute() {
    let now = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    for (requested, kept) in [(5, 5), (600, 60), (3, 60)] {
        let at = Instant::now();
        let _ = pressure.admit(at);
        pressure.finish(now, at, RequestOutcome::Overloaded(Some(requested * SECOND)));
        assert_eq!(pressure.admit(now), Admission::At(now + kept * SECOND));
    }
    assert_eq!(pressure.snapshot().held_until, Some(now + 60 * SECOND));
    assert_eq!(pressure.admit(now + 60 * SECOND), Admission::Now);
    assert_eq!(pressure.snapshot().held_until, None);
}

#[test]
fn a_request_abandoned_late_counts_as_timed_out() {
    let start = Instant::now();
    for (after, limit) in [(SECOND / 2, 32), (2 * SECOND, 16)] {
        let mut pressure = AdaptiveLimit::default();
        pressure.admit(start);
        pressure.finish(start + after, start, RequestOutcome::Abandoned);
        assert_eq!((pressure.snapshot().limit, pressure.snapshot().in_flight), (limit, 0));
    }
}

#[test]
fn network_failures_do_not_change_the_limit() {
    let now = Instant::now();
    let mut pressure = AdaptiveLimit::default();
    pressure.admit(now);
    pressure.finish(now, now, RequestOutcome::Failed);
    assert_eq!(pressure.snapshot().limit, 32);
}
