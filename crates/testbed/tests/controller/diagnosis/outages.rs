//! Failures of whole metrics APIs, each with another failure in each round.

use api::diagnosis::{diagnose, explain_with_causes};
use localkube::metrics::{DescribedObject, MetricsGroup, Outage, Series};
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{ControllerEnv, RunningController, alone_on_both, cpu, queue};

/// The failure of one API in a round, with the expected cause and words of the first line.
struct OutageRow {
    outage: Outage,
    id: &'static str,
    words: &'static str,
}

/// HPAs by their metrics, each with its API.
const HPAS: [(&str, MetricsGroup); 3] = [
    ("by-cpu", MetricsGroup::Resource),
    ("by-rps", MetricsGroup::Custom),
    ("by-queue", MetricsGroup::External),
];

fn row(outage: Outage, id: &'static str, words: &'static str) -> OutageRow {
    OutageRow { outage, id, words }
}

/// The failures of each round, one for each of [`HPAS`].
fn rounds() -> Vec<[OutageRow; 3]> {
    let status = |code: u16, reason: &'static str| Outage::Status { code, reason, message: "not now".into() };
    let denied = Outage::Status {
        code: 403,
        reason: "Forbidden",
        message: "pods.metrics.k8s.io is forbidden: User \"system:serviceaccount:plimsoll-system:plimsoll-controller\" cannot \
                  list resource \"pods\" in API group \"metrics.k8s.io\" in the namespace \"shop\""
            .into(),
    };
    vec![
        [
            row(
                status(503, "ServiceUnavailable"),
                "metrics-api-unavailable",
                "cpu cannot be read: metrics.k8s.io is not available",
            ),
            row(
                status(401, "Unauthorized"),
                "metrics-api-unauthorized",
                "rps cannot be read: custom.metrics.k8s.io does not accept the credentials",
            ),
            row(
                status(429, "TooManyRequests"),
                "metrics-api-overloaded",
                "by-queue cannot be read: external.metrics.k8s.io gets too many requests",
            ),
        ],
        [
            row(denied, "rbac-missing", "plimsoll-controller may not list pods in metrics.k8s.io"),
            row(
                status(500, "InternalError"),
                "metrics-api-error",
                "rps cannot be read: custom.metrics.k8s.io answered 500: ",
            ),
            row(
                status(504, "Timeout"),
                "metrics-api-timeout",
                "by-queue cannot be read: external.metrics.k8s.io did not answer in time",
            ),
        ],
        [
            row(Outage::Empty, "pods-without-samples", "2 pods are without samples: "),
            row(
                status(503, "ServiceUnavailable"),
                "metrics-api-unavailable",
                "rps cannot be read: custom.metrics.k8s.io is not available",
            ),
            row(Outage::Empty, "metric-without-values", "external.metrics.k8s.io has no values of by-queue"),
        ],
        [
            row(
                status(401, "Unauthorized"),
                "metrics-api-unauthorized",
                "cpu cannot be read: metrics.k8s.io does not accept the credentials",
            ),
            row(
                Outage::Garbage,
                "metrics-api-unreachable",
                "rps cannot be read: no usable answer from custom.metrics.k8s.io: ",
            ),
            row(
                Outage::Text { code: 502, body: "bad gateway".into() },
                "metrics-api-unavailable",
                "by-queue cannot be read: external.metrics.k8s.io is not available",
            ),
        ],
    ]
}

#[test]
fn failures_of_metrics_apis_have_different_causes() -> Result<(), Failure> {
    alone_on_both(async |env| {
        prepare(&env).await;
        let ours = env.controller(env.settings());
        let healthy = async || {
            for (name, _) in HPAS {
                first_line(&env, &ours, name, "within-tolerance").await;
            }
        };
        healthy().await;
        for round in rounds() {
            for ((_, group), row) in HPAS.iter().zip(&round) {
                env.script.fail(*group, row.outage.clone());
            }
            for ((name, _), row) in HPAS.iter().zip(&round) {
                let first = first_line(&env, &ours, name, row.id).await;
                assert!(first.contains(row.words), "on {}: {first}", env.cluster);
            }
        }
        for (_, group) in HPAS {
            env.script.fail(group, Outage::None);
        }
        healthy().await;
        without_server(&env, &ours).await;
        ours.stop().await;
    })
}

/// Creates three workloads of two replicas at their targets, one for each API.
async fn prepare(env: &ControllerEnv) {
    for name in ["by-cpu", "by-rps"] {
        env.workload(name, 2).await;
    }
    env.deployment("by-queue", 2).await;
    env.usage("by-cpu", 2, 500, 1);
    for number in 0..2 {
        let pod = DescribedObject::pod(&env.namespace, &format!("by-rps-{number}"));
        env.script.set_custom(pod, "rps", Series::milli(10_000).of_object(&[("app", "by-rps")]));
    }
    env.ask_for("by-queue", 2);
    let rps = json!({"type": "Pods", "pods": {
        "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}
    }});
    for (name, metric) in [("by-cpu", cpu(50)), ("by-rps", rps), ("by-queue", queue("by-queue"))] {
        env.hpa(name, 1, 8, json!([metric])).await;
    }
}

/// Deletes the APIService of an API.
async fn without_server(env: &ControllerEnv, ours: &RunningController) {
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io";
    let removed: Value = env.read(path).await;
    env.delete(path).await;
    let first = first_line(env, ours, "by-queue", "metrics-api-not-served").await;
    let words = "by-queue cannot be read: no server is registered for external.metrics.k8s.io";
    assert!(first.contains(words), "on {}: {first}", env.cluster);
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": removed["metadata"]["name"]}, "spec": removed["spec"]
    });
    env.create("/apis/apiregistration.k8s.io/v1/apiservices", service).await;
    first_line(env, ours, "by-queue", "within-tolerance").await;
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
