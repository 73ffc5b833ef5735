//! Reads the fields of Deployments, StatefulSets and ReplicaSets that the simulator needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::meta::ObjectMeta;
use api::pod::PodSpec;
use api::selector::{LabelSelector, Selector};
use api::yaml::{Diagnostic, Document, Node, NodeValue};
use engine::PodTemplate;
use serde::Deserialize;

use super::faults::{Faults, meant};
use super::limits::MAX_PODS_PER_WORKLOAD;
use crate::workload::PodManagement;

/// Group and version of workloads.
const API_VERSION: &str = "apps/v1";
/// Kinds of workloads.
pub(super) const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "ReplicaSet"];

/// A workload as its manifest declares it.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub(super) document: Document,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) replicas: usize,
    pub(super) selector: Selector,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) shape: Arc<PodTemplate>,
    pub(super) order: PodManagement,
}

impl Manifest {
    /// Whether both declare the same object.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

/// The fields that are read. Others are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    spec: WireSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSpec {
    replicas: Option<i32>,
    selector: Option<LabelSelector>,
    pod_management_policy: String,
    template: WireTemplate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireTemplate {
    metadata: ObjectMeta,
    spec: PodSpec,
}

/// Reads a manifest.
pub(super) fn read(document: &Document) -> Result<Manifest, Vec<Diagnostic>> {
    let wire: Wire = document.decode_lenient()?;
    let mut problems = Vec::new();
    let mut faults = Faults::new(document, &mut problems);
    misspelt(&mut faults);
    if wire.api_version != API_VERSION {
        let message =
            format!("expected apiVersion `{API_VERSION}` for {}, found `{}`", wire.kind, wire.api_version);
        faults.add("apiVersion", message);
    }
    if wire.metadata.name.is_empty() {
        faults.add("metadata", format!("this {} has no name", wire.kind));
    }
    let replicas = wire.spec.replicas.unwrap_or(1);
    let replicas =
        usize::try_from(replicas).ok().filter(|n| *n <= MAX_PODS_PER_WORKLOAD).unwrap_or_else(|| {
            faults.add(
                "spec.replicas",
                format!("`replicas` must be from 0 to {MAX_PODS_PER_WORKLOAD}, found {replicas}"),
            );
            0
        });
    let labels: BTreeMap<String, String> = wire.spec.template.metadata.labels.into_iter().collect();
    let selector = match LabelSelector::to_selector_or_nothing(wire.spec.selector.as_ref()) {
        Ok(selector) => selector,
        Err(error) => {
            faults.add("spec.selector", format!("the selector is invalid: {error}"));
            Selector::nothing()
        }
    };
    if wire.spec.selector.is_none() || selector.is_everything() {
        faults.add("spec.selector", "`selector` is required and may not be empty");
    } else if !selector.is_nothing() && !selector.matches_map(&labels) {
        faults.add("spec.selector", "`selector` does not match the labels of `template`");
    }
    let spec = wire.spec.template.spec;
    if spec.containers.is_empty() {
        faults.add("spec.template.spec.containers", "the pods have no containers");
    }
    let order = match (wire.kind.as_str(), wire.spec.pod_management_policy.as_str()) {
        ("StatefulSet", "Parallel") => PodManagement::Numbered,
        ("StatefulSet", _) => PodManagement::OneByOne,
        _ => PodManagement::Any,
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Manifest {
        document: document.clone(),
        kind: wire.kind,
        namespace: namespace(&wire.metadata),
        name: wire.metadata.name,
        replicas,
        selector,
        labels,
        shape: Arc::new(spec.shape()),
        order,
    })
}

/// The namespace of an object; `default` if it has none.
pub(super) fn namespace(metadata: &ObjectMeta) -> String {
    if metadata.namespace.is_empty() { "default".to_owned() } else { metadata.namespace.clone() }
}

/// Reports unknown fields that look like a misspelt known field. Other unknown fields are ignored.
fn misspelt(faults: &mut Faults<'_>) {
    let document = faults.document();
    let mut check_fields = |path: &str, node: Option<&Node>, ours: &[&str], others: &[&str]| {
        let Some(NodeValue::Map(entries)) = node.map(|node| &node.value) else { return };
        for (key, _) in entries {
            let name = key.name.as_str();
            if ours.contains(&name) || others.contains(&name) {
                continue;
            }
            if api::yaml::nearest(name, ours.iter().copied()).is_some() {
                let problem = Diagnostic::at(&document.source, key.span, format!("unknown field `{name}`"))
                    .in_path(path);
                faults.push(match meant(name, ours.iter().copied()) {
                    Some(hint) => problem.with_hint(hint),
                    None => problem,
                });
            }
        }
    };
    let root = &document.root;
    check_fields("", Some(root), &["apiVersion", "kind", "metadata", "spec"], &["status"]);
    check_fields("spec", root.get("spec"), &["replicas", "selector", "template", "podManagementPolicy"], &[]);
    let pod = "spec.template.spec";
    check_fields("spec.template", root.get("spec.template"), &["metadata", "spec"], &[]);
    check_fields(
        pod,
        root.get(pod),
        &["containers", "initContainers", "resources", "overhead"],
        &["resourceClaims"],
    );
    for list in ["containers", "initContainers"] {
        let count = match root.get(&format!("{pod}.{list}")).map(|node| &node.value) {
            Some(NodeValue::Seq(items)) => items.len(),
            _ => 0,
        };
        for index in 0..count {
            let path = format!("{pod}.{list}[{index}]");
            let others = ["restartPolicyRules", "resizePolicy"];
            check_fields(&path, root.get(&path), &["name", "resources", "restartPolicy"], &others);
            let path = format!("{path}.resources");
            check_fields(&path, root.get(&path), &["requests", "limits"], &["claims"]);
        }
    }
}
