//! Defaulting and validation of custom resource definitions.

use std::collections::BTreeSet;

use api::field::{AsJson, FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::faults::fault;
use super::names::kind_fault;
use super::structural;
use crate::json::{flag, list, strings, text};
use crate::rules::Rules;
use crate::rules::faults::letter_label_faults;

/// The rules of custom resource definitions.
pub const RULES: Rules =
    Rules { default: |crd, _| default(crd), create, update, validate, validate_update, ..crate::rules::NONE };

fn default(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            for (field, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
                if names.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                    names.insert(field.to_owned(), json!(value));
                }
            }
        }
    }
    let conversion = spec.entry("conversion").or_insert(Value::Null);
    if conversion.is_null() {
        *conversion = json!({"strategy": "None"});
    }
    if let Some(service) =
        conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut)
    {
        service.entry("port").or_insert(json!(443));
    }
}

fn create(crd: &mut Value) {
    let stored: Vec<&str> = storage_versions(crd).into_iter().take(1).collect();
    let stored = if stored.is_empty() { Value::Null } else { json!(stored) };
    let status = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored,
    });
    if let Some(crd) = crd.as_object_mut() {
        crd.insert("status".to_owned(), status);
    }
}

/// Adds the storage version to `status.storedVersions`.
fn update(crd: &mut Value, _: &Value) {
    let storage: Vec<String> = storage_versions(crd).into_iter().map(str::to_owned).collect();
    let Some(stored) = crd.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) else {
        return;
    };
    for version in storage {
        if !stored.iter().any(|known| known.as_str() == Some(&version)) {
            stored.push(json!(version));
        }
    }
}

fn versions(crd: &Value) -> &[Value] {
    crd.get("spec").map(|spec| list(spec, "versions")).unwrap_or_default()
}

fn storage_versions(crd: &Value) -> Vec<&str> {
    versions(crd)
        .iter()
        .filter(|version| flag(version, "storage"))
        .map(|version| text(version, "name"))
        .collect()
}

fn validate(crd: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let name = text(crd, "metadata.name");
    if name != format!("{}.{}", text(crd, "spec.names.plural"), text(crd, "spec.group")) {
        out.push(FieldError::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    validate_spec(crd, &mut out);
    validate_stored(crd, &mut out);
    approval(crd, &mut out);
    out
}

fn validate_update(crd: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Vec::new();
    let established = super::is_established(old);
    let mut fixed = vec!["/spec/group", "/spec/names/plural"];
    if established {
        fixed.extend(["/spec/scope", "/spec/names/kind"]);
    }
    validate_spec(crd, &mut out);
    for path in fixed.into_iter().filter(|path| crd.pointer(path) != old.pointer(path)) {
        let field = path.trim_start_matches('/').replace('/', ".");
        let value = text(crd, &field);
        out.push(FieldError::invalid(&field, value, "field is immutable"));
    }
    validate_stored(crd, &mut out);
    out
}

fn validate_spec(crd: &Value, out: &mut Vec<FieldError>) {
    let group = text(crd, "spec.group");
    if group.is_empty() {
        out.push(FieldError::required("spec.group", ""));
    } else {
        let faults = api::names::subdomain_faults(group);
        if faults.is_empty() && !group.contains('.') {
            out.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
        } else if !faults.is_empty() {
            out.push(FieldError::invalid("spec.group", group, faults.join(",")));
        }
    }
    match text(crd, "spec.scope") {
        "" => out.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => out.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    validate_versions(crd, out);
    validate_names(crd, out);
    structural::validate(versions(crd), out);
    validate_conversion(crd, out);
    if crd.pointer("/spec/preserveUnknownFields") == Some(&json!(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        out.push(FieldError::invalid("spec.preserveUnknownFields", AsJson(&true), detail));
    }
}

fn validate_versions(crd: &Value, out: &mut Vec<FieldError>) {
    let all = versions(crd);
    for (at, version) in all.iter().enumerate() {
        let path = format!("spec.versions[{at}]");
        let name = text(version, "name");
        let faults = letter_label_faults(name);
        if !faults.is_empty() {
            out.push(FieldError::invalid(format!("{path}.name"), name, faults.join(",")));
        }
        if version.get("deprecationWarning").is_some() && !flag(version, "deprecated") {
            let warning = text(version, "deprecationWarning");
            let detail = "can only be set for deprecated versions";
            out.push(FieldError::invalid(format!("{path}.deprecationWarning"), warning, detail));
        }
        if !version.pointer("/schema/openAPIV3Schema").is_some_and(Value::is_object) {
            out.push(FieldError::required(format!("{path}.schema.openAPIV3Schema"), ""));
        }
    }
    let names: BTreeSet<&str> = all.iter().map(|version| text(version, "name")).collect();
    let mut whole = |detail: &str| {
        let shown = crd.pointer("/spec/versions").map_or_else(|| "null".to_owned(), |_| internal(all));
        out.push(fault(FieldErrorKind::Invalid, "spec.versions", shown, detail.to_owned()));
    };
    if names.len() < all.len() {
        whole("must contain unique version names");
    }
    if storage_versions(crd).len() != 1 {
        whole("must have exactly one version marked as storage version");
    }
    // The server also validates the first version in a deprecated field.
    if let Some(first) = all.first().map(|version| text(version, "name")).filter(|name| !name.is_empty()) {
        let faults = letter_label_faults(first);
        if !faults.is_empty() {
            out.push(FieldError::invalid("spec.version", first, faults.join(",")));
        }
    }
}

/// The versions as the server prints its internal type, without the parts that all versions share.
fn internal(versions: &[Value]) -> String {
    let each: Vec<String> = versions
        .iter()
        .map(|version| {
            let name = api::gotext::quote(text(version, "name"));
            let (served, storage, deprecated) =
                (flag(version, "served"), flag(version, "storage"), flag(version, "deprecated"));
            format!(
                "{{\"Name\":{name},\"Served\":{served},\"Storage\":{storage},\"Deprecated\":{deprecated},\
                 \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
                 \"SelectableFields\":null}}"
            )
        })
        .collect();
    format!("[{}]", each.join(","))
}

fn validate_names(crd: &Value, out: &mut Vec<FieldError>) {
    let empty = json!({});
    let names = crd.pointer("/spec/names").unwrap_or(&empty);
    for field in ["plural", "singular", "kind", "listKind"] {
        let path = format!("spec.names.{field}");
        let name = names.get(field).and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            out.push(FieldError::required(path, ""));
        } else if matches!(field, "kind" | "listKind") {
            out.extend(kind_fault(&path, name));
        } else {
            label(&path, name, out);
        }
    }
    for field in ["shortNames", "categories"] {
        for (at, name) in strings(names, field).iter().enumerate() {
            label(&format!("spec.names.{field}[{at}]"), name, out);
        }
    }
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        out.push(FieldError::invalid("spec.names.listKind", kind, "kind and listKind may not be the same"));
    }
}

fn label(path: &str, name: &str, out: &mut Vec<FieldError>) {
    let faults = letter_label_faults(name);
    if !faults.is_empty() {
        out.push(FieldError::invalid(path, name, faults.join(",")));
    }
}

/// Webhook conversion is validated but not performed.
fn validate_conversion(crd: &Value, out: &mut Vec<FieldError>) {
    if crd.pointer("/spec/conversion").is_none() {
        return;
    }
    let at = |field: &str| format!("spec.conversion.{field}");
    let client = crd.pointer("/spec/conversion/webhook/clientConfig").is_some();
    let reviews = crd.pointer("/spec/conversion/webhook/conversionReviewVersions").is_some();
    let strategy = text(crd, "spec.conversion.strategy");
    if !matches!(strategy, "" | "None") && crd.pointer("/spec/preserveUnknownFields") == Some(&json!(true)) {
        let detail = "must be None if spec.preserveUnknownFields is true";
        out.push(FieldError::invalid(at("strategy"), strategy, detail));
    }
    match strategy {
        "" => out.push(FieldError::required(at("strategy"), "")),
        "Webhook" => {
            if !client {
                out.push(FieldError::required(
                    at("webhookClientConfig"),
                    "required when strategy is set to Webhook",
                ));
            }
            if !reviews {
                out.push(FieldError::required(at("conversionReviewVersions"), ""));
            }
        }
        "None" => {
            let detail = "should not be set when strategy is not set to Webhook";
            let set = [("webhookClientConfig", client), ("conversionReviewVersions", reviews)];
            out.extend(
                set.iter().filter(|(_, set)| *set).map(|(field, _)| FieldError::forbidden(at(field), detail)),
            );
        }
        other => out.push(FieldError::not_supported(at("strategy"), other, &["None", "Webhook"])),
    }
}

fn validate_stored(crd: &Value, out: &mut Vec<FieldError>) {
    let field = "status.storedVersions";
    let stored = crd.get("status").map(|status| strings(status, "storedVersions")).unwrap_or_default();
    if stored.is_empty() {
        out.push(FieldError::invalid(field, &stored[..], "must have at least one stored version"));
        return;
    }
    let known: BTreeSet<&str> = versions(crd).iter().map(|version| text(version, "name")).collect();
    for (at, version) in stored.iter().enumerate().filter(|(_, version)| !known.contains(version.as_str())) {
        let detail = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {version} and removes {version} from \
             status.storedVersions"
        );
        out.push(FieldError::invalid(format!("{field}[{at}]"), version, detail));
    }
    if let Some(storage) =
        storage_versions(crd).last().filter(|version| !stored.iter().any(|known| known == *version))
    {
        out.push(FieldError::invalid(field, &stored[..], format!("must have the storage version {storage}")));
    }
}

/// Groups of the Kubernetes project need an approval annotation.
fn approval(crd: &Value, out: &mut Vec<FieldError>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let group = text(crd, "spec.group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
    let approved = crd.pointer("/metadata/annotations").is_some_and(|all| all.get(ANNOTATION).is_some());
    if protected && !approved {
        let detail = format!(
            "protected groups must have approval annotation \"{ANNOTATION}\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        out.push(FieldError::required(format!("metadata.annotations[{ANNOTATION}]"), detail));
    }
}
