//! Reviews of writes, which anybody who reaches the webhook can send.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::provider::Compat;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use futures::future::join_all;
use http::{Request, Response};
use keda::admission::{AdmissionInput, AdmissionKind, Operation, SCALER_INFO_REASON, Verdict};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::env::{TestEnv, objects, trigger};
use crate::operator::Admission;

/// The creation of a ScaledObject.
pub(super) fn created(object: &Value) -> AdmissionInput<'_> {
    let kind = AdmissionKind::ScaledObject;
    AdmissionInput { operation: Operation::Create, kind, dry_run: false, object, old: None }
}

#[tokio::test(start_paused = true)]
async fn events_of_reviews_are_about_objects_that_the_watch_shows() {
    let env = TestEnv::start().await;
    env.deployment("web", 1).await;
    env.scaled_object("so", json!({"scaleTargetRef": {"name": "web"}, "triggers": [trigger("orders")]}))
        .await;
    let uid = env.get(&objects("so")).await.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let recorder = EventRecorder::start(env.client.clone(), "keda-operator", Clock::system());
    let discovery = Discovery::new(env.client.clone());
    let admission = Admission::new(env.client.clone(), discovery, Compat::Better);
    let admission = admission.recording(&recorder, &env.handle);
    let review = async |namespace: &str, name: &str, uid: &str, note: &str| {
        let unknown = json!({"type": note, "metadata": {}});
        let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [unknown]}});
        let request = AdmissionInput {
            operation: Operation::Update,
            kind: AdmissionKind::ScaledObject,
            dry_run: false,
            object: &object,
            old: None,
        };
        match admission.review(&request).await {
            Verdict::Allowed(allowed) => allowed.events.len(),
            Verdict::Denied(denial) => panic!("{denial:?}"),
        }
    };
    // An object that does not exist, one with another UID, one of another namespace, and one that tries another path.
    assert_eq!(review("kube-system", "ghost", "made-up", "first").await, 1);
    assert_eq!(review("shop", "so", "made-up", "second").await, 1);
    assert_eq!(review("kube-system", "so", &uid, "third").await, 1);
    // The server may refuse to list such a namespace; then no event is recorded.
    review("default/configmaps?dryRun=All&x=", "so", &uid, "fourth").await;
    assert_eq!(review("shop", "so", &uid, "fifth").await, 1);
    let reported = async || {
        let events = env.get("/api/v1/events").await.unwrap();
        let all = events["items"].as_array().unwrap().iter();
        let is_advice = |event: &&Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == SCALER_INFO_REASON && message.contains("there is no trigger type")
        };
        all.filter(is_advice).cloned().collect::<Vec<Value>>()
    };
    env.until("an event", async || !reported().await.is_empty()).await;
    // Longer than a review waits for its object.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let events = reported().await;
    assert_eq!(events.len(), 1, "{events:#?}");
    assert!(events[0]["message"].as_str().unwrap().contains("fifth"), "{events:#?}");
    assert_eq!(events[0]["involvedObject"]["uid"], json!(uid));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn few_reviews_read_related_objects_at_a_time() {
    let (under_way, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counts = (under_way, Arc::clone(&most));
    let server = tower::service_fn(move |_: Request<Body>| {
        let (under_way, most) = counts.clone();
        async move {
            most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            under_way.fetch_sub(1, Ordering::SeqCst);
            let body = Body::from(br#"{"items": []}"#.to_vec());
            Ok::<_, Infallible>(Response::builder().status(200).body(body).unwrap())
        }
    });
    let client = Client::new(server, "default");
    let admission = Admission::new(client.clone(), Discovery::new(client), Compat::Better);
    let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "so", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [trigger("orders")]}});
    let request = created(&object);
    let verdicts = join_all((0..100).map(|_| admission.review(&request))).await;
    assert_eq!((verdicts.len(), most.load(Ordering::SeqCst)), (100, 2));
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_does_not_make_a_kind_unknown() {
    let server = tower::service_fn(|request: Request<Body>| async move {
        let status = if matches!(request.uri().path(), "/api" | "/apis") { 500_u16 } else { 200 };
        let body = Body::from(br#"{"items": []}"#.to_vec());
        Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
    });
    let client = Client::new(server, "default");
    let admission = Admission::new(client.clone(), Discovery::new(client), Compat::Better);
    let is_checked = async |api_version: &str, kind: &str| {
        let target = json!({"apiVersion": api_version, "kind": kind, "name": "web"});
        let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": "so", "namespace": "shop"},
            "spec": {"scaleTargetRef": target, "triggers": [trigger("orders")]}});
        let request = created(&object);
        match admission.review(&request).await {
            Verdict::Allowed(allowed) => {
                !allowed.warnings.iter().any(|warning| warning.contains("was not checked"))
            }
            Verdict::Denied(denial) => panic!("{denial:?}"),
        }
    };
    assert!(!is_checked("argoproj.io/v1alpha1", "Rollout").await, "whether the cluster has it is unknown");
    assert!(is_checked("apps/v1", "Deployment").await, "no discovery is needed");
}
