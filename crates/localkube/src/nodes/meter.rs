//! The usage counters of pods and nodes, read directly instead of from each kubelet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// The counters of a node.
#[derive(Clone, Debug)]
pub struct NodeReading {
    /// The node's name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The wall-clock time of the reading.
    pub at: Timestamp,
    /// The time since the nodes started, on the clock of the counters: rates over it are exact.
    pub elapsed: Duration,
    /// CPU time of the node and its pods, in core seconds.
    pub cpu_seconds: f64,
    /// Their current memory.
    pub memory_bytes: f64,
    /// The pods whose containers run.
    pub pods: Vec<PodReading>,
}

/// The counters of a pod.
#[derive(Clone, Debug)]
pub struct PodReading {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels, shared by pods of the same template.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Units of load per second that it serves; 0 while it is not ready.
    pub work: f64,
    /// Its containers.
    pub containers: Vec<ContainerReading>,
}

/// The counters of a container.
#[derive(Clone, Debug)]
pub struct ContainerReading {
    /// Its name.
    pub name: String,
    /// When it started.
    pub started: Timestamp,
    /// CPU time in core seconds.
    pub cpu_seconds: f64,
    /// Current memory.
    pub memory_bytes: f64,
}
