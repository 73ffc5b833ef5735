//! Nodes.

use std::collections::BTreeSet;

use api::field::{AsJson, FieldError};
use api::names::{label_key_faults, label_value_faults};
use serde_json::{Value, json};

use super::faults::{Faults, NEGATIVE};
use super::json::{amount, at, each, entries, fill, has, list, part, put, text, texts, tidy};
use super::{NONE, Rules};

const NODE_INFO_FIELDS: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The rules of nodes.
pub const RULES: Rules = Rules {
    default,
    create,
    validate: |node| {
        let mut faults = Faults::default();
        taints(&mut faults, node);
        ranges(&mut faults, node);
        amounts(&mut faults, node, "capacity");
        faults.into()
    },
    validate_update,
    validate_status: |new, _| {
        let mut faults = Faults::default();
        amounts(&mut faults, new, "capacity");
        amounts(&mut faults, new, "allocatable");
        faults.into()
    },
    ..NONE
};

fn default(node: &mut Value, _version: &str) {
    tidy(node);
    let spec = part(node, "spec");
    let range = at(spec, "podCIDR").clone();
    if !range.is_null() && at(spec, "podCIDRs").get(0) != Some(&range) {
        put(spec, "podCIDRs", json!([range]));
    }
    let status = part(node, "status");
    let capacity = at(status, "capacity").clone();
    if !capacity.is_null() {
        fill(status, "allocatable", capacity);
    }
    let endpoint = part(part(status, "daemonEndpoints"), "kubeletEndpoint");
    fill(endpoint, "Port", 0);
    let info = part(status, "nodeInfo");
    for name in NODE_INFO_FIELDS {
        fill(info, name, "");
    }
    for condition in each(status, "conditions") {
        fill(condition, "lastHeartbeatTime", Value::Null);
        fill(condition, "lastTransitionTime", Value::Null);
    }
}

/// A new node is tainted until it is ready.
fn create(node: &mut Value) {
    let spec = part(node, "spec");
    if !list(spec, "taints").iter().any(|taint| text(taint, "key") == NOT_READY) {
        if !has(spec, "taints") {
            put(spec, "taints", json!([]));
        }
        if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut) {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
    }
}

fn taints(faults: &mut Faults, node: &Value) {
    let mut seen = BTreeSet::new();
    for (i, taint) in list(node, "spec.taints").iter().enumerate() {
        // The real server reports this path.
        let path = format!("metadata.taints[{i}]");
        let [key, value, effect] = ["key", "value", "effect"].map(|name| text(taint, name));
        faults.follows(format_args!("{path}.key"), key, label_key_faults);
        faults.follows(format_args!("{path}.value"), value, label_value_faults);
        if faults.present(format_args!("{path}.effect"), effect) {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            faults.one_of(format_args!("{path}.effect"), effect, &effects);
        }
        if !seen.insert((key, effect)) {
            let shown =
                json!({"Key": key, "Value": value, "Effect": effect, "TimeAdded": at(taint, "timeAdded")});
            let mut fault = FieldError::duplicate(path, AsJson(&shown));
            "taints must be unique by key and effect pair".clone_into(&mut fault.detail);
            faults.add(fault);
        }
    }
}

fn ranges(faults: &mut Faults, node: &Value) {
    for (i, range) in texts(node, "spec.podCIDRs").enumerate() {
        faults.range(format_args!("spec.podCIDRs[{i}]"), range);
    }
}

fn amounts(faults: &mut Faults, node: &Value, field: &str) {
    for (name, value) in entries(at(node, "status"), field) {
        if amount(value).is_some_and(|amount| amount.sign() < 0) {
            faults.invalid(format_args!("status.{field}.{name}"), AsJson(value), NEGATIVE);
        }
    }
}

fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    // The real server validates taints twice.
    taints(&mut faults, new);
    taints(&mut faults, new);
    for (field, named) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let path = format!("spec.{field}");
        if has(old, &path) && at(new, &path) != at(old, &path) {
            let detail = format!("node updates may not change {named} except from \"\" to valid");
            faults.forbidden(path, detail);
        }
    }
    faults.into()
}
