#![allow(clippy::unwrap_used)]

use api::keda::EventSubscription;
use jiff::Timestamp;
use serde_json::Value;

use super::event::{Message, wants};
use super::*;

fn metadata() -> ObjectMeta {
    ObjectMeta { namespace: "shop".into(), name: "Worker".into(), ..ObjectMeta::default() }
}

#[test]
fn controllers_events_are_told_and_those_of_rounds_are_not() {
    let event = Event::warning("ScaledObjectCheckFailed", "no");
    let message = Message::of(Subject::Object, &metadata(), &event, Timestamp::UNIX_EPOCH).unwrap();
    let headers = message.headers("kubernetes-default", "keda");
    let header = |name: &str| headers.iter().find(|(own, _)| *own == name).unwrap().1.clone();
    assert_eq!(header("ce-type"), "keda.scaledobject.failed.v1");
    assert_eq!(header("ce-source"), "/kubernetes-default/keda/keda");
    assert_eq!(header("ce-subject"), "/kubernetes-default/shop/scaledobject/worker");
    assert_eq!(header("ce-time"), "1970-01-01T00:00:00Z");
    assert_eq!(header("ce-id").len(), 36);
    let body: Value = serde_json::from_slice(&message.body()).unwrap();
    assert_eq!(body, serde_json::json!({"reason": "ScaledObjectCheckFailed", "message": "no"}));
    let round = Event::normal("KEDAScaleTargetActivated", "up");
    assert_eq!(Message::of(Subject::Object, &metadata(), &round, Timestamp::UNIX_EPOCH), None);
}

#[test]
fn what_is_included_wins_over_what_is_excluded() {
    let subscription = |included: &[&str], excluded: &[&str]| EventSubscription {
        included_event_types: included.iter().map(|&text| text.to_owned()).collect(),
        excluded_event_types: excluded.iter().map(|&text| text.to_owned()).collect(),
    };
    assert!(wants(&subscription(&[], &[]), "a"));
    assert!(!wants(&subscription(&[], &["a"]), "a"));
    assert!(wants(&subscription(&["a"], &["a"]), "a"));
    assert!(!wants(&subscription(&["b"], &[]), "a"));
}
