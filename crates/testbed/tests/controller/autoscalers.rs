//! Fields of our kind `Autoscaler` that an HPA does not have.

use std::path::Path;
use std::time::Duration;

use controllers::hpa::HpaSettings;
use http::Method;
use localkube::metrics::{PodUsage, Series};
use serde_json::{Value, json};
use testbed::harness::{Failure, namespace};
use tokio::time::Instant;

use crate::env::{ControllerEnv, PERIOD, RunningController, cpu, on_both, queue};

const AUTOSCALERS: &str = "/apis/plimsoll.dev/v1alpha1/namespaces/{ns}/autoscalers";

/// Creates the CustomResourceDefinition.
pub(crate) async fn define(env: &ControllerEnv) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/autoscalers.plimsoll.dev.yaml");
    let source = api::yaml::SourceFile::new("definition", std::fs::read_to_string(file).unwrap());
    let definition = api::yaml::parse(&source).unwrap()[0].root.to_json();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, response) = env.send(Method::POST, path, Some(&definition)).await;
    // Another test of this cluster may have created it before.
    assert!(matches!(code, 201 | 409), "{response}");
    env.until_found(AUTOSCALERS).await;
}

/// Creates an Autoscaler of the Deployment of the same name, from two to eight replicas.
async fn autoscaler(env: &ControllerEnv, name: &str, more: Value) {
    let mut spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 2, "maxReplicas": 8
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let object = json!({
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "Autoscaler", "metadata": {"name": name}, "spec": spec
    });
    env.create(AUTOSCALERS, object).await;
}

/// `status reason` of a condition.
async fn condition(env: &ControllerEnv, name: &str, kind: &str) -> String {
    let [status, reason, _] = namespace::condition(&env.read(&format!("{AUTOSCALERS}/{name}")).await, kind);
    format!("{status} {reason}")
}

async fn until_condition(env: &ControllerEnv, name: &str, kind: &str, wanted: &str) {
    env.until(&format!("{kind} {wanted} of {name}"), async || {
        let found = condition(env, name, kind).await;
        if found == wanted { Ok(()) } else { Err(found) }
    })
    .await;
}

fn on_failure(metric: &str, policy: Value) -> Value {
    let mut metric = queue(metric);
    metric["onFailure"] = policy;
    metric
}

#[test]
fn proposals_are_combined_by_the_object_policy() -> Result<(), Failure> {
    on_both(async |env| {
        define(&env).await;
        env.ask_for("high", 6);
        env.ask_for("low", 3);
        let both = json!([queue("high"), queue("low")]);
        let rows = [("max", 6), ("min", 3), ("average", 5)];
        for (aggregator, _) in rows {
            env.deployment(aggregator, 4).await;
            autoscaler(&env, aggregator, json!({"metrics": both, "replicasAggregator": aggregator})).await;
        }
        let ours = env.controller(env.settings());
        for (aggregator, count) in rows {
            env.until_replicas(aggregator, count).await;
            until_condition(&env, aggregator, "ScalingActive", "True ValidMetricFound").await;
        }
        ours.stop().await;
        let events = env.events("min").await;
        assert_eq!(events.len(), 1, "{events:?}");
        let list = env.read("/api/v1/namespaces/{ns}/events").await;
        assert!(namespace::items(&list).iter().all(|e| e["involvedObject"]["kind"] == "Autoscaler"));
    })
}

#[test]
fn limits_share_sync_period_and_dry_run_are_applied() -> Result<(), Failure> {
    on_both(async |env| {
        define(&env).await;
        // Each pod uses three of its limit of four cores, and the target is half of the limit.
        env.deployment("limited", 3).await;
        for number in 0..3 {
            let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "4"}});
            env.pod_with("limited", number, resources).await;
            let usage = PodUsage::new(&[("app", "limited")], &[("app", 3000, 1)]);
            env.script.set_pod(&env.namespace, &format!("limited-{number}"), usage);
        }
        let mut share = cpu(50);
        share["resource"]["target"]["percentageOf"] = "limits".into();
        autoscaler(&env, "limited", json!({"metrics": [share]})).await;
        for name in ["slow", "quick", "dry"] {
            env.deployment(name, 4).await;
            env.ask_for(name, 4);
        }
        autoscaler(&env, "slow", json!({"metrics": [queue("slow")], "syncPeriodSeconds": 2})).await;
        autoscaler(&env, "quick", json!({"metrics": [queue("quick")]})).await;
        autoscaler(&env, "dry", json!({"metrics": [queue("dry")], "dryRun": true})).await;
        let ours = env.controller(env.settings());
        env.until_replicas("limited", 5).await;
        until_condition(&env, "slow", "ScalingActive", "True ValidMetricFound").await;

        // A dry run reports what it would do.
        env.ask_for("dry", 6);
        let desired =
            async || env.read(&format!("{AUTOSCALERS}/dry")).await["status"]["desiredReplicas"].clone();
        env.until("a report", async || if desired().await == 6 { Ok(()) } else { Err(desired().await) })
            .await;
        assert_eq!(env.replicas("dry").await, 4);

        // Number of reads of each metric.
        let reads = || (env.metric_reads("slow"), env.metric_reads("quick"));
        let (before, began) = (reads(), Instant::now());
        let since = || (reads().0 - before.0, reads().1 - before.1);
        // There is at most one read per period of two seconds, one that was due at the begin, and one that was due before and is late.
        let most = || began.elapsed().as_secs() / 2 + 2;
        env.until("two reads in the period of the object, and more in that of the controller", async || {
            let (slow, quick) = since();
            if slow >= 2 && quick > most() { Ok(()) } else { Err((slow, quick)) }
        })
        .await;
        let slow = since().0;
        assert!(slow <= most(), "on {}: {slow} reads, at most {} are due", env.cluster, most());
        assert_eq!(env.replicas("dry").await, 4);
        ours.stop().await;
    })
}

#[test]
fn failed_metric_follows_the_on_failure_policy() -> Result<(), Failure> {
    on_both(async |env| {
        define(&env).await;
        let rows = [
            // As in Kubernetes, other metrics may raise the count, and nothing lowers it.
            ("none-up", None, 6, 6),
            ("none-down", None, 3, 4),
            ("hold", Some(json!({"policy": "hold"})), 6, 4),
            ("ignore", Some(json!({"policy": "ignore"})), 3, 3),
            ("static", Some(json!({"policy": "static", "replicas": 7})), 6, 7),
        ];
        for (name, policy, good, _) in &rows {
            env.deployment(name, 4).await;
            env.ask_for(name, *good);
            let gone = policy.clone().map_or_else(|| queue("gone"), |policy| on_failure("gone", policy));
            autoscaler(&env, name, json!({"metrics": [queue(name), gone]})).await;
        }
        env.deployment("last", 4).await;
        env.ask_for("last", 4);
        env.ask_for("fleeting", 2);
        let keep = Duration::from_secs(10);
        let fleeting = on_failure("fleeting", json!({"policy": "lastGood", "forSeconds": keep.as_secs()}));
        autoscaler(&env, "last", json!({"metrics": [queue("last"), fleeting]})).await;

        let ours = env.controller(env.settings());
        until_condition(&env, "last", "ScalingActive", "True ValidMetricFound").await;
        for (name, _, _, count) in &rows {
            env.until_replicas(name, *count).await;
        }
        for (name, _, _, count) in &rows {
            env.until_metric_reads(name, 3).await;
            assert_eq!(env.replicas(name).await, *count, "on {}: {name}", env.cluster);
        }
        // The last good value is used for a while, also after a restart; then the metric counts as failed.
        env.script.remove_external(&env.namespace, "fleeting");
        let gone = Instant::now();
        env.ask_for("last", 3);
        env.until_replicas("last", 3).await;
        // The last good value counts for this time.
        tokio::time::sleep_until(gone + keep + 3 * PERIOD).await;
        env.ask_for("last", 2);
        until_condition(&env, "last", "ScalingActive", "False FailedGetExternalMetric").await;
        assert_eq!(env.replicas("last").await, 3);
        env.script.set_external(&env.namespace, "fleeting", Series::milli(20_000));
        env.until_replicas("last", 2).await;
        ours.stop().await;
    })
}

/// The annotation of an Autoscaler cannot be written together with its status, so it is written separately and rarely.
#[test]
fn autoscaler_windows_survive_a_controller_restart() -> Result<(), Failure> {
    on_both(async |env| {
        define(&env).await;
        let window = Duration::from_secs(5);
        env.deployment("held", 4).await;
        env.ask_for("held", 6);
        let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": window.as_secs()}});
        autoscaler(&env, "held", json!({"metrics": [queue("held")], "behavior": behavior})).await;
        let proxied = env.proxied().await;
        let first = RunningController::start(proxied.client.clone(), env.settings());
        env.until_replicas("held", 6).await;
        let begun = env.before_a_reconcile("held").await;
        env.ask_for("held", 3);
        until_condition(&env, "held", "AbleToScale", "True ScaleDownStabilized").await;
        env.until_metric_reads("held", 3).await;
        first.kill().await;
        let observer = env.observer("held").await;
        let second = RunningController::start(
            proxied.client.clone(),
            HpaSettings { persist_state: true, ..env.settings() },
        );
        observer.caught_up(&env, 3).await;
        let held = observer.last().at - begun;
        println!("{}: a window of {window:?} of an Autoscaler held for at most {held:?}", env.cluster);
        assert!(held >= window, "on {}: {held:?}", env.cluster);
        let kept: Vec<_> =
            proxied.writes().into_iter().filter(|entry| entry.method == Method::PATCH).collect();
        assert!(kept.len() <= 2, "on {}: {kept:#?}", env.cluster);
        second.stop().await;
    })
}
