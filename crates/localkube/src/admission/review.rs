//! The write that webhooks review.

use serde_json::{Map, Value, json};

use crate::access::User;

/// The write that webhooks review.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdmissionRequest {
    /// Id of the review.
    pub(crate) uid: String,
    /// API group; empty for the core one.
    pub(crate) group: String,
    /// Version of the request.
    pub(crate) version: String,
    /// Kind of the object.
    pub(crate) kind: String,
    /// Plural name of the resource.
    pub(crate) resource: String,
    /// Subresource; empty for the object itself.
    pub(crate) subresource: String,
    /// Name of the object.
    pub(crate) name: String,
    /// Namespace; empty for objects outside of any.
    pub(crate) namespace: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// The labels of the namespace, as an object.
    pub(crate) namespace_labels: Value,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub(crate) operation: &'static str,
    /// The user that writes.
    pub(crate) user: User,
    /// The object after the write.
    pub(crate) object: Option<Value>,
    /// The object before the write.
    pub(crate) old_object: Option<Value>,
    /// Whether the request is a dry run.
    pub(crate) dry_run: bool,
}

impl AdmissionRequest {
    /// Whether the object is a namespace.
    pub(super) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    /// The `AdmissionReview` object.
    pub(super) fn to_json(&self) -> Value {
        let kind = match self.subresource.as_str() {
            "scale" => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            _ => json!({"group": self.group, "version": self.version, "kind": self.kind}),
        };
        let resource = json!({"group": self.group, "version": self.version, "resource": self.resource});
        let namespace = if self.is_namespace() { &self.name } else { &self.namespace };
        let mut request = Map::new();
        let mut add = |name: &str, value: Value| drop(request.insert(name.to_owned(), value));
        add("uid", json!(self.uid));
        for (kind_field, resource_field, part_field) in
            [("kind", "resource", "subResource"), ("requestKind", "requestResource", "requestSubResource")]
        {
            add(kind_field, kind.clone());
            add(resource_field, resource.clone());
            if !self.subresource.is_empty() {
                add(part_field, json!(self.subresource));
            }
        }
        for (field, text) in [("name", &self.name), ("namespace", namespace)] {
            if !text.is_empty() {
                add(field, json!(text));
            }
        }
        add("operation", json!(self.operation));
        add("userInfo", self.user.to_json());
        add("object", self.object.clone().unwrap_or_default());
        add("oldObject", self.old_object.clone().unwrap_or_default());
        add("dryRun", json!(self.dry_run));
        let options = match self.operation {
            "CREATE" => "CreateOptions",
            "DELETE" => "DeleteOptions",
            _ => "UpdateOptions",
        };
        let mut options = json!({"kind": options, "apiVersion": "meta.k8s.io/v1"});
        if let Some(options) = options.as_object_mut().filter(|_| self.dry_run) {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        add("options", options);
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
    }
}
