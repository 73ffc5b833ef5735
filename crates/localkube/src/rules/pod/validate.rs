//! Validation of pods and pod templates.

use std::collections::BTreeSet;

use api::field::{AsJson, FieldError};
use api::names::{dns_label_faults, label_key_faults, subdomain_faults};
use serde_json::Value;

use super::container::{self, ContainerRole, MAX_ID, identity};
use super::{placement, volumes};
use crate::rules::faults::Faults;
use crate::rules::json::{at, flag, has, list, number, text, texts};

/// Values of `restartPolicy`.
const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

/// Validates a new pod.
pub(super) fn new_pod(pod: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    spec(&mut faults, "spec", at(pod, "spec"));
    if has(pod, "spec.ephemeralContainers") {
        faults.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    faults.into()
}

/// Validates a pod template.
pub(in crate::rules) fn template(faults: &mut Faults, path: &str, template: &Value) {
    template_meta(faults, path, template);
    let path = format!("{path}.spec");
    spec(faults, &path, at(template, "spec"));
    if has(template, "spec.ephemeralContainers") {
        faults.forbidden(
            format_args!("{path}.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

/// Validates the labels and annotations of a pod template.
pub(in crate::rules) fn template_meta(faults: &mut Faults, path: &str, template: &Value) {
    faults.labels(format_args!("{path}.labels"), template, "metadata.labels");
    faults.annotations(format_args!("{path}.annotations"), template, "metadata.annotations");
}

/// Validates a pod spec.
pub(super) fn spec(faults: &mut Faults, path: &str, spec: &Value) {
    let volumes = volumes::check(faults, path, spec);
    containers(faults, path, spec, &volumes);
    let at_ = |name: &str| format!("{path}.{name}");
    // A job template may omit it; the job's validation reports that.
    if has(spec, "restartPolicy") {
        faults.one_of(at_("restartPolicy"), text(spec, "restartPolicy"), &RESTART_POLICIES);
    }
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    faults.one_of(at_("dnsPolicy"), text(spec, "dnsPolicy"), &policies);
    faults.labels(at_("nodeSelector"), spec, "nodeSelector");
    security(faults, path, spec);
    placement::affinity(faults, &at_("affinity"), at(spec, "affinity"));
    for (i, server) in texts(spec, "dnsConfig.nameservers").enumerate() {
        faults.address(format_args!("{path}.dnsConfig.nameservers[{i}]"), server);
    }
    if text(spec, "dnsPolicy") == "None" {
        if !has(spec, "dnsConfig") {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            faults.add(FieldError::required(at_("dnsConfig"), detail));
        } else if !has(spec, "dnsConfig.nameservers") {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            faults.add(FieldError::required(at_("dnsConfig.nameservers"), detail));
        }
    }
    for (i, gate) in list(spec, "readinessGates").iter().enumerate() {
        let path = format!("{path}.readinessGates[{i}].conditionType");
        faults.follows(path, text(gate, "conditionType"), label_key_faults);
    }
    let mut gates = BTreeSet::new();
    for (i, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let path = format!("{path}.schedulingGates[{i}]");
        faults.follows(&path, text(gate, "name"), label_key_faults);
        if !gates.insert(text(gate, "name")) {
            faults.add(FieldError::duplicate(path, text(gate, "name")));
        }
    }
    placement::spread(faults, path, spec);
    for (name, rule) in
        [("serviceAccountName", subdomain_faults as fn(&str) -> Vec<String>), ("nodeName", subdomain_faults)]
    {
        if !text(spec, name).is_empty() {
            faults.follows(at_(name), text(spec, name), rule);
        }
    }
    if let Some(seconds) = number(spec, "activeDeadlineSeconds") {
        faults.within(at_("activeDeadlineSeconds"), seconds, 1, MAX_ID);
    }
    for name in ["hostname", "subdomain"] {
        if !text(spec, name).is_empty() {
            faults.follows(at_(name), text(spec, name), dns_label_faults);
        }
    }
    placement::tolerations(faults, path, spec);
    for (i, alias) in list(spec, "hostAliases").iter().enumerate() {
        faults.address(format_args!("{path}.hostAliases[{i}].ip"), text(alias, "ip"));
    }
    if !text(spec, "priorityClassName").is_empty() {
        faults.follows(at_("priorityClassName"), text(spec, "priorityClassName"), subdomain_faults);
    }
    if has(spec, "os") {
        faults.one_of(at_("os"), text(spec, "os.name"), &["linux", "windows"]);
    }
}

fn containers(faults: &mut Faults, path: &str, spec: &Value, volumes: &BTreeSet<&str>) {
    if list(spec, "containers").is_empty() {
        faults.required(format_args!("{path}.containers"));
    }
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (kind, role) in [("containers", ContainerRole::Main), ("initContainers", ContainerRole::Init)] {
        for (i, container) in list(spec, kind).iter().enumerate() {
            let path = format!("{path}.{kind}[{i}]");
            container::check(faults, &path, container, role, volumes, &mut names);
        }
        if role == ContainerRole::Main {
            for (i, container) in list(spec, kind).iter().enumerate() {
                container::host_ports(faults, &format!("{path}.{kind}[{i}]"), container, &mut host_ports);
            }
        }
    }
}

fn security(faults: &mut Faults, path: &str, spec: &Value) {
    if flag(spec, "hostNetwork") {
        for kind in ["containers", "initContainers"] {
            for (i, container) in list(spec, kind).iter().enumerate() {
                for (j, port) in list(container, "ports").iter().enumerate() {
                    let host = number(port, "hostPort").unwrap_or_default();
                    // A template may omit the host port.
                    if host != 0 && Some(host) != number(port, "containerPort") {
                        let path = format!("{path}.{kind}[{i}].ports[{j}].hostPort");
                        faults.invalid(path, host, "must match `containerPort` when `hostNetwork` is true");
                    }
                }
            }
        }
    }
    let context = at(spec, "securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        identity(faults, format!("{path}.securityContext.{name}"), at(context, name));
    }
    for (i, group) in list(context, "supplementalGroups").iter().enumerate() {
        identity(faults, format!("{path}.securityContext.supplementalGroups[{i}]"), group);
    }
}

/// Validates a changed status.
pub(super) fn status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let nominated = text(new, "status.nominatedNodeName");
    if !nominated.is_empty() {
        faults.follows("status.nominatedNodeName", nominated, subdomain_faults);
    }
    let class = at(new, "status.qosClass");
    if class != at(old, "status.qosClass") {
        faults.invalid("status.qosClass", AsJson(class), crate::rules::faults::IMMUTABLE);
    }
    faults.into()
}
