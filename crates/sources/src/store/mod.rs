//! Two points of every node and container, and the rates between them.
//!
//! ```text
//! pair     two points and their rate
//! sample   what is kept of a pod and of a node
//! build    what a kubelet says becomes samples, beside what is known already
//! served   the answers of metrics.k8s.io
//! why      why a running pod has no metrics
//! ```
//!
//! What a node told is one value that never changes and is exchanged for the next one: readers hold the lock only to get at
//! it, and writers only to put it there.

mod build;
mod pair;
mod sample;
mod served;
#[cfg(test)]
mod tests;
mod why;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use api::provider::Compat;
use jiff::Timestamp;

use crate::inventory::{Inventory, Pod, Pool};
use crate::kubelet::Scrape;
use build::Builder;
use sample::{Reported, Sample, Slot};

pub use served::Served;
pub use why::{Missing, MissingPod, Reason};

/// What a store is told once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time between two scrapes of a node.
    pub resolution: Duration,
    /// How long what was known about a node is kept while it cannot be scraped.
    pub keep: Duration,
    /// How exactly metrics-server is imitated.
    pub compat: Compat,
}

/// How much is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Nodes with two points.
    pub nodes: u64,
    /// Containers with two points.
    pub containers: u64,
}

/// The samples of a cluster. Cheap to clone; all clones are the same store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    inventory: Inventory,
    state: RwLock<State>,
    /// Names of containers, which are few.
    names: Mutex<Pool<str>>,
}

#[derive(Debug, Default)]
struct State {
    nodes: HashMap<Arc<str>, Arc<Reported>>,
    /// By namespace and name. Of several nodes that tell about a pod, the one with the newest point counts.
    pods: HashMap<Arc<str>, BTreeMap<Arc<str>, Arc<Slot>>>,
    points: Points,
    generation: u64,
}

impl Store {
    /// An empty one, for the nodes and pods of `inventory`.
    pub fn new(settings: Settings, inventory: Inventory) -> Self {
        Self(Arc::new(Inner { settings, inventory, state: RwLock::default(), names: Mutex::default() }))
    }

    /// What the kubelet of one node said. (Not in strict mode, where all nodes of a tick come together.)
    pub fn take(&self, node: &str, scrape: Scrape, now: Timestamp) {
        let inventory = &self.0.inventory;
        let known = inventory.node(node);
        if known.is_none() && inventory.is_complete() {
            // It went away while it was asked.
            return;
        }
        let name = known.map_or_else(|| node.into(), |known| Arc::clone(&known.name));
        let before = self.read().nodes.get(node).cloned();
        let reported = Builder::new(&self.0, &name, nanos(now)).reported(scrape, before.as_deref());
        let told = self.write().exchange(&name, Some(reported));
        // When nobody waits for us.
        drop(told);
    }

    /// A node could not be scraped: what is known of it is kept for a while.
    pub fn missed(&self, node: &str, now: Timestamp) {
        let Some(known) = self.read().nodes.get(node).cloned() else { return };
        if !self.0.is_too_old(known.taken, nanos(now)) || known.is_empty() {
            return;
        }
        let lost = known.pods.iter().map(|pod| (Arc::clone(&pod.namespace), Arc::clone(&pod.name)));
        let lost = Reported { lost: lost.collect(), taken: known.taken, ..Reported::default() };
        self.write().exchange(&node.into(), Some(lost));
    }

    /// A node is gone.
    pub fn forget(&self, node: &str) {
        self.write().exchange(&node.into(), None);
    }

    /// What all kubelets said in one tick, in the order of their answers; whatever is not in it is forgotten (strict mode).
    pub fn replace(&self, tick: Vec<(Arc<str>, Scrape)>) {
        let mut next = State::default();
        for (node, scrape) in tick {
            let reported = {
                let known = self.read();
                Builder::new(&self.0, &node, 0).tick(scrape, &known, &next)
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

    /// How much is known.
    pub fn points(&self) -> Points {
        self.read().points
    }

    /// A number that changes whenever something new is known: answers that were made for it are good as long as it stays.
    pub fn generation(&self) -> u64 {
        self.read().generation
    }

    /// How many nodes are served from points that are older than one and a half periods.
    pub fn stale_nodes(&self, now: Timestamp) -> u64 {
        let limit = i64::try_from(self.0.settings.resolution.as_nanos()).unwrap_or(i64::MAX);
        let limit = limit.saturating_add(limit / 2);
        if self.0.settings.compat.is_strict() {
            // Nothing is kept beyond a tick.
            return 0;
        }
        let is_stale = |node: &Reported| nanos(now).saturating_sub(node.taken) > limit && !node.is_empty();
        self.read().nodes.values().filter(|node| is_stale(node)).count() as u64
    }

    /// What is known about these pods, which are in ascending order; never more than some at once, so that nobody who
    /// writes has to wait for long.
    fn samples(&self, pods: &[Arc<Pod>]) -> Vec<Option<Arc<Sample>>> {
        const AT_ONCE: usize = 1024;
        let mut found = Vec::with_capacity(pods.len());
        for some in pods.chunks(AT_ONCE) {
            let state = self.read();
            for pods in some.chunk_by(|a, b| a.namespace == b.namespace) {
                state.find(pods, &mut found);
            }
        }
        found
    }

    /// What is known about one pod.
    fn sample(&self, namespace: &str, name: &str) -> Option<Arc<Sample>> {
        self.read().sample(namespace, name)
    }

    fn reported(&self, node: &str) -> Option<Arc<Reported>> {
        self.read().nodes.get(node).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether what was told at `taken` is too old at `now` to be kept.
    fn is_too_old(&self, taken: i64, now: i64) -> bool {
        let age = u64::try_from(now.saturating_sub(taken)).unwrap_or(0);
        Duration::from_nanos(age) > self.settings.keep
    }

    fn names(&self) -> MutexGuard<'_, Pool<str>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A node told something new, or is gone. What it told before.
    fn exchange(&mut self, node: &Arc<str>, reported: Option<Reported>) -> Option<Arc<Reported>> {
        let before = self.nodes.get(node).cloned();
        let old = before.as_ref().map(|before| before.points()).unwrap_or_default();
        let new = reported.as_ref().map(Reported::points).unwrap_or_default();
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

    /// Makes that the pods of a node are found.
    fn place(&mut self, reported: &mut Reported, before: Option<&Reported>) {
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

    /// The place of a pod, where this counts now unless another node knows better.
    fn slot(&mut self, sample: &Arc<Sample>) -> Arc<Slot> {
        let pods = match self.pods.get_mut(&sample.namespace) {
            Some(pods) => pods,
            None => self.pods.entry(Arc::clone(&sample.namespace)).or_default(),
        };
        if let Some(slot) = pods.get(&sample.name).filter(|slot| slot.take(sample)) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(Slot::new(sample));
        pods.insert(Arc::clone(&sample.name), Arc::clone(&slot));
        slot
    }

    /// What is known about a pod.
    fn sample(&self, namespace: &str, name: &str) -> Option<Arc<Sample>> {
        self.pods.get(namespace)?.get(name)?.sample()
    }

    fn withdraw(&mut self, sample: &Sample) {
        let Some(pods) = self.pods.get_mut(&sample.namespace) else { return };
        if pods.get(&sample.name).is_some_and(|slot| slot.withdraw(&sample.node)) {
            pods.remove(&sample.name);
        }
        if pods.is_empty() {
            self.pods.remove(&sample.namespace);
        }
    }

    /// What is known about pods of one namespace, in ascending order.
    fn find(&self, pods: &[Arc<Pod>], found: &mut Vec<Option<Arc<Sample>>>) {
        /// If this many times more are known than asked for, looking up is quicker than going through.
        const FEW: usize = 16;
        let Some((first, known)) = pods.first().and_then(|pod| Some((pod, self.pods.get(&pod.namespace)?)))
        else {
            found.extend(pods.iter().map(|_| None));
            return;
        };
        if known.len() / FEW > pods.len() {
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

impl Reported {
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
