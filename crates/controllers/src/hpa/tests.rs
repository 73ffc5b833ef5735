//! Reconciles against an API server in this process, on tokio's paused clock.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::metrics::MetricsClient;
use cluster::watch::WatchEvent;
use cluster::{AutoscalerKey, AutoscalerKind, Clock};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::autoscaler::AutoscalerEntry;
use super::reconcile::ReconcileOutcome;
use super::{HpaController, HpaControllerParts, HpaSettings, Records};

/// How long the API server takes to answer for the external metric `slow`.
const SLOW: Duration = Duration::from_secs(3);
/// How long it takes for the metric of an object.
const QUICK: Duration = Duration::from_millis(3);

/// The body of the answer to a GET of `path`, and how long it takes.
fn answer(path: &str) -> (Value, Duration) {
    let group = |name: &str, resources: Value| json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]});
    let scale = json!([{"subresource": "scale",
        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}]);
    let deployments = json!([{"resource": "deployments", "scope": "Namespaced",
        "responseKind": {"kind": "Deployment"}, "subresources": scale}]);
    let custom = json!({"metadata": {"name": "custom.metrics.k8s.io"}, "versions": [{"version": "v1beta2"}]});
    match path {
        "/api" => (json!({"kind": "APIGroupDiscoveryList", "items": []}), Duration::ZERO),
        "/apis" => {
            let items = json!([group("apps", deployments), custom]);
            (json!({"kind": "APIGroupDiscoveryList", "items": items}), Duration::ZERO)
        }
        "/apis/apps/v1/namespaces/shop/deployments/web/scale" => {
            let body = json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "5"},
                "spec": {"replicas": 2}, "status": {"replicas": 2, "selector": "app=web"}});
            (body, Duration::ZERO)
        }
        _ if path.ends_with("/slow") => {
            let items = json!([{"metricName": "slow", "timestamp": "2026-01-01T00:00:00Z", "value": "40"}]);
            (json!({"kind": "ExternalMetricValueList", "items": items}), SLOW)
        }
        _ => {
            let items = json!([{"describedObject": {"kind": "Deployment", "name": "web"},
                "metric": {"name": "quick"}, "timestamp": "2026-01-01T00:00:00Z", "value": "40"}]);
            let version = "custom.metrics.k8s.io/v1beta2";
            (json!({"kind": "MetricValueList", "apiVersion": version, "items": items}), QUICK)
        }
    }
}

fn client() -> Client {
    let service = tower::service_fn(|request: http::Request<Body>| async move {
        let (body, delay) = answer(request.uri().path());
        tokio::time::sleep(delay).await;
        let response = http::Response::builder().header("content-type", "application/json");
        Ok::<_, tower::BoxError>(response.body(Body::from(body.to_string().into_bytes()))?)
    });
    Client::new(service, "default")
}

/// An HPA in dry-run mode with a slow external metric and a quick object metric.
fn autoscaler() -> AutoscalerEntry {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let hpa = json!({
        "metadata": {"namespace": "shop", "name": "web", "annotations": {"plimsoll.dev/mode": "dry-run"}},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": [
            {"type": "External", "external": {"metric": {"name": "slow"},
                "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "Object", "object": {"metric": {"name": "quick"}, "describedObject": target,
                "target": {"type": "AverageValue", "averageValue": "10"}}},
        ]},
    });
    AutoscalerEntry::of_hpa(serde_json::from_value(hpa).unwrap())
}

#[tokio::test(start_paused = true)]
async fn computation_duration_is_measured_for_each_metric() {
    let (client, clock) = (client(), Clock::new(|| Timestamp::UNIX_EPOCH));
    let discovery = Discovery::new(client.clone());
    let (controller, handle) = HpaController::new(HpaControllerParts {
        samples: MetricsClient::new(client.clone(), discovery.clone(), Duration::from_secs(1)),
        recorder: EventRecorder::start(client.clone(), "horizontal-pod-autoscaler", clock.clone()),
        leadership: Leadership::without_election(),
        settings: HpaSettings::default(),
        records: Records::new(1),
        client,
        discovery,
        clock,
    });
    let reconciler = &controller.reconciler;
    let applied = WatchEvent::Applied(autoscaler());
    reconciler.observer.store().autoscaler(AutoscalerKind::Hpa, "", &reconciler.settings(), applied);
    let outcome = reconciler.reconcile(&AutoscalerKey::hpa("shop", "web"), Duration::ZERO).await;
    assert_eq!(outcome, ReconcileOutcome::Reconciled);

    let text = handle.exposition();
    let sum = |metric: &str, labels: &str| {
        let start =
            format!("horizontal_pod_autoscaler_controller_{metric}_duration_seconds_sum{{{labels}}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&start));
        let value: f64 = value.unwrap_or_else(|| panic!("no {start} in {text}")).parse().unwrap();
        Duration::from_secs_f64((value * 1000.0).round() / 1000.0)
    };
    let each = |metric_type: &str| {
        let labels = format!("action=\"scale_up\",error=\"none\",metric_type=\"{metric_type}\"");
        sum("metric_computation", &labels)
    };
    assert_eq!((each("External"), each("Object")), (SLOW, QUICK));
    assert_eq!(sum("reconciliation", "action=\"none\",error=\"none\""), SLOW);
}
