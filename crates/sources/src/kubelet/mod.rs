//! Kubelets: what they say, how they are asked, and why one cannot be.
//!
//! ```text
//! text     the text of /metrics/resource becomes a Scrape, without copies
//! address  where a node's kubelet is
//! client   one request, and why it failed
//! scraper  all nodes, spread over the period
//! report   how every node fares, for doctor, logs and metrics
//! ```

pub mod text;

pub mod address;
pub mod client;
pub mod report;
pub mod scraper;
pub mod trust;

/// What one kubelet said at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrape {
    /// The node; none if it was not complete.
    pub node: Option<Point>,
    /// Its pods, those that were complete.
    pub pods: Vec<PodPoints>,
    /// Pods that were left out, and why: shown by `doctor`.
    pub left_out: Vec<LeftOut>,
}

/// The containers of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPoints {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// One point per container, by its name.
    pub containers: Vec<(Box<str>, Point)>,
}

/// A pod that was left out of a scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Which container is not complete.
    pub container: Box<str>,
    /// What it lacks.
    pub lacks: Lack,
}

/// What a container lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lack {
    /// A cpu counter that is not zero.
    Cpu,
    /// A working set that is not zero.
    Memory,
    /// Both.
    Both,
}

/// One sample of a node or a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When it started, in nanoseconds since the epoch; none if that is not known.
    pub start: Option<i64>,
    /// When it was measured, in nanoseconds since the epoch.
    pub time: i64,
    /// Processor time used since the start, in nanoseconds.
    pub cpu: u64,
    /// Working set in bytes.
    pub memory: u64,
}
