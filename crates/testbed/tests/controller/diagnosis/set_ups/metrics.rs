//! Set-ups whose metrics are not served.

use serde_json::{Value, json};

use super::{READY_POD, SetUp, TestTarget, hpa, set_up, with_pods};
use crate::env::queue;

fn of_pods(name: &str) -> Value {
    hpa(&json!({"type": "Pods", "pods": {
        "metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": "10"}
    }}))
}

fn of_object(api_version: &str, kind: &str, metric: &str) -> Value {
    hpa(&json!({"type": "Object", "object": {
        "describedObject": {"apiVersion": api_version, "kind": kind, "name": "main"},
        "metric": {"name": metric}, "target": {"type": "Value", "value": "10"}
    }}))
}

fn selecting(metric: &str, selector: &Value) -> Value {
    let mut metric = queue(metric);
    metric["external"]["metric"]["selector"] = selector.clone();
    hpa(&metric)
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let empty = || TestTarget::Empty(2);
    let mut partial = hpa(&queue("partial"));
    partial["metrics"] = json!([queue("partial"), queue("partial-missing")]);
    vec![
        set_up(
            "by-pods",
            with_pods(&[READY_POD; 2]),
            of_pods("hitz"),
            "metric-not-found",
            "custom.metrics.k8s.io does not serve hitz; similar: hits",
        ),
        set_up(
            "by-kind",
            empty(),
            of_object("networking.k8s.io/v1", "Ingres", "hits"),
            "object-kind-unknown",
            "hits cannot be read: the cluster does not know the kind Ingres",
        ),
        set_up(
            "by-object",
            empty(),
            of_object("v1", "Service", "delay_ms"),
            "metric-not-found",
            "custom.metrics.k8s.io does not serve delay_ms",
        ),
        set_up(
            "unknown",
            empty(),
            hpa(&queue("not-there")),
            "metric-not-found",
            "external.metrics.k8s.io does not serve not-there",
        ),
        set_up(
            "misspelt",
            TestTarget::Recommended { replicas: 2, wanted: 2 },
            hpa(&queue("mispelt")),
            "metric-not-found",
            "external.metrics.k8s.io does not serve mispelt; similar: misspelt",
        ),
        set_up(
            "no-series",
            TestTarget::Recommended { replicas: 2, wanted: 2 },
            selecting("no-series", &json!({"matchLabels": {"queue": "mails"}})),
            "metric-without-values",
            "external.metrics.k8s.io has no values of no-series",
        ),
        set_up(
            "bad-metric-selector",
            TestTarget::Recommended { replicas: 2, wanted: 2 },
            selecting(
                "bad-metric-selector",
                &json!({"matchExpressions": [{"key": "queue", "operator": "In"}]}),
            ),
            "metric-selector-invalid",
            "the selector of bad-metric-selector is invalid: ",
        ),
        set_up(
            "partial",
            TestTarget::Recommended { replicas: 2, wanted: 1 },
            partial,
            "metric-not-found",
            "external.metrics.k8s.io does not serve partial-missing",
        ),
    ]
}
