use api::diagnosis::PausedFact;

use super::*;
use crate::live::sample::{at, record};

fn web() -> AutoscalerName {
    AutoscalerName { kind: cluster::AutoscalerKind::Hpa, name: "web".into() }
}

#[test]
fn decision_records_survive_serialization() {
    let record = record("2026-01-05T09:14:45Z", 1, &[610]);
    let back: DecisionRecord = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    let now = at("2026-01-05T09:14:50Z");
    assert_eq!(explanation(&web(), &back, None, None, now), explanation(&web(), &record, None, None, now));
}

#[test]
fn times_have_a_zone_and_the_date_of_another_day() {
    let record = record("2026-01-05T09:14:45Z", 1, &[610]);
    let headline = |now| explanation(&web(), &record, None, Some(record.last), at(now)).headline;
    assert_eq!(
        headline("2026-01-05T09:14:50Z"),
        "hpa/web in shop · 09:14:45 UTC · scaled 1 → 4 (wanted 7): the limit of one step without behavior allows at most 4"
    );
    assert_eq!(
        headline("2026-01-06T09:14:50Z"),
        "hpa/web in shop · 2026-01-05 09:14:45 UTC · scaled 1 → 4 (wanted 7): the limit of one step without behavior allows at most 4"
    );
}

#[test]
fn explanation_includes_mode_and_age() {
    let mut record = record("2026-01-05T09:14:45Z", 4, &[100; 4]);
    record.first = at("2026-01-05T09:10:00Z");
    record.times = 20;
    record.mode = DecisionMode::Shadow;
    let rows = |wanted: Option<&str>, now: &str| -> Vec<String> {
        let all = explanation(&web(), &record, None, wanted.map(at), at(now)).rows;
        let after = all.iter().position(|row| row.label == "next").unwrap() + 1;
        all[after..].iter().map(|row| format!("{}: {}", row.label, row.text)).collect()
    };
    assert_eq!(
        rows(None, "2026-01-05T09:15:00Z"),
        [
            "mode: shadow: another controller acts, and this one only compares",
            "repeated: 20 times since 09:10:00, with the same outcome"
        ]
    );
    assert_eq!(
        rows(None, "2026-01-05T09:30:00Z").last().unwrap(),
        "note: that was 15m ago, and nothing since; does the controller run?"
    );
    assert_eq!(
        rows(Some("2026-01-05T09:20:00Z"), "2026-01-05T09:30:00Z").last().unwrap(),
        "note: nothing was decided between then and 09:20:00; was the controller down?"
    );
}

#[test]
fn controller_of_an_object_that_is_off_is_not_silent() {
    let record = record("2026-01-05T09:14:45Z", 4, &[100; 4]);
    let last_row = |cluster: &ClusterFacts| {
        let rows = explanation(&web(), &record, Some(cluster), None, at("2026-01-05T09:30:00Z")).rows;
        let next = rows.iter().any(|row| row.label == "next");
        (rows.last().unwrap().label.clone(), next)
    };
    assert_eq!(last_row(&ClusterFacts::default()), ("note".to_owned(), true));
    let off = ClusterFacts { off: true, ..ClusterFacts::default() };
    assert_eq!(last_row(&off), ("off".to_owned(), false));
    let paused = ClusterFacts { paused: Some(PausedFact::default()), ..ClusterFacts::default() };
    assert_eq!(last_row(&paused), ("paused".to_owned(), false));
}

#[test]
fn decision_at_a_time_is_the_last_that_began_before_it() {
    let records = [record("2026-01-05T09:10:00Z", 1, &[100]), record("2026-01-05T09:12:00Z", 1, &[610])];
    let now = at("2026-01-05T10:00:00Z");
    let found = |text| in_force(&web(), &records, Some(at(text)), now).map(|record| record.first);
    assert_eq!(found("2026-01-05T09:11:59Z").unwrap(), records[0].first);
    assert_eq!(found("2026-01-05T09:12:00Z").unwrap(), records[1].first);
    let early = found("2026-01-05T09:09:59Z").unwrap_err().to_string();
    assert!(early.ends_with("the oldest that the controller has is from 09:10:00 UTC"), "{early}");
    assert_eq!(in_force(&web(), &records, None, now).unwrap().first, records[1].first);
}
