//! Scrapes all nodes periodically.
//!
//! ```text
//! schedule   decides when which node is scraped; no IO
//! scrape     one node: address, request, parsing
//! staggered  every node at its own offset in the period (the default)
//! tick       all nodes at once, as metrics-server does (strict mode)
//! ```

mod schedule;
mod scrape;
mod staggered;
#[cfg(test)]
mod tests;
mod tick;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use jiff::Timestamp;
use tokio::sync::watch;

use super::report::{self, ScrapeReport};
use super::{Scrape, address, client, trust};
use crate::Clock;
use crate::inventory::{Inventory, Node};
use client::KubeletClient;
use trust::KubeletTrust;

/// Settings of a scraper.
#[derive(Clone, Debug)]
pub struct ScraperSettings {
    /// Scrape interval of a node.
    pub resolution: Duration,
    /// Concurrent requests. Requests without a response for a second do not count, up to sixteen times as many.
    /// Ignored in strict mode, where all nodes are scraped at once.
    pub parallel: usize,
    /// Whether metrics-server is imitated exactly.
    pub compat: Compat,
    /// How the address of a kubelet is chosen.
    pub address: address::AddressRules,
    /// Timeouts and limits of requests.
    pub client: client::KubeletClientSettings,
    /// CA, client certificate and token.
    pub trust: trust::TrustSettings,
    /// The wall clock.
    pub clock: Clock,
}

/// Whether this replica scrapes a node: `--node-selector` and sharding. Evaluated again every few seconds.
pub type NodeFilter = Arc<dyn Fn(&Node) -> bool + Send + Sync>;

/// Limit of requests without a response for a second, as a multiple of `parallel`.
const SILENT_REQUESTS_FACTOR: usize = 16;

/// Scrapes all nodes periodically and hands the result to a sink.
pub struct Scraper {
    settings: ScraperSettings,
    inventory: Inventory,
    sink: Arc<dyn ScrapeSink>,
    client: Arc<KubeletClient>,
    report: ScrapeReport,
    filter: NodeFilter,
}

impl fmt::Debug for Scraper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scraper").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Scraper {
    /// Creates a scraper for all nodes of `inventory` that hands scrapes to `sink`. TLS files must be readable now.
    pub fn new(
        settings: ScraperSettings,
        inventory: Inventory,
        sink: Arc<dyn ScrapeSink>,
    ) -> Result<Self, trust::TrustError> {
        let trust = KubeletTrust::new(settings.trust.clone())?;
        let client = Arc::new(KubeletClient::new(settings.client.clone(), trust, settings.clock.clone()));
        let report =
            ScrapeReport::new(report::ScrapeReportSettings::new(settings.resolution, settings.compat));
        Ok(Self { settings, inventory, sink, client, report, filter: Arc::new(|_| true) })
    }

    /// Scrapes only nodes that pass the filter. Data of a node that stops passing is kept, because another replica
    /// may still deliver it.
    pub fn only(mut self, filter: NodeFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Replaces the sink.
    pub fn into_sink(mut self, sink: Arc<dyn ScrapeSink>) -> Self {
        self.sink = sink;
        self
    }

    /// Shared report of the scrape status of all nodes.
    pub fn report(&self) -> ScrapeReport {
        self.report.clone()
    }

    /// Scrapes until `stop` is true or its sender is dropped. Starts when the inventory is complete.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let strict = self.settings.compat.is_strict();
        let work = async {
            while !self.inventory.is_complete() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if strict { tick::run(&self).await } else { staggered::run(&self).await }
        };
        tokio::select! {
            () = work => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Nodes that pass the filter.
    fn nodes(&self) -> Vec<Arc<Node>> {
        let mut nodes = self.inventory.nodes();
        nodes.retain(|node| (self.filter)(node));
        nodes
    }
}

/// Receives scrapes: the store, or a type that forwards to it.
pub trait ScrapeSink: Send + Sync {
    /// A node was scraped.
    fn take(&self, node: &str, scrape: Scrape, now: Timestamp);
    /// A scrape failed.
    fn scrape_failed(&self, node: &str, now: Timestamp);
    /// A node was removed from the cluster.
    fn forget_node(&self, node: &str);
    /// All scrapes of one tick (strict mode).
    fn replace_all(&self, tick: Vec<(Arc<str>, Scrape)>);
}
