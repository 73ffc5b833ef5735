//! The table of built-in kinds. Each row is a kind.

use crate::rules::{self, Rules};

/// A built-in kind.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInKind {
    /// API group; empty for the core one.
    pub group: &'static str,
    /// Versions, the preferred one first; all have the same objects.
    pub versions: &'static [&'static str],
    /// Kind.
    pub kind: &'static str,
    /// Plural name in paths.
    pub plural: &'static str,
    /// Short names.
    pub short: &'static [&'static str],
    /// Categories such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// Whether there is a scale subresource.
    pub scale: bool,
    /// Whether `metadata.generation` counts changes outside of metadata and status.
    pub generation: bool,
    /// Other subresources.
    pub more: &'static [&'static str],
    /// The selectable fields, besides name and namespace.
    pub fields: &'static [SelectableField],
    /// Defaulting and validation of this kind.
    pub rules: &'static Rules,
    /// Whether a deletion returns the object instead of a `Status`.
    pub returns_deleted: bool,
    /// Whether the status of a created object is kept.
    pub born_with_status: bool,
    /// Whether an update must name the resource version that it replaces.
    pub needs_revision: bool,
    /// Whether an update creates a missing object.
    pub made_by_update: bool,
    /// Whether `deletecollection` is supported.
    pub collection: bool,
    /// Whether the objects are reviews, which get a response and are never stored.
    pub review: bool,
}

/// A field for field selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectableField {
    /// Name in selectors.
    pub name: &'static str,
    /// Path of its value.
    pub path: &'static str,
    /// Its value if it is absent.
    pub absent: &'static str,
}

const fn field(name: &'static str) -> SelectableField {
    SelectableField { name, path: name, absent: "" }
}

impl SelectableField {
    const fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    const fn or(self, absent: &'static str) -> Self {
        Self { absent, ..self }
    }
}

const fn kind(
    group: &'static str,
    versions: &'static [&'static str],
    kind: &'static str,
    plural: &'static str,
) -> BuiltInKind {
    BuiltInKind {
        group,
        versions,
        kind,
        plural,
        short: &[],
        categories: &[],
        namespaced: true,
        status: false,
        scale: false,
        generation: false,
        more: &[],
        fields: &[],
        rules: &rules::NONE,
        returns_deleted: false,
        born_with_status: false,
        needs_revision: false,
        made_by_update: false,
        collection: true,
        review: false,
    }
}

/// A kind whose objects get a response and are never stored.
const fn review(group: &'static str, kind: &'static str, plural: &'static str) -> BuiltInKind {
    BuiltInKind { namespaced: false, review: true, ..self::kind(group, &["v1"], kind, plural) }
}

impl BuiltInKind {
    /// `deployments.apps`, as in error texts.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The built-in kinds.
pub const KINDS: &[BuiltInKind] = &[
    BuiltInKind {
        short: &["ns"],
        collection: false,
        rules: &rules::namespace::RULES,
        namespaced: false,
        status: true,
        more: &["finalize"],
        fields: &[field("status.phase"), field("name").at("metadata.name")],
        ..kind("", &["v1"], "Namespace", "namespaces")
    },
    BuiltInKind {
        short: &["no"],
        born_with_status: true,
        rules: &rules::node::RULES,
        namespaced: false,
        status: true,
        fields: &[field("spec.unschedulable").or("false")],
        ..kind("", &["v1"], "Node", "nodes")
    },
    BuiltInKind {
        short: &["po"],
        rules: &rules::pod::RULES,
        returns_deleted: true,
        categories: &["all"],
        status: true,
        generation: true,
        more: &["binding", "eviction"],
        fields: &[
            field("spec.nodeName"),
            field("spec.restartPolicy"),
            field("spec.schedulerName"),
            field("spec.serviceAccountName"),
            field("spec.hostNetwork").or("false"),
            field("status.phase"),
            field("status.podIP"),
            field("status.nominatedNodeName"),
        ],
        ..kind("", &["v1"], "Pod", "pods")
    },
    BuiltInKind {
        short: &["svc"],
        rules: &rules::service::RULES,
        returns_deleted: true,
        categories: &["all"],
        status: true,
        fields: &[field("spec.clusterIP"), field("spec.type")],
        ..kind("", &["v1"], "Service", "services")
    },
    BuiltInKind {
        short: &["cm"],
        rules: &rules::config::CONFIG_MAPS,
        ..kind("", &["v1"], "ConfigMap", "configmaps")
    },
    BuiltInKind {
        rules: &rules::config::SECRETS,
        fields: &[field("type")],
        ..kind("", &["v1"], "Secret", "secrets")
    },
    BuiltInKind {
        short: &["sa"],
        rules: &rules::account::RULES,
        returns_deleted: true,
        more: &["token"],
        ..kind("", &["v1"], "ServiceAccount", "serviceaccounts")
    },
    BuiltInKind {
        short: &["ev"],
        rules: &rules::event::RULES,
        fields: &[
            field("involvedObject.kind"),
            field("involvedObject.namespace"),
            field("involvedObject.name"),
            field("involvedObject.uid"),
            field("involvedObject.apiVersion"),
            field("involvedObject.resourceVersion"),
            field("involvedObject.fieldPath"),
            field("reason"),
            field("reportingComponent"),
            field("source").at("source.component"),
            field("type"),
        ],
        ..kind("", &["v1"], "Event", "events")
    },
    BuiltInKind {
        short: &["deploy"],
        rules: &rules::workloads::deployment::RULES,
        categories: &["all"],
        status: true,
        scale: true,
        generation: true,
        ..kind("apps", &["v1"], "Deployment", "deployments")
    },
    BuiltInKind {
        short: &["rs"],
        rules: &rules::workloads::replicaset::RULES,
        categories: &["all"],
        status: true,
        scale: true,
        generation: true,
        ..kind("apps", &["v1"], "ReplicaSet", "replicasets")
    },
    BuiltInKind {
        short: &["sts"],
        rules: &rules::workloads::statefulset::RULES,
        categories: &["all"],
        status: true,
        scale: true,
        generation: true,
        ..kind("apps", &["v1"], "StatefulSet", "statefulsets")
    },
    BuiltInKind {
        rules: &rules::workloads::job::RULES,
        categories: &["all"],
        status: true,
        generation: true,
        fields: &[field("status.successful").at("status.succeeded").or("0")],
        ..kind("batch", &["v1"], "Job", "jobs")
    },
    BuiltInKind {
        short: &["hpa"],
        rules: &rules::autoscaler::RULES,
        categories: &["all"],
        status: true,
        ..kind("autoscaling", &["v2", "v1"], "HorizontalPodAutoscaler", "horizontalpodautoscalers")
    },
    BuiltInKind {
        rules: &rules::lease::RULES,
        made_by_update: true,
        needs_revision: true,
        ..kind("coordination.k8s.io", &["v1"], "Lease", "leases")
    },
    BuiltInKind {
        short: &["crd", "crds"],
        rules: &crate::custom::RULES,
        needs_revision: true,
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        generation: true,
        ..kind("apiextensions.k8s.io", &["v1"], "CustomResourceDefinition", "customresourcedefinitions")
    },
    BuiltInKind {
        rules: &rules::apiservice::RULES,
        needs_revision: true,
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        ..kind("apiregistration.k8s.io", &["v1"], "APIService", "apiservices")
    },
    BuiltInKind {
        rules: &rules::webhook::RULES,
        needs_revision: true,
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        ..kind(
            "admissionregistration.k8s.io",
            &["v1"],
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        )
    },
    review("authentication.k8s.io", "TokenReview", "tokenreviews"),
    review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
    review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
    review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
];

/// The built-in kind of a path.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static BuiltInKind> {
    KINDS.iter().find(|kind| kind.group == group && kind.plural == plural && kind.versions.contains(&version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_complete() {
        let mut seen = BTreeSet::new();
        for kind in KINDS {
            assert!(seen.insert(kind.group_resource()), "{kind:?}");
            assert!(!kind.versions.is_empty() && kind.plural.ends_with('s'));
        }
        let mut shorts = BTreeSet::new();
        assert!(KINDS.iter().flat_map(|kind| kind.short).all(|short| shorts.insert(short)));
    }

    #[test]
    fn kinds_are_found_in_each_of_their_versions() {
        for version in ["v1", "v2"] {
            assert!(find("autoscaling", version, "horizontalpodautoscalers").is_some());
        }
        assert!(find("apps", "v1", "deployments").is_some_and(|kind| kind.scale && kind.namespaced));
        assert!(find("apps", "v2", "deployments").is_none());
        assert!(find("", "v1", "deployments").is_none());
    }
}
