//! Pods as a decision sees them, and what they request (docs/spec/hpa.md 5.6).

use std::sync::Arc;

use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::spec::UtilizationBase;

/// A pod: what changes in its life, and the shape it shares with its siblings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Name, unique in its namespace.
    pub name: Arc<str>,
    /// Where it is in its life.
    pub phase: PodPhase,
    /// Whether it is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// When the kubelet took it on.
    pub started: Option<Timestamp>,
    /// Its `Ready` condition.
    pub ready: Option<ReadyCondition>,
    /// Containers and what they request; siblings share one.
    pub shape: Arc<PodTemplate>,
}

/// Pod phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not all containers run yet.
    Pending,
    /// Containers run.
    Running,
    /// Ended badly.
    Failed,
    /// Ended well, not reported, or unknown: none of them makes a difference here.
    Other,
}

/// The `Ready` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyCondition {
    /// What the kubelet says.
    pub status: ConditionStatus,
    /// Since when.
    pub since: Timestamp,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// Yes.
    True,
    /// No.
    False,
    /// The kubelet has not said.
    Unknown,
}

/// What pods of one template have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplate {
    /// Regular containers.
    pub containers: Vec<Container>,
    /// Init containers; those that restart run beside the regular ones (sidecars).
    pub init_containers: Vec<Container>,
    /// Requests and limits of the pod as a whole.
    pub pod: Resources,
    /// What the runtime adds.
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

/// A few amounts by resource name.
pub type ResourceList = Vec<(String, Quantity)>;

/// Why a pod's request is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingRequest<'a> {
    /// A container has no request.
    Container(&'a str),
    /// The named container is not in the pod.
    Absent,
    /// Neither the pod nor its containers request it.
    Pod,
}

impl PodTemplate {
    /// What a pod of this shape requests of `resource` (or `container` in it), in thousandths.
    pub fn request(
        &self,
        resource: &str,
        container: Option<&str>,
        of: UtilizationBase,
        pod_level: bool,
    ) -> Result<i64, MissingRequest<'_>> {
        if let Some(name) = container {
            let found = self.running_containers().find(|c| c.name == name).ok_or(MissingRequest::Absent)?;
            return found.amount(resource, of).ok_or(MissingRequest::Container(&found.name));
        }
        if pod_level && self.pod.of(of).iter().any(|(name, _)| is_pod_level_resource(name)) {
            return self.pod_level_request(resource, of).ok_or(MissingRequest::Pod);
        }
        self.running_containers().try_fold(0_i64, |sum, c| {
            let amount = c.amount(resource, of).ok_or(MissingRequest::Container(&c.name))?;
            Ok(sum.saturating_add(amount))
        })
    }

    /// Regular containers, then sidecars.
    fn running_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(self.init_containers.iter().filter(|c| c.restarts))
    }

    /// The pod's own figure where it has one, else the containers' aggregate; overhead on top.
    fn pod_level_request(&self, resource: &str, of: UtilizationBase) -> Option<i64> {
        let own = lookup(self.pod.of(of), resource).filter(|_| is_pod_level_resource(resource));
        let base = own.cloned().or_else(|| self.aggregate(resource, of));
        let total = match (base, lookup(&self.overhead, resource)) {
            (Some(mut base), Some(overhead)) => {
                base.add(overhead);
                base
            }
            (base, overhead) => base.or_else(|| overhead.cloned())?,
        };
        Some(total.milli_value())
    }

    /// Sum over what runs together, or the neediest init phase if that is more.
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
        let mut neediest: Option<Quantity> = None;
        for init in &self.init_containers {
            let own = init.quantity(resource, of);
            let during = if init.restarts {
                running = plus(running, own);
                sidecars = plus(sidecars, own);
                sidecars.clone()
            } else {
                plus(own.cloned(), sidecars.as_ref())
            };
            neediest = neediest.max(during);
        }
        running.max(neediest)
    }
}

impl Container {
    fn quantity(&self, resource: &str, of: UtilizationBase) -> Option<&Quantity> {
        lookup(self.resources.of(of), resource)
    }

    fn amount(&self, resource: &str, of: UtilizationBase) -> Option<i64> {
        self.quantity(resource, of).map(Quantity::milli_value)
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
