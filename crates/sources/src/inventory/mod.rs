//! Nodes and running pods of the cluster, as the API server lists them, stored compactly.
//!
//! Names, label keys, label values and whole label sets are interned: the thousand pods of a Deployment share one
//! label set.

mod interner;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use api::provider::Labels;
use locks::RwLockExt as _;

pub(crate) use interner::Interner;

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
    /// Addresses in the order of the status: type (`InternalIP`) and address.
    pub addresses: Vec<(Arc<str>, Arc<str>)>,
    /// Kubelet port from the node status; 0 if the status has none.
    pub port: u16,
    /// Whether its `Ready` condition is true.
    pub ready: bool,
    /// Value of the annotation `metrics.k8s.io/resource-metrics-path`; empty if there is none.
    pub path: Arc<str>,
}

/// A running pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
}

/// Nodes and running pods, and whether the first listing is complete. Cheap to clone; clones share their data.
#[derive(Clone, Debug, Default)]
pub struct Inventory(Arc<InventoryInner>);

#[derive(Debug, Default)]
struct InventoryInner {
    all: RwLock<InventoryState>,
    nodes_complete: AtomicBool,
    pods_complete: AtomicBool,
    nodes_generation: AtomicU64,
}

#[derive(Debug, Default)]
struct InventoryState {
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    pods: BTreeMap<Arc<str>, BTreeSet<PodByName>>,
    texts: Interner<str>,
    labels: Interner<Labels>,
}

/// A pod, ordered by its name within a namespace.
#[derive(Clone, Debug)]
struct PodByName(Arc<Pod>);

impl Inventory {
    /// An empty inventory, which is not complete yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or updates a node.
    pub fn set_node(&self, node: Node) {
        let mut all = self.write();
        if all.nodes.get(&node.name).is_some_and(|known| **known == node) {
            return;
        }
        let node = Arc::new(all.shared_node(node));
        all.nodes.insert(Arc::clone(&node.name), node);
        self.0.nodes_generation.fetch_add(1, Memory::Release);
    }

    /// Removes a node.
    pub fn remove_node(&self, name: &str) {
        if self.write().nodes.remove(name).is_some() {
            self.0.nodes_generation.fetch_add(1, Memory::Release);
        }
    }

    /// Adds or updates a running pod.
    pub fn set_pod(&self, pod: Pod) {
        let mut all = self.write();
        let known = all.pods.get(&pod.namespace).and_then(|pods| pods.get(&*pod.name));
        if known.is_some_and(|known| *known.0 == pod) {
            return;
        }
        // Pod names are not interned because each is unique; an update keeps the stored name.
        let name = known.map_or(pod.name, |known| Arc::clone(&known.0.name));
        let namespace = all.texts.share(&pod.namespace);
        let labels = all.shared_labels(&pod.labels);
        let pod = Arc::new(Pod { namespace: Arc::clone(&namespace), name, labels });
        all.pods.entry(namespace).or_default().replace(PodByName(pod));
    }

    /// Removes a pod that was deleted or stopped running.
    pub fn remove_pod(&self, namespace: &str, name: &str) {
        let mut all = self.write();
        let Some(pods) = all.pods.get_mut(namespace) else { return };
        pods.remove(name);
        if pods.is_empty() {
            all.pods.remove(namespace);
        }
    }

    /// Marks the first listing of nodes as complete.
    pub fn nodes_complete(&self) {
        self.0.nodes_complete.store(true, Memory::Release);
    }

    /// Marks the first listing of pods as complete.
    pub fn pods_complete(&self) {
        self.0.pods_complete.store(true, Memory::Release);
    }

    /// Whether both first listings are complete.
    pub fn is_complete(&self) -> bool {
        self.0.nodes_complete.load(Memory::Acquire) && self.0.pods_complete.load(Memory::Acquire)
    }

    /// All nodes, ascending by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.read().nodes.values().cloned().collect()
    }

    /// Looks up a node.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.read().nodes.get(name).cloned()
    }

    /// Counter that increases whenever a node is added, changed or removed.
    pub fn nodes_generation(&self) -> u64 {
        self.0.nodes_generation.load(Memory::Acquire)
    }

    /// Looks up a running pod.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.read().pods.get(namespace)?.get(name).map(|pod| Arc::clone(&pod.0))
    }

    /// Running pods of a namespace or of all, ascending by namespace and name.
    pub fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>> {
        let all = self.read();
        let pods = |pods: &BTreeSet<PodByName>| pods.iter().map(|pod| Arc::clone(&pod.0)).collect::<Vec<_>>();
        match namespace {
            Some(namespace) => all.pods.get(namespace).map(pods).unwrap_or_default(),
            None => {
                let mut found = Vec::with_capacity(all.pods.values().map(BTreeSet::len).sum());
                found.extend(all.pods.values().flatten().map(|pod| Arc::clone(&pod.0)));
                found
            }
        }
    }

    /// Number of running pods.
    pub fn pod_count(&self) -> usize {
        self.read().pods.values().map(BTreeSet::len).sum()
    }

    fn read(&self) -> RwLockReadGuard<'_, InventoryState> {
        self.0.all.read_locked()
    }

    fn write(&self) -> RwLockWriteGuard<'_, InventoryState> {
        self.0.all.write_locked()
    }
}

impl InventoryState {
    fn shared_node(&mut self, node: Node) -> Node {
        let addresses =
            node.addresses.iter().map(|(kind, address)| (self.texts.share(kind), Arc::clone(address)));
        Node {
            addresses: addresses.collect(),
            labels: self.shared_labels(&node.labels),
            path: self.texts.share(&node.path),
            ..node
        }
    }

    fn shared_labels(&mut self, labels: &Labels) -> Arc<Labels> {
        if let Some(known) = self.labels.find(labels) {
            return known;
        }
        let texts = &mut self.texts;
        let own: Labels = labels.iter().map(|(key, value)| (texts.share(key), texts.share(value))).collect();
        self.labels.add(Arc::new(own))
    }
}

impl Borrow<str> for PodByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl PartialEq for PodByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for PodByName {}

impl PartialOrd for PodByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PodByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}
