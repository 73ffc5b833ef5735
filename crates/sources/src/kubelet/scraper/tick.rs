//! All nodes at once, as metrics-server does: a tick per period, a random wait of up to four seconds for each node, one
//! barrier, and then everything that is known is replaced.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use super::Scraper;
use super::scrape::{Outcome, scrape};
use crate::inventory::Node;
use crate::kubelet::Scrape;
use crate::kubelet::address::Rules;
use crate::kubelet::client::{Failure, Peer};
use crate::kubelet::report::{Cause, Stage};

/// What each node adds to the time over which requests are spread, and its most.
const SPREAD: Duration = Duration::from_millis(8);
const SPREAD_MOST: Duration = Duration::from_secs(4);

/// What is remembered between two ticks.
struct Ticks<'a> {
    scraper: &'a Scraper,
    rules: Arc<Rules>,
    random: RandomState,
    peers: HashMap<Arc<str>, Peer>,
    known: HashSet<Arc<str>>,
}

/// Runs until it is dropped.
pub(super) async fn run(scraper: &Scraper) {
    let rules = Arc::new(scraper.settings.address.clone());
    let mut ticks =
        Ticks { scraper, rules, random: RandomState::new(), peers: HashMap::new(), known: HashSet::new() };
    let mut clock = tokio::time::interval(scraper.settings.resolution);
    // One late tick is made up for, more are dropped.
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for number in 0_u64.. {
        let scheduled = clock.tick().await;
        scraper.report.late(scheduled.elapsed());
        // Liveness looks at when a tick began, not whether it ends.
        scraper.report.beat(scheduled);
        let begun = Instant::now();
        let answers = ticks.tick(number).await;
        scraper.sink.replace(answers);
        scraper.report.tick(begun.elapsed());
    }
}

impl Ticks<'_> {
    /// What all nodes said, in the order of their answers.
    async fn tick(&mut self, number: u64) -> Vec<(Arc<str>, Scrape)> {
        let deadline = Instant::now() + self.scraper.settings.resolution;
        let nodes = self.scraper.nodes();
        self.keep(&nodes);
        let spread = spread(nodes.len());
        let mut running = JoinSet::new();
        let mut open: HashMap<Arc<str>, Arc<Node>> = HashMap::with_capacity(nodes.len());
        for node in nodes {
            open.insert(Arc::clone(&node.name), Arc::clone(&node));
            let peer = self.peers.remove(&node.name).unwrap_or_default();
            let wait = wait(self.random.hash_one((&node.name, number)), spread);
            let (client, rules) = (Arc::clone(&self.scraper.client), Arc::clone(&self.rules));
            let asked = scrape(client, rules, self.scraper.settings.compat, node, peer);
            running.spawn(async move {
                tokio::time::sleep(wait).await;
                asked.await
            });
        }
        let mut answers = Vec::with_capacity(open.len());
        while let Ok(Some(done)) = tokio::time::timeout_at(deadline, running.join_next()).await {
            // Nobody cancels these, and they do not panic.
            let Ok(outcome) = done else { continue };
            open.remove(&outcome.node.name);
            answers.extend(self.done(outcome));
        }
        let (report, now) = (&self.scraper.report, self.scraper.client.now());
        for node in open.into_values() {
            let after = self.scraper.settings.resolution;
            let late = Failure::new(Cause::TimedOut { stage: Stage::Waiting, after }, "the tick was over");
            report.failed(&node.name, node.ready, late.cause, &late.error, after, now);
        }
        answers
    }

    fn done(&mut self, outcome: Outcome) -> Option<(Arc<str>, Scrape)> {
        let Outcome { node, peer, took, scrape } = outcome;
        let (report, now) = (&self.scraper.report, self.scraper.client.now());
        self.peers.insert(Arc::clone(&node.name), peer);
        match scrape {
            Ok(scrape) => {
                report.good(&node.name, took, now);
                Some((Arc::clone(&node.name), scrape))
            }
            Err(failure) => {
                report.failed(&node.name, node.ready, failure.cause, &failure.error, took, now);
                None
            }
        }
    }

    /// Forgets those who are gone.
    fn keep(&mut self, nodes: &[Arc<Node>]) {
        let here: HashSet<Arc<str>> = nodes.iter().map(|node| Arc::clone(&node.name)).collect();
        for gone in self.known.difference(&here) {
            self.scraper.report.forget(gone);
            self.peers.remove(gone);
        }
        for name in here.difference(&self.known) {
            self.scraper.report.expect(name);
        }
        self.known = here;
    }
}

/// Over how long the requests of a tick are spread.
fn spread(nodes: usize) -> Duration {
    SPREAD.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)).min(SPREAD_MOST)
}

/// A whole number of milliseconds below `spread`.
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
