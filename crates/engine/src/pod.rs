//! The part of a pod that decisions use, and its resource requests (docs/spec/hpa.md 5.6).

use std::sync::Arc;

use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::spec::UtilizationBase;
use crate::units::MilliValue;

/// A pod: its own state, and the template that it shares with the other pods of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Name, unique in its namespace.
    pub name: Arc<str>,
    /// Phase.
    pub phase: PodPhase,
    /// Whether it is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// `status.startTime`.
    pub started: Option<Timestamp>,
    /// Its `Ready` condition.
    pub ready: Option<ReadyCondition>,
    /// Containers and their requests; shared by all pods of one template.
    pub shape: Arc<PodTemplate>,
}

/// Pod phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not all containers run yet.
    Pending,
    /// Containers run.
    Running,
    /// All containers ended, at least one with an error.
    Failed,
    /// All containers ended without an error. Decided as [`PodPhase::Other`].
    Succeeded,
    /// Unknown or not reported.
    Other,
}

/// The `Ready` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyCondition {
    /// Status of the condition.
    pub status: ConditionStatus,
    /// `lastTransitionTime`.
    pub since: Timestamp,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`.
    Unknown,
}

/// What all pods of one template have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplate {
    /// Regular containers.
    pub containers: Vec<Container>,
    /// Init containers; those that restart run in parallel with the regular ones (sidecars).
    pub init_containers: Vec<Container>,
    /// Pod-level requests and limits.
    pub pod: Resources,
    /// Overhead of the runtime class.
    pub overhead: ResourceList,
}

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Name.
    pub name: String,
    /// For init containers: `restartPolicy: Always`.
    pub restarts: bool,
    /// Requests and limits.
    pub resources: Resources,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// Requests by resource name.
    pub requests: ResourceList,
    /// Limits by resource name.
    pub limits: ResourceList,
}

/// Quantities by resource name.
pub type ResourceList = Vec<(String, Quantity)>;

/// Why a pod has no usable request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingRequest<'a> {
    /// A container has no request.
    Container(&'a str),
    /// The pod has no container with this name.
    Absent,
    /// Neither the pod nor its containers request it.
    Pod,
}

impl PodTemplate {
    /// Request of a pod (or of one `container`) for `resource`.
    pub fn request(
        &self,
        resource: &str,
        container: Option<&str>,
        of: UtilizationBase,
        pod_level: bool,
    ) -> Result<MilliValue, MissingRequest<'_>> {
        if let Some(name) = container {
            let found = self.running_containers().find(|c| c.name == name).ok_or(MissingRequest::Absent)?;
            return found.amount(resource, of).ok_or(MissingRequest::Container(&found.name));
        }
        if pod_level && self.pod.of(of).iter().any(|(name, _)| is_pod_level_resource(name)) {
            return self.pod_level_request(resource, of).ok_or(MissingRequest::Pod);
        }
        let total = self.running_containers().try_fold(0_i64, |sum, c| {
            let amount = c.amount(resource, of).ok_or(MissingRequest::Container(&c.name))?;
            Ok(sum.saturating_add(amount.get()))
        });
        total.map(MilliValue::new)
    }

    /// Names of the regular containers and the sidecars.
    pub fn container_names(&self) -> impl Iterator<Item = &str> {
        self.running_containers().map(|container| container.name.as_str())
    }

    /// Regular containers, then sidecars.
    fn running_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(self.init_containers.iter().filter(|c| c.restarts))
    }

    /// The pod-level value if set, else the aggregate of its containers; plus overhead.
    fn pod_level_request(&self, resource: &str, of: UtilizationBase) -> Option<MilliValue> {
        let own = lookup(self.pod.of(of), resource).filter(|_| is_pod_level_resource(resource));
        let base = own.cloned().or_else(|| self.aggregate(resource, of));
        let total = match (base, lookup(&self.overhead, resource)) {
            (Some(mut base), Some(overhead)) => {
                base.add(overhead);
                base
            }
            (base, overhead) => base.or_else(|| overhead.cloned())?,
        };
        Some(MilliValue::from(&total))
    }

    /// The larger of: sum over the containers that run together, highest need of an init phase.
    fn aggregate(&self, resource: &str, of: UtilizationBase) -> Option<Quantity> {
        let plus = |sum: Option<Quantity>, more: Option<&Quantity>| match (sum, more) {
            (Some(mut sum), Some(more)) => {
                sum.add(more);
                Some(sum)
            }
            (sum, more) => sum.or_else(|| more.cloned()),
        };
        let mut running = self.containers.iter().fold(None, |sum, c| plus(sum, c.quantity(resource, of)));
        let mut sidecars: Option<Quantity> = None;
        let mut highest_init: Option<Quantity> = None;
        for init in &self.init_containers {
            let own = init.quantity(resource, of);
            let during = if init.restarts {
                running = plus(running, own);
                sidecars = plus(sidecars, own);
                sidecars.clone()
            } else {
                plus(own.cloned(), sidecars.as_ref())
            };
            highest_init = highest_init.max(during);
        }
        running.max(highest_init)
    }
}

impl Container {
    fn quantity(&self, resource: &str, of: UtilizationBase) -> Option<&Quantity> {
        lookup(self.resources.of(of), resource)
    }

    fn amount(&self, resource: &str, of: UtilizationBase) -> Option<MilliValue> {
        self.quantity(resource, of).map(MilliValue::from)
    }
}

impl Resources {
    fn of(&self, share: UtilizationBase) -> &ResourceList {
        match share {
            UtilizationBase::Requests => &self.requests,
            UtilizationBase::Limits => &self.limits,
        }
    }
}

fn lookup<'a>(amounts: &'a ResourceList, resource: &str) -> Option<&'a Quantity> {
    amounts.iter().find(|(name, _)| name == resource).map(|(_, amount)| amount)
}

fn is_pod_level_resource(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}
