//! Selects the webhooks that match a write.
//!
//! Conditions in CEL (`matchConditions`) are not evaluated: they count as met.

use std::time::Duration;

use api::selector::LabelSelector;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::review::AdmissionRequest;
use crate::json::{list, text};

/// A webhook to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) target: WebhookTarget,
    /// The CA bundle for its certificate (PEM).
    pub(super) bundle: Vec<u8>,
    pub(super) timeout: Duration,
    /// Whether the write continues when the webhook cannot be called (`failurePolicy: Ignore`).
    pub(super) optional: bool,
}

/// The location of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WebhookTarget {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

/// The webhooks that match a write, in the order of the configurations' names and of the list in each.
pub(super) fn matching(configurations: &[Value], review: &AdmissionRequest) -> Vec<Webhook> {
    let mut configurations: Vec<&Value> = configurations.iter().collect();
    configurations.sort_by_key(|configuration| text(configuration, "metadata.name"));
    configurations
        .into_iter()
        .flat_map(|configuration| list(configuration, "webhooks"))
        .filter(|webhook| wants(webhook, review))
        .filter_map(Webhook::read)
        .collect()
}

impl Webhook {
    fn read(webhook: &Value) -> Option<Self> {
        let client = webhook.get("clientConfig")?;
        let target = match client.get("service").filter(|service| service.is_object()) {
            Some(service) => WebhookTarget::Service {
                namespace: text(service, "namespace").to_owned(),
                name: text(service, "name").to_owned(),
                port: service.get("port").and_then(Value::as_u64).map_or(443, |port| port as u16),
                path: format!("/{}", text(service, "path").trim_start_matches('/')),
            },
            None => WebhookTarget::Url(text(client, "url").to_owned()),
        };
        Some(Self {
            name: text(webhook, "name").to_owned(),
            target,
            bundle: STANDARD.decode(text(client, "caBundle")).unwrap_or_default(),
            timeout: Duration::from_secs(webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10)),
            optional: text(webhook, "failurePolicy") == "Ignore",
        })
    }
}

fn wants(webhook: &Value, review: &AdmissionRequest) -> bool {
    // All versions of a resource count as equivalent; the object is sent in the version of the request.
    let equivalent = text(webhook, "matchPolicy") != "Exact";
    list(webhook, "rules").iter().any(|rule| covers(rule, review, equivalent))
        && selects(webhook.get("namespaceSelector"), namespace_labels(review))
        && (webhook.get("objectSelector").is_none() || wants_object(webhook.get("objectSelector"), review))
}

fn covers(rule: &Value, review: &AdmissionRequest, equivalent: bool) -> bool {
    let has = |field: &str, wanted: &str| list(rule, field).iter().any(|one| one == "*" || one == wanted);
    let scope = match text(rule, "scope") {
        "Cluster" => !review.namespaced,
        "Namespaced" => review.namespaced,
        _ => true,
    };
    scope
        && has("operations", review.operation)
        && has("apiGroups", &review.group)
        && (equivalent || has("apiVersions", &review.version))
        && list(rule, "resources").iter().filter_map(Value::as_str).any(|one| covers_resource(one, review))
}

/// `pods`, `pods/status`, `pods/*`, `*/status`, `*` (without subresources) and `*/*`.
fn covers_resource(pattern: &str, review: &AdmissionRequest) -> bool {
    let (resource, part) = pattern.split_once('/').unwrap_or((pattern, ""));
    (resource == "*" || resource == review.resource) && (part == "*" || part == review.subresource)
}

/// The labels for the namespace selector; `None` where there is no namespace.
fn namespace_labels(review: &AdmissionRequest) -> Option<&Value> {
    if review.is_namespace() {
        let shown = review.object.as_ref().or(review.old_object.as_ref())?;
        return Some(shown.pointer("/metadata/labels").unwrap_or(&Value::Null));
    }
    review.namespaced.then_some(&review.namespace_labels)
}

fn wants_object(selector: Option<&Value>, review: &AdmissionRequest) -> bool {
    let shown = [&review.object, &review.old_object];
    let mut labels =
        shown.iter().filter_map(|object| object.as_ref()).map(|object| object.pointer("/metadata/labels"));
    labels.any(|labels| selects(selector, Some(labels.unwrap_or(&Value::Null))))
}

fn selects(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let (Some(selector), Some(labels)) = (selector, labels) else { return true };
    let parsed: Option<LabelSelector> = serde_json::from_value(selector.clone()).ok();
    let selector = parsed.and_then(|selector| selector.to_selector().ok());
    selector.is_none_or(|selector| selector.matches(|key| labels.get(key).and_then(Value::as_str)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn names(rules: &Value, more: &Value, review: &AdmissionRequest) -> Vec<String> {
        let mut webhook = json!({"name": "a", "clientConfig": {"url": "https://x"}, "rules": [rules]});
        for (field, value) in more.as_object().unwrap() {
            webhook[field] = value.clone();
        }
        let configuration = json!({"metadata": {"name": "c"}, "webhooks": [webhook]});
        matching(&[configuration], review).into_iter().map(|webhook| webhook.name).collect()
    }

    fn rule(resource: &str) -> Value {
        json!({"operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": [resource]})
    }

    fn review(subresource: &str) -> AdmissionRequest {
        AdmissionRequest {
            group: "apps".into(),
            version: "v1".into(),
            resource: "deployments".into(),
            subresource: subresource.into(),
            namespaced: true,
            namespace: "n".into(),
            namespace_labels: json!({"team": "x"}),
            operation: "CREATE",
            object: Some(json!({"metadata": {"labels": {"app": "web"}}})),
            ..AdmissionRequest::default()
        }
    }

    #[test]
    fn rules_match_resources_and_subresources() {
        for (pattern, object, scale) in [
            ("deployments", true, false),
            ("deployments/scale", false, true),
            ("deployments/*", true, true),
            ("*", true, false),
            ("*/scale", false, true),
            ("*/*", true, true),
            ("pods", false, false),
        ] {
            let asked = |subresource| !names(&rule(pattern), &json!({}), &review(subresource)).is_empty();
            assert_eq!((asked(""), asked("scale")), (object, scale), "{pattern}");
        }
    }

    #[test]
    fn rules_match_operations_groups_versions_and_scope() {
        let asked = |field: &str, value: Value, more: Value| {
            let mut rule = rule("*");
            rule[field] = value;
            !names(&rule, &more, &review("")).is_empty()
        };
        assert!(
            !asked("operations", json!(["DELETE"]), json!({}))
                && asked("operations", json!(["*"]), json!({}))
        );
        assert!(!asked("apiGroups", json!([""]), json!({})));
        assert!(asked("apiVersions", json!(["v2"]), json!({})));
        assert!(!asked("apiVersions", json!(["v2"]), json!({"matchPolicy": "Exact"})));
        assert!(
            !asked("scope", json!("Cluster"), json!({})) && asked("scope", json!("Namespaced"), json!({}))
        );
    }

    #[test]
    fn selectors_match_the_namespace_and_both_objects() {
        let asked = |field: &str, label: Value, review: &AdmissionRequest| {
            !names(&rule("*"), &json!({field: {"matchLabels": label}}), review).is_empty()
        };
        assert!(asked("namespaceSelector", json!({"team": "x"}), &review("")));
        assert!(!asked("namespaceSelector", json!({"team": "y"}), &review("")));
        assert!(asked("objectSelector", json!({"app": "web"}), &review("")));
        assert!(!asked("objectSelector", json!({"app": "db"}), &review("")));
        let mut update = review("");
        update.old_object = Some(json!({"metadata": {"labels": {"app": "db"}}}));
        assert!(asked("objectSelector", json!({"app": "db"}), &update));
        let mut outside = review("");
        outside.namespaced = false;
        assert!(asked("namespaceSelector", json!({"team": "y"}), &outside));
    }
}
