use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::decisions::{API_VERSION, DecisionMode};
use engine::ScaleOutcome;
use serde_json::json;

use super::*;
use crate::commands::console::latest::{BorrowedText, NewPassMetric};
use crate::live::objects::sample;
use crate::live::sample::{at, record_of};

const NOW: &str = "2026-01-05T09:15:01Z";

/// A store that has listed HPAs with one replica.
fn listed(names: &[&str]) -> WatchedStore {
    let mut store = WatchedStore::default();
    let objects = names
        .iter()
        .map(|name| WatchEvent::Applied(sample(name, json!({"currentReplicas": 1, "desiredReplicas": 1}))));
    for event in [WatchEvent::Listing].into_iter().chain(objects).chain([WatchEvent::Listed]) {
        store.apply(AutoscalerKind::Hpa, "", event);
    }
    store
}

fn take(store: &mut WatchedStore, now: &str) -> WatchedChange {
    store.take(at(now), |_| {})
}

/// The row of the one autoscaler that changed.
fn changed(store: &mut WatchedStore) -> Value {
    let rows = take(store, NOW).rows;
    assert_eq!(rows.len(), 1);
    serde_json::from_str(&rows[0].json()).unwrap()
}

/// A pass that found one replica and so much cpu.
fn pass(time: &str, desired: i32, percent: i32) -> NewPass<'static> {
    let value = Some(BorrowedText(format!("{percent}%").into()));
    NewPass {
        namespace: "shop".into(),
        name: "hpa.web".into(),
        at: at(time),
        current: Some(1),
        desired,
        reason: "cpu is above its target".into(),
        metrics: vec![NewPassMetric { value, ratio: Some(f64::from(percent) / 50.0) }],
        record: None,
    }
}

#[test]
fn only_changed_autoscalers_are_taken() {
    let mut store = listed(&["web", "shop"]);
    let first = take(&mut store, NOW);
    assert_eq!((first.rows.len(), first.problems), (2, Some(json!([]))));
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
    let row = changed(&mut store);
    assert_eq!((&row["id"], &row["desired"]), (&json!("shop/hpa/web"), &json!(4)));
    let pass = |time, desired| pass(time, desired, 125);
    assert!(store.add(pass("2026-01-05T09:15:15Z", 4)));
    let again = changed(&mut store);
    assert_eq!(
        (&again["pressure"], &again["decision"], &again["metrics"]),
        (&json!(2.5), &json!("1 → 4: cpu is above its target"), &json!("cpu: 125%/50%"))
    );
    assert!(store.add(pass("2026-01-05T09:15:00Z", 1)), "a pass from before the decision");
    assert!(!store.add(pass("2026-01-05T09:15:30Z", 2)), "the decision about it is missing");
    assert!(take(&mut store, NOW).rows.is_empty());
    store.apply(
        AutoscalerKind::Hpa,
        "",
        WatchEvent::Deleted { namespace: "shop".into(), name: "web".into() },
    );
    let change = take(&mut store, NOW);
    assert_eq!((change.rows.len(), change.removed), (0, vec!["shop/hpa/web".to_owned()]));
}

#[test]
fn silence_is_a_problem_without_an_event() {
    let mut store = listed(&["web"]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[100]));
    take(&mut store, NOW);
    store.find_silent(at("2026-01-05T09:15:30Z"));
    assert!(take(&mut store, "2026-01-05T09:15:30Z").rows.is_empty());
    store.find_silent(at("2026-01-05T09:17:00Z"));
    let problems = take(&mut store, "2026-01-05T09:17:00Z").problems.unwrap();
    assert_eq!(
        (&problems[0]["cause"], &problems[0]["autoscalers"]),
        (&json!("the controller has stopped deciding"), &json!(["shop/hpa/web"]))
    );
}

/// An HPA as a watch sends it.
fn text(version: u32, max: i32, percent: i32) -> String {
    let mut hpa = crate::live::sample::hpa("web");
    hpa["metadata"]["resourceVersion"] = json!(version.to_string());
    hpa["spec"]["maxReplicas"] = json!(max);
    hpa["status"] = json!({"currentReplicas": 3, "desiredReplicas": 4, "conditions": [{"type": "AbleToScale", "status": "True"}],
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}]});
    hpa.to_string()
}

/// The text of an event; that of the object ends before the line does.
fn event(version: u32, max: i32, percent: i32) -> Vec<u8> {
    format!("{}}}", text(version, max, percent)).into_bytes()
}

/// The row after an object was decoded.
fn decode(store: &mut WatchedStore, version: u32, max: i32, percent: i32) -> Value {
    let hpa: HorizontalPodAutoscaler = serde_json::from_str(&text(version, max, percent)).unwrap();
    store.apply(AutoscalerKind::Hpa, "", WatchEvent::Applied(hpa.into()));
    changed(store)
}

#[test]
fn status_of_an_hpa_is_applied_without_decoding_the_rest() {
    let mut store = listed(&["web"]);
    take(&mut store, NOW);
    assert!(store.apply_status(&event(8, 10, 60)).is_none(), "the rest was never compared");
    decode(&mut store, 8, 10, 60);
    assert_eq!(store.apply_status(&event(9, 10, 70)).as_deref(), Some("9"));
    let row = changed(&mut store);
    assert_eq!(
        (&row["metrics"], &row["replicas"], &row["desired"]),
        (&json!("cpu: 70%/50%"), &json!(3), &json!(4))
    );
    assert!(store.apply_status(&event(10, 12, 80)).is_none(), "the spec differs");
    assert!(take(&mut store, NOW).rows.is_empty());
    assert_eq!(decode(&mut store, 10, 12, 80)["max"], json!(12));
    assert!(store.apply_status(&event(11, 12, 90)).is_some());
    assert_eq!(changed(&mut store)["metrics"], json!("cpu: 90%/50%"));
    assert!(store.apply_status(&event(9, 12, 10)).is_none(), "it is older");
    assert!(
        store.apply_status(&event(12, 12, 10)).is_none(),
        "the rest was compared with an event that was not applied"
    );
    assert!(store.apply_status(b"{}").is_none(), "it has another form");
}

#[test]
fn row_with_passes_shows_their_values_and_else_those_of_the_status() {
    let mut store = listed(&["web"]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
    assert!(store.apply_status(&event(8, 10, 60)).is_none());
    assert_eq!(decode(&mut store, 8, 10, 60)["metrics"], json!("cpu: 60%/50%"));
    assert!(store.add(pass("2026-01-05T09:15:15Z", 4, 70)));
    let row = changed(&mut store);
    assert_eq!((&row["metrics"], &row["replicas"]), (&json!("cpu: 70%/50%"), &json!(1)));
    assert!(store.apply_status(&event(9, 10, 80)).is_some());
    assert!(take(&mut store, NOW).rows.is_empty(), "the pass about it follows");
    store.replace_records(API_VERSION, Vec::new());
    let row = changed(&mut store);
    assert_eq!((&row["metrics"], &row["replicas"]), (&json!("cpu: 80%/50%"), &json!(3)));
    assert!(store.apply_status(&event(10, 10, 90)).is_some());
    assert_eq!(changed(&mut store)["metrics"], json!("cpu: 90%/50%"));
}

#[test]
fn row_in_shadow_mode_shows_the_status_and_marks_our_decision() {
    let mut store = listed(&["web"]);
    let mut record = record_of("web", "2026-01-05T09:15:00Z", 1, &[300]);
    (record.mode, record.decision.outcome) = (DecisionMode::Shadow, ScaleOutcome::DryRun);
    store.decided(record);
    assert!(store.apply_status(&event(8, 10, 60)).is_none());
    let shows = |row: &Value, percent: i32, decision: &str| {
        let shown = [&row["metrics"], &row["replicas"], &row["desired"], &row["pressure"], &row["decision"]];
        let pressure = f64::from(percent) / 50.0;
        assert_eq!(
            json!(shown),
            json!([
                format!("cpu: {percent}%/50%"),
                3,
                4,
                pressure,
                format!("shadow; would go 1 → 3: {decision}")
            ])
        );
    };
    shows(&decode(&mut store, 8, 10, 60), 60, "cpu 150 % of 50 %");
    assert!(store.add(pass("2026-01-05T09:15:15Z", 3, 70)));
    shows(&changed(&mut store), 60, "cpu is above its target");
    assert!(store.apply_status(&event(9, 10, 80)).is_some());
    shows(&changed(&mut store), 80, "cpu is above its target");
}

#[test]
fn row_in_shadow_mode_shows_our_values_until_a_status_is_written() {
    let mut store = listed(&["web"]);
    let mut record = record_of("web", "2026-01-05T09:15:00Z", 1, &[300]);
    record.mode = DecisionMode::Shadow;
    store.decided(record);
    assert!(store.add(pass("2026-01-05T09:15:15Z", 3, 70)));
    let row = changed(&mut store);
    assert_eq!(
        (&row["metrics"], &row["desired"], &row["pressure"]),
        (&json!("cpu: 70%/50%"), &json!(3), &json!(1.4))
    );
    assert!(store.apply_status(&event(8, 10, 60)).is_none(), "the conditions are new");
    let row = decode(&mut store, 8, 10, 60);
    assert_eq!((&row["metrics"], &row["desired"]), (&json!("cpu: 60%/50%"), &json!(4)));
}

#[test]
fn mode_off_is_shown_at_once() {
    let mut store = listed(&["web"]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[]));
    take(&mut store, NOW);
    let mut object = sample("web", json!({"currentReplicas": 2, "desiredReplicas": 2}));
    object.hpa.metadata.resource_version = "8".to_owned();
    object.hpa.metadata.annotations.insert("plimsoll.dev/mode".to_owned(), "off".to_owned());
    store.apply(AutoscalerKind::Hpa, "", WatchEvent::Applied(object));
    let change = take(&mut store, NOW);
    let row: Value = serde_json::from_str(&change.rows[0].json()).unwrap();
    assert_eq!(
        json!([row["state"], row["replicas"], row["desired"], row["decision"]]),
        json!(["paused", 2, 2, "off: nothing is decided (annotation plimsoll.dev/mode)"])
    );
    assert_eq!(change.problems, Some(json!([])), "the failure before it is over");
    store.find_silent(at("2026-01-05T09:30:00Z"));
    assert_eq!(
        take(&mut store, "2026-01-05T09:30:00Z").problems,
        None,
        "nothing is expected of the controller"
    );
}

#[test]
fn conditions_of_another_controller_are_problems_in_mode_off() {
    let mut store = listed(&["web"]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[100]));
    take(&mut store, NOW);
    let mut causes = |version: &str, reason: &str| {
        let failing = json!([{"type": "ScalingActive", "status": "False", "reason": reason}]);
        let mut object =
            sample("web", json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": failing}));
        object.hpa.metadata.resource_version = version.to_owned();
        object.hpa.metadata.annotations.insert("plimsoll.dev/mode".to_owned(), "off".to_owned());
        store.apply(AutoscalerKind::Hpa, "", WatchEvent::Applied(object));
        let problems = take(&mut store, NOW).problems.unwrap();
        problems[0]["cause"].clone()
    };
    assert_eq!(causes("8", "FailedGetResourceMetric"), json!("FailedGetResourceMetric"));
    assert_eq!(causes("9", "InvalidSelector"), json!("InvalidSelector"));
}

#[test]
fn row_whose_pass_has_no_count_shows_that_of_the_latest_status() {
    let mut store = listed(&["web"]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
    assert!(store.apply_status(&event(8, 10, 60)).is_none());
    decode(&mut store, 8, 10, 60);
    assert!(store.add(NewPass { current: None, ..pass("2026-01-05T09:15:15Z", 4, 70) }));
    assert_eq!(changed(&mut store)["replicas"], json!(3));
    let later = String::from_utf8(event(9, 10, 80)).unwrap();
    let later = later.replace(r#""currentReplicas":3"#, r#""currentReplicas":5"#);
    assert!(store.apply_status(later.as_bytes()).is_some());
    assert!(store.add(NewPass { current: None, ..pass("2026-01-05T09:15:30Z", 4, 70) }));
    assert_eq!(changed(&mut store)["replicas"], json!(5));
}

#[test]
fn older_state_does_not_replace_a_status_that_is_not_shown_yet() {
    let mut store = listed(&["web"]);
    assert!(store.apply_status(&event(8, 10, 60)).is_none());
    decode(&mut store, 8, 10, 60);
    assert!(store.apply_status(&event(11, 10, 70)).is_some());
    assert_eq!(decode(&mut store, 9, 12, 10)["metrics"], json!("cpu: 70%/50%"), "a list may be late");
}

#[test]
fn status_of_an_unreadable_object_is_not_kept() {
    let mut store = listed(&[]);
    assert!(store.apply_status(&event(8, 10, 60)).is_none());
    assert_eq!(store.statuses.len(), 1);
    let unreadable =
        WatchEvent::Unreadable { namespace: "shop".into(), name: "web".into(), error: "odd".into() };
    store.apply(AutoscalerKind::Hpa, "", unreadable);
    assert!(store.statuses.is_empty());
}

#[test]
fn decisions_about_deleted_autoscalers_are_dropped() {
    let mut store = listed(&[]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
    store.drop_early();
    assert_eq!(store.early.len(), 1, "the watch may show the object a moment later");
    store.drop_early();
    assert!(store.early.is_empty());
}

#[test]
fn decisions_may_be_known_before_their_object_and_may_go() {
    let mut store = listed(&[]);
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
    assert!(take(&mut store, NOW).rows.is_empty());
    let object = sample("web", json!({"currentReplicas": 1, "desiredReplicas": 1}));
    store.apply(AutoscalerKind::Hpa, "", WatchEvent::Applied(object));
    assert_eq!(changed(&mut store)["desired"], json!(4));
    store.replace_records(API_VERSION, Vec::new());
    assert_eq!(changed(&mut store)["desired"], json!(1), "the status is shown");
}
