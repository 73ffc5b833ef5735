//! Tables of nodes, services, events and smaller kinds.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{age, at, holds, instant, items, name, number, or, plain, size, text};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "status.phase").into(), age(object, now)]
}

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let info = at(object, "status.nodeInfo");
    let known = items(object, "status.conditions").iter().any(|condition| at(condition, "type") == "Ready");
    let mut status = match (known, holds(object, "Ready")) {
        (false, _) => "Unknown",
        (true, true) => "Ready",
        (true, false) => "NotReady",
    }
    .to_owned();
    if at(object, "spec.unschedulable") == true {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let mut all = items(object, "status.addresses").iter();
        all.find(|address| at(address, "type") == kind)
            .map_or(NONE, |address| text(address, "address"))
            .into()
    };
    let mut kernel = or(text(info, "kernelVersion"), UNKNOWN).to_owned();
    let architecture = text(info, "architecture");
    if !architecture.is_empty() {
        kernel.push_str(&format!(" ({architecture})"));
    }
    vec![
        name(object),
        status.into(),
        roles(object).into(),
        age(object, now),
        text(info, "kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        or(text(info, "osImage"), UNKNOWN).into(),
        kernel.into(),
        or(text(info, "containerRuntimeVersion"), UNKNOWN).into(),
    ]
}

fn roles(node: &Value) -> String {
    let labels = at(node, "metadata.labels").as_object().into_iter().flatten();
    let role = |(key, value)| match key {
        "kubernetes.io/role" => Some(plain(value)),
        _ => str::strip_prefix(key, "node-role.kubernetes.io/"),
    };
    let roles = labels.filter_map(|(key, value)| role((key.as_str(), value)));
    joined(roles.filter(|role| !role.is_empty()).collect::<BTreeSet<_>>())
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = at(object, "spec");
    let ports = items(spec, "ports").iter().map(|port| {
        let outside = match number(port, "nodePort") {
            0 => String::new(),
            outside => format!(":{outside}"),
        };
        format!("{}{outside}/{}", number(port, "port"), text(port, "protocol"))
    });
    let selector = at(spec, "selector").as_object().into_iter().flatten();
    let selector: BTreeSet<String> = selector.map(|(key, value)| format!("{key}={}", plain(value))).collect();
    vec![
        name(object),
        text(spec, "type").into(),
        or(items(spec, "clusterIPs").first().and_then(Value::as_str).unwrap_or_default(), NONE).into(),
        outside_addresses(object).into(),
        joined(ports).into(),
        age(object, now),
        joined(selector).into(),
    ]
}

fn outside_addresses(service: &Value) -> String {
    let spec = at(service, "spec");
    let given = items(spec, "externalIPs").iter().map(plain);
    match text(spec, "type") {
        "ExternalName" => text(spec, "externalName").to_owned(),
        "LoadBalancer" => {
            let entries = items(service, "status.loadBalancer.ingress").iter();
            let entries: BTreeSet<&str> =
                entries.map(|entry| or(text(entry, "ip"), text(entry, "hostname"))).collect();
            let all: Vec<&str> = entries.into_iter().filter(|entry| !entry.is_empty()).chain(given).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        _ => joined(given),
    }
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), (size(object, "data") + size(object, "binaryData")).into(), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "type").into(), size(object, "data").into(), age(object, now)]
}

pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let about = at(object, "involvedObject");
    let first = instant(object, "firstTimestamp").or_else(|| instant(object, "eventTime"));
    let (series, last) = (at(object, "series"), instant(object, "lastTimestamp").or(first));
    let (last, count) = match series {
        Value::Null => (last, number(object, "count")),
        _ => (instant(series, "lastObservedTime"), number(series, "count")),
    };
    let kind = text(about, "kind").to_lowercase();
    let about_name = text(about, "name");
    let source = or(text(object, "source.component"), text(object, "reportingComponent"));
    let host = or(text(object, "source.host"), text(object, "reportingInstance"));
    vec![
        api::age::since(last, now).into(),
        text(object, "type").into(),
        text(object, "reason").into(),
        if about_name.is_empty() { kind } else { format!("{kind}/{about_name}") }.into(),
        text(about, "fieldPath").into(),
        if host.is_empty() { source.to_owned() } else { format!("{source}, {host}") }.into(),
        text(object, "message").trim().into(),
        api::age::since(first, now).into(),
        // A missing count is one.
        if count == 0 { 1 } else { count }.into(),
        name(object),
    ]
}

pub(super) fn definition(object: &Value, _: Timestamp) -> Vec<Value> {
    let served = items(object, "spec.versions").iter().filter(|version| at(version, "served") == true);
    let mut versions: Vec<String> = served
        .map(|version| {
            let stored = if at(version, "storage") == true { "(storage)" } else { "" };
            format!("{}{stored}", text(version, "name"))
        })
        .collect();
    versions.sort_unstable();
    let short: Vec<&str> = items(object, "spec.names.shortNames").iter().map(plain).collect();
    vec![
        name(object),
        text(object, "spec.scope").into(),
        versions.join(",").into(),
        text(object, "metadata.creationTimestamp").into(),
        text(object, "spec.group").into(),
        text(object, "spec.names.kind").into(),
        short.join(",").into(),
        holds(object, "Established").into(),
    ]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(object, "spec.holderIdentity").into(), age(object, now)]
}

pub(super) fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = at(object, "spec.service");
    let place = match service {
        Value::Null => "Local".to_owned(),
        _ => format!("{}/{}", text(service, "namespace"), text(service, "name")),
    };
    let mut conditions = items(object, "status.conditions").iter();
    let available = conditions.find(|condition| at(condition, "type") == "Available");
    let available = available.map_or_else(
        || "Unknown".to_owned(),
        |condition| match text(condition, "status") {
            "True" => "True".to_owned(),
            other => format!("{other} ({})", text(condition, "reason")),
        },
    );
    vec![name(object), place.into(), available.into(), age(object, now)]
}

pub(super) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), items(object, "webhooks").len().into(), age(object, now)]
}

/// The cells of kinds without columns of their own.
pub(super) fn other(object: &Value) -> Vec<Value> {
    vec![name(object), text(object, "metadata.creationTimestamp").into()]
}

/// Texts joined with commas, or `<none>`.
fn joined<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut all = String::new();
    for text in texts {
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(text.as_ref());
    }
    or(&all, NONE).to_owned()
}
