//! Nodes that are lost.

use std::sync::Arc;

use super::{NodesState, PodRef};

impl NodesState {
    /// A node is lost: nothing is placed on it any more. Returns its pods, which have to be deleted.
    pub(crate) fn lose(&mut self, node: usize) -> Vec<Arc<PodRef>> {
        let Some(target) = self.schedulable.get_mut(node) else { return Vec::new() };
        target.lost = true;
        let tenants = self.tenants.get(node).into_iter().flatten();
        tenants.filter_map(|id| self.pods.get(id)).map(|pod| Arc::clone(&pod.key)).collect()
    }

    /// A lost node is back.
    pub(crate) fn restore(&mut self, node: usize) {
        if let Some(target) = self.schedulable.get_mut(node) {
            target.lost = false;
            self.capacity_freed = true;
        }
    }

    /// Whether a node is lost.
    pub(crate) fn is_lost(&self, node: usize) -> bool {
        self.schedulable.get(node).is_some_and(|target| target.lost)
    }

    /// The node with the most pods, of those that are not lost.
    pub(crate) fn busiest(&self) -> Option<usize> {
        let nodes = self.tenants.iter().enumerate().filter(|(node, _)| !self.is_lost(*node));
        nodes.max_by_key(|(_, tenants)| tenants.len()).map(|(node, _)| node)
    }
}
