//! What the rules read from the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::ScaledObject;
use serde::Deserialize as _;
use serde_json::Value;

use super::{AdmissionInput, AdmissionKind, Operation, Target};

/// Workloads whose containers are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
}

impl WorkloadKind {
    /// The workload kind of a target, if it is one.
    pub fn of(target: &Target) -> Option<Self> {
        match (target.group.as_str(), target.version.as_str(), target.kind.as_str()) {
            ("apps", "v1", "Deployment") => Some(Self::Deployment),
            ("apps", "v1", "StatefulSet") => Some(Self::StatefulSet),
            _ => None,
        }
    }

    /// `deployments` or `statefulsets`, of group `apps`.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::StatefulSet => "statefulsets",
        }
    }
}

/// A view of the cluster. Order does not matter, because the rules sort by name.
pub trait ClusterView {
    /// The ScaledObjects of a namespace; the validated one may be included.
    fn scaled_objects(&self, namespace: &str) -> Vec<Arc<ScaledObject>>;

    /// The HorizontalPodAutoscalers of a namespace.
    fn autoscalers(&self, namespace: &str) -> Vec<Arc<HorizontalPodAutoscaler>>;

    /// A Deployment or StatefulSet as the API serves it.
    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// The LimitRanges of a namespace as the API serves them.
    fn limit_ranges(&self, namespace: &str) -> Vec<Arc<Value>>;

    /// Whether the API has a kind. Not called for Deployments and StatefulSets.
    fn has_kind(&self, group: &str, version: &str, kind: &str) -> bool;
}

/// What a request needs from the cluster: the ScaledObjects and HorizontalPodAutoscalers of a namespace, the kinds
/// they name, and the following.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionNeeds {
    /// The namespace.
    pub namespace: String,
    /// A workload, and then the LimitRanges too.
    pub workload: Option<(WorkloadKind, String)>,
}

/// What a request needs from the cluster; none if nothing.
pub fn needs(request: &AdmissionInput<'_>) -> Option<AdmissionNeeds> {
    if request.kind != AdmissionKind::ScaledObject || request.operation == Operation::Delete {
        return None;
    }
    let text = |path: &str| request.object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let place = |field: &str| text(&format!("/spec/scaleTargetRef/{field}"));
    let triggers = request.object.pointer("/spec/triggers").and_then(Value::as_array).into_iter().flatten();
    let mut types = triggers.filter_map(|trigger| trigger.get("type").and_then(Value::as_str));
    let measures = !request.dry_run && types.any(|type_| matches!(type_, "cpu" | "memory"));
    let target = Target::parse(place("apiVersion"), place("kind"), place("name")).ok();
    let target = target.filter(|_| measures);
    Some(AdmissionNeeds {
        namespace: text("/metadata/namespace").to_owned(),
        workload: target.and_then(|target| Some((WorkloadKind::of(&target)?, target.name))),
    })
}

/// A view of objects that were read beforehand.
#[derive(Clone, Debug, Default)]
pub struct ClusterSnapshot {
    scaled: Vec<Arc<ScaledObject>>,
    autoscalers: Vec<Arc<HorizontalPodAutoscaler>>,
    workloads: BTreeMap<(WorkloadKind, String, String), Arc<Value>>,
    limit_ranges: Vec<Arc<Value>>,
    kinds: BTreeSet<(String, String, String)>,
}

impl ClusterSnapshot {
    /// Adds an object as the API serves it; kinds that the rules do not use are ignored.
    pub fn add(&mut self, object: Value) -> Result<(), serde_json::Error> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let kind = match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "ScaledObject" => {
                self.scaled.push(Arc::new(ScaledObject::deserialize(&object)?));
                return Ok(());
            }
            "HorizontalPodAutoscaler" => {
                self.autoscalers.push(Arc::new(HorizontalPodAutoscaler::deserialize(&object)?));
                return Ok(());
            }
            "LimitRange" => {
                self.limit_ranges.push(Arc::new(object));
                return Ok(());
            }
            "Deployment" => WorkloadKind::Deployment,
            "StatefulSet" => WorkloadKind::StatefulSet,
            _ => return Ok(()),
        };
        self.workloads.insert((kind, namespace, name), Arc::new(object));
        Ok(())
    }

    /// Adds a ScaledObject.
    pub fn add_scaled_object(&mut self, object: Arc<ScaledObject>) {
        self.scaled.push(object);
    }

    /// Adds a HorizontalPodAutoscaler.
    pub fn add_autoscaler(&mut self, object: Arc<HorizontalPodAutoscaler>) {
        self.autoscalers.push(object);
    }

    /// Adds a kind that the API has.
    pub fn add_kind(&mut self, group: &str, version: &str, kind: &str) {
        self.kinds.insert((group.to_owned(), version.to_owned(), kind.to_owned()));
    }
}

impl ClusterView for ClusterSnapshot {
    fn scaled_objects(&self, namespace: &str) -> Vec<Arc<ScaledObject>> {
        let own = self.scaled.iter().filter(|object| object.metadata.namespace == namespace);
        own.cloned().collect()
    }

    fn autoscalers(&self, namespace: &str) -> Vec<Arc<HorizontalPodAutoscaler>> {
        let own = self.autoscalers.iter().filter(|object| object.metadata.namespace == namespace);
        own.cloned().collect()
    }

    fn workload(&self, kind: WorkloadKind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.workloads.get(&(kind, namespace.to_owned(), name.to_owned())).cloned()
    }

    fn limit_ranges(&self, namespace: &str) -> Vec<Arc<Value>> {
        let is_own = |range: &&Arc<Value>| {
            range.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default() == namespace
        };
        self.limit_ranges.iter().filter(is_own).cloned().collect()
    }

    fn has_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        self.kinds.contains(&(group.to_owned(), version.to_owned(), kind.to_owned()))
    }
}
