//! Broken set-ups on both clusters: the first line of `why` names the cause. The whole table of causes is a unit test of
//! `api::diagnosis`; here the same facts come from real API servers.

use api::diagnosis::{diagnose, explain_with_causes};
use jiff::SignedDuration;
use localkube::metrics::{DescribedObject, MetricsGroup, Outage, Series};
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{ControllerEnv, RunningController, alone_on_both, cpu, on_both, queue};

/// One set-up: its HPA, the expected cause, and the end of the first line.
struct SetUp {
    name: &'static str,
    spec: Value,
    id: &'static str,
    line: &'static str,
}

fn set_up(name: &'static str, spec: Value, id: &'static str, line: &'static str) -> SetUp {
    SetUp { name, spec, id, line }
}

fn target(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name})
}

fn of_container(name: &str) -> Value {
    json!({"type": "ContainerResource", "containerResource": {
        "name": "cpu", "container": name, "target": {"type": "Utilization", "averageUtilization": 50}
    }})
}

fn of_pods(name: &str) -> Value {
    json!({"type": "Pods", "pods": {
        "metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "10"}
    }})
}

fn of_object(kind: &str) -> Value {
    json!({"type": "Object", "object": {
        "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": kind, "name": "main"},
        "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10"}
    }})
}

fn hpa(metric: &Value) -> Value {
    json!({"minReplicas": 1, "maxReplicas": 8, "metrics": [metric]})
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn policies(select: &str, pods: i64) -> Value {
    json!({"stabilizationWindowSeconds": 0, "selectPolicy": select,
        "policies": [{"type": "Pods", "value": pods, "periodSeconds": 600}]})
}

/// All set-ups that need no failure of a whole API.
fn set_ups() -> Vec<SetUp> {
    let on = |spec: Value, target: Value| with(spec, "scaleTargetRef", target);
    let behavior = |direction: &str, rules: Value| json!({ direction: rules });
    vec![
        set_up(
            "gone",
            on(hpa(&cpu(50)), target("apps/v1", "Deployment", "nobody")),
            "target-not-found",
            "/nobody does not exist",
        ),
        set_up(
            "no-kind",
            on(hpa(&cpu(50)), target("apps/v1", "Deploiment", "web")),
            "target-kind-unknown",
            "/web",
        ),
        set_up("zero", hpa(&cpu(50)), "target-at-zero", "which disables autoscaling"),
        set_up(
            "container",
            hpa(&of_container("ap")),
            "container-not-found",
            "no pod has container ap (nearest: app)",
        ),
        set_up(
            "no-request",
            hpa(&cpu(50)),
            "missing-request",
            "container app of pod no-request-0 has no cpu request",
        ),
        set_up("no-pods", hpa(&cpu(50)), "no-pods", "no pod matches the selector app=no-pods"),
        set_up("silent", hpa(&cpu(50)), "pods-without-samples", ""),
        set_up("unready", hpa(&cpu(50)), "pods-not-ready", ""),
        set_up(
            "by-pods",
            hpa(&of_pods("hitz")),
            "metric-not-found",
            "custom.metrics.k8s.io does not serve hitz",
        ),
        set_up("by-kind", hpa(&of_object("Ingres")), "object-kind-unknown", "does not know the kind Ingres"),
        set_up(
            "full",
            with(hpa(&queue("full")), "maxReplicas", json!(2)),
            "at-maximum",
            "; metrics propose 6",
        ),
        set_up(
            "low",
            with(hpa(&queue("low")), "minReplicas", json!(2)),
            "at-minimum",
            "at minimum 2; metrics propose 1",
        ),
        set_up(
            "up-rate",
            with(hpa(&queue("up-rate")), "behavior", behavior("scaleUp", policies("Max", 1))),
            "scale-up-rate",
            "",
        ),
        set_up(
            "up-off",
            with(hpa(&queue("up-off")), "behavior", behavior("scaleUp", policies("Disabled", 1))),
            "scale-up-disabled",
            "scale-up is disabled by behavior",
        ),
        set_up(
            "down-off",
            with(hpa(&queue("down-off")), "behavior", behavior("scaleDown", policies("Disabled", 1))),
            "scale-down-disabled",
            "scale-down is disabled by behavior",
        ),
        set_up(
            "window",
            with(
                hpa(&queue("window")),
                "behavior",
                behavior("scaleDown", json!({"stabilizationWindowSeconds": 3600})),
            ),
            "scale-down-window",
            "",
        ),
        set_up(
            "steady",
            hpa(&queue("steady")),
            "within-tolerance",
            "steady is within tolerance of its target",
        ),
        set_up("twin-a", hpa(&cpu(50)), "pods-of-two-autoscalers", ""),
        set_up(
            "unknown",
            hpa(&queue("not-there")),
            "metric-not-found",
            "external.metrics.k8s.io does not serve not-there",
        ),
    ]
}

/// Creates targets and values, so that nothing but the named fault is wrong.
async fn prepare(env: &ControllerEnv) {
    for name in ["container", "silent", "by-pods", "twin-a"] {
        env.workload(name, 2).await;
    }
    env.usage("container", 2, 500, 1);
    env.usage("twin-a", 2, 500, 1);
    let twin = with(hpa(&cpu(50)), "scaleTargetRef", target("apps/v1", "Deployment", "twin-a"));
    create(env, "twin-b", twin).await;
    env.deployment("zero", 0).await;
    env.deployment("no-request", 1).await;
    env.pod_with("no-request", 0, json!({})).await;
    env.usage("no-request", 1, 500, 1);
    env.deployment("no-pods", 2).await;
    env.deployment("unready", 2).await;
    for number in 0..2 {
        env.pod("unready", number).await;
        let since = api::instant::format(jiff::Timestamp::now() - SignedDuration::from_secs(30));
        let status = json!({"status": {"startTime": since,
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": since}]}});
        env.patch(&format!("/api/v1/namespaces/{{ns}}/pods/unready-{number}/status"), status).await;
    }
    env.usage("unready", 2, 500, 1);
    // Something else is served, so that the metric and not its API is missing.
    let pod = DescribedObject::pod(&env.namespace, "by-pods-0");
    env.script.set_custom(pod, "hits", Series::milli(1000).of_object(&[("app", "by-pods")]));
    for name in ["by-kind", "full", "low", "up-rate", "up-off", "down-off", "window", "steady", "unknown"] {
        env.deployment(name, 2).await;
    }
    for (name, replicas) in [
        ("full", 6),
        ("low", 1),
        ("up-rate", 6),
        ("up-off", 6),
        ("down-off", 1),
        ("window", 1),
        ("steady", 2),
    ] {
        env.ask_for(name, replicas);
    }
}

/// Creates an HPA whose target is the Deployment of the same name, unless its spec names another.
async fn create(env: &ControllerEnv, name: &str, mut spec: Value) {
    if spec.get("scaleTargetRef").is_none() {
        spec["scaleTargetRef"] = target("apps/v1", "Deployment", name);
    }
    let object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name}, "spec": spec});
    env.create("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", object).await;
}

/// Waits until the latest decision on an HPA has this first cause, and returns the first line of `why`.
async fn first_line(env: &ControllerEnv, ours: &RunningController, name: &str, id: &str) -> String {
    let record = || ours.handle.records().of(&env.namespace, &format!("hpa.{name}")).pop();
    env.until(&format!("cause {id} of {name}"), async || {
        let found = record().map(|record| diagnose(&record.facts(None)));
        match found.as_ref().and_then(|found| found.first()) {
            Some(first) if first.id == id => Ok(()),
            _ => Err(found),
        }
    })
    .await;
    record().map(|record| explain_with_causes("hpa", &record, None).headline).unwrap_or_default()
}

#[test]
fn first_line_of_why_names_the_cause() -> Result<(), Failure> {
    on_both(async |env| {
        prepare(&env).await;
        let all = set_ups();
        for SetUp { name, spec, .. } in &all {
            create(&env, name, spec.clone()).await;
        }
        let ours = env.controller(env.settings());
        for SetUp { name, id, line, .. } in &all {
            let first = first_line(&env, &ours, name, id).await;
            assert!(first.ends_with(line), "on {}: {name}: {first}", env.cluster);
        }
        assert!(ours.is_alive());
        ours.stop().await;
    })
}

#[test]
fn failures_of_metrics_apis_are_told_apart() -> Result<(), Failure> {
    alone_on_both(async |env| {
        env.workload("web", 2).await;
        env.usage("web", 2, 500, 1);
        env.hpa("web", 1, 8, json!([cpu(50)])).await;
        let ours = env.controller(env.settings());
        first_line(&env, &ours, "web", "within-tolerance").await;
        let status =
            |code: u16, reason: &'static str| Outage::Status { code, reason, message: "not now".into() };
        let outages = [
            (status(503, "ServiceUnavailable"), "metrics-api-unavailable", "metrics.k8s.io is not available"),
            (status(403, "Forbidden"), "rbac-missing", ""),
            (status(401, "Unauthorized"), "metrics-api-unauthorized", "does not accept the credentials"),
            (status(500, "InternalError"), "metrics-api-error", ""),
            (Outage::Empty, "pods-without-samples", ""),
            (Outage::Garbage, "metrics-api-unreachable", ""),
        ];
        for (outage, id, line) in outages {
            env.script.fail(MetricsGroup::Resource, outage);
            let first = first_line(&env, &ours, "web", id).await;
            assert!(first.ends_with(line), "on {}: {first}", env.cluster);
        }
        env.script.fail(MetricsGroup::Resource, Outage::None);
        first_line(&env, &ours, "web", "within-tolerance").await;
        ours.stop().await;
    })
}
