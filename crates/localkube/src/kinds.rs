//! The kinds that are served. Adding one is adding a row.

/// One kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core one.
    pub group: &'static str,
    /// Versions, the preferred one first; all show the same objects.
    pub versions: &'static [&'static str],
    /// Kind.
    pub kind: &'static str,
    /// Plural name in paths.
    pub plural: &'static str,
    /// Singular name for people.
    pub singular: &'static str,
    /// Short names for people.
    pub short: &'static [&'static str],
    /// Names under which several kinds are listed together.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// Whether there is a scale subresource.
    pub scale: bool,
}

const fn kind(
    group: &'static str,
    versions: &'static [&'static str],
    kind: &'static str,
    plural: &'static str,
) -> Kind {
    Kind {
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
    }
}

impl Kind {
    const fn called(self, singular: &'static str, short: &'static [&'static str]) -> Self {
        Self { singular, short, ..self }
    }

    const fn in_all(self) -> Self {
        Self { categories: &["all"], ..self }
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

    /// `deployments.apps`, as errors name it.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The kinds that are built in.
pub const KINDS: &[Kind] = &[
    kind("", &["v1"], "Namespace", "namespaces").called("namespace", &["ns"]).cluster_wide().with_status(),
    kind("", &["v1"], "Node", "nodes").called("node", &["no"]).cluster_wide().with_status(),
    kind("", &["v1"], "Pod", "pods").called("pod", &["po"]).in_all().with_status(),
    kind("", &["v1"], "Service", "services").called("service", &["svc"]).in_all().with_status(),
    kind("", &["v1"], "ConfigMap", "configmaps").called("configmap", &["cm"]),
    kind("", &["v1"], "Secret", "secrets").called("secret", &[]),
    kind("", &["v1"], "ServiceAccount", "serviceaccounts").called("serviceaccount", &["sa"]),
    kind("", &["v1"], "Event", "events").called("event", &["ev"]),
    kind("apps", &["v1"], "Deployment", "deployments")
        .called("deployment", &["deploy"])
        .in_all()
        .with_status()
        .with_scale(),
    kind("apps", &["v1"], "ReplicaSet", "replicasets")
        .called("replicaset", &["rs"])
        .in_all()
        .with_status()
        .with_scale(),
    kind("apps", &["v1"], "StatefulSet", "statefulsets")
        .called("statefulset", &["sts"])
        .in_all()
        .with_status()
        .with_scale(),
    kind("batch", &["v1"], "Job", "jobs").called("job", &[]).in_all().with_status(),
    kind("autoscaling", &["v2", "v1"], "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .called("horizontalpodautoscaler", &["hpa"])
        .in_all()
        .with_status(),
    kind("coordination.k8s.io", &["v1"], "Lease", "leases").called("lease", &[]),
    kind("apiextensions.k8s.io", &["v1"], "CustomResourceDefinition", "customresourcedefinitions")
        .called("customresourcedefinition", &["crd", "crds"])
        .cluster_wide()
        .with_status(),
    kind("apiregistration.k8s.io", &["v1"], "APIService", "apiservices")
        .called("apiservice", &[])
        .cluster_wide()
        .with_status(),
    kind(
        "admissionregistration.k8s.io",
        &["v1"],
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    )
    .called("validatingwebhookconfiguration", &[])
    .cluster_wide(),
];

/// The built-in kind behind a path.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
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
    fn kinds_are_found_in_every_version_they_have() {
        assert_eq!(
            find("autoscaling", "v1", "horizontalpodautoscalers"),
            find("autoscaling", "v2", "horizontalpodautoscalers")
        );
        assert!(find("apps", "v1", "deployments").is_some_and(|kind| kind.scale && kind.namespaced));
        assert_eq!(find("apps", "v2", "deployments"), None);
        assert_eq!(find("", "v1", "deployments"), None);
    }
}
