//! Two points of every node and container, and the rates between them.

use std::sync::Arc;
use std::time::Duration;

use api::provide::Compat;
use jiff::Timestamp;

use crate::inventory::Inventory;
use crate::kubelet::Scrape;

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
pub struct Store(Arc<(Settings, Inventory)>);

impl Store {
    /// An empty one, for the nodes and pods of `inventory`.
    pub fn new(settings: Settings, inventory: Inventory) -> Self {
        Self(Arc::new((settings, inventory)))
    }

    /// What the kubelet of one node said. (Not in strict mode, where all nodes of a tick come together.)
    pub fn take(&self, _node: &str, _scrape: Scrape, _now: Timestamp) {
        todo!()
    }

    /// A node could not be scraped: what is known of it is kept for a while.
    pub fn missed(&self, _node: &str, _now: Timestamp) {
        todo!()
    }

    /// A node is gone.
    pub fn forget(&self, _node: &str) {
        todo!()
    }

    /// What all kubelets said in one tick, in the order of their answers; whatever is not in it is forgotten (strict mode).
    pub fn replace(&self, _tick: Vec<(Arc<str>, Scrape)>) {
        todo!()
    }

    /// Whether at least one node and one container can be served.
    pub fn is_ready(&self) -> bool {
        todo!()
    }

    /// How much is known.
    pub fn points(&self) -> Points {
        todo!()
    }
}
