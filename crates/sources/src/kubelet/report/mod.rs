//! How every node fares: for `doctor`, `/readyz?verbose`, logs and `/metrics`.
//!
//! ```text
//! cause    why a kubelet could not be asked, and what helps
//! numbers  what there is to count
//! ```

mod cause;
mod numbers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::provider::Compat;
use jiff::Timestamp;
use tokio::time::Instant;

pub(crate) use cause::status_line;
pub use cause::{Cause, Stage};
pub use numbers::{DURATIONS, Histogram, Numbers, tick_bounds};

/// What a report is told once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time between two scrapes of a node.
    pub resolution: Duration,
    /// Whether durations are counted for each node too: fourteen series per node.
    pub by_node: bool,
}

impl Settings {
    /// By node only where metrics-server is imitated.
    pub fn new(resolution: Duration, compat: Compat) -> Self {
        Self { resolution, by_node: compat.is_strict() }
    }
}

/// How one node fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fare {
    /// When it was asked last.
    pub asked: Option<Timestamp>,
    /// When it last answered with metrics.
    pub good: Option<Timestamp>,
    /// Since when it has not; none if its last answer was good.
    pub failing_since: Option<Timestamp>,
    /// Failures in a row.
    pub failures: u32,
    /// Why the last request failed.
    pub cause: Option<Cause>,
}

/// Nodes that suffer from the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// From what; of the first of them.
    pub cause: Cause,
    /// In words that are true for all of them.
    pub words: String,
    /// Who, ascending, and how each fares.
    pub nodes: Vec<(Arc<str>, Fare)>,
}

/// All that is wrong, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Nodes that are asked.
    pub nodes: usize,
    /// Of those, nodes that have not been asked yet.
    pub not_asked: usize,
    /// Nodes that fail, by cause.
    pub groups: Vec<Group>,
}

impl Problems {
    /// One line per cause: `12/12 nodes: certificate signed by unknown authority`.
    pub fn lines(&self) -> Vec<String> {
        let line = |group: &Group| format!("{}/{} nodes: {}", group.nodes.len(), self.nodes, group.words);
        self.groups.iter().map(line).collect()
    }
}

/// How all nodes fare. Cheap to clone; all clones are the same report.
#[derive(Clone, Debug)]
pub struct Report(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    settings: Settings,
    nodes: BTreeMap<Arc<str>, (Fare, Option<Histogram>)>,
    good: u64,
    failed: u64,
    causes: BTreeMap<&'static str, u64>,
    durations: Histogram,
    ticks: Histogram,
    lateness: Histogram,
    beat: Option<Instant>,
}

impl Report {
    /// Of no nodes yet.
    pub fn new(settings: Settings) -> Self {
        let usual: Arc<[f64]> = DURATIONS.into();
        Self(Arc::new(Mutex::new(State {
            settings,
            nodes: BTreeMap::new(),
            good: 0,
            failed: 0,
            causes: BTreeMap::new(),
            durations: Histogram::new(Arc::clone(&usual)),
            ticks: Histogram::new(tick_bounds(settings.resolution)),
            lateness: Histogram::new(usual),
            beat: None,
        })))
    }

    /// A node is asked from now on.
    pub fn expect(&self, node: &Arc<str>) {
        self.state().nodes.entry(Arc::clone(node)).or_default();
    }

    /// A node is not asked any more; nothing of it stays.
    pub fn forget(&self, node: &str) {
        self.state().nodes.remove(node);
    }

    /// A node answered with metrics. A line is logged if it did not before.
    pub fn good(&self, node: &Arc<str>, took: Duration, now: Timestamp) {
        let mut state = self.state();
        state.good += 1;
        let Some(fare) = state.asked(node, took, now) else { return };
        let before = std::mem::replace(fare, Fare { asked: Some(now), good: Some(now), ..Fare::default() });
        drop(state);
        match before.failing_since {
            Some(since) => tracing::info!(
                %node, failures = before.failures, failing_since = %since, "kubelet answers with metrics again"
            ),
            None if before.good.is_none() => tracing::debug!(%node, "kubelet answers with metrics"),
            None => {}
        }
    }

    /// A node did not answer with metrics; `error` is what exactly happened. A line is logged if the cause is new, for
    /// people who debug only if the node is not ready anyway.
    pub fn failed(
        &self,
        node: &Arc<str>,
        ready: bool,
        cause: Cause,
        error: &str,
        took: Duration,
        now: Timestamp,
    ) {
        let mut state = self.state();
        state.failed += 1;
        *state.causes.entry(cause.label()).or_default() += 1;
        let Some(fare) = state.asked(node, took, now) else { return };
        let news = fare.cause.as_ref().is_none_or(|before| before.label() != cause.label());
        let (words, remedy) = if news { (cause.words(), cause.remedy()) } else { Default::default() };
        fare.failures = fare.failures.saturating_add(1);
        fare.failing_since.get_or_insert(now);
        fare.cause = Some(cause);
        let last_good = fare.good;
        drop(state);
        if news && ready {
            let last_good = last_good.map(tracing::field::display);
            tracing::warn!(%node, error, remedy, last_good, "failed to scrape node: {words}");
        } else if news {
            tracing::debug!(%node, error, "failed to scrape node, which is not ready: {words}");
        }
    }

    /// A node was asked so much later than planned.
    pub fn late(&self, by: Duration) {
        self.state().lateness.observe(by);
    }

    /// A round over all nodes took so long.
    pub fn tick(&self, took: Duration) {
        self.state().ticks.observe(took);
    }

    /// The loop is alive.
    pub fn beat(&self, now: Instant) {
        self.state().beat = Some(now);
    }

    /// Whether the loop was alive within one and a half periods; true before it begins.
    pub fn is_timely(&self, now: Instant) -> bool {
        let state = self.state();
        state
            .beat
            .is_none_or(|beat| now.saturating_duration_since(beat) <= state.settings.resolution.mul_f64(1.5))
    }

    /// How one node fares.
    pub fn fare(&self, node: &str) -> Option<Fare> {
        self.state().nodes.get(node).map(|(fare, _)| fare.clone())
    }

    /// How all nodes fare, ascending by name.
    pub fn nodes(&self) -> Vec<(Arc<str>, Fare)> {
        self.state().nodes.iter().map(|(name, (fare, _))| (Arc::clone(name), fare.clone())).collect()
    }

    /// What is wrong, by cause.
    pub fn problems(&self) -> Problems {
        let state = self.state();
        let mut groups: BTreeMap<&'static str, Group> = BTreeMap::new();
        for (name, (fare, _)) in &state.nodes {
            let Some(cause) = &fare.cause else { continue };
            let group = groups.entry(cause.label()).or_insert_with(|| Group {
                cause: cause.clone(),
                words: cause.words(),
                nodes: Vec::new(),
            });
            if group.cause != *cause {
                cause.general().clone_into(&mut group.words);
            }
            group.nodes.push((Arc::clone(name), fare.clone()));
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
        let not_asked = state.nodes.values().filter(|(fare, _)| fare.asked.is_none()).count();
        Problems { nodes: state.nodes.len(), not_asked, groups }
    }

    /// What there is to count.
    pub fn numbers(&self) -> Numbers {
        let state = self.state();
        let fares = || state.nodes.iter().map(|(name, (fare, histogram))| (name, fare, histogram));
        Numbers {
            good: state.good,
            failed: state.failed,
            causes: state.causes.iter().map(|(&cause, &count)| (cause, count)).collect(),
            durations: state.durations.clone(),
            by_node: fares().filter_map(|(name, _, own)| Some((Arc::clone(name), own.clone()?))).collect(),
            last_request: fares()
                .filter_map(|(name, fare, _)| Some((Arc::clone(name), fare.asked?.as_second())))
                .collect(),
            ticks: state.ticks.clone(),
            lateness: state.lateness.clone(),
            nodes: state.nodes.len() as u64,
            well: fares().filter(|(_, fare, _)| fare.good.is_some() && fare.cause.is_none()).count() as u64,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a request; none for a node that is not asked any more, so that nothing of it comes back.
    fn asked(&mut self, node: &str, took: Duration, now: Timestamp) -> Option<&mut Fare> {
        self.durations.observe(took);
        let (fare, own) = self.nodes.get_mut(node)?;
        fare.asked = Some(now);
        if self.settings.by_node {
            own.get_or_insert_with(|| Histogram::new(DURATIONS.into())).observe(took);
        }
        Some(fare)
    }
}
