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
    /// Singular name.
    pub singular: &'static str,
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
    /// Whether the objects are reviews: answered and never stored.
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
        singular: "",
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

impl BuiltInKind {
    const fn called(self, singular: &'static str, short: &'static [&'static str]) -> Self {
        Self { singular, short, ..self }
    }

    const fn in_all(self) -> Self {
        Self { categories: &["all"], ..self }
    }

    const fn in_category(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    const fn cluster_wide(self) -> Self {
        Self { namespaced: false, ..self }
    }

    const fn with_status(self) -> Self {
        Self { status: true, ..self }
    }

    const fn with_scale(self) -> Self {
        Self { scale: true, ..self }
    }

    const fn with_generation(self) -> Self {
        Self { generation: true, ..self }
    }

    const fn with_more(self, more: &'static [&'static str]) -> Self {
        Self { more, ..self }
    }

    const fn selected_by(self, fields: &'static [SelectableField]) -> Self {
        Self { fields, ..self }
    }

    const fn returning_deleted(self) -> Self {
        Self { returns_deleted: true, ..self }
    }

    const fn born_with_status(self) -> Self {
        Self { born_with_status: true, ..self }
    }

    const fn needing_revision(self) -> Self {
        Self { needs_revision: true, ..self }
    }

    const fn made_by_update(self) -> Self {
        Self { made_by_update: true, ..self }
    }

    const fn deleted_one_by_one(self) -> Self {
        Self { collection: false, ..self }
    }

    const fn reviewed(self) -> Self {
        Self { review: true, ..self }
    }

    const fn ruled_by(self, rules: &'static Rules) -> Self {
        Self { rules, ..self }
    }

    /// `deployments.apps`, as in error texts.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The built-in kinds.
pub const KINDS: &[BuiltInKind] = &[
    kind("", &["v1"], "Namespace", "namespaces")
        .called("namespace", &["ns"])
        .deleted_one_by_one()
        .ruled_by(&rules::namespace::RULES)
        .cluster_wide()
        .with_status()
        .with_more(&["finalize"])
        .selected_by(&[field("status.phase"), field("name").at("metadata.name")]),
    kind("", &["v1"], "Node", "nodes")
        .called("node", &["no"])
        .born_with_status()
        .ruled_by(&rules::node::RULES)
        .cluster_wide()
        .with_status()
        .selected_by(&[field("spec.unschedulable").or("false")]),
    kind("", &["v1"], "Pod", "pods")
        .called("pod", &["po"])
        .ruled_by(&rules::pod::RULES)
        .returning_deleted()
        .in_all()
        .with_status()
        .with_generation()
        .with_more(&["binding", "eviction"])
        .selected_by(&[
            field("spec.nodeName"),
            field("spec.restartPolicy"),
            field("spec.schedulerName"),
            field("spec.serviceAccountName"),
            field("spec.hostNetwork").or("false"),
            field("status.phase"),
            field("status.podIP"),
            field("status.nominatedNodeName"),
        ]),
    kind("", &["v1"], "Service", "services")
        .called("service", &["svc"])
        .ruled_by(&rules::service::RULES)
        .returning_deleted()
        .in_all()
        .with_status()
        .selected_by(&[field("spec.clusterIP"), field("spec.type")]),
    kind("", &["v1"], "ConfigMap", "configmaps")
        .called("configmap", &["cm"])
        .ruled_by(&rules::config::CONFIG_MAPS),
    kind("", &["v1"], "Secret", "secrets")
        .called("secret", &[])
        .ruled_by(&rules::config::SECRETS)
        .selected_by(&[field("type")]),
    kind("", &["v1"], "ServiceAccount", "serviceaccounts")
        .called("serviceaccount", &["sa"])
        .ruled_by(&rules::account::RULES)
        .returning_deleted()
        .with_more(&["token"]),
    kind("", &["v1"], "Event", "events").called("event", &["ev"]).ruled_by(&rules::event::RULES).selected_by(
        &[
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
    ),
    kind("apps", &["v1"], "Deployment", "deployments")
        .called("deployment", &["deploy"])
        .ruled_by(&rules::workloads::deployment::RULES)
        .in_all()
        .with_status()
        .with_scale()
        .with_generation(),
    kind("apps", &["v1"], "ReplicaSet", "replicasets")
        .called("replicaset", &["rs"])
        .ruled_by(&rules::workloads::replicaset::RULES)
        .in_all()
        .with_status()
        .with_scale()
        .with_generation(),
    kind("apps", &["v1"], "StatefulSet", "statefulsets")
        .called("statefulset", &["sts"])
        .ruled_by(&rules::workloads::statefulset::RULES)
        .in_all()
        .with_status()
        .with_scale()
        .with_generation(),
    kind("batch", &["v1"], "Job", "jobs")
        .called("job", &[])
        .ruled_by(&rules::workloads::job::RULES)
        .in_all()
        .with_status()
        .with_generation()
        .selected_by(&[field("status.successful").at("status.succeeded").or("0")]),
    kind("autoscaling", &["v2", "v1"], "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .called("horizontalpodautoscaler", &["hpa"])
        .ruled_by(&rules::autoscaler::RULES)
        .in_all()
        .with_status(),
    kind("coordination.k8s.io", &["v1"], "Lease", "leases")
        .called("lease", &[])
        .ruled_by(&rules::lease::RULES)
        .made_by_update()
        .needing_revision(),
    kind("apiextensions.k8s.io", &["v1"], "CustomResourceDefinition", "customresourcedefinitions")
        .called("customresourcedefinition", &["crd", "crds"])
        .ruled_by(&crate::custom::RULES)
        .needing_revision()
        .in_category(&["api-extensions"])
        .cluster_wide()
        .with_status()
        .with_generation(),
    kind("apiregistration.k8s.io", &["v1"], "APIService", "apiservices")
        .called("apiservice", &[])
        .ruled_by(&rules::apiservice::RULES)
        .needing_revision()
        .in_category(&["api-extensions"])
        .cluster_wide()
        .with_status(),
    kind(
        "admissionregistration.k8s.io",
        &["v1"],
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    )
    .called("validatingwebhookconfiguration", &[])
    .ruled_by(&rules::webhook::RULES)
    .needing_revision()
    .in_category(&["api-extensions"])
    .cluster_wide()
    .with_generation(),
    kind("authentication.k8s.io", &["v1"], "TokenReview", "tokenreviews")
        .called("tokenreview", &[])
        .cluster_wide()
        .reviewed(),
    kind("authentication.k8s.io", &["v1"], "SelfSubjectReview", "selfsubjectreviews")
        .called("selfsubjectreview", &[])
        .cluster_wide()
        .reviewed(),
    kind("authorization.k8s.io", &["v1"], "SubjectAccessReview", "subjectaccessreviews")
        .called("subjectaccessreview", &[])
        .cluster_wide()
        .reviewed(),
    kind("authorization.k8s.io", &["v1"], "SelfSubjectAccessReview", "selfsubjectaccessreviews")
        .called("selfsubjectaccessreview", &[])
        .cluster_wide()
        .reviewed(),
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
            assert_eq!(kind.singular, kind.kind.to_lowercase());
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
