//! The plan of simulated nodes: the nodes, the behaviour of pods and their load.

use std::time::Duration;

use api::selector::{Selector, SelectorParseError};
use quantity::{Format, Quantity};
use sim::Millis;
use sim::load::LoadCurve;
use sim::scenario::WorkloadPlan;
use sim::workload::{ContainerUsageModel, PodDelays, ServiceCapacity};

use crate::clock::Clock;

/// Annotations of pods that override the plan. Values are durations such as `1m30s`.
pub mod annotation {
    /// From placement until all containers run.
    pub const START_DELAY: &str = "plimsoll.dev/start-delay";
    /// From running until ready.
    pub const READY_DELAY: &str = "plimsoll.dev/ready-delay";
    /// From deletion until the pod is gone.
    pub const STOP_DELAY: &str = "plimsoll.dev/stop-delay";
    /// From running until the containers end; only for pods that are not always restarted.
    pub const RUN_FOR: &str = "plimsoll.dev/run-for";
    /// The exit code then; default 0.
    pub const EXIT_CODE: &str = "plimsoll.dev/exit-code";
}

/// The nodes and the behaviour of pods.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of nodes.
    pub count: usize,
    /// Prefix of the node names; a dash and a number from 1 follow.
    pub prefix: String,
    /// The capacity of each node.
    pub capacity: Capacity,
    /// How long pods take to start, become ready and stop.
    pub delays: PodDelays,
    /// How long pods run that end by themselves.
    pub run_for: Millis,
    /// Load and usage of pods; the first workload that selects a pod applies.
    pub workloads: Vec<Workload>,
    /// Seed of generated container and machine ids.
    pub seed: u64,
    /// Whether each node serves a kubelet port over TLS.
    pub serve: bool,
    /// The clients to which the kubelet responds.
    pub admission: Admission,
    /// The interval of node heartbeats; `None` disables them.
    pub heartbeat: Option<Duration>,
    /// Only pods of this namespace are scheduled, so that tests can share a cluster; `None` schedules all.
    pub namespace: Option<String>,
    /// The clock of times in objects.
    pub clock: Clock,
}

/// The capacity of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// CPUs.
    pub cpu: Quantity,
    /// Memory.
    pub memory: Quantity,
    /// Maximum number of pods.
    pub pods: u32,
}

/// The clients to which a kubelet responds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Clients with any bearer token or client certificate; it is not checked.
    #[default]
    Credentials,
    /// All clients.
    Anyone,
}

/// The load of some pods, and their usage under it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Namespace of the pods.
    pub namespace: String,
    /// Selector of the pods.
    pub selector: Selector,
    /// The load; its times count from the start of the nodes.
    pub load: LoadCurve,
    /// The capacity of a ready pod.
    pub service: ServiceCapacity,
    /// Usage of containers; others idle. The limits of the pods apply as well.
    pub containers: Vec<ContainerUsageModel>,
    /// Delays of these pods; `None` uses those of the plan.
    pub delays: Option<PodDelays>,
}

impl Default for Plan {
    /// Three nodes of usual size with kubelet ports.
    fn default() -> Self {
        Self {
            count: 3,
            prefix: "node".into(),
            capacity: Capacity::default(),
            delays: PodDelays::default(),
            run_for: Millis::from_secs(5),
            workloads: Vec::new(),
            seed: 0,
            serve: true,
            admission: Admission::default(),
            heartbeat: Some(Duration::from_secs(10)),
            namespace: None,
            clock: Clock::system(),
        }
    }
}

impl Default for Capacity {
    /// 4 CPUs, 16 GiB, 110 pods.
    fn default() -> Self {
        let memory = Quantity::new(16 << 30, Format::BinarySi);
        Self { cpu: Quantity::new(4, Format::DecimalSi), memory, pods: 110 }
    }
}

impl Plan {
    /// The names of the nodes.
    pub fn names(&self) -> Vec<String> {
        (1..=self.count).map(|number| format!("{}-{number}", self.prefix)).collect()
    }
}

impl Workload {
    /// The workload of a scenario, with its load, usage and delays.
    pub fn of_scenario(plan: &WorkloadPlan) -> Result<Self, SelectorParseError> {
        Ok(Self {
            namespace: plan.namespace.clone(),
            selector: Selector::parse(&plan.selector)?,
            load: plan.plan.load.clone(),
            service: plan.plan.service,
            containers: plan.containers.clone(),
            delays: Some(plan.plan.template.delays()),
        })
    }

    /// Whether both workloads select the same pods.
    pub(crate) fn is_about_the_pods_of(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.selector == other.selector
    }
}
