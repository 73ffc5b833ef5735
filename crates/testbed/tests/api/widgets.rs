//! A custom resource definition of widgets, which has a field of every type.

use serde_json::{Value, json};
use testbed::harness::{ApiResponse, Session};

use crate::objects::CRDS;

/// The schema of a widget: one field of each type.
fn schema() -> Value {
    let parts = json!({
        "type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        },
    });
    let spec = json!({
        "size": {"type": "integer", "minimum": 0, "maximum": 100},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
        "weight": {"type": "number", "exclusiveMinimum": true, "minimum": 0},
        "on": {"type": "boolean"},
        "parts": parts,
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "extra": {"type": "object", "additionalProperties": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": true},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "maybe": {"type": "string", "nullable": true},
        "when": {"type": "string", "format": "date-time"},
    });
    let status = json!({"size": {"type": "integer"}, "selector": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": spec},
            "status": {"type": "object", "properties": status},
        },
    })
}

/// A definition of widgets with status, scale and columns.
pub(crate) fn definition() -> Value {
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How large"},
            {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {"openAPIV3Schema": schema()},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.{ns}.example.com"},
        "spec": {
            "group": "{ns}.example.com", "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["toys"],
            },
            "versions": [version],
        },
    })
}

/// The path of the collection of widgets, once their definition is established.
pub(crate) const WIDGETS: &str = "/apis/{ns}.example.com/v1/namespaces/{ns}/widgets";

/// The path of the definition.
pub(crate) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{ns}.example.com";

/// Whether a definition is established.
pub(crate) fn established(response: &ApiResponse) -> bool {
    let conditions = response.body.pointer("/status/conditions").and_then(Value::as_array);
    let holds = |wanted: &Value| wanted["type"] == "Established" && wanted["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(holds))
}

/// Creates a definition, waits until its objects are served, and returns the path of their collection.
pub(crate) async fn define(s: &Session, definition: &Value) -> &'static str {
    s.delete_at_end(DEFINITION);
    s.request(http::Method::POST, CRDS).json(definition).send_unrecorded().await;
    s.wait(DEFINITION, established).await;
    s.wait(WIDGETS, |response| response.code == 200).await;
    // The real server accepts writes of a new kind only after some time.
    for _ in 0..3 {
        let probe = s
            .request(http::Method::POST, &format!("{WIDGETS}?dryRun=All"))
            .json(widget("probe", &json!({"size": 1})));
        let response = probe.send_unrecorded().await;
        if response.code == 201 {
            break;
        }
    }
    WIDGETS
}

/// A widget.
pub(crate) fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "{ns}.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}
