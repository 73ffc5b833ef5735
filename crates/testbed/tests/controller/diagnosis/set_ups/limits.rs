//! Set-ups in which a limit holds the count.

use serde_json::{Value, json};

use super::{SetUp, TestTarget, hpa, set_up, with};
use crate::env::queue;

fn behavior(name: &str, direction: &str, rules: &Value) -> Value {
    with(hpa(&queue(name)), "behavior", json!({ direction: rules }))
}

fn policies(select: &str, pods: i64) -> Value {
    json!({"stabilizationWindowSeconds": 0, "selectPolicy": select,
        "policies": [{"type": "Pods", "value": pods, "periodSeconds": 600}]})
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let recommended = |wanted: i64| TestTarget::Recommended { replicas: 2, wanted };
    vec![
        set_up(
            "full",
            recommended(6),
            with(hpa(&queue("full")), "maxReplicas", json!(2)),
            "at-maximum",
            "; metrics propose 6",
        ),
        set_up(
            "low",
            recommended(1),
            with(hpa(&queue("low")), "minReplicas", json!(2)),
            "at-minimum",
            "at minimum 2; metrics propose 1",
        ),
        set_up(
            "up-rate",
            recommended(6),
            behavior("up-rate", "scaleUp", &policies("Max", 1)),
            "scale-up-rate",
            "the scale-up policy 1 pod in 600 s allows at most 3 until ",
        ),
        set_up(
            "down-rate",
            TestTarget::Recommended { replicas: 5, wanted: 1 },
            behavior("down-rate", "scaleDown", &policies("Max", 1)),
            "scale-down-rate",
            "the scale-down policy 1 pod in 600 s allows at least 4 until ",
        ),
        set_up(
            "up-off",
            recommended(6),
            behavior("up-off", "scaleUp", &policies("Disabled", 1)),
            "scale-up-disabled",
            "scale-up is disabled by behavior",
        ),
        set_up(
            "down-off",
            recommended(1),
            behavior("down-off", "scaleDown", &policies("Disabled", 1)),
            "scale-down-disabled",
            "scale-down is disabled by behavior",
        ),
        set_up(
            "window",
            recommended(1),
            behavior("window", "scaleDown", &json!({"stabilizationWindowSeconds": 3600})),
            "scale-down-window",
            "the scale-down window holds 2 until ",
        ),
        set_up(
            "up-window",
            recommended(6),
            behavior("up-window", "scaleUp", &json!({"stabilizationWindowSeconds": 3600})),
            "scale-up-window",
            "the scale-up window holds 2 until ",
        ),
        set_up(
            "steady",
            recommended(2),
            hpa(&queue("steady")),
            "within-tolerance",
            "steady is within tolerance of its target",
        ),
    ]
}

/// Set-ups whose cause ends with the first decisions. The records of these decisions are kept.
pub(super) fn passing() -> Vec<SetUp> {
    let bounds = |name: &str, min: i32, max: i32| json!({"minReplicas": min, "maxReplicas": max, "metrics": [queue(name)]});
    vec![
        set_up(
            "above",
            TestTarget::Recommended { replicas: 9, wanted: 5 },
            bounds("above", 1, 5),
            "above-maximum",
            "the count was above maximum 5",
        ),
        set_up(
            "below",
            TestTarget::Recommended { replicas: 1, wanted: 3 },
            bounds("below", 3, 8),
            "below-minimum",
            "the count was below minimum 3",
        ),
        set_up(
            "steps",
            TestTarget::Recommended { replicas: 2, wanted: 7 },
            bounds("steps", 1, 8),
            "scale-up-rate",
            "the limit of one step without behavior allows at most 4",
        ),
    ]
}
