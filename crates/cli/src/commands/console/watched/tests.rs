use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::decisions::API_VERSION;
use api::decisions::passes::PassMetric;
use serde_json::json;

use super::*;
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
    serde_json::from_str(&rows[0].json).unwrap()
}

#[test]
fn only_changed_autoscalers_are_taken() {
    let mut store = listed(&["web", "shop"]);
    let first = take(&mut store, NOW);
    assert_eq!((first.rows.len(), first.problems), (2, Some(json!([]))));
    store.decided(record_of("web", "2026-01-05T09:15:00Z", 1, &[610]));
    let row = changed(&mut store);
    assert_eq!((&row["id"], &row["desired"]), (&json!("shop/hpa/web"), &json!(4)));
    let pass = |time: &str, desired: i32| PassItem {
        namespace: "shop".into(),
        name: "hpa.web".into(),
        at: at(time),
        desired,
        reason: "cpu is above its target".into(),
        metrics: vec![PassMetric { ratio: Some(2.5), ..PassMetric::default() }],
        ..PassItem::default()
    };
    assert!(store.add(pass("2026-01-05T09:15:15Z", 4)));
    let again = changed(&mut store);
    assert_eq!(
        (&again["pressure"], &again["decision"]),
        (&json!(2.5), &json!("1 → 4: cpu is above its target"))
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
        (&json!("the controller has gone silent"), &json!(["shop/hpa/web"]))
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

#[test]
fn status_of_an_hpa_is_applied_without_decoding_the_rest() {
    let mut store = listed(&["web"]);
    take(&mut store, NOW);
    // The text of the object ends before the line does.
    let event = |version, max, percent| format!("{}}}", text(version, max, percent)).into_bytes();
    let decode = |store: &mut WatchedStore, version, max, percent| {
        let hpa: HorizontalPodAutoscaler = serde_json::from_str(&text(version, max, percent)).unwrap();
        store.apply(AutoscalerKind::Hpa, "", WatchEvent::Applied(hpa.into()));
        changed(store)
    };
    assert!(!store.apply_status(&event(8, 10, 60)), "the rest was never compared");
    decode(&mut store, 8, 10, 60);
    assert!(store.apply_status(&event(9, 10, 70)));
    let row = changed(&mut store);
    assert_eq!(
        (&row["metrics"], &row["replicas"], &row["desired"]),
        (&json!("cpu: 70%/50%"), &json!(3), &json!(4))
    );
    assert!(!store.apply_status(&event(10, 12, 80)), "the spec differs");
    assert!(take(&mut store, NOW).rows.is_empty());
    assert_eq!(decode(&mut store, 10, 12, 80)["max"], json!(12));
    assert!(store.apply_status(&event(11, 12, 90)));
    assert_eq!(changed(&mut store)["metrics"], json!("cpu: 90%/50%"));
    assert!(!store.apply_status(&event(9, 12, 10)), "it is older");
    assert!(
        !store.apply_status(&event(12, 12, 10)),
        "the rest was compared with an event that was not applied"
    );
    assert!(!store.apply_status(b"{}"), "it has another form");
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
