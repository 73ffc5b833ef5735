//! Which kinds there are, and how a document of each is checked.

use api::manifest;
use api::yaml::{Diagnostic, Document, Node, nearest};
use keda::admission::AdmissionKind;

use super::{ValidationRules, keda_objects, workload};

/// The groups of which all kinds are known here. A kind that they do not have is misspelt.
const GROUPS: [(&str, &str, &[&str]); 7] = [
    ("autoscaling", "autoscaling/v2", &["HorizontalPodAutoscaler"]),
    ("plimsoll.dev", api::plimsoll::API_VERSION, &["Autoscaler", "Scenario"]),
    (
        "keda.sh",
        api::keda::API_VERSION,
        &["ScaledObject", "ScaledJob", "TriggerAuthentication", "ClusterTriggerAuthentication"],
    ),
    ("eventing.keda.sh", "eventing.keda.sh/v1alpha1", &["CloudEventSource", "ClusterCloudEventSource"]),
    ("apps", "apps/v1", &["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ControllerRevision"]),
    ("batch", "batch/v1", &["Job", "CronJob"]),
    (
        "",
        "v1",
        &[
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "List",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
];

/// The result for one document.
#[derive(Debug)]
pub(super) enum Checked {
    /// It was checked; it is valid if there are no problems.
    All(Vec<Diagnostic>),
    /// Only parts of it were checked: which.
    InPart(Vec<Diagnostic>, &'static str),
    /// Its kind is not known here.
    Nothing,
}

impl Checked {
    pub(super) fn problems(&self) -> &[Diagnostic] {
        match self {
            Self::All(problems) | Self::InPart(problems, _) => problems,
            Self::Nothing => &[],
        }
    }
}

/// Checks a document by its kind.
pub(super) fn check(document: &Document, rules: ValidationRules) -> Checked {
    let text = |path: &str| document.root.get(path).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version.is_empty() || kind.is_empty() {
        return Checked::All(manifest::problems(document, rules.gates));
    }
    // It is a part of other objects and not stored.
    if (api_version, kind) == ("autoscaling/v1", "Scale") {
        return Checked::Nothing;
    }
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if let Some(problem) = misplaced(document, group, api_version, kind) {
        return Checked::All(vec![problem]);
    }
    match (group, kind) {
        ("autoscaling", "HorizontalPodAutoscaler") | ("plimsoll.dev", "Autoscaler") => {
            Checked::All(manifest::problems(document, rules.gates))
        }
        ("keda.sh" | "eventing.keda.sh", _) => match AdmissionKind::parse(kind) {
            Some(kind) => Checked::All(keda_objects::problems(document, kind, rules)),
            None => Checked::Nothing,
        },
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => Checked::InPart(
            workload::problems(document, kind),
            "replicas, selector, containers and resources",
        ),
        _ => Checked::Nothing,
    }
}

/// The problem of a kind that its group does not have, or that is of another group or version.
fn misplaced(document: &Document, group: &str, api_version: &str, kind: &str) -> Option<Diagnostic> {
    if kind == api::autoscaling::KIND {
        // Its versions have messages of their own.
        return api::manifest::Manifest::read(document).err().filter(|_| group != "autoscaling")?.pop();
    }
    let owner = GROUPS.iter().find(|(_, _, kinds)| kinds.contains(&kind));
    let own = GROUPS.iter().find(|(name, ..)| *name == group);
    match (owner, own) {
        (Some((name, served, _)), _) if *name == group => {
            let known = api_version == *served;
            let text = format!("{kind} has no version {api_version}; known: {served}");
            (!known).then(|| document.problem("apiVersion", text).in_path("apiVersion"))
        }
        (_, Some((_, _, kinds))) => {
            let text = format!("{api_version} has no kind {kind}");
            let problem = document.problem("kind", text).in_path("kind");
            let meant = nearest(kind, kinds.iter().copied());
            Some(match (meant, owner) {
                (_, Some((_, served, _))) => problem.with_hint(format!("{kind} is in {served}")),
                (Some(meant), None) => problem.with_hint(format!("did you mean `{meant}`?")),
                (None, None) => problem,
            })
        }
        // Another group may have a kind of the same name, but not one whose own name is as rare as these.
        (Some((name, served, _)), None) if name.contains("keda") || name.contains("plimsoll") => {
            let text = format!("{kind} has no version {api_version}; known: {served}");
            Some(document.problem("apiVersion", text).in_path("apiVersion"))
        }
        _ => None,
    }
}
