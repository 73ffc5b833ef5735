use std::convert::Infallible;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use http::{Request, Response};
use serde_json::json;

use super::*;
use crate::live::cluster_client::RecordingSummary;
use crate::live::sample::{at, hpa, record_of};

/// A cluster that answers every request with this JSON.
fn answering(answer: &Value) -> ClusterClient {
    let body = answer.to_string();
    let service = tower::service_fn(move |_: Request<kube::client::Body>| {
        let body = kube::client::Body::from(body.clone().into_bytes());
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    let now = at("2026-01-05T09:15:00Z");
    let summary = RecordingSummary { path: "test".into(), from: now, until: now, passes: 0, autoscalers: 0 };
    ClusterClient::recorded(kube::Client::new(service, "default"), summary)
}

/// A decision, and one of a version that has another mode.
fn two_versions() -> [Value; 2] {
    let record =
        |name: &str| serde_json::to_value(record_of(name, "2026-01-05T09:15:00Z", 1, &[610])).unwrap();
    let mut other = record("api");
    other["mode"] = json!("canary");
    [record("web"), other]
}

#[tokio::test]
async fn undecodable_decision_does_not_hide_the_others() {
    let client = answering(&json!({"items": two_versions()}));
    let objects = [Object::from(serde_json::from_value::<HorizontalPodAutoscaler>(hpa("web")).unwrap())];
    let (records, unavailable) = client.latest_about(&objects, Scope::All).await;
    assert_eq!(records.iter().map(|record| &*record.metadata.name).collect::<Vec<_>>(), ["hpa.web"]);
    let note = unavailable.unwrap().note();
    assert!(
        note.starts_with("decisions cannot be read: hpa/api in shop: unknown variant `canary`"),
        "{note}"
    );
    assert!(note.ends_with("\n  remedy: use a `plimsoll` of the controller's version"), "{note}");
    let web = AutoscalerName { kind: AutoscalerKind::Hpa, name: "web".into() };
    let found = client.decisions_of("shop", &web).await.unwrap();
    assert_eq!(found.records.len(), 1);
    let warning = found.warning().unwrap();
    assert!(warning.text.contains("hpa/api in shop: unknown variant `canary`"), "{warning:?}");
}

#[tokio::test]
async fn list_without_a_decodable_decision_is_unavailable() {
    let [_, other] = two_versions();
    let client = answering(&json!({"items": [other]}));
    let missing = client.latest_decisions(AutoscalerKind::ScaledObject, Scope::All).await.unwrap_err();
    let MissingDecision::Unavailable(why) = missing else { panic!("{missing:?}") };
    assert!(why.cause.starts_with("hpa/api in shop: unknown variant `canary`"), "{why:?}");
    assert_eq!(why.remedy, "use a `plimsoll` of the operator's version");
    let empty = answering(&json!({"items": []}));
    let found = empty.latest_decisions(AutoscalerKind::Hpa, Scope::All).await.unwrap();
    assert_eq!((found.records.len(), found.undecodable), (0, None));
}

#[test]
fn broken_line_of_a_watch_differs_from_an_undecodable_decision() {
    let [web, other] = two_versions();
    assert_eq!(record(&web.to_string()).unwrap().metadata.name, "hpa.web");
    let other = json!({"type": "ADDED", "object": other}).to_string();
    assert!(matches!(record(&other), Err(RequestError::Undecodable(_))));
    assert!(matches!(record("{\"type\": \"ADD"), Err(RequestError::InvalidResponse(_))));
}

#[tokio::test]
async fn present_is_no_earlier_than_the_last_decision() {
    let web = AutoscalerName { kind: AutoscalerKind::Hpa, name: "web".into() };
    // The clock of this client shows 09:15.
    for (last, expected) in
        [("2026-01-05T09:10:00Z", "2026-01-05T09:15:00Z"), ("2026-01-05T19:10:00Z", "2026-01-05T19:10:00Z")]
    {
        let client = answering(&json!({"items": [record_of("web", last, 1, &[610])]}));
        assert_eq!(client.present("shop", std::slice::from_ref(&web)).await, at(expected), "{last}");
    }
}
