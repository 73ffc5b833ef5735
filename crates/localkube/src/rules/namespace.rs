//! Namespaces.

use api::field::FieldError;
use serde_json::{Value, json};

use super::Rules;
use super::faults::Faults;
use super::json::{at, fill, has, list, part, put, text, texts, tidy};

/// The rules of namespaces.
pub const RULES: Rules = Rules {
    default,
    create,
    update,
    validate,
    validate_update: |new, _| validate(new),
    validate_status: |new, _| status_faults(new),
    name: api::names::dns_label_faults,
    gated: None,
};

fn default(namespace: &mut Value, _version: &str) {
    tidy(namespace);
    let name = text(namespace, "metadata.name").to_owned();
    if !name.is_empty() {
        put(part(part(namespace, "metadata"), "labels"), "kubernetes.io/metadata.name", name);
    }
    part(namespace, "spec");
    fill(part(namespace, "status"), "phase", "Active");
}

fn create(namespace: &mut Value) {
    put(namespace, "status", json!({"phase": "Active"}));
    let spec = part(namespace, "spec");
    if !list(spec, "finalizers").iter().any(|finalizer| finalizer == "kubernetes") {
        fill(spec, "finalizers", json!([]));
        if let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut) {
            finalizers.push("kubernetes".into());
        }
    }
}

/// `spec.finalizers` is changed through its own subresource.
fn update(namespace: &mut Value, old: &Value) {
    if has(old, "spec") {
        put(namespace, "spec", at(old, "spec").clone());
    }
}

fn validate(namespace: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    for finalizer in texts(namespace, "spec.finalizers") {
        let wrong = api::names::label_key_faults(finalizer);
        if wrong.is_empty() && !finalizer.contains('/') && finalizer != "kubernetes" {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            faults.invalid("spec.finalizers", finalizer, detail);
        }
        for wrong in wrong {
            faults.invalid("spec.finalizers", finalizer, wrong);
        }
    }
    faults.into()
}

fn status_faults(namespace: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let phase = text(namespace, "status.phase");
    let dying = has(namespace, "metadata.deletionTimestamp");
    if dying && phase != "Terminating" {
        let detail = "may only be 'Terminating' if `deletionTimestamp` is not empty";
        faults.invalid("status.Phase", phase, detail);
    } else if !dying && phase != "Active" {
        faults.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    }
    faults.into()
}
