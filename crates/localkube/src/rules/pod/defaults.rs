//! Defaulting of pods and pod templates.

use quantity::Quantity;
use serde_json::{Value, json};

use crate::rules::json::{
    amount, at, each, entries, fill, flag, has, list, number, part, part_of, put, text,
};

type DefaultValue = fn() -> Value;

/// Defaults of volume sources.
const VOLUME_SOURCE_DEFAULTS: &[(&str, &str, DefaultValue)] = &[
    ("secret", "defaultMode", || 420.into()),
    ("configMap", "defaultMode", || 420.into()),
    ("downwardAPI", "defaultMode", || 420.into()),
    ("projected", "defaultMode", || 420.into()),
    ("hostPath", "type", || "".into()),
    ("iscsi", "iscsiInterface", || "default".into()),
    ("rbd", "pool", || "rbd".into()),
    ("rbd", "user", || "admin".into()),
    ("rbd", "keyring", || "/etc/ceph/keyring".into()),
];

/// The container lists of a pod.
pub(super) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Applies defaults to a pod.
pub(super) fn pod(pod: &mut Value) {
    let spec = part(pod, "spec");
    fill(spec, "enableServiceLinks", true);
    let host_network = flag(spec, "hostNetwork");
    for kind in CONTAINERS {
        for container in each(spec, kind) {
            requests_from_limits(part(container, "resources"));
            if host_network {
                for port in each(container, "ports") {
                    let number = at(port, "containerPort").clone();
                    fill(port, "hostPort", number);
                }
            }
        }
    }
    pod_requests(spec);
    self::spec(spec);
    status(part(pod, "status"));
}

/// Status fields that are shown even if they are unset.
fn status(status: &mut Value) {
    let address = text(status, "podIP").to_owned();
    if !address.is_empty() {
        fill(status, "podIPs", json!([{"ip": address}]));
    }
    for condition in each(status, "conditions") {
        fill(condition, "lastProbeTime", Value::Null);
        fill(condition, "lastTransitionTime", Value::Null);
    }
    for kind in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        for container in each(status, kind) {
            for state in ["state", "lastState"] {
                let state = part(container, state);
                if let Some(running) = part_of(state, "running") {
                    fill(running, "startedAt", Value::Null);
                }
                if let Some(terminated) = part_of(state, "terminated") {
                    fill(terminated, "startedAt", Value::Null);
                    fill(terminated, "finishedAt", Value::Null);
                }
            }
            fill(container, "ready", false);
            fill(container, "restartCount", 0);
            fill(container, "image", "");
            fill(container, "imageID", "");
        }
    }
}

/// Applies defaults to a pod template.
pub(in crate::rules) fn template(template: &mut Value) {
    part(template, "metadata");
    spec(part(template, "spec"));
}

fn spec(spec: &mut Value) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "securityContext", json!({}));
    fill(spec, "schedulerName", "default-scheduler");
    // Two names of the same field.
    for (from, to) in [("serviceAccountName", "serviceAccount"), ("serviceAccount", "serviceAccountName")] {
        let name = text(spec, from).to_owned();
        if !name.is_empty() {
            put(spec, to, name);
        }
    }
    each(spec, "volumes").for_each(volume);
    for kind in CONTAINERS {
        each(spec, kind).for_each(container);
    }
}

fn container(container: &mut Value) {
    part(container, "resources");
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(text(container, "image"));
    fill(container, "imagePullPolicy", policy);
    for port in each(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        if let Some(from) = part_of(variable, "valueFrom") {
            field_refs(from);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = part_of(container, name) {
            handler(probe);
            for (field, default) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                if number(probe, field).unwrap_or_default() == 0 {
                    put(probe, field, default);
                }
            }
        }
    }
    if let Some(lifecycle) = part_of(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            part_of(lifecycle, hook).into_iter().for_each(handler);
        }
    }
}

fn handler(handler: &mut Value) {
    if let Some(get) = part_of(handler, "httpGet") {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
    if let Some(grpc) = part_of(handler, "grpc") {
        fill(grpc, "service", "");
    }
}

fn field_refs(from: &mut Value) {
    if let Some(field) = part_of(from, "fieldRef") {
        fill(field, "apiVersion", "v1");
    }
    if let Some(field) = part_of(from, "resourceFieldRef") {
        fill(field, "divisor", "0");
    }
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|fields| fields.keys().all(|key| key == "name")) {
        put(volume, "emptyDir", json!({}));
    }
    for (source, field, default) in VOLUME_SOURCE_DEFAULTS {
        if let Some(source) = part_of(volume, source) {
            fill(source, field, default());
        }
    }
    if let Some(downward) = part_of(volume, "downwardAPI") {
        each(downward, "items").for_each(field_refs);
    }
    if let Some(projected) = part_of(volume, "projected") {
        for source in each(projected, "sources") {
            if let Some(token) = part_of(source, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = part_of(source, "downwardAPI") {
                each(downward, "items").for_each(field_refs);
            }
        }
    }
    if let Some(image) = part_of(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill(image, "pullPolicy", policy);
    }
    if let Some(claim) =
        part_of(volume, "ephemeral").and_then(|source| part_of(source, "volumeClaimTemplate"))
    {
        part(claim, "metadata");
        claim_spec(claim);
    }
}

/// Applies defaults to a volume claim.
pub(in crate::rules) fn claim_spec(claim: &mut Value) {
    let spec = part(claim, "spec");
    part(spec, "resources");
    fill(spec, "volumeMode", "Filesystem");
}

/// `Always` for images without a fixed tag or digest.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let repository = name.split([':', '@']).next().unwrap_or_default();
    let broken = repository.chars().any(|c| c.is_whitespace() || c.is_uppercase());
    let moves = match name.split_once(':') {
        _ if broken || name.contains('@') => false,
        None => true,
        Some((_, tag)) => tag == "latest",
    };
    if moves { "Always" } else { "IfNotPresent" }
}

fn requests_from_limits(resources: &mut Value) {
    let limits = at(resources, "limits").as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let requests = part(resources, "requests");
    for (name, limit) in limits {
        fill(requests, &name, limit);
    }
}

/// Pod-level requests default to the sum of the containers' requests, or to the pod-level limits.
fn pod_requests(spec: &mut Value) {
    if !has(spec, "resources") {
        return;
    }
    let mut sums: Vec<(String, Quantity)> = Vec::new();
    for container in list(spec, "containers") {
        for (name, value) in entries(container, "resources.requests") {
            let Some(value) = amount(value) else { continue };
            match sums.iter_mut().find(|(sum, _)| sum == name) {
                Some((_, sum)) => sum.add(&value),
                None => sums.push((name.to_owned(), value)),
            }
        }
    }
    let resources = part(spec, "resources");
    for (name, sum) in sums.iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")) {
        fill(part(resources, "requests"), name, sum.to_string());
    }
    requests_from_limits(resources);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_fixed_tag_are_always_pulled() {
        for image in ["nginx", "nginx:latest", "r:5000/a", "r:5000/a:latest"] {
            assert_eq!(pull_policy(image), "Always", "{image}");
        }
        for image in ["a:1", "a@sha256:0000", "r:5000/a:1", " a", "Nginx"] {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image}");
        }
    }
}
