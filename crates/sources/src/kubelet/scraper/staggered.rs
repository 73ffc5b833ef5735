//! Scrapes every node at its own offset in the period and stores the result immediately.
//!
//! Scrapes over an open connection run inside this task, because moving each to another thread costs more than the
//! request. Scrapes that must connect first run in tasks of their own, because the TLS handshake is expensive.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::schedule::{Schedule, ScheduleLimits, ScheduleState, ScrapeResult};
use super::scrape::{ScrapeOutcome, scrape};
use super::{SILENT_REQUESTS_FACTOR, Scraper};
use crate::kubelet::address::AddressRules;
use crate::kubelet::client::KubeletConnection;
use crate::kubelet::report::ScrapeReport;

/// Interval of checks for added and removed nodes.
const NODE_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Interval after which the filter is evaluated again for all nodes.
const FILTER_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The scrape loop and its state.
struct StaggeredLoop<'a> {
    scraper: &'a Scraper,
    rules: Arc<AddressRules>,
    schedule: Schedule,
    /// Scrapes that connect first, and scrapes over open connections.
    running: JoinSet<(Duration, ScrapeOutcome)>,
    connected: FuturesUnordered<BoxFuture<'static, (Duration, ScrapeOutcome)>>,
    /// Open connections of nodes without a running scrape.
    connections: HashMap<Arc<str>, KubeletConnection>,
    began: Instant,
    generation: Option<u64>,
    filtered: Instant,
    period: PeriodSummary,
}

/// Summary of the current period.
struct PeriodSummary {
    ends: Duration,
    slowest: Duration,
    /// Causes logged last. Their node counts are left out because they change constantly in large clusters.
    causes: Vec<&'static str>,
}

/// Runs until the future is dropped.
pub(super) async fn run(scraper: &Scraper) {
    let settings = &scraper.settings;
    let parallel = settings.parallel.max(1);
    let limits =
        ScheduleLimits { period: settings.resolution, parallel, open: parallel * SILENT_REQUESTS_FACTOR };
    let began = Instant::now();
    let mut staggered = StaggeredLoop {
        scraper,
        rules: Arc::new(settings.address.clone()),
        schedule: Schedule::new(limits),
        running: JoinSet::new(),
        connected: FuturesUnordered::new(),
        connections: HashMap::new(),
        began,
        generation: None,
        filtered: began,
        period: PeriodSummary { ends: settings.resolution, slowest: Duration::ZERO, causes: Vec::new() },
    };
    let mut sleep = pin!(tokio::time::sleep_until(began));
    loop {
        staggered.update();
        let until = staggered.start_due();
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        tokio::select! {
            // The tasks are never cancelled and do not panic.
            Some(Ok((due, outcome))) = staggered.running.join_next() => staggered.done(due, outcome),
            Some((due, outcome)) = staggered.connected.next() => staggered.done(due, outcome),
            () = &mut sleep => {}
        }
        // Drains all finished scrapes before the next step.
        while let Some(done) = staggered.running.try_join_next() {
            if let Ok((due, outcome)) = done {
                staggered.done(due, outcome);
            }
        }
        while let Some(Some((due, outcome))) = staggered.connected.next().now_or_never() {
            staggered.done(due, outcome);
        }
    }
}

impl StaggeredLoop<'_> {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Updates the node set and the summary of the period.
    fn update(&mut self) {
        let (now, report) = (self.now(), &self.scraper.report);
        report.heartbeat(Instant::now());
        let generation = self.scraper.inventory.nodes_generation();
        if self.generation != Some(generation) || self.filtered.elapsed() >= FILTER_CHECK_INTERVAL {
            self.generation = Some(generation);
            self.filtered = Instant::now();
            let (added, removed) = self.schedule.set(&self.scraper.nodes(), now);
            for name in &added {
                report.track(name);
            }
            for name in &removed {
                report.forget_node(name);
                self.connections.remove(name);
                // A node that only fails the filter now belongs to another replica.
                if self.scraper.inventory.node(name).is_none() {
                    self.scraper.sink.forget_node(name);
                }
            }
        }
        self.period.update(now, self.scraper.settings.resolution, report);
    }

    /// Starts due scrapes; returns when to check again.
    fn start_due(&mut self) -> Instant {
        let now = self.now();
        let step = self.schedule.step(now);
        for due_node in step.due_nodes {
            let connection = self.connections.remove(&due_node.node.name).unwrap_or_default();
            self.scraper.report.record_delay(now.saturating_sub(due_node.due));
            let (client, rules) = (Arc::clone(&self.scraper.client), Arc::clone(&self.rules));
            let is_connected = connection.is_connected();
            let scraping = scrape(client, rules, self.scraper.settings.compat, due_node.node, connection);
            let scraping = async move { (due_node.due, scraping.await) };
            if is_connected {
                self.connected.push(scraping.boxed());
            } else {
                self.running.spawn(scraping);
            }
        }
        let next_check = now + NODE_CHECK_INTERVAL;
        self.began + step.until.map_or(next_check, |until| until.min(next_check))
    }

    fn done(&mut self, due: Duration, ScrapeOutcome { node, connection, took, scrape }: ScrapeOutcome) {
        let now = self.now();
        let result = if scrape.is_ok() { ScrapeResult::Succeeded } else { ScrapeResult::Failed };
        if self.schedule.done(&node.name, result, now) == ScheduleState::Removed {
            return;
        }
        let (report, sink, time) = (&self.scraper.report, &self.scraper.sink, self.scraper.client.now());
        self.period.slowest = self.period.slowest.max(now.saturating_sub(due));
        self.connections.insert(Arc::clone(&node.name), connection);
        match scrape {
            Ok(scrape) => {
                sink.take(&node.name, scrape, time);
                report.record_success(&node.name, took, time);
            }
            Err(failure) => {
                sink.scrape_failed(&node.name, time);
                report.record_failure(&node.name, node.ready, failure.cause, &failure.error, took, time);
            }
        }
    }
}

impl PeriodSummary {
    /// At the end of a period: records its duration and logs the problems if their causes changed.
    fn update(&mut self, now: Duration, length: Duration, report: &ScrapeReport) {
        if now < self.ends {
            return;
        }
        while self.ends <= now {
            self.ends += length;
        }
        report.record_round(std::mem::take(&mut self.slowest));
        let problems = report.problems();
        let mut causes: Vec<_> = problems.groups.iter().map(|group| group.cause.label()).collect();
        causes.sort_unstable();
        if causes != self.causes {
            if causes.is_empty() {
                tracing::info!("all kubelets are scraped successfully");
            } else {
                tracing::warn!("some kubelets cannot be scraped: {}", problems.lines().join("; "));
            }
            self.causes = causes;
        }
    }
}
