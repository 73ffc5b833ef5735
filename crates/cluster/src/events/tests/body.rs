use std::time::Duration;

use engine::Event;
use engine::report::EventKind;
use serde_json::{Value, json};

use super::{about, warning};
use crate::events::body::{create, namespace, patch};
use crate::events::correlate::{Correlator, OutgoingEvent, event_name};
use crate::events::{EventAnnotations, RecordedEvent};

fn notice(event: Event) -> OutgoingEvent {
    let at = "2026-11-15T08:54:02.987654321Z".parse().unwrap();
    let now = tokio::time::Instant::now();
    let component = "horizontal-pod-autoscaler";
    let mut correlator = Correlator::new();
    correlator
        .observe(RecordedEvent {
            about: about("web"),
            component,
            pause: Duration::ZERO,
            event,
            action: None,
            annotations: EventAnnotations::default(),
            at,
            now,
        })
        .unwrap()
}

/// Byte for byte what kube-controller-manager 1.36 sent for an HPA whose target is not there, but for the name and time.
#[test]
fn an_event_equals_that_of_kube_controller_manager() {
    let mut sent = notice(warning("deployments.apps \"gone\" not found"));
    sent.name = "web.18e82c02da072b92".to_owned();
    let expected = concat!(
        r#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"web.18e82c02da072b92","namespace":"hc"},"#,
        r#""involvedObject":{"kind":"HorizontalPodAutoscaler","namespace":"hc","name":"web","#,
        r#""uid":"65302fb4-9841-4118-9eda-c3bfc75774b9","apiVersion":"autoscaling/v2","resourceVersion":"586"},"#,
        r#""reason":"FailedGetScale","message":"deployments.apps \"gone\" not found","#,
        r#""source":{"component":"horizontal-pod-autoscaler"},"firstTimestamp":"2026-11-15T08:54:02Z","#,
        r#""lastTimestamp":"2026-11-15T08:54:02Z","count":1,"type":"Warning","eventTime":null,"#,
        r#""reportingComponent":"horizontal-pod-autoscaler","reportingInstance":""}"#,
    );
    assert_eq!(String::from_utf8(create(&sent)).unwrap(), expected);
}

/// Likewise; the content type was `application/strategic-merge-patch+json`.
#[test]
fn a_patch_equals_that_of_kube_controller_manager() {
    let mut sent = notice(warning("deployments.apps \"gone\" not found"));
    sent.count = 2;
    sent.last = "2026-11-15T08:54:04.123Z".parse().unwrap();
    let expected = r#"{"count":2,"lastTimestamp":"2026-11-15T08:54:04Z","message":"deployments.apps \"gone\" not found"}"#;
    assert_eq!(String::from_utf8(patch(&sent)).unwrap(), expected);
}

/// When the event was gone, kube-controller-manager created it again under its name, with its count and first time.
#[test]
fn a_recreated_event_keeps_its_count() {
    let mut sent = notice(warning("m"));
    sent.count = 18;
    sent.last = "2026-11-15T08:57:43Z".parse().unwrap();
    let body: Value = serde_json::from_slice(&create(&sent)).unwrap();
    assert_eq!(body["count"], 18);
    assert_eq!(body["firstTimestamp"], "2026-11-15T08:54:02Z");
    assert_eq!(body["lastTimestamp"], "2026-11-15T08:57:43Z");
    assert_eq!(body["metadata"]["name"], json!(sent.name));
}

#[test]
fn events_of_cluster_scoped_objects_are_in_default() {
    let mut sent = notice(Event { kind: EventKind::Normal, ..warning("m") });
    sent.about.namespace = String::new();
    sent.about.uid = String::new();
    sent.about.resource_version = String::new();
    assert_eq!(namespace(&sent), "default");
    let body: Value = serde_json::from_slice(&create(&sent)).unwrap();
    assert_eq!(body["metadata"]["namespace"], "default");
    assert_eq!(body["type"], "Normal");
    let object = json!({"kind": "HorizontalPodAutoscaler", "name": "web", "apiVersion": "autoscaling/v2"});
    assert_eq!(body["involvedObject"], object);
}

/// For an object with a name of 245 letters, kube-controller-manager named its events by UUIDs.
#[test]
fn a_too_long_name_becomes_a_uuid() {
    assert_eq!(event_name("web", 0x18e8_2c02_da07_2b92), "web.18e82c02da072b92");
    assert_eq!(event_name(&"a".repeat(236), 0x18e8_2c02_da07_2b92).len(), 253);
    assert_eq!(event_name(&"a".repeat(237), 0x18e8_2c02_da07_2b92).len(), 36);
    assert_eq!(event_name("Not a name/", 1).len(), 36);
}

#[test]
fn an_event_with_action_is_cut_to_the_limits() {
    let mut sent = notice(warning(&"ä".repeat(600)));
    sent.action = Some("x".repeat(200));
    let body: Value = serde_json::from_slice(&create(&sent)).unwrap();
    assert_eq!(body["eventTime"], "2026-11-15T08:54:02.987654Z");
    assert_eq!(body["message"].as_str().unwrap().len(), 1024);
    assert_eq!(body["action"].as_str().unwrap().len(), 128);
    assert_eq!(body["reportingComponent"], "horizontal-pod-autoscaler");
    assert!(body.get("firstTimestamp").is_none() && body.get("series").is_none());
    sent.count = 3;
    let body: Value = serde_json::from_slice(&patch(&sent)).unwrap();
    assert_eq!(body, json!({"series": {"count": 3, "lastObservedTime": "2026-11-15T08:54:02.987654Z"}}));
}

#[test]
fn annotations_are_created_and_patched() {
    let mut sent = notice(warning("m"));
    sent.annotations = EventAnnotations::new([("plimsoll.dev/causes", "no-pods".to_owned())].into());
    for action in [None, Some("Acted".to_owned())] {
        sent.action = action;
        for body in [create(&sent), patch(&sent)] {
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["metadata"]["annotations"], json!({"plimsoll.dev/causes": "no-pods"}));
        }
    }
}

#[test]
fn occurrence_without_causes_removes_the_annotations_of_an_earlier_one() {
    let mut correlator = Correlator::new();
    let mut observe = |annotations: &[(&'static str, &str)]| {
        let annotations = annotations.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let recorded = RecordedEvent {
            about: about("web"),
            component: "horizontal-pod-autoscaler",
            pause: Duration::ZERO,
            event: warning("m"),
            action: None,
            annotations: EventAnnotations::new(annotations),
            at: "2026-11-15T08:54:02Z".parse().unwrap(),
            now: tokio::time::Instant::now(),
        };
        let body = patch(&correlator.observe(recorded).unwrap());
        serde_json::from_slice::<Value>(&body).unwrap()["metadata"].clone()
    };
    let causes = "plimsoll.dev/causes";
    assert_eq!(observe(&[]), Value::Null);
    assert_eq!(observe(&[(causes, "no-pods")]), json!({"annotations": {causes: "no-pods"}}));
    // The removal is repeated, because a patch may be lost.
    for _ in 0..2 {
        assert_eq!(observe(&[]), json!({"annotations": {causes: null}}));
    }
    assert_eq!(observe(&[(causes, "at-maximum")]), json!({"annotations": {causes: "at-maximum"}}));
}
