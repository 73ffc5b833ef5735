//! What nodes there are, how pods behave on them, and what work pods get.

use std::time::Duration;

use api::selector::{Selector, SelectorParseError};
use quantity::{Format, Quantity};
use sim::Millis;
use sim::load::LoadCurve;
use sim::scenario::WorkloadPlan;
use sim::workload::{ContainerUsageModel, PodDelays, ServiceCapacity};

use crate::clock::Clock;

/// Annotations with which a pod asks for another life than the plan's. Values are lengths of time such as `1m30s`.
pub mod annotation {
    /// From being placed until all containers run.
    pub const START_DELAY: &str = "plimsoll.dev/start-delay";
    /// From running until ready.
    pub const READY_DELAY: &str = "plimsoll.dev/ready-delay";
    /// From deletion until gone.
    pub const STOP_DELAY: &str = "plimsoll.dev/stop-delay";
    /// From running until it ends by itself; only pods that are not restarted end.
    pub const RUN_FOR: &str = "plimsoll.dev/run-for";
    /// With which code it then ends; default 0.
    pub const EXIT_CODE: &str = "plimsoll.dev/exit-code";
}

/// Nodes and how pods behave on them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many nodes.
    pub count: usize,
    /// Nodes are called this, a dash and a number from 1.
    pub prefix: String,
    /// What each node has.
    pub capacity: Capacity,
    /// How long pods take to start, become ready and stop.
    pub delays: PodDelays,
    /// How long pods run that end by themselves.
    pub run_for: Millis,
    /// Work for pods, and what they use for it; the first that selects a pod counts.
    pub workloads: Vec<Workload>,
    /// Chooses the identifiers of containers and machines.
    pub seed: u64,
    /// Whether each node answers as a kubelet, over TLS on a port of its own.
    pub serve: bool,
    /// Who gets an answer.
    pub admission: Admission,
    /// Time between two signs of life of a node; absent: none.
    pub heartbeat: Option<Duration>,
    /// Only pods of this namespace are placed and run, so that tests can share a cluster; absent: all.
    pub namespace: Option<String>,
    /// Where times on objects come from.
    pub clock: Clock,
}

/// What a node has.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Processors.
    pub cpu: Quantity,
    /// Memory.
    pub memory: Quantity,
    /// Pods it can run.
    pub pods: u32,
}

/// Who gets an answer of a node's kubelet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Whoever shows any bearer token or client certificate; nobody checks which.
    #[default]
    Credentials,
    /// Everybody.
    Anyone,
}

/// Work that arrives at some pods, and what they use for it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Namespace of the pods.
    pub namespace: String,
    /// Which pods.
    pub selector: Selector,
    /// The work that arrives; its times count from the start of the nodes.
    pub load: LoadCurve,
    /// How much a ready pod can do.
    pub service: ServiceCapacity,
    /// What containers use; one that is not listed idles. Limits of the pods themselves count too.
    pub containers: Vec<ContainerUsageModel>,
    /// How long the steps in the life of these pods take; absent: as long as those of others.
    pub delays: Option<PodDelays>,
}

impl Default for Plan {
    /// Three nodes of usual size that answer as kubelets do.
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
    /// 4 processors, 16 GiB, 110 pods.
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

    /// Whether both are about the same pods.
    pub(crate) fn is_about_the_pods_of(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.selector == other.selector
    }
}
