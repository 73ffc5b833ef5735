//! All nodes, asked again and again.
//!
//! ```text
//! schedule  when which node is asked: arithmetic
//! scrape    one node: address, request, parsing
//! steady    every node at its own place in the period (the default)
//! tick      all nodes at once, as metrics-server does (strict)
//! ```

mod schedule;
mod scrape;
mod steady;
#[cfg(test)]
mod tests;
mod tick;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use jiff::Timestamp;
use tokio::sync::watch;

use super::report::{self, Report};
use super::{Scrape, address, client, trust};
use crate::inventory::{Inventory, Node};
use crate::store::Store;
use client::{Client, Clock};
use trust::Trust;

/// What a scraper is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time between two scrapes of a node.
    pub resolution: Duration,
    /// Requests at a time; those that got no answer for a second are not counted, up to sixteen times as many. (Not in
    /// strict mode, where all nodes are asked at once.)
    pub parallel: usize,
    /// How exactly metrics-server is imitated.
    pub compat: Compat,
    /// Where kubelets are asked.
    pub address: address::Rules,
    /// How kubelets are asked.
    pub client: client::Settings,
    /// Whom we trust, and who we are.
    pub trust: trust::Settings,
}

/// Whether a node is asked: `--node-selector`, and the division of nodes between replicas. Asked again every few
/// seconds.
pub type Filter = Arc<dyn Fn(&Node) -> bool + Send + Sync>;

/// Requests that were silent for a second, as a multiple of those at work.
const SILENT_TIMES: usize = 16;

/// Asks all nodes again and again, and stores what they say.
pub struct Scraper {
    settings: Settings,
    inventory: Inventory,
    sink: Arc<dyn Sink>,
    client: Arc<Client>,
    report: Report,
    filter: Filter,
}

impl fmt::Debug for Scraper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scraper").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Scraper {
    /// One for all nodes of `inventory`. Files for TLS must be readable now.
    pub fn new(settings: Settings, inventory: Inventory, store: Store) -> Result<Self, trust::Error> {
        Self::with(settings, inventory, Arc::new(store), Arc::new(Timestamp::now))
    }

    fn with(
        settings: Settings,
        inventory: Inventory,
        sink: Arc<dyn Sink>,
        clock: Clock,
    ) -> Result<Self, trust::Error> {
        let trust = Trust::new(settings.trust.clone())?;
        let client = Arc::new(Client::new(settings.client.clone(), trust, clock));
        let report = Report::new(report::Settings::new(settings.resolution, settings.compat));
        Ok(Self { settings, inventory, sink, client, report, filter: Arc::new(|_| true) })
    }

    /// Only nodes that pass. Nodes that do not pass any more are not asked, but what is known of them is not forgotten:
    /// another replica may tell more of it.
    pub fn only(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// What nodes say goes here instead of straight into the store.
    pub fn into_sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = sink;
        self
    }

    /// How all nodes fare, now and later.
    pub fn report(&self) -> Report {
        self.report.clone()
    }

    /// Asks until `stop` is true or nobody can say so any more. Begins when nodes and pods are all known.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let strict = self.settings.compat.is_strict();
        let work = async {
            while !self.inventory.is_complete() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if strict { tick::run(&self).await } else { steady::run(&self).await }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// The nodes that are asked.
    fn nodes(&self) -> Vec<Arc<Node>> {
        let mut nodes = self.inventory.nodes();
        nodes.retain(|node| (self.filter)(node));
        nodes
    }
}

/// Where scrapes go: a [`Store`], or somebody who passes them on to one.
pub trait Sink: Send + Sync {
    /// What the kubelet of one node said.
    fn take(&self, node: &str, scrape: Scrape, now: Timestamp);
    /// A node could not be scraped.
    fn missed(&self, node: &str, now: Timestamp);
    /// A node is gone.
    fn forget(&self, node: &str);
    /// What all kubelets said in one tick (strict mode).
    fn replace(&self, tick: Vec<(Arc<str>, Scrape)>);
}

impl Sink for Store {
    fn take(&self, node: &str, scrape: Scrape, now: Timestamp) {
        Store::take(self, node, scrape, now);
    }

    fn missed(&self, node: &str, now: Timestamp) {
        Store::missed(self, node, now);
    }

    fn forget(&self, node: &str) {
        Store::forget(self, node);
    }

    fn replace(&self, tick: Vec<(Arc<str>, Scrape)>) {
        Store::replace(self, tick);
    }
}
