//! Validation of containers.

use std::collections::BTreeSet;

use api::field::FieldError;
use api::names::{dns_label_faults, subdomain_faults};
use serde_json::Value;

use super::{probe, resources};
use crate::rules::faults::{Faults, config_key_faults, port_name_faults};
use crate::rules::json::{at, has, list, number, text};

/// The maximum user or group id.
pub(super) const MAX_ID: i64 = i32::MAX as i64;

/// The role of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerRole {
    /// A regular container.
    Main,
    /// An init container, or a sidecar if it is always restarted.
    Init,
}

const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The pod fields that an environment variable may refer to.
const POD_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Validates a container; `names` are the names of the previous ones.
pub(super) fn check<'a>(
    faults: &mut Faults,
    path: &str,
    container: &'a Value,
    role: ContainerRole,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
) {
    let name = text(container, "name");
    faults.name(format_args!("{path}.name"), name, dns_label_faults);
    let image = text(container, "image");
    if faults.present(format_args!("{path}.image"), image) && image.trim() != image {
        faults.invalid(format_args!("{path}.image"), image, "must not have leading or trailing whitespace");
    }
    faults.one_of(
        format_args!("{path}.terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    ports(faults, path, container);
    environment(faults, path, container);
    mounts(faults, path, container, volumes);
    let policy = text(container, "imagePullPolicy");
    faults.one_of(format_args!("{path}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    resources::check(faults, &format!("{path}.resources"), at(container, "resources"));
    for name in ["runAsUser", "runAsGroup"] {
        let id = at(container, &format!("securityContext.{name}")).clone();
        identity(faults, format!("{path}.securityContext.{name}"), &id);
    }
    if has(container, "restartPolicy") {
        let policy = text(container, "restartPolicy");
        faults.one_of(format_args!("{path}.restartPolicy"), policy, &["Always", "Never", "OnFailure"]);
    }
    if !name.is_empty() && !names.insert(name) {
        faults.add(FieldError::duplicate(format_args!("{path}.name"), name));
    }
    if role == ContainerRole::Init && text(container, "restartPolicy") != "Always" {
        for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if has(container, name) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                faults.forbidden(format_args!("{path}.{name}"), detail);
            }
        }
    } else {
        probe::check(faults, path, container);
    }
}

fn ports(faults: &mut Faults, path: &str, container: &Value) {
    let mut names = BTreeSet::new();
    for (i, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{i}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = port_name_faults(name);
            if wrong.is_empty() && !names.insert(name) {
                faults.add(FieldError::duplicate(format_args!("{path}.name"), name));
            }
            for wrong in wrong {
                faults.invalid(format_args!("{path}.name"), name, wrong);
            }
        }
        match number(port, "containerPort").unwrap_or_default() {
            0 => faults.required(format_args!("{path}.containerPort")),
            number => faults.within(format_args!("{path}.containerPort"), number, 1, 65535),
        }
        if let Some(number) = number(port, "hostPort") {
            faults.within(format_args!("{path}.hostPort"), number, 1, 65535);
        }
        faults.one_of(format_args!("{path}.protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

/// Checks that host ports are unique.
pub(super) fn host_ports(faults: &mut Faults, path: &str, container: &Value, taken: &mut BTreeSet<String>) {
    for (i, port) in list(container, "ports").iter().enumerate() {
        if let Some(number) = number(port, "hostPort") {
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&key) {
                faults.add(FieldError::duplicate(format_args!("{path}.ports[{i}].hostPort"), &key));
            }
            taken.insert(key);
        }
    }
}

fn environment(faults: &mut Faults, path: &str, container: &Value) {
    for (i, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{i}]");
        let name = text(variable, "name");
        let fits = |c: char| (c.is_ascii_graphic() || c == ' ') && c != '=';
        if faults.present(format_args!("{path}.name"), name) && !name.chars().all(fits) {
            let detail = "a valid environment variable name must consist only of printable ASCII characters other \
                          than '='";
            faults.invalid(format_args!("{path}.name"), name, detail);
        }
        if has(variable, "valueFrom") {
            value_from(faults, &format!("{path}.valueFrom"), variable);
        }
    }
    for (i, from) in list(container, "envFrom").iter().enumerate() {
        let mut sources = 0;
        for source in ["configMapRef", "secretRef"] {
            if has(from, source) {
                sources += 1;
                let name = text(from, &format!("{source}.name"));
                faults.name(format_args!("{path}.envFrom[{i}].{source}.name"), name, subdomain_faults);
            }
        }
        let detail = match sources {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        faults.invalid(format_args!("{path}.envFrom"), "", detail);
    }
}

fn value_from(faults: &mut Faults, path: &str, variable: &Value) {
    let from = at(variable, "valueFrom");
    let mut sources = 0;
    if has(from, "fieldRef") {
        sources += 1;
        let field = text(from, "fieldRef.fieldPath");
        let path = format_args!("{path}.fieldRef.fieldPath");
        let of_map = field.ends_with("']")
            && ["metadata.labels['", "metadata.annotations['"].iter().any(|start| field.starts_with(start));
        if faults.present(path, field) && !of_map && !POD_FIELDS.contains(&field) {
            faults.invalid(
                path,
                field,
                format!("error converting fieldPath: field label not supported: {field}"),
            );
        }
    }
    if has(from, "resourceFieldRef") {
        sources += 1;
        let field = text(from, "resourceFieldRef.resource");
        let path = format_args!("{path}.resourceFieldRef.resource");
        let pages = field.starts_with("limits.hugepages-") || field.starts_with("requests.hugepages-");
        if faults.present(path, field) && !pages {
            faults.one_of(path, field, &RESOURCE_FIELDS);
        }
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if has(from, source) {
            sources += 1;
            let name = text(from, &format!("{source}.name"));
            faults.follows(format_args!("{path}.{source}.name"), name, subdomain_faults);
            let key = text(from, &format!("{source}.key"));
            faults.name(format_args!("{path}.{source}.key"), key, config_key_faults);
        }
    }
    sources += usize::from(has(from, "fileKeyRef"));
    if sources == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
                      `fileKeyRef`";
        faults.invalid(path, "", detail);
    } else if !text(variable, "value").is_empty() {
        faults.invalid(path, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        faults.invalid(path, "", "may not have more than one field specified at a time");
    }
}

fn mounts(faults: &mut Faults, path: &str, container: &Value, volumes: &BTreeSet<&str>) {
    let mut paths = BTreeSet::new();
    for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at_mount = format!("{path}.volumeMounts[{i}]");
        let name = text(mount, "name");
        faults.present(format_args!("{at_mount}.name"), name);
        if !volumes.contains(name) {
            faults.add(FieldError::not_found(format_args!("{at_mount}.name"), name));
        }
        let target = text(mount, "mountPath");
        faults.present(format_args!("{at_mount}.mountPath"), target);
        if !paths.insert(target) {
            faults.invalid(format_args!("{at_mount}.mountPath"), target, "must be unique");
        }
        let inner = text(mount, "subPath");
        if inner.split('/').any(|step| step == "..") {
            faults.invalid(format_args!("{path}.volumeMounts.subPath"), inner, "must not contain '..'");
        } else if inner.starts_with('/') {
            faults.invalid(format_args!("{path}.volumeMounts.subPath"), inner, "must be a relative path");
        }
    }
}

/// Validates a user or group id, if it is set.
pub(super) fn identity(faults: &mut Faults, path: String, id: &Value) {
    if let Some(id) = id.as_i64() {
        faults.within(path, id, 0, MAX_ID);
    }
}
