//! The fields of pods that decisions use, and their conversion to engine types.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::pod::{
    ConditionStatus, Container as EngineContainer, PodPhase, PodTemplate, ReadyCondition, ResourceList,
    Resources,
};
use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::wire::nullable;

/// A slim view of `v1.Pod`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Name, namespace, labels.
    #[serde(deserialize_with = "nullable")]
    pub metadata: PodMeta,
    /// Containers.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// Phase and conditions.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
}

/// Metadata of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMeta {
    /// Name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Namespace.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
    /// Labels.
    #[serde(deserialize_with = "nullable")]
    pub labels: BTreeMap<String, String>,
    /// Set while the pod is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
}

/// Spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Regular containers.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    /// Init containers and sidecars.
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Container>,
    /// Requests and limits of the pod as a whole.
    #[serde(deserialize_with = "nullable")]
    pub resources: ResourceRequirements,
    /// Overhead of the runtime class.
    #[serde(deserialize_with = "nullable")]
    pub overhead: BTreeMap<String, Quantity>,
}

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
    /// Requests and limits.
    #[serde(deserialize_with = "nullable")]
    pub resources: ResourceRequirements,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRequirements {
    /// Requests.
    #[serde(deserialize_with = "nullable")]
    pub requests: BTreeMap<String, Quantity>,
    /// Limits.
    #[serde(deserialize_with = "nullable")]
    pub limits: BTreeMap<String, Quantity>,
}

/// Status of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, …
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
    /// `startTime`: when the kubelet accepted it.
    pub start_time: Option<Timestamp>,
    /// Conditions.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<PodCondition>,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// Condition type.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// When the status last changed.
    pub last_transition_time: Option<Timestamp>,
}

impl Pod {
    /// Converts to the engine's type. `shape` is the result of [`PodSpec::shape`], shared by pods of one template.
    pub fn view(&self, shape: Arc<PodTemplate>) -> engine::Pod {
        let ready = self.status.conditions.iter().find(|c| c.kind == "Ready").map(|c| ReadyCondition {
            status: match c.status.as_str() {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            },
            since: c.last_transition_time.unwrap_or(crate::time::GO_ZERO),
        });
        engine::Pod {
            name: self.metadata.name.as_str().into(),
            phase: match self.status.phase.as_str() {
                "Pending" => PodPhase::Pending,
                "Running" => PodPhase::Running,
                "Failed" => PodPhase::Failed,
                "Succeeded" => PodPhase::Succeeded,
                _ => PodPhase::Other,
            },
            deleting: self.metadata.deletion_timestamp.is_some(),
            started: self.status.start_time,
            ready,
            shape,
        }
    }
}

impl PodSpec {
    /// The template of pods with this spec.
    pub fn shape(&self) -> PodTemplate {
        PodTemplate {
            containers: self.containers.iter().map(Container::view).collect(),
            init_containers: self.init_containers.iter().map(Container::view).collect(),
            pod: self.resources.view(),
            overhead: amounts(&self.overhead),
        }
    }
}

impl Container {
    fn view(&self) -> EngineContainer {
        EngineContainer {
            name: self.name.clone(),
            restarts: self.restart_policy.as_deref() == Some("Always"),
            resources: self.resources.view(),
        }
    }
}

impl ResourceRequirements {
    fn view(&self) -> Resources {
        Resources { requests: amounts(&self.requests), limits: amounts(&self.limits) }
    }
}

fn amounts(map: &BTreeMap<String, Quantity>) -> ResourceList {
    map.iter().map(|(name, amount)| (name.clone(), amount.clone())).collect()
}
