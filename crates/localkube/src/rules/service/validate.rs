//! Validation of services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::field::{AsJson, FieldError};
use api::names::{dns_label_faults, label_key_faults, subdomain_faults};
use serde_json::{Value, json};

use super::{is_external, needs_health_port};
use crate::rules::faults::Faults;
use crate::rules::json::{at, has, list, number, text, texts};

const LOAD_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
/// The maximum duration of client IP affinity.
const MAX_AFFINITY_SECONDS: i64 = 86400;

/// Validates a service.
pub(super) fn check(service: &Value) -> Faults {
    let mut faults = Faults::default();
    let spec = at(service, "spec");
    families(&mut faults, spec);
    // The real server stops here if the addresses are invalid.
    if !faults.is_empty() {
        return faults;
    }
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    match kind {
        "ExternalName" => {
            if has(spec, "clusterIP") {
                faults.forbidden("spec.clusterIPs", "may not be set for ExternalName services");
            }
            faults.name("spec.externalName", text(spec, "externalName"), subdomain_faults);
        }
        "NodePort" | "LoadBalancer" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            faults.invalid("spec.clusterIPs[0]", "None", detail);
        }
        _ if list(spec, "ports").is_empty() && !headless => faults.required("spec.ports"),
        _ => {}
    }
    ports(&mut faults, spec);
    faults.labels("spec.selector", spec, "selector");
    affinity(&mut faults, spec);
    if !headless && kind != "ExternalName" {
        for (i, address) in texts(spec, "clusterIPs").enumerate() {
            faults.address(format_args!("spec.clusterIPs[{i}]"), address);
        }
    }
    for (i, address) in texts(spec, "externalIPs").enumerate() {
        outside(&mut faults, &format!("spec.externalIPs[{i}]"), address);
    }
    faults.one_of("spec.type", kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    distinct(&mut faults, spec);
    balancing(&mut faults, spec);
    traffic(&mut faults, spec);
    faults
}

fn families(faults: &mut Faults, spec: &Value) {
    if has(spec, "ipFamilyPolicy") {
        let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        faults.one_of("spec.ipFamilyPolicy", text(spec, "ipFamilyPolicy"), &policies);
    }
    for (i, family) in texts(spec, "ipFamilies").enumerate() {
        faults.one_of(format_args!("spec.ipFamilies[{i}]"), family, &["IPv4", "IPv6"]);
    }
}

fn ports(faults: &mut Faults, spec: &Value) {
    let mut names = BTreeSet::new();
    let several = list(spec, "ports").len() > 1;
    for (i, port) in list(spec, "ports").iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        let name = text(port, "name");
        if several && name.is_empty() {
            faults.required(format_args!("{path}.name"));
        } else if !name.is_empty() {
            faults.follows(format_args!("{path}.name"), name, dns_label_faults);
            if !names.insert(name) {
                faults.add(FieldError::duplicate(format_args!("{path}.name"), name));
            }
        }
        faults.port(format_args!("{path}.port"), at(port, "port"));
        faults.one_of(format_args!("{path}.protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
        faults.port(format_args!("{path}.targetPort"), at(port, "targetPort"));
        if has(port, "appProtocol") {
            faults.follows(format_args!("{path}.appProtocol"), text(port, "appProtocol"), label_key_faults);
        }
    }
}

fn affinity(faults: &mut Faults, spec: &Value) {
    let affinity = text(spec, "sessionAffinity");
    faults.one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    let path = "sessionAffinityConfig.clientIP.timeoutSeconds";
    if let Some(seconds) = number(spec, path).filter(|seconds| !(1..=MAX_AFFINITY_SECONDS).contains(seconds))
    {
        let detail = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
        faults.invalid(format_args!("spec.{path}"), seconds, detail);
    }
}

/// Validates an external IP.
fn outside(faults: &mut Faults, path: &str, address: &str) {
    let Ok(read) = address.parse::<IpAddr>() else { return faults.address(path, address) };
    if read.is_unspecified() {
        faults.invalid(path, address, format!("may not be unspecified ({read})"));
    }
    if read.is_loopback() {
        faults.invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
}

/// Checks that ports are unique, and that node ports are set only where they are used.
fn distinct(faults: &mut Faults, spec: &Value) {
    let kind = text(spec, "type");
    if kind == "ClusterIP" {
        for (i, _) in list(spec, "ports").iter().enumerate().filter(|(_, port)| has(port, "nodePort")) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            faults.forbidden(format_args!("spec.ports[{i}].nodePort"), detail);
        }
    }
    let mut seen = BTreeSet::new();
    for (i, port) in list(spec, "ports").iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), number(port, "port"));
        if !seen.insert((protocol, number)) {
            let shown = json!({
                "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number, "TargetPort": 0, "NodePort": 0
            });
            faults.add(FieldError::duplicate(format_args!("spec.ports[{i}]"), AsJson(&shown)));
        }
    }
}

fn balancing(faults: &mut Faults, spec: &Value) {
    let balanced = text(spec, "type") == "LoadBalancer";
    if has(spec, "loadBalancerSourceRanges") {
        if !balanced {
            faults.forbidden("spec.LoadBalancerSourceRanges", LOAD_BALANCED);
        }
        for (i, range) in texts(spec, "loadBalancerSourceRanges").enumerate() {
            faults.range(format_args!("spec.LoadBalancerSourceRanges[{i}]"), range);
        }
    }
    if balanced {
        return;
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if has(spec, field) {
            faults.forbidden(format_args!("spec.{field}"), LOAD_BALANCED);
        }
    }
}

fn traffic(faults: &mut Faults, spec: &Value) {
    let policies = ["Cluster", "Local"];
    let policy = text(spec, "externalTrafficPolicy");
    if is_external(spec) {
        faults.one_of("spec.externalTrafficPolicy", policy, &policies);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        faults.invalid("spec.externalTrafficPolicy", policy, detail);
    }
    if let Some(port) = number(spec, "healthCheckNodePort").filter(|_| !needs_health_port(spec)) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        faults.invalid("spec.healthCheckNodePort", port, detail);
    }
    if has(spec, "internalTrafficPolicy") {
        faults.one_of("spec.internalTrafficPolicy", text(spec, "internalTrafficPolicy"), &policies);
    }
    if has(spec, "trafficDistribution") {
        let ways = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        faults.one_of("spec.trafficDistribution", text(spec, "trafficDistribution"), &ways);
    }
}

/// Validates a changed service.
pub(super) fn update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let keeps = |service| text(service, "spec.type") != "ExternalName";
    if keeps(new) && keeps(old) {
        let addresses = at(new, "spec.clusterIPs");
        if addresses.get(0) != at(old, "spec.clusterIPs").get(0) {
            faults.invalid("spec.clusterIPs[0]", AsJson(addresses), "may not change once set");
        }
    }
    faults.extend(check(new));
    faults.into()
}

/// Validates a changed status.
pub(super) fn status(new: &Value, _old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    if has(new, "status.loadBalancer.ingress") && text(new, "spec.type") != "LoadBalancer" {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        faults.forbidden("status.loadBalancer.ingress", detail);
    }
    faults.into()
}
