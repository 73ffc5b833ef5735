//! Scrapes all nodes at once, as metrics-server does: one tick per period, a random delay of up to four seconds per
//! node, and then the whole store is replaced.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use super::Scraper;
use super::scrape::{ScrapeOutcome, scrape};
use crate::inventory::Node;
use crate::kubelet::Scrape;
use crate::kubelet::address::AddressRules;
use crate::kubelet::client::{KubeletConnection, ScrapeError};
use crate::kubelet::report::{RequestStage, ScrapeErrorCause};

/// Request delay added per node, and its limit.
const SPREAD_PER_NODE: Duration = Duration::from_millis(8);
const MAX_SPREAD: Duration = Duration::from_secs(4);

/// State kept between ticks.
struct TickLoop<'a> {
    scraper: &'a Scraper,
    rules: Arc<AddressRules>,
    random: RandomState,
    connections: HashMap<Arc<str>, KubeletConnection>,
    known: HashSet<Arc<str>>,
}

/// Runs until the future is dropped.
pub(super) async fn run(scraper: &Scraper) {
    let rules = Arc::new(scraper.settings.address.clone());
    let mut ticks = TickLoop {
        scraper,
        rules,
        random: RandomState::new(),
        connections: HashMap::new(),
        known: HashSet::new(),
    };
    let mut clock = tokio::time::interval(scraper.settings.resolution);
    // One missed tick is caught up, further ones are skipped.
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for number in 0_u64.. {
        let scheduled = clock.tick().await;
        scraper.report.record_delay(scheduled.elapsed());
        // Liveness depends on the start of a tick, not on its end.
        scraper.report.heartbeat(scheduled);
        let begun = Instant::now();
        let answers = ticks.tick(number).await;
        scraper.sink.replace_all(answers);
        scraper.report.record_round(begun.elapsed());
    }
}

impl TickLoop<'_> {
    /// Scrapes all nodes; results in the order of completion.
    async fn tick(&mut self, number: u64) -> Vec<(Arc<str>, Scrape)> {
        let deadline = Instant::now() + self.scraper.settings.resolution;
        let nodes = self.scraper.nodes();
        self.update_nodes(&nodes);
        let spread = spread(nodes.len());
        let mut running = JoinSet::new();
        let mut open: HashMap<Arc<str>, Arc<Node>> = HashMap::with_capacity(nodes.len());
        for node in nodes {
            open.insert(Arc::clone(&node.name), Arc::clone(&node));
            let connection = self.connections.remove(&node.name).unwrap_or_default();
            let wait = wait(self.random.hash_one((&node.name, number)), spread);
            let (client, rules) = (Arc::clone(&self.scraper.client), Arc::clone(&self.rules));
            let scraping = scrape(client, rules, self.scraper.settings.compat, node, connection);
            running.spawn(async move {
                tokio::time::sleep(wait).await;
                scraping.await
            });
        }
        let mut answers = Vec::with_capacity(open.len());
        while let Ok(Some(done)) = tokio::time::timeout_at(deadline, running.join_next()).await {
            // The tasks are never cancelled and do not panic.
            let Ok(outcome) = done else { continue };
            open.remove(&outcome.node.name);
            answers.extend(self.done(outcome));
        }
        let (report, now) = (&self.scraper.report, self.scraper.client.now());
        for node in open.into_values() {
            let after = self.scraper.settings.resolution;
            let late = ScrapeError::new(
                ScrapeErrorCause::TimedOut { stage: RequestStage::Waiting, after },
                "no response before the end of the tick",
            );
            report.record_failure(&node.name, node.ready, late.cause, &late.error, after, now);
        }
        answers
    }

    fn done(&mut self, outcome: ScrapeOutcome) -> Option<(Arc<str>, Scrape)> {
        let ScrapeOutcome { node, connection, took, scrape } = outcome;
        let (report, now) = (&self.scraper.report, self.scraper.client.now());
        self.connections.insert(Arc::clone(&node.name), connection);
        match scrape {
            Ok(scrape) => {
                report.record_success(&node.name, took, now);
                Some((Arc::clone(&node.name), scrape))
            }
            Err(failure) => {
                report.record_failure(&node.name, node.ready, failure.cause, &failure.error, took, now);
                None
            }
        }
    }

    /// Forgets removed nodes and tracks new ones.
    fn update_nodes(&mut self, nodes: &[Arc<Node>]) {
        let here: HashSet<Arc<str>> = nodes.iter().map(|node| Arc::clone(&node.name)).collect();
        for removed in self.known.difference(&here) {
            self.scraper.report.forget_node(removed);
            self.connections.remove(removed);
        }
        for name in here.difference(&self.known) {
            self.scraper.report.track(name);
        }
        self.known = here;
    }
}

/// Time over which the requests of a tick are spread.
fn spread(nodes: usize) -> Duration {
    SPREAD_PER_NODE.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)).min(MAX_SPREAD)
}

/// Random delay in whole milliseconds below `spread`.
fn wait(random: u64, spread: Duration) -> Duration {
    Duration::from_millis(random % (spread.as_millis() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_spread_over_up_to_four_seconds() {
        let of = |nodes| spread(nodes).as_millis();
        assert_eq!([of(0), of(1), of(100), of(500), of(5000)], [0, 8, 800, 4000, 4000]);
        assert_eq!(wait(u64::MAX, Duration::ZERO), Duration::ZERO);
        assert!((0..1000).all(|random| wait(random, spread(1)) < Duration::from_millis(8)));
    }
}
