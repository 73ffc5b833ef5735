//! What is kept of a pod and of a node.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::Points;
use super::pair::Pair;
use crate::kubelet::LeftOut;

/// The points of a pod as one node told them; never changed.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    /// Who told them.
    pub(crate) node: Arc<str>,
    /// When they were told by our clock, in nanoseconds since the epoch.
    pub(crate) taken: i64,
    /// By name, ascending.
    pub(crate) containers: Box<[(Arc<str>, Pair)]>,
}

/// What one node told last; never changed.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    /// The points of the node, and when they were told.
    pub(crate) node: Option<(Pair, i64)>,
    /// Ascending by namespace and name.
    pub(crate) pods: Box<[Arc<Sample>]>,
    /// Pods without points that count, ascending by namespace and name.
    pub(crate) left_out: Box<[LeftOut]>,
    /// Pods that were forgotten because the node could not be asked for too long.
    pub(crate) lost: Box<[(Arc<str>, Arc<str>)]>,
    /// When it told by our clock, in nanoseconds since the epoch.
    pub(crate) taken: i64,
}

/// A sample of one namespace, in the order of names.
#[derive(Clone, Debug)]
pub(crate) struct ByName(pub(crate) Arc<Sample>);

impl Sample {
    /// Namespace and name.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// The points of a container.
    pub(crate) fn container(&self, name: &str) -> Option<&(Arc<str>, Pair)> {
        let at = self.containers.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.containers.get(at)
    }

    /// When a container was measured last.
    pub(crate) fn newest(&self) -> i64 {
        self.containers.iter().map(|(_, pair)| pair.time()).max().unwrap_or(i64::MIN)
    }
}

impl Reported {
    /// What it told about a pod.
    pub(crate) fn pod(&self, key: (&str, &str)) -> Option<&Arc<Sample>> {
        let at = self.pods.binary_search_by(|sample| sample.key().cmp(&key)).ok()?;
        self.pods.get(at)
    }

    /// How much is known.
    pub(crate) fn points(&self) -> Points {
        let complete = |pair: &Pair| u64::from(pair.is_complete());
        let containers = self.pods.iter().flat_map(|pod| &pod.containers).map(|(_, pair)| complete(pair));
        Points { nodes: self.node.map_or(0, |(pair, _)| complete(&pair)), containers: containers.sum() }
    }
}

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}
