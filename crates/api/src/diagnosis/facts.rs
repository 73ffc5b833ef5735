//! What is known. An absent value means that it is unknown, never that it does not exist.

use engine::{Decision, Spec, TriggerPoll};
use jiff::Timestamp;

use crate::decisions::DecisionMode;

/// Everything that a diagnosis is made from.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisFacts<'a> {
    /// The autoscaler's spec.
    pub spec: &'a Spec,
    /// The decision.
    pub decision: &'a Decision,
    /// Result of polling the triggers, for ScaledObjects.
    pub poll: Option<&'a TriggerPoll>,
    /// Mode of the controller for this object.
    pub mode: DecisionMode,
    /// Since when the decision has been the same.
    pub since: Option<Timestamp>,
    /// What was read from the cluster at the time of the decision; absent for a decision of the past and without a cluster.
    pub cluster: Option<&'a ClusterFacts>,
}

/// What was read from a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Pods that the target's selector matches.
    pub pods: Option<Vec<PodFact>>,
    /// Nodes.
    pub nodes: Option<Vec<NodeFact>>,
    /// Owners of the pods that the selector matches, other than the target.
    pub other_owners: Option<Vec<SelectedOwner>>,
    /// Names of served metrics by API group.
    pub served: Vec<ServedMetrics>,
    /// APIServices of the metrics APIs.
    pub api_services: Option<Vec<ApiServiceFact>>,
    /// Other autoscalers with the same target.
    pub rivals: Option<Vec<RivalFact>>,
    /// The pause of a ScaledObject; absent if it is not paused, or if that is unknown.
    pub paused: Option<PausedFact>,
    /// Whether the annotation `plimsoll.dev/mode` of the object is `off`; false if that is unknown.
    pub off: bool,
}

/// A pause by annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PausedFact {
    /// The count at which the target is kept, if the annotation names one.
    pub replicas: Option<i32>,
}

/// One pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFact {
    /// Name.
    pub name: String,
    /// The node it is scheduled to.
    pub node: Option<String>,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFact {
    /// Name.
    pub name: String,
    /// Whether its condition `Ready` is `True`.
    pub ready: bool,
}

/// Another owner of selected pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedOwner {
    /// `Deployment/other`.
    pub owner: String,
    /// Number of its pods that the selector matches.
    pub pods: usize,
}

/// The metrics that one API serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedMetrics {
    /// API group.
    pub group: String,
    /// Metric names.
    pub names: Vec<String>,
}

/// One APIService.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiServiceFact {
    /// API group.
    pub group: String,
    /// Whether it is available.
    pub available: bool,
    /// Reason of its condition.
    pub reason: String,
    /// Message of its condition, quoted only.
    pub message: String,
    /// `namespace/name` of its Service.
    pub service: Option<String>,
}

/// Another autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RivalFact {
    /// `hpa/web`.
    pub name: String,
}
