//! The fields that the admission plugins of a standard cluster add to new pods.

use serde_json::{Value, json};

use super::defaults::CONTAINERS;
use super::quality::quality;
use crate::random::letters;
use crate::rules::json::{at, derived, each, fill, has, list, number, part, put, text};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Prepares a new pod.
pub(super) fn admit(pod: &mut Value) {
    let volume = format!("kube-api-access-{}", letters(derived(pod, 0), 5));
    let quality = quality(at(pod, "spec"));
    put(pod, "status", json!({"phase": "Pending", "qosClass": quality}));
    let spec = part(pod, "spec");
    if text(spec, "serviceAccountName").is_empty() {
        put(spec, "serviceAccountName", "default");
        put(spec, "serviceAccount", "default");
    }
    if at(spec, "automountServiceAccountToken") != &Value::Bool(false) {
        mount_token(spec, &volume);
    }
    grace(spec);
    tolerate_faults(spec);
    let priority = match text(spec, "priorityClassName") {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => 0,
    };
    fill(spec, "priority", priority);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
}

/// A negative grace period becomes the shortest one.
fn grace(spec: &mut Value) {
    if number(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        put(spec, "terminationGracePeriodSeconds", 1);
    }
}

/// Mounts the service account token into all containers that mount nothing at its path.
fn mount_token(spec: &mut Value, volume: &str) {
    let mut mounted = false;
    for kind in CONTAINERS {
        for container in each(spec, kind) {
            if list(container, "volumeMounts").iter().any(|mount| text(mount, "mountPath") == TOKEN_PATH) {
                continue;
            }
            push(
                container,
                "volumeMounts",
                json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}),
            );
            mounted = true;
        }
    }
    if mounted {
        push(
            spec,
            "volumes",
            json!({"name": volume, "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }]}},
                ],
                "defaultMode": 420,
            }}),
        );
    }
}

/// Adds tolerations for nodes that are not ready or unreachable.
pub(super) fn tolerate_faults(spec: &mut Value) {
    tolerate(spec, "node.kubernetes.io/not-ready");
    tolerate(spec, "node.kubernetes.io/unreachable");
}

/// Adds a toleration for 300 seconds, unless the pod tolerates the taint already.
fn tolerate(spec: &mut Value, key: &str) {
    let said = list(spec, "tolerations").iter().any(|toleration| {
        (text(toleration, "key") == key || text(toleration, "key").is_empty())
            && matches!(text(toleration, "effect"), "NoExecute" | "")
    });
    if !said {
        let toleration =
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        push(spec, "tolerations", toleration);
    }
}

fn push(value: &mut Value, key: &str, item: Value) {
    if !has(value, key) {
        put(value, key, json!([]));
    }
    if let Some(items) = value.get_mut(key).and_then(Value::as_array_mut) {
        items.push(item);
    }
}
