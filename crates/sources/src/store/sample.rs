//! What is kept of a pod and of a node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// Where these pods are looked up, in the same order.
    pub(crate) slots: Arc<[Arc<Slot>]>,
    /// Pods without points that count, ascending by namespace and name.
    pub(crate) left_out: Box<[LeftOut]>,
    /// Pods that were forgotten because the node could not be asked for too long.
    pub(crate) lost: Box<[(Arc<str>, Arc<str>)]>,
    /// When it told by our clock, in nanoseconds since the epoch.
    pub(crate) taken: i64,
}

/// The place of a pod among those of its namespace, and what counts for it now. A node that tells the same pods as
/// before changes only what is in these places, and need not look for them.
#[derive(Debug)]
pub(crate) struct Slot {
    /// None if it is not the place of that pod any more.
    now: Mutex<Option<Arc<Sample>>>,
}

impl Slot {
    pub(crate) fn new(sample: &Arc<Sample>) -> Self {
        Self { now: Mutex::new(Some(Arc::clone(sample))) }
    }

    /// What counts now.
    pub(crate) fn sample(&self) -> Option<Arc<Sample>> {
        self.now().clone()
    }

    /// A node tells this about the pod: of several nodes the one with the newest point counts. False if this is not the
    /// place of the pod any more.
    pub(crate) fn take(&self, sample: &Arc<Sample>) -> bool {
        let mut now = self.now();
        let Some(known) = &mut *now else { return false };
        if known.node == sample.node || known.newest() < sample.newest() {
            *known = Arc::clone(sample);
        }
        true
    }

    /// A node tells nothing about the pod any more: whether nothing is known now.
    pub(crate) fn withdraw(&self, node: &Arc<str>) -> bool {
        let mut now = self.now();
        now.take_if(|known| known.node == *node);
        now.is_none()
    }

    fn now(&self) -> MutexGuard<'_, Option<Arc<Sample>>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sample {
    /// Namespace and name.
    pub(crate) fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// The points of a container, which probably is at `at`.
    pub(crate) fn container(&self, name: &str, at: usize) -> Option<&(Arc<str>, Pair)> {
        if let Some(found) = self.containers.get(at).filter(|(own, _)| **own == *name) {
            return Some(found);
        }
        let at = self.containers.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.containers.get(at)
    }

    /// When a container was measured last.
    pub(crate) fn newest(&self) -> i64 {
        self.containers.iter().map(|(_, pair)| pair.time()).max().unwrap_or(i64::MIN)
    }
}

impl Reported {
    /// What it told about a pod, which probably is at `at`; then `at` is where the next one probably is.
    pub(crate) fn pod(&self, key: (&str, &str), at: &mut usize) -> Option<&Arc<Sample>> {
        if self.pods.get(*at).is_none_or(|sample| sample.key() != key) {
            *at = self.pods.binary_search_by(|sample| sample.key().cmp(&key)).ok()?;
        }
        *at += 1;
        self.pods.get(*at - 1)
    }

    /// Whether both tell about the same pods.
    pub(crate) fn has_pods_of(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Sample>, &Arc<Sample>)| a.name == b.name && a.namespace == b.namespace;
        self.pods.len() == other.pods.len() && self.pods.iter().zip(&other.pods).all(same)
    }

    /// How much is known.
    pub(crate) fn points(&self) -> Points {
        let complete = |pair: &Pair| u64::from(pair.is_complete());
        let containers = self.pods.iter().flat_map(|pod| &pod.containers).map(|(_, pair)| complete(pair));
        Points { nodes: self.node.map_or(0, |(pair, _)| complete(&pair)), containers: containers.sum() }
    }
}
