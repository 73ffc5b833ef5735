//! Which nodes and pods there are: what the API server says, in little space.

use std::sync::Arc;

use api::provide::Labels;

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
pub struct Inventory(Arc<()>);

impl Inventory {
    /// An empty one, which is not complete yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node came or changed.
    pub fn set_node(&self, _node: Node) {
        todo!()
    }

    /// A node is gone.
    pub fn remove_node(&self, _name: &str) {
        todo!()
    }

    /// A running pod came or changed.
    pub fn set_pod(&self, _pod: Pod) {
        todo!()
    }

    /// A pod is gone, or does not run any more.
    pub fn remove_pod(&self, _namespace: &str, _name: &str) {
        todo!()
    }

    /// All nodes have been told once.
    pub fn nodes_complete(&self) {
        todo!()
    }

    /// All running pods have been told once.
    pub fn pods_complete(&self) {
        todo!()
    }

    /// Whether all nodes and running pods have been told once.
    pub fn is_complete(&self) -> bool {
        todo!()
    }

    /// All nodes, ascending by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        todo!()
    }

    /// A number that changes whenever a node comes, goes or changes.
    pub fn nodes_generation(&self) -> u64 {
        todo!()
    }
}
