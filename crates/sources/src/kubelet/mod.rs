//! Kubelets: scraping `/metrics/resource`, parsing the response, and reporting why a scrape fails.
//!
//! ```text
//! text     parses the text of /metrics/resource into a Scrape, without copies
//! address  address and path of the kubelet of a node
//! client   one HTTP request, and why it failed
//! scraper  schedules the scrapes of all nodes
//! trust    CA, client certificate and token for kubelets
//! report   scrape status of every node, for doctor, logs and metrics
//! ```

pub mod text;

pub mod address;
pub mod client;
pub mod report;
pub mod scraper;
pub mod trust;

/// The parsed response of one kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrape {
    /// Sample of the node; `None` if CPU or memory is missing.
    pub node: Option<MetricsPoint>,
    /// Pods of which every container has CPU and memory.
    pub pods: Vec<PodPoints>,
    /// Pods with an incomplete container; shown by `doctor`.
    pub incomplete: Vec<IncompletePod>,
}

/// Samples of the containers of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPoints {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Container name and sample.
    pub containers: Vec<(Box<str>, MetricsPoint)>,
}

/// A pod that is not served because a container lacks CPU or memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompletePod {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// The incomplete container.
    pub container: Box<str>,
    /// The missing value.
    pub lacks: MissingUsage,
}

/// Which value of a container is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissingUsage {
    /// CPU counter is missing or zero.
    Cpu,
    /// Working set is missing or zero.
    Memory,
    /// Both are missing.
    Both,
}

/// CPU counter and working set of a node or container at one time (`MetricsPoint` in metrics-server).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsPoint {
    /// Start time in nanoseconds since the epoch, if known.
    pub start: Option<i64>,
    /// Sample time in nanoseconds since the epoch.
    pub time: i64,
    /// Cumulative CPU time in nanoseconds.
    pub cpu: u64,
    /// Working set in bytes.
    pub memory: u64,
}
