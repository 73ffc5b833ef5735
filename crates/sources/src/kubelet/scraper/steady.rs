//! Every node at its own place in the period; what it says is stored at once.
//!
//! Nodes with a connection are asked within this task: handing each of them to another thread and back would cost more
//! than asking it. Those without are asked in tasks of their own, as greeting is what takes time.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::schedule::{Rhythm, Schedule};
use super::scrape::{Outcome, scrape};
use super::{SILENT_TIMES, Scraper};
use crate::kubelet::address::Rules;
use crate::kubelet::client::Peer;
use crate::kubelet::report::Report;

/// How often it is looked whether nodes came or went.
const LOOK: Duration = Duration::from_millis(250);
/// How often the filter is asked about all nodes again.
const FILTER: Duration = Duration::from_secs(5);

/// The loop and what it remembers.
struct Steady<'a> {
    scraper: &'a Scraper,
    rules: Arc<Rules>,
    schedule: Schedule,
    /// Those that must be connected to, and those that are connected.
    running: JoinSet<(Duration, Outcome)>,
    connected: FuturesUnordered<BoxFuture<'static, (Duration, Outcome)>>,
    /// Open connections of nodes that are not being asked.
    peers: HashMap<Arc<str>, Peer>,
    began: Instant,
    generation: Option<u64>,
    filtered: Instant,
    period: Period,
}

/// What is told about each period.
struct Period {
    ends: Duration,
    slowest: Duration,
    /// The causes that were told last; how many suffer from each changes all the time in a large cluster.
    told: Vec<&'static str>,
}

/// Runs until it is dropped.
pub(super) async fn run(scraper: &Scraper) {
    let settings = &scraper.settings;
    let parallel = settings.parallel.max(1);
    let rhythm = Rhythm { period: settings.resolution, parallel, open: parallel * SILENT_TIMES };
    let began = Instant::now();
    let mut steady = Steady {
        scraper,
        rules: Arc::new(settings.address.clone()),
        schedule: Schedule::new(rhythm),
        running: JoinSet::new(),
        connected: FuturesUnordered::new(),
        peers: HashMap::new(),
        began,
        generation: None,
        filtered: began,
        period: Period { ends: settings.resolution, slowest: Duration::ZERO, told: Vec::new() },
    };
    let mut sleep = pin!(tokio::time::sleep_until(began));
    loop {
        steady.look();
        let until = steady.ask();
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        tokio::select! {
            // Nobody cancels these, and they do not panic.
            Some(Ok((due, outcome))) = steady.running.join_next() => steady.done(due, outcome),
            Some((due, outcome)) = steady.connected.next() => steady.done(due, outcome),
            () = &mut sleep => {}
        }
        // All that is there already, before anything else is thought about.
        while let Some(done) = steady.running.try_join_next() {
            if let Ok((due, outcome)) = done {
                steady.done(due, outcome);
            }
        }
        while let Some(Some((due, outcome))) = steady.connected.next().now_or_never() {
            steady.done(due, outcome);
        }
    }
}

impl Steady<'_> {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Which nodes there are, and how the period went.
    fn look(&mut self) {
        let (now, report) = (self.now(), &self.scraper.report);
        report.beat(Instant::now());
        let generation = self.scraper.inventory.nodes_generation();
        if self.generation != Some(generation) || self.filtered.elapsed() >= FILTER {
            self.generation = Some(generation);
            self.filtered = Instant::now();
            let (came, gone) = self.schedule.set(&self.scraper.nodes(), now);
            for name in &came {
                report.expect(name);
            }
            for name in &gone {
                report.forget(name);
                self.peers.remove(name);
                // Nodes that only do not pass the filter any more are another replica's.
                if self.scraper.inventory.node(name).is_none() {
                    self.scraper.sink.forget(name);
                }
            }
        }
        self.period.look(now, self.scraper.settings.resolution, report);
    }

    /// Asks those who are due; when to look again.
    fn ask(&mut self) -> Instant {
        let now = self.now();
        let step = self.schedule.step(now);
        for ask in step.ask {
            let peer = self.peers.remove(&ask.node.name).unwrap_or_default();
            self.scraper.report.late(now.saturating_sub(ask.due));
            let (client, rules) = (Arc::clone(&self.scraper.client), Arc::clone(&self.rules));
            let is_connected = peer.is_connected();
            let asked = scrape(client, rules, self.scraper.settings.compat, ask.node, peer);
            let asked = async move { (ask.due, asked.await) };
            if is_connected {
                self.connected.push(asked.boxed());
            } else {
                self.running.spawn(asked);
            }
        }
        let look = now + LOOK;
        self.began + step.until.map_or(look, |until| until.min(look))
    }

    fn done(&mut self, due: Duration, Outcome { node, peer, took, scrape }: Outcome) {
        let now = self.now();
        if !self.schedule.done(&node.name, scrape.is_ok(), now) {
            return;
        }
        let (report, sink, time) = (&self.scraper.report, &self.scraper.sink, self.scraper.client.now());
        self.period.slowest = self.period.slowest.max(now.saturating_sub(due));
        self.peers.insert(Arc::clone(&node.name), peer);
        match scrape {
            Ok(scrape) => {
                sink.take(&node.name, scrape, time);
                report.good(&node.name, took, time);
            }
            Err(failure) => {
                sink.missed(&node.name, time);
                report.failed(&node.name, node.ready, failure.cause, &failure.error, took, time);
            }
        }
    }
}

impl Period {
    /// At the end of a period: how long it took, and what is wrong, if that is another thing than before.
    fn look(&mut self, now: Duration, length: Duration, report: &Report) {
        if now < self.ends {
            return;
        }
        while self.ends <= now {
            self.ends += length;
        }
        report.tick(std::mem::take(&mut self.slowest));
        let problems = report.problems();
        let mut told: Vec<_> = problems.groups.iter().map(|group| group.cause.label()).collect();
        told.sort_unstable();
        if told != self.told {
            if told.is_empty() {
                tracing::info!("all kubelets answer with metrics");
            } else {
                tracing::warn!("not all kubelets answer with metrics: {}", problems.lines().join("; "));
            }
            self.told = told;
        }
    }
}
