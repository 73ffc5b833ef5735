//! Stored data of a pod and of a node.

use std::sync::{Arc, Mutex, MutexGuard};

use locks::MutexExt as _;

use super::PointCounts;
use super::pair::PointPair;
use crate::kubelet::IncompletePod;

/// Points of a pod as one node reported them; immutable.
#[derive(Debug)]
pub(crate) struct PodSample {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    /// Reporting node.
    pub(crate) node: Arc<str>,
    /// Time of the scrape by the local clock, in nanoseconds since the epoch.
    pub(crate) taken: i64,
    /// Containers, ascending by name.
    pub(crate) containers: Box<[(Arc<str>, PointPair)]>,
}

/// Last report of one node; immutable.
#[derive(Debug, Default)]
pub(crate) struct NodeReport {
    /// Points of the node, and the time of its scrape.
    pub(crate) node: Option<(PointPair, i64)>,
    /// Pods, ascending by namespace and name.
    pub(crate) pods: Box<[Arc<PodSample>]>,
    /// Slots of these pods, in the same order.
    pub(crate) slots: Arc<[Arc<PodSlot>]>,
    /// Incomplete pods, ascending by namespace and name.
    pub(crate) incomplete: Box<[IncompletePod]>,
    /// Pods dropped because scrapes of the node failed for too long.
    pub(crate) lost: Box<[(Arc<str>, Arc<str>)]>,
    /// Time of the scrape by the local clock, in nanoseconds since the epoch.
    pub(crate) taken: i64,
}

/// Slot of a pod in its namespace, holding the current sample. A node that reports the same pods again updates the
/// slots without lookups.
#[derive(Debug)]
pub(crate) struct PodSlot {
    /// `None` if the slot was removed.
    now: Mutex<Option<Arc<PodSample>>>,
}

impl PodSlot {
    pub(crate) fn new(sample: &Arc<PodSample>) -> Self {
        Self { now: Mutex::new(Some(Arc::clone(sample))) }
    }

    /// Current sample.
    pub(crate) fn sample(&self) -> Option<Arc<PodSample>> {
        self.now().clone()
    }

    /// Offers a sample: of several nodes the newest point wins. Returns false if the slot was removed.
    pub(crate) fn take(&self, sample: &Arc<PodSample>) -> bool {
        let mut now = self.now();
        let Some(known) = &mut *now else { return false };
        if known.node == sample.node || known.newest() < sample.newest() {
            *known = Arc::clone(sample);
        }
        true
    }

    /// Removes the sample of a node; whether the slot is empty now.
    pub(crate) fn withdraw(&self, node: &Arc<str>) -> bool {
        let mut now = self.now();
        now.take_if(|known| known.node == *node);
        now.is_none()
    }

    fn now(&self) -> MutexGuard<'_, Option<Arc<PodSample>>> {
        self.now.locked()
    }
}

impl PodSample {
    /// Namespace and name.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Points of a container, probably at index `at`.
    pub(crate) fn container(&self, name: &str, at: usize) -> Option<&(Arc<str>, PointPair)> {
        if let Some(found) = self.containers.get(at).filter(|(own, _)| **own == *name) {
            return Some(found);
        }
        let at = self.containers.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.containers.get(at)
    }

    /// Time of the newest point.
    pub(crate) fn newest(&self) -> i64 {
        self.containers.iter().map(|(_, pair)| pair.time()).max().unwrap_or(i64::MIN)
    }
}

impl NodeReport {
    /// Sample of a pod, probably at index `at`; then `at` moves to the next pod.
    pub(crate) fn pod(&self, key: (&str, &str), at: &mut usize) -> Option<&Arc<PodSample>> {
        if self.pods.get(*at).is_none_or(|sample| sample.key() != key) {
            *at = self.pods.binary_search_by(|sample| sample.key().cmp(&key)).ok()?;
        }
        *at += 1;
        self.pods.get(*at - 1)
    }

    /// Whether both reports have the same pods.
    pub(crate) fn has_pods_of(&self, other: &Self) -> bool {
        let same =
            |(a, b): (&Arc<PodSample>, &Arc<PodSample>)| a.name == b.name && a.namespace == b.namespace;
        self.pods.len() == other.pods.len() && self.pods.iter().zip(&other.pods).all(same)
    }

    /// Number of nodes and containers with two points.
    pub(crate) fn points(&self) -> PointCounts {
        let complete = |pair: &PointPair| u64::from(pair.is_complete());
        let containers = self.pods.iter().flat_map(|pod| &pod.containers).map(|(_, pair)| complete(pair));
        PointCounts { nodes: self.node.map_or(0, |(pair, _)| complete(&pair)), containers: containers.sum() }
    }
}
