//! Why a running pod has no metrics.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::pair::Rate;
use super::sample::Sample;
use super::{State, Store};
use crate::inventory::{Inventory, Pod};
use crate::kubelet::Lack;

/// Why a running pod has no metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// No kubelet that could be asked has told anything about it.
    NotReported,
    /// Its node cannot be scraped, and has not been for too long.
    NodeNotScraped {
        /// The node, whose report tells the cause.
        node: Arc<str>,
    },
    /// Its node does not tell enough about one of its containers.
    Incomplete {
        /// The node.
        node: Arc<str>,
        /// The container.
        container: Box<str>,
        /// What is missing.
        lacks: Lack,
    },
    /// There is only one point of a container so far, and a rate needs two.
    OnePoint {
        /// The container.
        container: Arc<str>,
    },
    /// A counter of a container went backwards (strict mode).
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
    /// Why.
    pub reason: Reason,
}

/// The running pods without metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// How many there are for each [`Reason::code`].
    pub counts: BTreeMap<&'static str, u64>,
    /// Some of them, ascending by namespace and name.
    pub pods: Vec<MissingPod>,
}

impl Reason {
    /// All codes: labels of a counter that is zero where there is nothing to complain about.
    pub const CODES: [&'static str; 5] =
        ["NotReported", "NodeNotScraped", "Incomplete", "OnePoint", "Backwards"];

    /// One word for it.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReported => f.write_str("no kubelet has reported it yet"),
            Self::NodeNotScraped { node } => write!(f, "its node {node} cannot be scraped"),
            Self::Incomplete { node, container, lacks } => {
                let lacks = match lacks {
                    Lack::Cpu => "processor time",
                    Lack::Memory => "memory",
                    Lack::Both => "processor time and memory",
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
pub(super) fn missing(store: &Store, inventory: &Inventory, limit: usize) -> Missing {
    let pods = inventory.pods(None);
    let samples = store.samples(&pods);
    let without: Vec<(&Arc<Pod>, Option<Reason>)> = pods
        .iter()
        .zip(&samples)
        .filter_map(|(pod, sample)| match sample {
            Some(sample) => Some((pod, Some(of_sample(sample)?))),
            None => Some((pod, None)),
        })
        .collect();
    let mut missing = Missing::default();
    let state = store.read();
    let unreported = Unreported::of(&state);
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

/// Why one running pod has no metrics; none if it has.
pub(super) fn of_pod(store: &Store, pod: &Pod) -> Option<Reason> {
    match store.sample(&pod.namespace, &pod.name) {
        Some(sample) => of_sample(&sample),
        None => Some(Unreported::of(&store.read()).reason(pod)),
    }
}

fn of_sample(sample: &Sample) -> Option<Reason> {
    sample.containers.iter().find_map(|(name, pair)| match pair.rate() {
        Rate::Known { .. } => None,
        Rate::OnePoint => Some(Reason::OnePoint { container: Arc::clone(name) }),
        Rate::Backwards => Some(Reason::Backwards { container: Arc::clone(name) }),
    })
}

/// Pods of which there is a reason for having no sample.
struct Unreported<'a>(HashMap<(&'a str, &'a str), Reason>);

impl<'a> Unreported<'a> {
    fn of(state: &'a State) -> Self {
        let mut reasons = HashMap::new();
        for (node, reported) in &state.nodes {
            for (namespace, name) in &reported.lost {
                let reason = Reason::NodeNotScraped { node: Arc::clone(node) };
                reasons.insert((&**namespace, &**name), reason);
            }
            for pod in &reported.left_out {
                let node = Arc::clone(node);
                let reason = Reason::Incomplete { node, container: pod.container.clone(), lacks: pod.lacks };
                reasons.insert((&*pod.namespace, &*pod.name), reason);
            }
        }
        Self(reasons)
    }

    fn reason(&self, pod: &Pod) -> Reason {
        self.0.get(&(&*pod.namespace, &*pod.name)).cloned().unwrap_or(Reason::NotReported)
    }
}
