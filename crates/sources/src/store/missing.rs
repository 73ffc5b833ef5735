//! Why a running pod has no metrics.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::pair::CpuRate;
use super::sample::PodSample;
use super::{Store, StoreState};
use crate::inventory::{Inventory, Pod};
use crate::kubelet::MissingUsage;

/// Why a running pod has no metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissingReason {
    /// No scraped kubelet has reported the pod.
    NotReported,
    /// Scrapes of its node have failed for too long.
    NodeNotScraped {
        /// The node; its scrape status has the cause.
        node: Arc<str>,
    },
    /// The kubelet reports incomplete data for a container.
    Incomplete {
        /// The node.
        node: Arc<str>,
        /// The container.
        container: Box<str>,
        /// The missing value.
        lacks: MissingUsage,
    },
    /// A container has one point so far, and a rate needs two.
    OnePoint {
        /// The container.
        container: Arc<str>,
    },
    /// A CPU counter went backwards (strict mode).
    Backwards {
        /// The container.
        container: Arc<str>,
    },
}

/// A running pod without metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPod {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Reason.
    pub reason: MissingReason,
}

/// The running pods without metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingPods {
    /// Number of pods per [`MissingReason::code`].
    pub counts: BTreeMap<&'static str, u64>,
    /// Some of the pods, ascending by namespace and name.
    pub pods: Vec<MissingPod>,
}

impl MissingReason {
    /// All codes, so that the metric exposes zero for unused ones.
    pub const CODES: [&'static str; 5] =
        ["NotReported", "NodeNotScraped", "Incomplete", "OnePoint", "Backwards"];

    /// Label value of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotReported => "NotReported",
            Self::NodeNotScraped { .. } => "NodeNotScraped",
            Self::Incomplete { .. } => "Incomplete",
            Self::OnePoint { .. } => "OnePoint",
            Self::Backwards { .. } => "Backwards",
        }
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReported => f.write_str("no kubelet has reported it yet"),
            Self::NodeNotScraped { node } => write!(f, "its node {node} cannot be scraped"),
            Self::Incomplete { node, container, lacks } => {
                let lacks = match lacks {
                    MissingUsage::Cpu => "processor time",
                    MissingUsage::Memory => "memory",
                    MissingUsage::Both => "processor time and memory",
                };
                write!(f, "the kubelet of {node} reports no {lacks} for container {container}")
            }
            Self::OnePoint { container } => {
                write!(f, "only one point of container {container} so far; a rate needs two")
            }
            Self::Backwards { container } => write!(f, "the counter of container {container} went backwards"),
        }
    }
}

/// All running pods without metrics, `limit` of them by name.
pub(super) fn missing(store: &Store, inventory: &Inventory, limit: usize) -> MissingPods {
    let pods = inventory.pods(None);
    let samples = store.samples(&pods);
    let without: Vec<(&Arc<Pod>, Option<MissingReason>)> = pods
        .iter()
        .zip(&samples)
        .filter_map(|(pod, sample)| match sample {
            Some(sample) => Some((pod, Some(of_sample(sample)?))),
            None => Some((pod, None)),
        })
        .collect();
    let mut missing = MissingPods::default();
    let state = store.read();
    let unreported = UnreportedPods::of(&state);
    for (pod, reason) in without {
        let reason = reason.unwrap_or_else(|| unreported.reason(pod));
        *missing.counts.entry(reason.code()).or_default() += 1;
        if missing.pods.len() < limit {
            let (namespace, name) = (Arc::clone(&pod.namespace), Arc::clone(&pod.name));
            missing.pods.push(MissingPod { namespace, name, reason });
        }
    }
    missing
}

/// Why a pod with this sample has no metrics; `None` if it has.
fn of_sample(sample: &PodSample) -> Option<MissingReason> {
    sample.containers.iter().find_map(|(name, pair)| match pair.rate() {
        CpuRate::Known { .. } => None,
        CpuRate::OnePoint => Some(MissingReason::OnePoint { container: Arc::clone(name) }),
        CpuRate::Backwards => Some(MissingReason::Backwards { container: Arc::clone(name) }),
    })
}

/// Known reasons of pods without a sample.
struct UnreportedPods<'a>(HashMap<(&'a str, &'a str), MissingReason>);

impl<'a> UnreportedPods<'a> {
    fn of(state: &'a StoreState) -> Self {
        let mut reasons = HashMap::new();
        for (node, reported) in &state.nodes {
            for (namespace, name) in &reported.lost {
                let reason = MissingReason::NodeNotScraped { node: Arc::clone(node) };
                reasons.insert((&**namespace, &**name), reason);
            }
            for pod in &reported.incomplete {
                let node = Arc::clone(node);
                let reason =
                    MissingReason::Incomplete { node, container: pod.container.clone(), lacks: pod.lacks };
                reasons.insert((&*pod.namespace, &*pod.name), reason);
            }
        }
        Self(reasons)
    }

    fn reason(&self, pod: &Pod) -> MissingReason {
        self.0.get(&(&*pod.namespace, &*pod.name)).cloned().unwrap_or(MissingReason::NotReported)
    }
}
