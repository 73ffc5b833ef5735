//! What pods and nodes have used so far, read directly: what a collector would scrape from every kubelet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::run::Shared;

/// Reads the counters of all nodes. Clones read the same ones, and do not keep the nodes alive.
#[derive(Clone, Debug)]
pub struct Meter {
    pub(super) shared: Shared,
}

/// A node's counters at a moment.
#[derive(Clone, Debug)]
pub struct NodeReading {
    /// Which node.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When it was read.
    pub at: Timestamp,
    /// How long the nodes had been there, by the clock that the counters go by: rates over it are exact.
    pub elapsed: Duration,
    /// What the node and its pods have used, in core seconds.
    pub cpu_seconds: f64,
    /// What they use now.
    pub memory_bytes: f64,
    /// The pods whose containers run.
    pub pods: Vec<PodReading>,
}

/// A pod's counters.
#[derive(Clone, Debug)]
pub struct PodReading {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels, shared with its like.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Its containers.
    pub containers: Vec<ContainerReading>,
}

/// A container's counters.
#[derive(Clone, Debug)]
pub struct ContainerReading {
    /// Its name.
    pub name: String,
    /// When it started.
    pub started: Timestamp,
    /// What it has used, in core seconds.
    pub cpu_seconds: f64,
    /// What it uses now.
    pub memory_bytes: f64,
}

impl Meter {
    /// All nodes, now.
    pub fn read(&self) -> Vec<NodeReading> {
        self.shared.readings()
    }
}
