//! APIServices.

use api::field::{AsJson, FieldError};
use api::names::{path_segment_faults, subdomain_faults};
use serde_json::{Value, json};

use super::faults::{Faults, letter_label_faults};
use super::json::{at, fill, flag, has, number, part, part_of, put, text, tidy};
use super::{NONE, Rules};

/// The rules of APIServices.
pub const RULES: Rules = Rules {
    default,
    create,
    validate,
    validate_update: |new, _| validate(new),
    name: path_segment_faults,
    ..NONE
};

fn default(service: &mut Value, _version: &str) {
    tidy(service);
    if let Some(service) = part_of(part(service, "spec"), "service") {
        fill(service, "port", 443);
    }
    part(service, "status");
}

/// APIs that this server serves itself are available immediately.
fn create(service: &mut Value) {
    let mut status = json!({});
    if !has(service, "spec.service") {
        let condition = json!({
            "type": "Available",
            "status": "True",
            "lastTransitionTime": at(service, "metadata.creationTimestamp"),
            "reason": "Local",
            "message": "Local APIServices are always available",
        });
        put(&mut status, "conditions", json!([condition]));
    }
    put(service, "status", status);
}

fn validate(service: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let spec = at(service, "spec");
    let [group, version] = ["group", "version"].map(|name| text(spec, name));
    let expected = format!("{version}.{group}");
    let name = text(service, "metadata.name");
    if name != expected {
        let detail = format!("must be `spec.version+\".\"+spec.group`: \"{expected}\"");
        faults.invalid("metadata.name", name, detail);
    }
    if !group.is_empty() {
        faults.follows("spec.group", group, subdomain_faults);
    } else if version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        faults.add(FieldError::required("spec.group", detail));
    }
    faults.follows("spec.version", version, letter_label_faults);
    for (field, most) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        let value = number(spec, field).unwrap_or_default();
        if !(1..=most).contains(&value) {
            let detail = format!("must be positive and less than {most}");
            faults.invalid(format_args!("spec.{field}"), value, detail);
        }
    }
    target(&mut faults, spec);
    faults.into()
}

fn target(faults: &mut Faults, spec: &Value) {
    const SKIP: &str = "spec.insecureSkipTLSVerify";
    let skips = flag(spec, "insecureSkipTLSVerify");
    let bundle = text(spec, "caBundle");
    if !has(spec, "service") {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", bundle.trim_end_matches('=').len() * 3 / 4);
            faults.invalid("spec.caBundle", &shown, "local APIServices may not have a caBundle");
        }
        if skips {
            faults.invalid(SKIP, AsJson(&true), "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    for field in ["service.namespace", "service.name"] {
        faults.present(format_args!("spec.{field}"), text(spec, field));
    }
    let port = number(spec, "service.port").unwrap_or_default();
    if !(1..=65535).contains(&port) {
        faults.invalid(
            "spec.service.port",
            port,
            "port is not valid: must be between 1 and 65535, inclusive",
        );
    }
    if skips && !bundle.is_empty() {
        faults.invalid(SKIP, AsJson(&true), "may not be true if caBundle is present");
    }
}
