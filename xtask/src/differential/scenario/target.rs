//! Scale targets.

use serde_json::{Value, json};

use crate::differential::action::RequestAction;

/// The kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    ReplicationController,
    /// A custom resource with a scale.
    Worker,
    /// A custom resource whose scale has no selector.
    Blind,
}

/// The group of our custom resources.
pub(crate) const GROUP: &str = "differential.plimsoll.dev";

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::ReplicationController,
        Self::Worker,
        Self::Blind,
    ];

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet => "apps/v1",
            Self::ReplicationController => "v1",
            Self::Worker | Self::Blind => "differential.plimsoll.dev/v1",
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicationController => "ReplicationController",
            Self::Worker => "Worker",
            Self::Blind => "Blind",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::ReplicaSet => "replicasets",
            Self::StatefulSet => "statefulsets",
            Self::ReplicationController => "replicationcontrollers",
            Self::Worker => "workers",
            Self::Blind => "blinds",
        }
    }

    /// Plural and group, as custom metrics name it.
    pub(crate) fn resource(self) -> &'static str {
        match self {
            Self::Deployment => "deployments.apps",
            Self::ReplicaSet => "replicasets.apps",
            Self::StatefulSet => "statefulsets.apps",
            Self::ReplicationController => "replicationcontrollers",
            Self::Worker => "workers.differential.plimsoll.dev",
            Self::Blind => "blinds.differential.plimsoll.dev",
        }
    }

    /// The path of the collection, with `{ns}`.
    pub(crate) fn collection(self) -> String {
        let root = if self == Self::ReplicationController { "api" } else { "apis" };
        format!("/{root}/{}/namespaces/{{ns}}/{}", self.api_version(), self.plural())
    }

    pub(crate) fn path(self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    pub(crate) fn reference(self, name: &str) -> Value {
        json!({"apiVersion": self.api_version(), "kind": self.kind(), "name": name})
    }

    /// Creates a target whose pods have the label `app: {name}`.
    pub(crate) fn create<D: RequestAction>(self, name: &str, replicas: i64) -> Vec<D> {
        let labels = json!({"app": name});
        let containers = json!([{"name": "app", "image": "app"}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = match self {
            Self::Deployment | Self::ReplicaSet => {
                json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template})
            }
            Self::StatefulSet => json!({
                "replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "serviceName": name
            }),
            Self::ReplicationController => {
                json!({"replicas": replicas, "selector": labels, "template": template})
            }
            Self::Worker | Self::Blind => json!({"replicas": replicas}),
        };
        let object = json!({
            "apiVersion": self.api_version(), "kind": self.kind(),
            "metadata": {"name": name, "labels": {"scenario": name}}, "spec": spec,
        });
        vec![D::post(self.collection(), object), self.write_status(name, replicas)]
    }

    /// Writes the replicas to the status of the target, as its controller would.
    pub(crate) fn write_status<D: RequestAction>(self, name: &str, replicas: i64) -> D {
        let status = match self {
            Self::Worker => json!({"replicas": replicas, "selector": format!("app={name}")}),
            Self::Blind => json!({"replicas": replicas}),
            _ => json!({"replicas": replicas, "observedGeneration": 1}),
        };
        D::patch(format!("{}/status", self.path(name)), json!({"status": status}))
    }

    /// Scales the target, as a user would.
    pub(crate) fn scale<D: RequestAction>(self, name: &str, replicas: i64) -> D {
        D::patch(self.path(name), json!({"spec": {"replicas": replicas}}))
    }
}

/// The definitions of our custom resources.
pub(crate) fn definitions() -> Vec<Value> {
    let definition = |kind: Kind| {
        let (plural, mut scale) = (
            kind.plural(),
            json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}),
        );
        if let (Kind::Worker, Some(scale)) = (kind, scale.as_object_mut()) {
            scale.insert("labelSelectorPath".to_owned(), ".status.selector".into());
        }
        let part = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP, "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.kind().to_lowercase(), "kind": kind.kind()},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": part, "status": part}}},
                    "subresources": {"status": {}, "scale": scale},
                }],
            },
        })
    };
    vec![definition(Kind::Worker), definition(Kind::Blind)]
}
