//! Replica sets.

use serde_json::{Value, json};

use super::shared::{lasting_template, same_selector, selector, selects_template};
use crate::rules::faults::Faults;
use crate::rules::json::{at, each, fill, number, part, put, remove, tidy};
use crate::rules::pod::defaults::template;
use crate::rules::{NONE, Rules};

/// The rules of replica sets.
pub const RULES: Rules = Rules {
    default,
    create,
    validate: |set| faults(set).into(),
    validate_update: |new, old| {
        let mut faults = faults(new);
        same_selector(&mut faults, new, old);
        faults.into()
    },
    validate_status: |new, _| {
        let mut faults = Faults::default();
        faults.counts(at(new, "status"), &COUNTS, &PARTS);
        faults.into()
    },
    ..NONE
};

const COUNTS: [&str; 5] =
    ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
const PARTS: [(&str, &str, &str); 4] = [
    ("fullyLabeledReplicas", "replicas", "status.replicas"),
    ("readyReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "readyReplicas", "readyReplicas"),
];

fn default(set: &mut Value, _version: &str) {
    tidy(set);
    let spec = part(set, "spec");
    fill(spec, "replicas", 1);
    template(part(spec, "template"));
    let status = part(set, "status");
    fill(status, "replicas", 0);
    if number(status, "availableReplicas") == Some(0) {
        remove(status, "availableReplicas");
    }
    for condition in each(status, "conditions") {
        fill(condition, "lastTransitionTime", Value::Null);
    }
}

fn create(set: &mut Value) {
    put(set, "status", json!({"replicas": 0}));
}

fn faults(set: &Value) -> Faults {
    let mut faults = Faults::default();
    let spec = at(set, "spec");
    faults.not_negative("spec.replicas", number(spec, "replicas"));
    faults.not_negative("spec.minReadySeconds", number(spec, "minReadySeconds"));
    // The real server names a deployment here as well.
    if let Some(selector) = selector(&mut faults, spec, "deployment", "invalid label selector") {
        selects_template(&mut faults, spec, &selector);
        lasting_template(&mut faults, spec, "ReplicaSet");
    }
    faults
}
