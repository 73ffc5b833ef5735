//! Metrics store: the last two points of every node and container, and the CPU rates between them.
//!
//! ```text
//! pair      two points and their CPU rate
//! sample    stored data of a pod and of a node
//! build     turns a scrape into samples, using the previous ones
//! provider  implements metrics.k8s.io
//! missing   why a running pod has no metrics
//! ```
//!
//! The report of a node is immutable and replaced as a whole: readers and writers hold the lock only to exchange an
//! `Arc`.

mod build;
mod missing;
mod pair;
mod provider;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use api::provider::Compat;
use jiff::Timestamp;
use locks::{MutexExt as _, RwLockExt as _};

use crate::inventory::{Interner, Inventory, Pod};
use crate::kubelet::Scrape;
use crate::kubelet::scraper::ScrapeSink;
use build::SampleBuilder;
use sample::{NodeReport, PodSample, PodSlot};

pub use missing::{MissingPod, MissingPods, MissingReason};
pub use provider::KubeletProvider;

/// Settings of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreSettings {
    /// Scrape interval of a node.
    pub resolution: Duration,
    /// How long samples of a node are kept while scrapes fail.
    pub keep: Duration,
    /// Whether metrics-server is imitated exactly.
    pub compat: Compat,
}

/// Number of nodes and containers with a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointCounts {
    /// Nodes with two points.
    pub nodes: u64,
    /// Containers with two points.
    pub containers: u64,
}

/// Samples of the cluster. Cheap to clone; clones share their data.
#[derive(Clone, Debug)]
pub struct Store(Arc<StoreInner>);

#[derive(Debug)]
struct StoreInner {
    settings: StoreSettings,
    inventory: Inventory,
    state: RwLock<StoreState>,
    /// Interned container names, of which there are few.
    names: Mutex<Interner<str>>,
}

#[derive(Debug, Default)]
struct StoreState {
    nodes: HashMap<Arc<str>, Arc<NodeReport>>,
    /// Pods by namespace and name. If several nodes report a pod, the newest point wins.
    pods: HashMap<Arc<str>, BTreeMap<Arc<str>, Arc<PodSlot>>>,
    points: PointCounts,
    generation: u64,
}

impl Store {
    /// An empty store for the nodes and pods of `inventory`.
    pub fn new(settings: StoreSettings, inventory: Inventory) -> Self {
        Self(Arc::new(StoreInner { settings, inventory, state: RwLock::default(), names: Mutex::default() }))
    }

    /// Stores the scrape of one node (not in strict mode, where all nodes of a tick are stored together).
    pub fn take(&self, node: &str, scrape: Scrape, now: Timestamp) {
        let inventory = &self.0.inventory;
        let known = inventory.node(node);
        if known.is_none() && inventory.is_complete() {
            // The node was removed during its scrape.
            return;
        }
        let name = known.map_or_else(|| node.into(), |known| Arc::clone(&known.name));
        let before = self.read().nodes.get(node).cloned();
        let reported = SampleBuilder::new(&self.0, &name, nanos(now)).reported(scrape, before.as_deref());
        let previous = self.write().exchange(&name, Some(reported));
        // The previous report is dropped outside the lock.
        drop(previous);
    }

    /// A scrape failed: its samples are kept for a while.
    pub fn scrape_failed(&self, node: &str, now: Timestamp) {
        let Some(known) = self.read().nodes.get(node).cloned() else { return };
        if !self.0.is_too_old(known.taken, nanos(now)) || known.is_empty() {
            return;
        }
        let lost = known.pods.iter().map(|pod| (Arc::clone(&pod.namespace), Arc::clone(&pod.name)));
        let lost = NodeReport { lost: lost.collect(), taken: known.taken, ..NodeReport::default() };
        self.write().exchange(&node.into(), Some(lost));
    }

    /// Removes a node.
    pub fn forget_node(&self, node: &str) {
        self.write().exchange(&node.into(), None);
    }

    /// Replaces all samples by the scrapes of one tick, in the order of completion (strict mode).
    pub fn replace_all(&self, tick: Vec<(Arc<str>, Scrape)>) {
        let mut next = StoreState::default();
        for (node, scrape) in tick {
            let reported = {
                let known = self.read();
                SampleBuilder::new(&self.0, &node, 0).tick(scrape, &known, &next)
            };
            next.exchange(&node, Some(reported));
        }
        let mut state = self.write();
        next.generation = state.generation.wrapping_add(1);
        let before = std::mem::replace(&mut *state, next);
        drop(state);
        drop(before);
    }

    /// Whether at least one node and one container can be served.
    pub fn is_ready(&self) -> bool {
        let points = self.points();
        points.nodes > 0 && points.containers > 0
    }

    /// Number of nodes and containers with a rate.
    pub fn points(&self) -> PointCounts {
        self.read().points
    }

    /// Counter that increases with every change; cached responses are valid while it stays.
    pub fn generation(&self) -> u64 {
        self.read().generation
    }

    /// Number of nodes whose points are older than one and a half periods.
    pub fn stale_nodes(&self, now: Timestamp) -> u64 {
        let limit = i64::try_from(self.0.settings.resolution.as_nanos()).unwrap_or(i64::MAX);
        let limit = limit.saturating_add(limit / 2);
        if self.0.settings.compat.is_strict() {
            // Strict mode keeps nothing beyond a tick.
            return 0;
        }
        let is_stale = |node: &NodeReport| nanos(now).saturating_sub(node.taken) > limit && !node.is_empty();
        self.read().nodes.values().filter(|node| is_stale(node)).count() as u64
    }

    /// Samples of these pods (in ascending order), read in batches so that writers do not wait long.
    fn samples(&self, pods: &[Arc<Pod>]) -> Vec<Option<Arc<PodSample>>> {
        const PODS_PER_BATCH: usize = 1024;
        let mut found = Vec::with_capacity(pods.len());
        for some in pods.chunks(PODS_PER_BATCH) {
            let state = self.read();
            for pods in some.chunk_by(|a, b| a.namespace == b.namespace) {
                state.find(pods, &mut found);
            }
        }
        found
    }

    /// Sample of one pod.
    fn sample(&self, namespace: &str, name: &str) -> Option<Arc<PodSample>> {
        self.read().sample(namespace, name)
    }

    fn reported(&self, node: &str) -> Option<Arc<NodeReport>> {
        self.read().nodes.get(node).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, StoreState> {
        self.0.state.read_locked()
    }

    fn write(&self) -> RwLockWriteGuard<'_, StoreState> {
        self.0.state.write_locked()
    }
}

impl ScrapeSink for Store {
    fn take(&self, node: &str, scrape: Scrape, now: Timestamp) {
        Store::take(self, node, scrape, now);
    }

    fn scrape_failed(&self, node: &str, now: Timestamp) {
        Store::scrape_failed(self, node, now);
    }

    fn forget_node(&self, node: &str) {
        Store::forget_node(self, node);
    }

    fn replace_all(&self, tick: Vec<(Arc<str>, Scrape)>) {
        Store::replace_all(self, tick);
    }
}

impl StoreInner {
    /// Whether a sample taken at `taken` is too old at `now`.
    fn is_too_old(&self, taken: i64, now: i64) -> bool {
        let age = u64::try_from(now.saturating_sub(taken)).unwrap_or(0);
        Duration::from_nanos(age) > self.settings.keep
    }

    fn names(&self) -> MutexGuard<'_, Interner<str>> {
        self.names.locked()
    }
}

impl StoreState {
    /// Replaces or removes the report of a node; returns the previous one.
    fn exchange(&mut self, node: &Arc<str>, reported: Option<NodeReport>) -> Option<Arc<NodeReport>> {
        let before = self.nodes.get(node).cloned();
        let old = before.as_ref().map(|before| before.points()).unwrap_or_default();
        let new = reported.as_ref().map(NodeReport::points).unwrap_or_default();
        match reported {
            Some(mut reported) => {
                self.place(&mut reported, before.as_deref());
                self.nodes.insert(Arc::clone(node), Arc::new(reported));
            }
            None => {
                before.iter().flat_map(|before| &before.pods).for_each(|sample| self.withdraw(sample));
                self.nodes.remove(node);
            }
        }
        self.points.nodes = self.points.nodes.saturating_sub(old.nodes) + new.nodes;
        self.points.containers = self.points.containers.saturating_sub(old.containers) + new.containers;
        self.generation = self.generation.wrapping_add(1);
        before
    }

    /// Makes the pods of a node findable.
    fn place(&mut self, reported: &mut NodeReport, before: Option<&NodeReport>) {
        if let Some(before) = before.filter(|before| reported.has_pods_of(before)) {
            reported.slots = Arc::clone(&before.slots);
            if reported.slots.iter().zip(&reported.pods).all(|(slot, sample)| slot.take(sample)) {
                return;
            }
        }
        let mut at = 0;
        for sample in before.iter().flat_map(|before| &before.pods) {
            if reported.pod(sample.key(), &mut at).is_none() {
                self.withdraw(sample);
            }
        }
        reported.slots = reported.pods.iter().map(|sample| self.slot(sample)).collect();
    }

    /// Slot of a pod, holding this sample unless another node has a newer one.
    fn slot(&mut self, sample: &Arc<PodSample>) -> Arc<PodSlot> {
        let pods = match self.pods.get_mut(&sample.namespace) {
            Some(pods) => pods,
            None => self.pods.entry(Arc::clone(&sample.namespace)).or_default(),
        };
        if let Some(slot) = pods.get(&sample.name).filter(|slot| slot.take(sample)) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(PodSlot::new(sample));
        pods.insert(Arc::clone(&sample.name), Arc::clone(&slot));
        slot
    }

    /// Sample of a pod.
    fn sample(&self, namespace: &str, name: &str) -> Option<Arc<PodSample>> {
        self.pods.get(namespace)?.get(name)?.sample()
    }

    fn withdraw(&mut self, sample: &PodSample) {
        let Some(pods) = self.pods.get_mut(&sample.namespace) else { return };
        if pods.get(&sample.name).is_some_and(|slot| slot.withdraw(&sample.node)) {
            pods.remove(&sample.name);
        }
        if pods.is_empty() {
            self.pods.remove(&sample.namespace);
        }
    }

    /// Samples of pods of one namespace, in ascending order.
    fn find(&self, pods: &[Arc<Pod>], found: &mut Vec<Option<Arc<PodSample>>>) {
        /// If the namespace has this many times more pods than requested, lookups are faster than a merge.
        const LOOKUP_FACTOR: usize = 16;
        let Some((first, known)) = pods.first().and_then(|pod| Some((pod, self.pods.get(&pod.namespace)?)))
        else {
            found.extend(pods.iter().map(|_| None));
            return;
        };
        if known.len() / LOOKUP_FACTOR > pods.len() {
            found.extend(pods.iter().map(|pod| known.get(&pod.name).and_then(|slot| slot.sample())));
            return;
        }
        let mut known = known.range::<str, _>((Bound::Included(&*first.name), Bound::Unbounded)).peekable();
        found.extend(pods.iter().map(|pod| {
            while known.next_if(|(name, _)| **name < pod.name).is_some() {}
            known.next_if(|(name, _)| **name == pod.name).and_then(|(_, slot)| slot.sample())
        }));
    }
}

impl NodeReport {
    fn is_empty(&self) -> bool {
        self.node.is_none() && self.pods.is_empty()
    }
}

/// Nanoseconds since the epoch.
fn nanos(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(if time < Timestamp::UNIX_EPOCH {
        i64::MIN
    } else {
        i64::MAX
    })
}
