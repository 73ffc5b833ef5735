//! Our own kind: what it can say that an HPA cannot.

use std::path::Path;
use std::time::Duration;

use controllers::hpa::Settings;
use http::Method;
use localkube::metrics::{PodUsage, Series};
use serde_json::{Value, json};
use testbed::twin::Failure;
use tokio::time::Instant;

use crate::ground::{Ground, Ours, PERIOD, cpu, on_both, queue};

const ALL: &str = "/apis/plimsoll.dev/v1alpha1/namespaces/{ns}/autoscalers";

/// Makes the kind known.
async fn define(ground: &Ground) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/autoscalers.plimsoll.dev.yaml");
    let source = api::text::Source::new("definition", std::fs::read_to_string(file).unwrap());
    let definition = api::text::parse(&source).unwrap()[0].root.to_json();
    let made = ground
        .send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", Some(definition))
        .await;
    // Another test of this cluster may have been here before.
    assert!(made.as_ref().map_or_else(|error| error.code == 409, |_| true), "{made:?}");
    ground.until("autoscalers", async || ground.send(Method::GET, ALL, None).await.map(|_| ())).await;
}

/// An autoscaler of the deployment of the same name, from two to eight.
async fn autoscaler(ground: &Ground, name: &str, more: Value) {
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
    ground.create(ALL, object).await;
}

/// `status reason` of a condition.
async fn condition(ground: &Ground, name: &str, kind: &str) -> String {
    let object = ground.get(&format!("{ALL}/{name}")).await;
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|c| c["type"] == kind).cloned().unwrap_or_default();
    format!(
        "{} {}",
        found["status"].as_str().unwrap_or_default(),
        found["reason"].as_str().unwrap_or_default()
    )
}

async fn until_condition(ground: &Ground, name: &str, kind: &str, wanted: &str) {
    ground
        .until(&format!("{kind} {wanted} of {name}"), async || {
            let found = condition(ground, name, kind).await;
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
fn proposals_become_one_number_as_the_object_says() -> Result<(), Failure> {
    on_both(async |ground| {
        define(&ground).await;
        ground.ask_for("high", 6);
        ground.ask_for("low", 3);
        let both = json!([queue("high"), queue("low")]);
        let rows = [("max", 6), ("min", 3), ("average", 5)];
        for (aggregator, _) in rows {
            ground.deployment(aggregator, 4).await;
            autoscaler(&ground, aggregator, json!({"metrics": both, "replicasAggregator": aggregator})).await;
        }
        let ours = ground.controller(ground.settings());
        for (aggregator, count) in rows {
            ground.until_replicas(aggregator, count).await;
            until_condition(&ground, aggregator, "ScalingActive", "True ValidMetricFound").await;
        }
        ours.stop().await;
        let events = ground.events("min").await;
        assert_eq!(events.len(), 1, "{events:?}");
        let list = ground.get("/api/v1/namespaces/{ns}/events").await;
        assert!(
            list["items"].as_array().unwrap().iter().all(|e| e["involvedObject"]["kind"] == "Autoscaler")
        );
    })
}

#[test]
fn a_share_of_limits_a_period_of_its_own_and_a_dry_run() -> Result<(), Failure> {
    on_both(async |ground| {
        define(&ground).await;
        // Three of the four cores that each may use: half of them is the target.
        ground.deployment("limited", 3).await;
        for number in 0..3 {
            let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "4"}});
            ground.pod_with("limited", number, resources).await;
            let usage = PodUsage::new(&[("app", "limited")], &[("app", 3000, 1)]);
            ground.script.set_pod(&ground.namespace, &format!("limited-{number}"), usage);
        }
        let mut share = cpu(50);
        share["resource"]["target"]["percentageOf"] = "limits".into();
        autoscaler(&ground, "limited", json!({"metrics": [share]})).await;
        for name in ["slow", "quick", "dry"] {
            ground.deployment(name, 4).await;
            ground.ask_for(name, 4);
        }
        autoscaler(&ground, "slow", json!({"metrics": [queue("slow")], "syncPeriodSeconds": 2})).await;
        autoscaler(&ground, "quick", json!({"metrics": [queue("quick")]})).await;
        autoscaler(&ground, "dry", json!({"metrics": [queue("dry")], "dryRun": true})).await;
        let ours = ground.controller(ground.settings());
        ground.until_replicas("limited", 5).await;
        until_condition(&ground, "slow", "ScalingActive", "True ValidMetricFound").await;

        // A dry run reports what it would do.
        ground.ask_for("dry", 6);
        let desired = async || ground.get(&format!("{ALL}/dry")).await["status"]["desiredReplicas"].clone();
        ground
            .until("a report", async || if desired().await == 6 { Ok(()) } else { Err(desired().await) })
            .await;
        assert_eq!(ground.replicas("dry").await, 4);

        // How often each metric is asked for.
        let asked = |name: &str| {
            let path =
                format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{name}", ground.namespace);
            ground.script.count(&path)
        };
        let (slow, quick) = (asked("slow"), asked("quick"));
        tokio::time::sleep(Duration::from_secs(6)).await;
        let (slow, quick) = (asked("slow") - slow, asked("quick") - quick);
        assert!((2..=4).contains(&slow) && quick >= 8, "on {}: slow {slow}, quick {quick}", ground.cluster);
        assert_eq!(ground.replicas("dry").await, 4);
        ours.stop().await;
    })
}

#[test]
fn a_metric_that_cannot_be_read_counts_as_the_object_says() -> Result<(), Failure> {
    on_both(async |ground| {
        define(&ground).await;
        let rows = [
            // As Kubernetes: others may raise the count, nothing lowers it.
            ("none-up", None, 6, 6),
            ("none-down", None, 3, 4),
            ("hold", Some(json!({"policy": "hold"})), 6, 4),
            ("ignore", Some(json!({"policy": "ignore"})), 3, 3),
            ("static", Some(json!({"policy": "static", "replicas": 7})), 6, 7),
        ];
        for (name, policy, good, _) in &rows {
            ground.deployment(name, 4).await;
            ground.ask_for(name, *good);
            let gone = policy.clone().map_or_else(|| queue("gone"), |policy| on_failure("gone", policy));
            autoscaler(&ground, name, json!({"metrics": [queue(name), gone]})).await;
        }
        ground.deployment("last", 4).await;
        ground.ask_for("last", 4);
        ground.ask_for("fleeting", 2);
        let keep = Duration::from_secs(5);
        let fleeting = on_failure("fleeting", json!({"policy": "lastGood", "forSeconds": keep.as_secs()}));
        autoscaler(&ground, "last", json!({"metrics": [queue("last"), fleeting]})).await;

        let ours = ground.controller(ground.settings());
        until_condition(&ground, "last", "ScalingActive", "True ValidMetricFound").await;
        for (name, _, _, count) in &rows {
            ground.until_replicas(name, *count).await;
        }
        tokio::time::sleep(2 * PERIOD).await;
        for (name, _, _, count) in &rows {
            assert_eq!(ground.replicas(name).await, *count, "on {}: {name}", ground.cluster);
        }
        // What it said last stands in for it for a while, also over a restart; then it is missed.
        ground.script.remove_external(&ground.namespace, "fleeting");
        let gone = Instant::now();
        ground.ask_for("last", 3);
        ground.until_replicas("last", 3).await;
        tokio::time::sleep_until(gone + keep + 3 * PERIOD).await;
        ground.ask_for("last", 2);
        until_condition(&ground, "last", "ScalingActive", "False FailedGetExternalMetric").await;
        assert_eq!(ground.replicas("last").await, 3);
        ground.script.set_external(&ground.namespace, "fleeting", Series::milli(20_000));
        ground.until_replicas("last", 2).await;
        ours.stop().await;
    })
}

/// The status of our kind cannot carry an annotation: it is written by itself, and that not often.
#[test]
fn windows_of_our_own_kind_outlive_a_controller() -> Result<(), Failure> {
    on_both(async |ground| {
        define(&ground).await;
        let window = Duration::from_secs(5);
        ground.deployment("held", 4).await;
        ground.ask_for("held", 6);
        let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": window.as_secs()}});
        autoscaler(&ground, "held", json!({"metrics": [queue("held")], "behavior": behavior})).await;
        let proxied = ground.proxied().await;
        let first = Ours::start(proxied.client.clone(), ground.settings());
        ground.until_replicas("held", 6).await;
        ground.ask_for("held", 3);
        let fell = Instant::now();
        until_condition(&ground, "held", "AbleToScale", "True ScaleDownStabilized").await;
        tokio::time::sleep(window / 2).await;
        first.kill().await;
        let witness = ground.witness("held").await;
        let second = Ours::start(proxied.client.clone(), Settings { remember: true, ..ground.settings() });
        witness.caught_up(&ground, 3).await;
        let held = witness.last().at - fell;
        println!("{}: a window of {window:?} of an Autoscaler held for {held:?}", ground.cluster);
        assert!(
            held >= window.saturating_sub(PERIOD + Duration::from_millis(200)),
            "on {}: {held:?}",
            ground.cluster
        );
        let kept: Vec<_> =
            proxied.writes().into_iter().filter(|entry| entry.method == Method::PATCH).collect();
        assert!(kept.len() <= 2, "on {}: {kept:#?}", ground.cluster);
        second.stop().await;
    })
}
