//! Reconciles against an API server in this process, on tokio's paused clock.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use api::decisions::DecisionRecord;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::metrics::MetricsClient;
use cluster::watch::WatchEvent;
use cluster::{AutoscalerKind, Clock};
use engine::KubernetesVersion::{V1_36, V1_37};
use engine::provenance::ResponseSharing;
use engine::{Course, Gates, Observation, PodSelection, ScaleReadError, State};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::autoscaler::AutoscalerEntry;
use super::reconcile::HpaReconcileOutcome;
use super::{HpaController, HpaControllerHandle, HpaControllerParts, HpaSettings, ProfileChoice, Records};

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
        "/version" => (json!({"major": "1", "minor": "38", "emulationMinor": "37"}), Duration::ZERO),
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
            let items = json!([
                {"metricName": "slow", "metricLabels": {}, "timestamp": TAKEN, "value": "10"},
                {"metricName": "slow", "metricLabels": {"zone": "a", "queue": "orders"}, "timestamp": TAKEN,
                 "window": 60, "value": "30"},
            ]);
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
        let mut response = http::Response::builder().header("content-type", "application/json");
        if request.uri().path().ends_with("/slow") {
            response = response.header(api::metrics::SOURCE_HEADER, "Prometheus: sum(queue)");
        }
        Ok::<_, tower::BoxError>(response.body(Body::from(body.to_string().into_bytes()))?)
    });
    Client::new(service, "default")
}

/// An HPA in dry-run mode with a slow external metric and a quick object metric.
fn autoscaler(version: &str) -> AutoscalerEntry {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let hpa = json!({
        "metadata": {"namespace": "shop", "name": "web", "resourceVersion": version, "annotations": {"plimsoll.dev/mode": "dry-run"}},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": [
            {"type": "External", "external": {"metric": {"name": "slow"},
                "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "Object", "object": {"metric": {"name": "quick"}, "describedObject": target,
                "target": {"type": "AverageValue", "averageValue": "10"}}},
        ]},
    });
    AutoscalerEntry::of_hpa(serde_json::from_value(hpa).unwrap())
}

/// An Autoscaler in dry-run mode with an external metric that has two series, and these further fields of the metric.
fn own_kind(more: &Value) -> AutoscalerEntry {
    let mut metric = json!({"type": "External", "external": {"metric": {"name": "slow"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    metric.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let autoscaler = json!({
        "metadata": {"namespace": "shop", "name": "web", "generation": 7,
            "annotations": {"plimsoll.dev/mode": "dry-run"}},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 9, "dryRun": true, "metrics": [metric]},
    });
    AutoscalerEntry::of_autoscaler(serde_json::from_value(autoscaler).unwrap())
}

fn controller(settings: HpaSettings) -> (HpaController, HpaControllerHandle) {
    controller_at(settings, Timestamp::UNIX_EPOCH)
}

/// A controller whose clock always shows this time.
fn controller_at(settings: HpaSettings, now: Timestamp) -> (HpaController, HpaControllerHandle) {
    let (client, clock) = (client(), Clock::new(move || now));
    let discovery = Discovery::new(client.clone());
    HpaController::new(HpaControllerParts {
        samples: MetricsClient::new(client.clone(), discovery.clone(), Duration::from_secs(1)),
        recorder: EventRecorder::start(client.clone(), "horizontal-pod-autoscaler", clock.clone()),
        leadership: Leadership::without_election(),
        settings,
        records: Records::default(),
        client,
        discovery,
        clock,
    })
}

#[tokio::test(start_paused = true)]
async fn the_release_that_the_api_server_emulates_is_reproduced() {
    let (_fixed, handle) = controller(HpaSettings::default());
    assert!(handle.clone().detect_release().await.is_empty());
    assert_eq!(handle.kubernetes(), V1_36);
    let auto = HpaSettings { kubernetes: ProfileChoice::Auto, ..HpaSettings::default() };
    let (following, handle) = controller(auto.clone());
    assert_eq!(handle.clone().detect_release().await.len(), 1, "a task follows the release");
    assert_eq!(handle.kubernetes(), V1_37);
    assert!(following.reconciler.settings().config.gates.scale_to_zero);
    assert!(handle.exposition().contains("plimsoll_kubernetes_profile{version=\"1.37\"} 1\n"));
    // New settings keep the release that was found, unless they fix one.
    handle.update(auto);
    assert_eq!(handle.kubernetes(), V1_37);
    handle.update(HpaSettings::default());
    assert_eq!(handle.kubernetes(), V1_36);
}

/// An HPA in this mode, on which another controller acts.
fn in_mode(version: &str, mode: &str) -> AutoscalerEntry {
    let conditions = json!([{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}]);
    let metric = json!({"type": "External", "external": {"metric": {"name": "slow"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    let hpa = json!({
        "metadata": {"namespace": "shop", "name": "web", "resourceVersion": version,
            "annotations": {"plimsoll.dev/mode": mode}},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 9, "metrics": [metric]},
        "status": {"currentReplicas": 2, "desiredReplicas": 2, "conditions": conditions},
    });
    AutoscalerEntry::of_hpa(serde_json::from_value(hpa).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_leaves_shadow_mode_is_not_compared_any_more() {
    let (controller, handle) = controller(HpaSettings::default());
    let reconciler = &controller.reconciler;
    for (version, mode, compared) in
        [("1", "shadow", 1), ("2", "dry-run", 0), ("3", "shadow", 1), ("4", "off", 0)]
    {
        let entry = in_mode(version, mode);
        let key = entry.key.clone();
        let applied = WatchEvent::Applied(entry);
        reconciler.observer.store().autoscaler(AutoscalerKind::Hpa, "", &reconciler.settings(), applied);
        let outcome = reconciler.reconcile(&key, Duration::ZERO).await;
        assert_eq!(outcome, HpaReconcileOutcome::Reconciled);
        assert_eq!(handle.differences(None).autoscalers, compared, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn windows_and_desired_count_of_an_autoscaler_end_with_mode_off() {
    let (controller, handle) = controller(HpaSettings::default());
    let reconciler = &controller.reconciler;
    for (version, mode) in [("1", "dry-run"), ("2", "off")] {
        let entry = in_mode(version, mode);
        let applied = WatchEvent::Applied(entry.clone());
        reconciler.observer.store().autoscaler(AutoscalerKind::Hpa, "", &reconciler.settings(), applied);
        reconciler.reconcile(&entry.key, Duration::ZERO).await;
        let state = reconciler.states().of(&entry, false).state;
        assert_eq!(state == State::default(), mode == "off", "{mode}: {state:?}");
        let text = handle.exposition();
        assert_eq!(text.contains("desired_replicas{"), mode != "off", "{mode}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_older_than_our_status_write_is_skipped_since_1_37() {
    for version in [V1_36, V1_37] {
        let (controller, handle) = controller(HpaSettings::default().at_release(version));
        let reconciler = &controller.reconciler;
        let watched = autoscaler("10");
        let key = watched.key.clone();
        reconciler.written_statuses.wrote(&watched, "12");
        let applied = WatchEvent::Applied(watched);
        reconciler.observer.store().autoscaler(AutoscalerKind::Hpa, "", &reconciler.settings(), applied);
        let outcome = reconciler.reconcile(&key, Duration::ZERO).await;
        let series = "horizontal_pod_autoscaler_controller_stale_sync_skips_total{group=\"autoscaling\",\
                      resource=\"horizontalpodautoscalers\"} 1\n";
        let text = handle.exposition();
        assert_eq!(text.contains(series), version == V1_37, "{text}");
        let expected =
            if version == V1_37 { HpaReconcileOutcome::Stale } else { HpaReconcileOutcome::Reconciled };
        assert_eq!(outcome, expected, "{version}");
        let counted = text.contains("horizontal_pod_autoscaler_controller_reconciliations_total{");
        assert_eq!(counted, version == V1_36, "a skipped reconcile is not counted as one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_skipped_autoscaler_is_counted_by_its_resource() {
    let (controller, handle) = controller(HpaSettings::default().at_release(V1_37));
    let reconciler = &controller.reconciler;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let object = json!({"metadata": {"namespace": "shop", "name": "web", "resourceVersion": "10"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 9}});
    let watched = AutoscalerEntry::of_autoscaler(serde_json::from_value(object).unwrap());
    let key = watched.key.clone();
    reconciler.written_statuses.wrote(&watched, "12");
    let applied = WatchEvent::Applied(watched);
    reconciler.observer.store().autoscaler(key.kind, "", &reconciler.settings(), applied);
    assert_eq!(reconciler.reconcile(&key, Duration::ZERO).await, HpaReconcileOutcome::Stale);
    let series = "stale_sync_skips_total{group=\"plimsoll.dev\",resource=\"autoscalers\"} 1\n";
    let text = handle.exposition();
    assert!(text.contains(series), "{text}");
}

/// The timestamp of the samples that the server returns.
const TAKEN: &str = "2026-01-01T00:00:00Z";

/// Reconciles once, `seconds` after [`TAKEN`]; returns the record and the exported metrics.
async fn reconciled(entry: AutoscalerEntry, seconds: i64) -> (DecisionRecord, String) {
    let now = TAKEN.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds);
    let (controller, handle) = controller_at(HpaSettings::default(), now);
    let reconciler = &controller.reconciler;
    let key = entry.key.clone();
    let applied = WatchEvent::Applied(entry);
    reconciler.observer.store().autoscaler(key.kind, "", &reconciler.settings(), applied);
    let outcome = reconciler.reconcile(&key, Duration::ZERO).await;
    assert_eq!(outcome, HpaReconcileOutcome::Reconciled);
    (handle.records().latest(None).remove(0), handle.exposition())
}

/// An HPA with this persisted state, for which the server proposes one replica. Its target has two.
fn persisted(state: &str, target_kind: &str) -> AutoscalerEntry {
    let metric = json!({"type": "External", "external": {"metric": {"name": "slow"},
        "target": {"type": "AverageValue", "averageValue": "40"}}});
    let hpa = json!({
        "metadata": {"namespace": "shop", "name": "web", "resourceVersion": "10",
            "annotations": {"plimsoll.dev/memory": state}},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": target_kind, "name": "web"},
            "maxReplicas": 9, "metrics": [metric]},
    });
    AutoscalerEntry::of_hpa(serde_json::from_value(hpa).unwrap())
}

/// The replicas that are desired 10 s after [`TAKEN`] by a controller that was just started and finds this persisted state.
async fn desired_after_restart(state: &str) -> i32 {
    let (record, _) = reconciled(persisted(state, "Deployment"), 10).await;
    assert_eq!(record.decision.recommendation.as_ref().map(|r| r.replicas.get()), Some(1));
    record.decision.desired.get()
}

#[tokio::test(start_paused = true)]
async fn persisted_state_that_does_not_explain_the_count_scales_neither_down_nor_up() {
    let taken = TAKEN.parse::<Timestamp>().unwrap().as_second();
    let (minute, day) = (taken - 60, taken - 86_400);
    let unknown = format!("1;r=1@{minute}");
    assert_eq!(desired_after_restart(&unknown).await, 2, "the scale-up to two was not stored");
    let other = format!("1;r=8@{day}");
    assert_eq!(desired_after_restart(&other).await, 2, "another controller has scaled down for a day");
    let held = format!("1;r=2@{minute},1@+30");
    assert_eq!(desired_after_restart(&held).await, 2, "the window goes on");
    let over = format!("1;r=2@{},1@+310", taken - 320);
    assert_eq!(desired_after_restart(&over).await, 1, "the window that held two is over");
}

/// A state without recommendations would be seeded with the count of the target, which would start a window.
#[tokio::test(start_paused = true)]
async fn persisted_state_waits_until_the_scale_can_be_read() {
    let taken = TAKEN.parse::<Timestamp>().unwrap();
    let (controller, handle) = controller_at(HpaSettings::default(), taken + SignedDuration::from_secs(10));
    let reconciler = &controller.reconciler;
    let over = format!("1;r=2@{},1@+310", taken.as_second() - 320);
    let decide = async |target_kind: &str| {
        let entry = persisted(&over, target_kind);
        let key = entry.key.clone();
        let applied = WatchEvent::Applied(entry);
        reconciler.observer.store().autoscaler(key.kind, "", &reconciler.settings(), applied);
        reconciler.reconcile(&key, Duration::ZERO).await;
        handle.records().latest(None).remove(0).decision
    };
    let unread = decide("Unknown").await;
    assert!(matches!(unread.course, Course::NoScale(_)), "{:?}", unread.course);
    assert_eq!(decide("Deployment").await.desired, 1, "the window that held two is over");
}

#[tokio::test(start_paused = true)]
async fn computation_duration_is_measured_for_each_metric() {
    let (record, text) = reconciled(autoscaler("10"), 10).await;
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
    let took: Vec<Duration> = record
        .decision
        .provenance
        .iter()
        .map(|from| Duration::from_millis(u64::try_from(from.took.unwrap().as_millis()).unwrap()))
        .collect();
    assert_eq!(took, [SLOW, QUICK], "the record states the same durations");
}

#[tokio::test(start_paused = true)]
async fn a_record_states_where_samples_came_from() {
    let (record, _) = reconciled(autoscaler("10"), 10).await;
    let decision = &record.decision;
    let [external, object] = &decision.provenance[..] else { panic!("{:?}", decision.provenance) };
    assert_eq!(external.api, "external.metrics.k8s.io/v1beta1");
    assert_eq!(external.source.as_deref(), Some("Prometheus: sum(queue)"));
    assert_eq!((external.samples, external.response), (2, ResponseSharing::Own));
    let largest: Vec<(&str, i64)> = external.largest.iter().map(|l| (&*l.name, l.milli.get())).collect();
    assert_eq!(largest, [("queue=orders,zone=a", 30_000), ("no labels", 10_000)]);
    assert_eq!(external.oldest.unwrap().to_string(), TAKEN);
    assert_eq!(external.window, Some(SignedDuration::from_secs(60)));
    for from in [external, object] {
        assert_eq!(from.age, Some(decision.at.duration_since(from.oldest.unwrap())));
    }
    assert_eq!((&*object.api, object.samples), ("custom.metrics.k8s.io/v1beta2", 1));
    let line = decision.proposal_line().unwrap();
    assert_eq!(line, format!("proposing 4 (based on external metric slow(nil) from {TAKEN})"));
    let why = record.explain("hpa").to_string();
    let line = "from external.metrics.k8s.io/v1beta1 (Prometheus: sum(queue)), in 3 s";
    assert!(why.contains(line), "{why}");
    assert!(why.contains("2 series, taken 00:00:00 over 60 s, "), "{why}");
    let json = serde_json::to_string(&record).unwrap();
    let read: DecisionRecord = serde_json::from_str(&json).unwrap();
    assert_eq!(read.decision.provenance, decision.provenance, "{json}");
}

#[tokio::test(start_paused = true)]
async fn samples_that_are_too_old_count_as_a_failed_metric() {
    let proposed =
        |record: &DecisionRecord| record.decision.recommendation.as_ref().map(|r| r.replicas.get());
    let (fresh, _) = reconciled(own_kind(&json!({"maxAgeSeconds": 60})), 10).await;
    assert_eq!(proposed(&fresh), Some(4));
    let (old, text) = reconciled(own_kind(&json!({"maxAgeSeconds": 60})), 300).await;
    assert_eq!(proposed(&old), None);
    let failure = old.decision.evaluations[0].result.as_ref().unwrap_err();
    assert!(failure.text.contains("which is more than maxAgeSeconds: 60"), "{}", failure.text);
    assert_eq!(old.decision.provenance[0].samples, 2, "what was refused is still recorded");
    for cause in ["dry-run", "stale-samples"] {
        let series = format!("plimsoll_reconcile_causes_total{{cause=\"{cause}\"}} 1\n");
        assert!(text.contains(&series), "{cause}: {text}");
    }
    let policy = json!({"maxAgeSeconds": 60, "onFailure": {"policy": "static", "replicas": 6}});
    let (replaced, _) = reconciled(own_kind(&policy), 300).await;
    assert_eq!(proposed(&replaced), Some(6));
}

#[tokio::test(start_paused = true)]
async fn series_are_combined_as_the_object_specifies() {
    for (rule, replicas) in [("sum", 4), ("max", 3), ("min", 1), ("average", 2)] {
        let (record, _) = reconciled(own_kind(&json!({"seriesAggregator": rule})), 10).await;
        let found = record.decision.recommendation.as_ref().map(|r| r.replicas.get());
        assert_eq!(found, Some(replicas), "{rule}");
        let named = record.explain("pas").to_string().contains(&format!("(seriesAggregator: {rule})"));
        assert_eq!(named, rule != "sum", "{rule}");
    }
}

#[test]
fn the_status_of_our_kind_states_the_generation() {
    let entry = own_kind(&json!({}));
    let seen = Observation {
        config: HpaSettings::default().config,
        spec: entry.spec.clone(),
        status: entry.status(),
        scale: Err(ScaleReadError::Query("gone".into())),
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    let decision = State::default().step(Timestamp::UNIX_EPOCH, &seen);
    assert_eq!(entry.stored_status(Gates::default(), &decision).observed_generation, Some(7));
    assert_eq!(autoscaler("10").stored_status(Gates::default(), &decision).observed_generation, None);
}
