//! Validation of validating webhook configurations.

use std::collections::BTreeSet;

use api::field::{AsJson, FieldError};
use api::names::subdomain_faults;
use serde_json::Value;

use crate::rules::faults::{Faults, letter_label_faults};
use crate::rules::json::{at, has, list, number, text, texts};

/// Validates a configuration.
pub(super) fn check(configuration: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let mut names = BTreeSet::new();
    for (i, webhook) in list(configuration, "webhooks").iter().enumerate() {
        let path = format!("webhooks[{i}]");
        one(&mut faults, &path, webhook);
        let name = text(webhook, "name");
        if !name.is_empty() && !names.insert(name) {
            faults.add(FieldError::duplicate(format_args!("{path}.name"), name));
        }
    }
    faults.into()
}

fn one(faults: &mut Faults, path: &str, webhook: &Value) {
    let name = text(webhook, "name");
    if faults.present(format_args!("{path}.name"), name) {
        let wrong = subdomain_faults(name);
        if wrong.is_empty() && name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            faults.invalid(format_args!("{path}.name"), name, detail);
        }
        for wrong in wrong {
            faults.invalid(format_args!("{path}.name"), name, wrong);
        }
    }
    for (i, rule) in list(webhook, "rules").iter().enumerate() {
        self::rule(faults, &format!("{path}.rules[{i}]"), rule);
    }
    faults.one_of(format_args!("{path}.failurePolicy"), text(webhook, "failurePolicy"), &["Fail", "Ignore"]);
    faults.one_of(format_args!("{path}.matchPolicy"), text(webhook, "matchPolicy"), &["Equivalent", "Exact"]);
    let effects = format!("{path}.sideEffects");
    if has(webhook, "sideEffects") {
        faults.one_of(effects, text(webhook, "sideEffects"), &["None", "NoneOnDryRun"]);
    } else {
        faults.add(FieldError::required(effects, "must specify one of None, NoneOnDryRun"));
    }
    let timeout = number(webhook, "timeoutSeconds").unwrap_or(10);
    if !(1..=30).contains(&timeout) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        faults.invalid(format_args!("{path}.timeoutSeconds"), timeout, detail);
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        faults.selector(&format!("{path}.{selector}"), at(webhook, selector));
    }
    client(faults, &format!("{path}.clientConfig"), at(webhook, "clientConfig"));
    versions(faults, &format!("{path}.admissionReviewVersions"), webhook);
}

fn client(faults: &mut Faults, path: &str, client: &Value) {
    match (has(client, "url"), has(client, "service")) {
        (true, false) => url(faults, &format!("{path}.url"), text(client, "url")),
        (false, true) => service(faults, &format!("{path}.service"), at(client, "service")),
        _ => faults.add(FieldError::required(path, "exactly one of url or service is required")),
    }
}

fn url(faults: &mut Faults, path: &str, url: &str) {
    const FORMAT: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        faults.invalid(path, scheme, format!("'https' is the only allowed URL scheme{FORMAT}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        faults.invalid(path, host, format!("host must be specified{FORMAT}"));
    }
    for (part, words) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            faults.invalid(path, part, words);
        }
    }
}

fn service(faults: &mut Faults, path: &str, service: &Value) {
    faults.present(format_args!("{path}.name"), text(service, "name"));
    faults.present(format_args!("{path}.namespace"), text(service, "namespace"));
    let port = number(service, "port").unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        faults.invalid(format_args!("{path}.port"), port, detail);
    }
    let target = text(service, "path");
    let path = format_args!("{path}.path");
    if target.is_empty() || target == "/" {
        return;
    }
    if !target.starts_with('/') {
        faults.invalid(path, target, "must start with a '/'");
    }
    // The real server skips the first character in any case.
    let steps = target.get(1..).unwrap_or_default().trim_end_matches('/');
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            faults.invalid(path, target, format!("segment[{i}] may not be empty"));
        } else {
            faults.follows(path, step, subdomain_faults);
        }
    }
}

fn versions(faults: &mut Faults, path: &str, webhook: &Value) {
    const KNOWN: [&str; 2] = ["v1", "v1beta1"];
    let versions: Vec<&str> = texts(webhook, "admissionReviewVersions").collect();
    if versions.is_empty() {
        let detail = format!("must specify one of {}", KNOWN.join(", "));
        faults.add(FieldError::required(path, detail));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let path = format!("{path}[{i}]");
        if versions.iter().take(i).any(|before| before == version) {
            faults.invalid(path, *version, "duplicate version");
        } else {
            faults.follows(path, version, letter_label_faults);
        }
    }
    if !versions.iter().any(|version| KNOWN.contains(version)) {
        let detail = format!("must include at least one of {}", KNOWN.join(", "));
        faults.invalid(path, AsJson(&versions), detail);
    }
}

fn rule(faults: &mut Faults, path: &str, rule: &Value) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    alone(faults, path, rule, "operations", "operations");
    for (i, operation) in texts(rule, "operations").enumerate() {
        faults.one_of(format_args!("{path}.operations[{i}]"), operation, &OPERATIONS);
    }
    alone(faults, path, rule, "apiGroups", "API groups");
    alone(faults, path, rule, "apiVersions", "API versions");
    for (i, version) in texts(rule, "apiVersions").enumerate() {
        faults.present(format_args!("{path}.apiVersions[{i}]"), version);
    }
    resources(faults, &format!("{path}.resources"), rule);
    faults.one_of(format_args!("{path}.scope"), text(rule, "scope"), &["*", "Cluster", "Namespaced"]);
}

/// Requires a non-empty list in which `*` stands alone.
fn alone(faults: &mut Faults, path: &str, rule: &Value, field: &str, what: &str) {
    let path = format_args!("{path}.{field}");
    let items: Vec<&str> = texts(rule, field).collect();
    if items.is_empty() {
        faults.required(path);
    } else if items.len() > 1 && items.contains(&"*") {
        faults.invalid(path, AsJson(&items), format!("if '*' is present, must not specify other {what}"));
    }
}

fn resources(faults: &mut Faults, path: &str, rule: &Value) {
    let resources: Vec<&str> = texts(rule, "resources").collect();
    if resources.is_empty() {
        faults.required(path);
    }
    for (i, resource) in resources.iter().enumerate() {
        let path = format!("{path}[{i}]");
        if !faults.present(&path, resource) {
            continue;
        }
        let all = resource.split_once('/').map(|(name, part)| (format!("{name}/*"), part));
        if let Some((all, _)) = all.filter(|(all, part)| *part != "*" && resources.contains(&all.as_str())) {
            let detail = format!("if '{all}' is present, must not specify {resource}");
            faults.invalid(path, *resource, detail);
        }
    }
    let plain = resources.iter().filter(|resource| !resource.contains('/')).count();
    if resources.contains(&"*") && plain > 1 {
        let detail = "if '*' is present, must not specify other resources without subresources";
        faults.invalid(path, AsJson(&resources), detail);
    }
}
