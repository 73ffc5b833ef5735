//! What the rules ask about the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::ScaledObject;
use serde_json::Value;

use super::{Kind, Operation, Request, Target};

/// Workloads whose containers are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
}

impl Workload {
    /// Of a target, if it is one.
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

/// What the cluster holds. Order does not matter: the rules sort by name.
pub trait Surroundings {
    /// The ScaledObjects of a namespace; the one in question may be among them.
    fn scaled_objects(&self, namespace: &str) -> Vec<Arc<ScaledObject>>;

    /// The HorizontalPodAutoscalers of a namespace.
    fn autoscalers(&self, namespace: &str) -> Vec<Arc<HorizontalPodAutoscaler>>;

    /// A Deployment or StatefulSet as the API serves it.
    fn workload(&self, kind: Workload, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// The LimitRanges of a namespace as the API serves them.
    fn limit_ranges(&self, namespace: &str) -> Vec<Arc<Value>>;

    /// Whether the API has a kind. Not asked for Deployments and StatefulSets.
    fn has_kind(&self, group: &str, version: &str, kind: &str) -> bool;
}

/// What of the cluster a request is judged by: the ScaledObjects and HorizontalPodAutoscalers of a namespace, the kinds
/// they name, and perhaps more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The namespace.
    pub namespace: String,
    /// A workload, and then the LimitRanges too.
    pub workload: Option<(Workload, String)>,
}

/// What a request is judged by besides itself; none: by itself alone.
pub fn needs(request: &Request<'_>) -> Option<Needs> {
    if request.kind != Kind::ScaledObject || request.operation == Operation::Delete {
        return None;
    }
    let text = |path: &str| request.object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let place = |field: &str| text(&format!("/spec/scaleTargetRef/{field}"));
    let triggers = request.object.pointer("/spec/triggers").and_then(Value::as_array).into_iter().flatten();
    let mut types = triggers.filter_map(|trigger| trigger.get("type").and_then(Value::as_str));
    let measures = !request.dry_run && types.any(|type_| matches!(type_, "cpu" | "memory"));
    let target = Target::parse(place("apiVersion"), place("kind"), place("name")).ok();
    let target = target.filter(|_| measures);
    Some(Needs {
        namespace: text("/metadata/namespace").to_owned(),
        workload: target.and_then(|target| Some((Workload::of(&target)?, target.name))),
    })
}

/// Surroundings that were gathered beforehand.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    scaled: Vec<Arc<ScaledObject>>,
    autoscalers: Vec<Arc<HorizontalPodAutoscaler>>,
    workloads: BTreeMap<(Workload, String, String), Arc<Value>>,
    limit_ranges: Vec<Arc<Value>>,
    kinds: BTreeSet<(String, String, String)>,
}

impl Objects {
    /// Adds an object as the API serves it; what the rules never ask for is left out.
    pub fn add(&mut self, object: Value) -> Result<(), serde_json::Error> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let kind = match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "ScaledObject" => {
                self.scaled.push(Arc::new(serde_json::from_value(object)?));
                return Ok(());
            }
            "HorizontalPodAutoscaler" => {
                self.autoscalers.push(Arc::new(serde_json::from_value(object)?));
                return Ok(());
            }
            "LimitRange" => {
                self.limit_ranges.push(Arc::new(object));
                return Ok(());
            }
            "Deployment" => Workload::Deployment,
            "StatefulSet" => Workload::StatefulSet,
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

impl Surroundings for Objects {
    fn scaled_objects(&self, namespace: &str) -> Vec<Arc<ScaledObject>> {
        let own = self.scaled.iter().filter(|object| object.metadata.namespace == namespace);
        own.cloned().collect()
    }

    fn autoscalers(&self, namespace: &str) -> Vec<Arc<HorizontalPodAutoscaler>> {
        let own = self.autoscalers.iter().filter(|object| object.metadata.namespace == namespace);
        own.cloned().collect()
    }

    fn workload(&self, kind: Workload, namespace: &str, name: &str) -> Option<Arc<Value>> {
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
