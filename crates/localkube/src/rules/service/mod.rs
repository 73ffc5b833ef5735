//! Services: cluster IPs and node ports, which a real cluster allocates, are derived from the uid.

mod validate;

use serde_json::{Value, json};

use super::Rules;
use super::json::{at, derived, each, fill, flag, has, list, number, part, put, remove, text, tidy};

/// The address fields of all services except `ExternalName`.
const ADDRESS_FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// The rules of services.
pub const RULES: Rules = Rules {
    default,
    create,
    update,
    validate: |service| validate::check(service).into(),
    validate_update: validate::update,
    validate_status: validate::status,
    name: api::names::dns_label_faults,
    gated: None,
};

fn default(service: &mut Value, _version: &str) {
    // The selector is a map: its empty values stay.
    let selector = service.get_mut("spec").and_then(|spec| remove(spec, "selector"));
    tidy(service);
    let spec = part(service, "spec");
    if let Some(selector) =
        selector.filter(|selector| selector.as_object().is_some_and(|map| !map.is_empty()))
    {
        put(spec, "selector", selector);
    }
    fill(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "ClientIP" {
        fill(part(part(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
    } else if text(spec, "sessionAffinity") == "None" {
        remove(spec, "sessionAffinityConfig");
    }
    fill(spec, "type", "ClusterIP");
    for port in each(spec, "ports") {
        fill(port, "protocol", "TCP");
        if matches!(at(port, "targetPort"), Value::Null) || number(port, "targetPort") == Some(0) {
            let number = at(port, "port").clone();
            put(port, "targetPort", number);
        }
    }
    let kind = text(spec, "type").to_owned();
    if is_external(spec) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
    part(part(service, "status"), "loadBalancer");
}

fn create(service: &mut Value) {
    put(service, "status", json!({"loadBalancer": {}}));
    allocate(service);
}

fn update(service: &mut Value, old: &Value) {
    let old = at(old, "spec");
    let spec = part(service, "spec");
    // `clusterIP` and `clusterIPs` are the same; the changed one wins.
    let address = text(spec, "clusterIP").to_owned();
    let changed = !address.is_empty() && address != text(old, "clusterIP");
    if changed && at(spec, "clusterIPs") == at(old, "clusterIPs") {
        put(spec, "clusterIPs", json!([address]));
    }
    if text(spec, "type") == "ExternalName" {
        for field in ADDRESS_FIELDS.into_iter().chain(["internalTrafficPolicy"]) {
            release(spec, old, field);
        }
    } else if text(old, "type") != "ExternalName" {
        for field in ADDRESS_FIELDS {
            keep_old(spec, old, field);
        }
    }
    if !needs_node_ports(spec) {
        for port in each(spec, "ports") {
            let number = at(port, "nodePort");
            if list(old, "ports").iter().any(|before| at(before, "nodePort") == number) {
                remove(port, "nodePort");
            }
        }
    } else if needs_node_ports(old) {
        for port in each(spec, "ports") {
            let same = |before: &&Value| {
                at(before, "port") == at(port, "port") && at(before, "protocol") == at(port, "protocol")
            };
            if let Some(before) = list(old, "ports").iter().find(same) {
                keep_old(port, before, "nodePort");
            }
        }
    }
    if needs_health_port(spec) {
        keep_old(spec, old, "healthCheckNodePort");
    } else {
        release(spec, old, "healthCheckNodePort");
    }
    if !is_external(spec) {
        release(spec, old, "externalTrafficPolicy");
    }
    if text(spec, "type") != "LoadBalancer" {
        release(spec, old, "allocateLoadBalancerNodePorts");
    }
    allocate(service);
}

/// Restores a field that the update omits.
fn keep_old(new: &mut Value, old: &Value, field: &str) {
    if has(old, field) {
        fill(new, field, at(old, field).clone());
    }
}

/// Removes an unchanged field that the new service type does not use.
fn release(new: &mut Value, old: &Value, field: &str) {
    if at(new, field) == at(old, field) {
        remove(new, field);
    }
}

/// Whether the service is reachable from outside of the cluster.
fn is_external(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        kind => kind == "ClusterIP" && has(spec, "externalIPs"),
    }
}

/// Whether every port has a node port.
fn needs_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => flag(spec, "allocateLoadBalancerNodePorts"),
        _ => false,
    }
}

fn needs_health_port(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn allocate(service: &mut Value) {
    let address = address(derived(service, 0));
    // The ports of a service are consecutive, so that they differ.
    let mut free = 30000 + derived(service, 1) % 2700;
    let mut next = || {
        free += 1;
        free
    };
    let spec = part(service, "spec");
    if text(spec, "type") == "ExternalName" {
        return;
    }
    fill(spec, "clusterIP", address);
    let first = at(spec, "clusterIP").clone();
    fill(spec, "clusterIPs", json!([first]));
    let headless = text(spec, "clusterIP") == "None";
    let dual = headless && (!has(spec, "selector") || text(spec, "ipFamilyPolicy").ends_with("DualStack"));
    let policy = if dual { "RequireDualStack" } else { "SingleStack" };
    fill(spec, "ipFamilyPolicy", policy);
    fill(spec, "ipFamilies", if dual { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    if needs_node_ports(spec) {
        for port in each(spec, "ports") {
            fill(port, "nodePort", next());
        }
    }
    if needs_health_port(spec) {
        fill(spec, "healthCheckNodePort", next());
    }
}

/// An address of 10.96.0.0/16 except the first and the last.
fn address(number: u64) -> String {
    let host = 1 + number % 65534;
    format!("10.96.{}.{}", host / 256, host % 256)
}
