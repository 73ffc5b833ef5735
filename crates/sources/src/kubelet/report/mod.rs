//! Scrape status of every node, for `doctor`, `/readyz?verbose`, logs and `/metrics`.
//!
//! ```text
//! cause     why a scrape failed, and the remedy
//! counters  counters and histograms
//! ```

mod cause;
mod counters;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::provider::Compat;
use jiff::Timestamp;
use locks::MutexExt as _;
use tokio::time::Instant;

pub(crate) use cause::status_line;
pub use cause::{RequestStage, ScrapeErrorCause};
pub use counters::{DURATION_BOUNDS_SECONDS, DurationHistogram, ScrapeCounters, tick_bounds};

/// Settings of a report.
#[derive(Clone, Copy, Debug)]
pub struct ScrapeReportSettings {
    /// Scrape interval of a node.
    pub resolution: Duration,
    /// Whether durations are also counted per node, which costs fourteen series per node.
    pub by_node: bool,
}

impl ScrapeReportSettings {
    /// Counts per node only in strict mode, as metrics-server does.
    pub fn new(resolution: Duration, compat: Compat) -> Self {
        Self { resolution, by_node: compat.is_strict() }
    }
}

/// Scrape status of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeScrapeStatus {
    /// Time of the last scrape.
    pub last_scrape: Option<Timestamp>,
    /// Time of the last successful scrape.
    pub good: Option<Timestamp>,
    /// Start of the current failure; `None` if the last scrape succeeded.
    pub failing_since: Option<Timestamp>,
    /// Failed scrapes in a row.
    pub failures: u32,
    /// Why the last scrape failed.
    pub cause: Option<ScrapeErrorCause>,
}

/// Nodes that fail for the same cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// Cause of the first node.
    pub cause: ScrapeErrorCause,
    /// Text that applies to all of them.
    pub message: String,
    /// Nodes ascending by name, with their status.
    pub nodes: Vec<(Arc<str>, NodeScrapeStatus)>,
}

/// All failing nodes by cause, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrapeProblems {
    /// Number of scraped nodes.
    pub nodes: usize,
    /// Number of nodes not scraped yet.
    pub not_scraped: usize,
    /// Failing nodes by cause.
    pub groups: Vec<FailureGroup>,
}

impl ScrapeProblems {
    /// One line per cause: `12/12 nodes: certificate signed by unknown authority`.
    pub fn lines(&self) -> Vec<String> {
        let line =
            |group: &FailureGroup| format!("{}/{} nodes: {}", group.nodes.len(), self.nodes, group.message);
        self.groups.iter().map(line).collect()
    }
}

/// Scrape status of all nodes. Cheap to clone; clones share their data.
#[derive(Clone, Debug)]
pub struct ScrapeReport(Arc<Mutex<ScrapeReportState>>);

#[derive(Debug)]
struct ScrapeReportState {
    settings: ScrapeReportSettings,
    nodes: BTreeMap<Arc<str>, (NodeScrapeStatus, Option<DurationHistogram>)>,
    good: u64,
    failed: u64,
    causes: BTreeMap<&'static str, u64>,
    durations: DurationHistogram,
    ticks: DurationHistogram,
    lateness: DurationHistogram,
    beat: Option<Instant>,
}

impl ScrapeReport {
    /// An empty report.
    pub fn new(settings: ScrapeReportSettings) -> Self {
        let usual: Arc<[f64]> = DURATION_BOUNDS_SECONDS.into();
        Self(Arc::new(Mutex::new(ScrapeReportState {
            settings,
            nodes: BTreeMap::new(),
            good: 0,
            failed: 0,
            causes: BTreeMap::new(),
            durations: DurationHistogram::new(Arc::clone(&usual)),
            ticks: DurationHistogram::new(tick_bounds(settings.resolution)),
            lateness: DurationHistogram::new(usual),
            beat: None,
        })))
    }

    /// Starts to track a node.
    pub fn track(&self, node: &Arc<str>) {
        self.state().nodes.entry(Arc::clone(node)).or_default();
    }

    /// Removes all data of a node.
    pub fn forget_node(&self, node: &str) {
        self.state().nodes.remove(node);
    }

    /// Records a successful scrape; logs the recovery of a failing node.
    pub fn record_success(&self, node: &Arc<str>, took: Duration, now: Timestamp) {
        let mut state = self.state();
        state.good += 1;
        let Some(status) = state.count_scrape(node, took, now) else { return };
        let before = std::mem::replace(
            status,
            NodeScrapeStatus { last_scrape: Some(now), good: Some(now), ..NodeScrapeStatus::default() },
        );
        drop(state);
        match before.failing_since {
            Some(since) => tracing::info!(
                %node, failures = before.failures, failing_since = %since, "kubelet is scraped successfully again"
            ),
            None if before.good.is_none() => tracing::debug!(%node, "kubelet is scraped successfully"),
            None => {}
        }
    }

    /// Records a failed scrape; `error` is the detailed text. Logged when the cause is new, and only on debug level
    /// if the node is not ready.
    pub fn record_failure(
        &self,
        node: &Arc<str>,
        ready: bool,
        cause: ScrapeErrorCause,
        error: &str,
        took: Duration,
        now: Timestamp,
    ) {
        let mut state = self.state();
        state.failed += 1;
        *state.causes.entry(cause.label()).or_default() += 1;
        let Some(status) = state.count_scrape(node, took, now) else { return };
        let news = status.cause.as_ref().is_none_or(|before| before.label() != cause.label());
        let (message, remedy) = if news { (cause.message(), cause.remedy()) } else { Default::default() };
        status.failures = status.failures.saturating_add(1);
        status.failing_since.get_or_insert(now);
        status.cause = Some(cause);
        let last_good = status.good;
        drop(state);
        if news && ready {
            let last_good = last_good.map(tracing::field::display);
            tracing::warn!(%node, error, remedy, last_good, "failed to scrape node: {message}");
        } else if news {
            tracing::debug!(%node, error, "failed to scrape node, which is not ready: {message}");
        }
    }

    /// Records how much later than scheduled a scrape started.
    pub fn record_delay(&self, by: Duration) {
        self.state().lateness.observe(by);
    }

    /// Records the duration of a round over all nodes.
    pub fn record_round(&self, took: Duration) {
        self.state().ticks.observe(took);
    }

    /// Records that the scrape loop is alive.
    pub fn heartbeat(&self, now: Instant) {
        self.state().beat = Some(now);
    }

    /// Whether the scrape loop was alive within one and a half periods; true before its start.
    pub fn is_timely(&self, now: Instant) -> bool {
        let state = self.state();
        state
            .beat
            .is_none_or(|beat| now.saturating_duration_since(beat) <= state.settings.resolution.mul_f64(1.5))
    }

    /// Scrape status of one node.
    #[cfg(test)]
    pub(crate) fn node_status(&self, node: &str) -> Option<NodeScrapeStatus> {
        self.state().nodes.get(node).map(|(status, _)| status.clone())
    }

    /// Scrape status of all nodes, ascending by name.
    pub fn nodes(&self) -> Vec<(Arc<str>, NodeScrapeStatus)> {
        self.state().nodes.iter().map(|(name, (status, _))| (Arc::clone(name), status.clone())).collect()
    }

    /// Failing nodes by cause.
    pub fn problems(&self) -> ScrapeProblems {
        let state = self.state();
        let mut groups: BTreeMap<&'static str, FailureGroup> = BTreeMap::new();
        for (name, (status, _)) in &state.nodes {
            let Some(cause) = &status.cause else { continue };
            let group = groups.entry(cause.label()).or_insert_with(|| FailureGroup {
                cause: cause.clone(),
                message: cause.message(),
                nodes: Vec::new(),
            });
            if group.cause != *cause {
                cause.group_message().clone_into(&mut group.message);
            }
            group.nodes.push((Arc::clone(name), status.clone()));
        }
        let mut groups: Vec<FailureGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
        let not_scraped = state.nodes.values().filter(|(status, _)| status.last_scrape.is_none()).count();
        ScrapeProblems { nodes: state.nodes.len(), not_scraped, groups }
    }

    /// Snapshot of counters and histograms.
    pub fn counters(&self) -> ScrapeCounters {
        let state = self.state();
        let statuses = || state.nodes.iter().map(|(name, (status, histogram))| (name, status, histogram));
        ScrapeCounters {
            good: state.good,
            failed: state.failed,
            causes: state.causes.iter().map(|(&cause, &count)| (cause, count)).collect(),
            durations: state.durations.clone(),
            by_node: statuses().filter_map(|(name, _, own)| Some((Arc::clone(name), own.clone()?))).collect(),
            last_request: statuses()
                .filter_map(|(name, status, _)| Some((Arc::clone(name), status.last_scrape?.as_second())))
                .collect(),
            ticks: state.ticks.clone(),
            lateness: state.lateness.clone(),
            nodes: state.nodes.len() as u64,
            healthy: statuses()
                .filter(|(_, status, _)| status.good.is_some() && status.cause.is_none())
                .count() as u64,
        }
    }

    fn state(&self) -> MutexGuard<'_, ScrapeReportState> {
        self.0.locked()
    }
}

impl ScrapeReportState {
    /// Counts a scrape. Returns `None` for a removed node, so that its data does not reappear.
    fn count_scrape(&mut self, node: &str, took: Duration, now: Timestamp) -> Option<&mut NodeScrapeStatus> {
        self.durations.observe(took);
        let (status, own) = self.nodes.get_mut(node)?;
        status.last_scrape = Some(now);
        if self.settings.by_node {
            own.get_or_insert_with(|| DurationHistogram::new(DURATION_BOUNDS_SECONDS.into())).observe(took);
        }
        Some(status)
    }
}
