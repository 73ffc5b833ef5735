//! Which nodes and pods there are: what the API server says, in little space.
//!
//! Names, label keys and label values are kept once however often they occur, and so are whole sets of labels: the
//! thousand pods of a Deployment have one between them.

mod pool;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use api::provider::Labels;

pub(crate) use pool::Pool;

/// What is kept of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
    /// Addresses in the order they are listed: type (`InternalIP`) and address.
    pub addresses: Vec<(Arc<str>, Arc<str>)>,
    /// Port of the kubelet as the node's status tells; 0 if it does not.
    pub port: u16,
    /// Whether it is ready.
    pub ready: bool,
    /// The annotation `metrics.k8s.io/resource-metrics-path`; empty if it has none.
    pub path: Arc<str>,
}

/// What is kept of a running pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
}

/// Nodes and running pods, and whether they are all there. Cheap to clone; all clones are the same inventory.
#[derive(Clone, Debug, Default)]
pub struct Inventory(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    all: RwLock<All>,
    nodes_complete: AtomicBool,
    pods_complete: AtomicBool,
    nodes_generation: AtomicU64,
}

#[derive(Debug, Default)]
struct All {
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    pods: BTreeMap<Arc<str>, BTreeSet<ByName>>,
    texts: Pool<str>,
    labels: Pool<Labels>,
}

/// A pod of one namespace, in the order of names.
#[derive(Clone, Debug)]
struct ByName(Arc<Pod>);

impl Inventory {
    /// An empty one, which is not complete yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node came or changed.
    pub fn set_node(&self, node: Node) {
        let mut all = self.write();
        if all.nodes.get(&node.name).is_some_and(|known| **known == node) {
            return;
        }
        let node = Arc::new(all.shared_node(node));
        all.nodes.insert(Arc::clone(&node.name), node);
        self.0.nodes_generation.fetch_add(1, Memory::Release);
    }

    /// A node is gone.
    pub fn remove_node(&self, name: &str) {
        if self.write().nodes.remove(name).is_some() {
            self.0.nodes_generation.fetch_add(1, Memory::Release);
        }
    }

    /// A running pod came or changed.
    pub fn set_pod(&self, pod: Pod) {
        let mut all = self.write();
        let known = all.pods.get(&pod.namespace).and_then(|pods| pods.get(&*pod.name));
        if known.is_some_and(|known| *known.0 == pod) {
            return;
        }
        // The name of a pod is its own; whoever is told of the pod again may as well hold the text that is held already.
        let name = known.map_or(pod.name, |known| Arc::clone(&known.0.name));
        let namespace = all.texts.share(&pod.namespace);
        let labels = all.shared_labels(&pod.labels);
        let pod = Arc::new(Pod { namespace: Arc::clone(&namespace), name, labels });
        all.pods.entry(namespace).or_default().replace(ByName(pod));
    }

    /// A pod is gone, or does not run any more.
    pub fn remove_pod(&self, namespace: &str, name: &str) {
        let mut all = self.write();
        let Some(pods) = all.pods.get_mut(namespace) else { return };
        pods.remove(name);
        if pods.is_empty() {
            all.pods.remove(namespace);
        }
    }

    /// All nodes have been told once.
    pub fn nodes_complete(&self) {
        self.0.nodes_complete.store(true, Memory::Release);
    }

    /// All running pods have been told once.
    pub fn pods_complete(&self) {
        self.0.pods_complete.store(true, Memory::Release);
    }

    /// Whether all nodes and running pods have been told once.
    pub fn is_complete(&self) -> bool {
        self.0.nodes_complete.load(Memory::Acquire) && self.0.pods_complete.load(Memory::Acquire)
    }

    /// All nodes, ascending by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.read().nodes.values().cloned().collect()
    }

    /// One node.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.read().nodes.get(name).cloned()
    }

    /// A number that changes whenever a node comes, goes or changes.
    pub fn nodes_generation(&self) -> u64 {
        self.0.nodes_generation.load(Memory::Acquire)
    }

    /// One running pod.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.read().pods.get(namespace)?.get(name).map(|pod| Arc::clone(&pod.0))
    }

    /// The running pods of a namespace, or all, ascending by namespace and name.
    pub fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>> {
        let all = self.read();
        let pods = |pods: &BTreeSet<ByName>| pods.iter().map(|pod| Arc::clone(&pod.0)).collect::<Vec<_>>();
        match namespace {
            Some(namespace) => all.pods.get(namespace).map(pods).unwrap_or_default(),
            None => {
                let mut found = Vec::with_capacity(all.pods.values().map(BTreeSet::len).sum());
                found.extend(all.pods.values().flatten().map(|pod| Arc::clone(&pod.0)));
                found
            }
        }
    }

    /// How many running pods there are.
    pub fn pod_count(&self) -> usize {
        self.read().pods.values().map(BTreeSet::len).sum()
    }

    fn read(&self) -> RwLockReadGuard<'_, All> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, All> {
        self.0.all.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
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
