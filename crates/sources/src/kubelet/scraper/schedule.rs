//! Scrape schedule. No IO: time is an argument, measured from the start of the scraper.
//!
//! - Every node has its own offset in the period, derived from its name: load is even, and no node waits for the slowest.
//!   There are 128 offsets, so that in a large cluster one wake-up serves several nodes.
//! - A new node is scraped at once and a few times more soon after. Kubelets measure every 10 to 15 seconds, so an early
//!   scrape delivers the second point of a rate long before the second period ends.
//! - A node that fails is retried once within the period, then once per period, then with exponential backoff. A new
//!   address or a transition to ready resets it.
//! - Concurrency is limited. A request that is silent for a second does not count against the limit, and nodes that failed
//!   last use at most a quarter of it, so that healthy nodes never wait for failing ones.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::inventory::Node;

/// Scrape interval and concurrency limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduleLimits {
    pub(super) period: Duration,
    /// Concurrent requests that count as active.
    pub(super) parallel: usize,
    /// Concurrent requests, silent ones included.
    pub(super) open: usize,
}

/// Interval and number of additional early scrapes of a new node.
const EARLY_SCRAPE_INTERVAL: Duration = Duration::from_secs(5);
const EARLY_SCRAPES: u8 = 3;
/// A request without a response for this long counts as silent.
const SILENT_AFTER: Duration = Duration::from_secs(1);
/// Failures in a row before backoff, and the longest backoff.
const FAILURES_BEFORE_BACKOFF: u32 = 4;
const MAX_BACKOFF: Duration = Duration::from_mins(2);

/// Scrapes to start now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScheduleStep {
    pub(super) due_nodes: Vec<DueNode>,
    /// When the next step is needed, even if no scrape finishes before.
    pub(super) until: Option<Duration>,
}

/// A node to scrape now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueNode {
    pub(super) node: Arc<Node>,
    /// When the scrape was due.
    pub(super) due: Duration,
}

/// Whether a scrape delivered samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScrapeResult {
    Succeeded,
    Failed,
}

/// Whether a node is scraped again after its scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScheduleState {
    Scheduled,
    /// The node was removed during its scrape.
    Removed,
}

#[derive(Debug)]
pub(super) struct Schedule {
    limits: ScheduleLimits,
    nodes: HashMap<Arc<str>, ScheduledNode>,
    /// Waiting nodes by due time: healthy ones, and ones that failed last.
    healthy: BTreeSet<(Duration, Arc<str>)>,
    failing: BTreeSet<(Duration, Arc<str>)>,
    /// Nodes with a running scrape.
    running: HashMap<Arc<str>, RunningScrape>,
}

#[derive(Debug)]
struct ScheduledNode {
    node: Arc<Node>,
    due: Duration,
    /// Remaining early scrapes.
    early: u8,
    /// Failed periods in a row.
    failures: u32,
    /// Whether the pending scrape is a retry within the period.
    retrying: bool,
    /// The node changed during its scrape.
    changed: bool,
}

#[derive(Debug)]
struct RunningScrape {
    since: Duration,
    failing: bool,
}

impl Schedule {
    pub(super) fn new(limits: ScheduleLimits) -> Self {
        Self {
            limits,
            nodes: HashMap::new(),
            healthy: BTreeSet::new(),
            failing: BTreeSet::new(),
            running: HashMap::new(),
        }
    }

    /// Sets the nodes; returns the added and the removed ones.
    pub(super) fn set(&mut self, nodes: &[Arc<Node>], now: Duration) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut added = Vec::new();
        for node in nodes {
            match self.nodes.get_mut(&node.name) {
                Some(entry) => {
                    let before = std::mem::replace(&mut entry.node, Arc::clone(node));
                    if must_reschedule(&before, node) {
                        self.renew(&node.name, now);
                    }
                }
                None => {
                    added.push(Arc::clone(&node.name));
                    self.nodes.insert(Arc::clone(&node.name), ScheduledNode::new(Arc::clone(node), now));
                    // A node that was removed and added again during its scrape waits for that scrape.
                    if !self.running.contains_key(&node.name) {
                        self.healthy.insert((now, Arc::clone(&node.name)));
                    }
                }
            }
        }
        let mut removed = Vec::new();
        if self.nodes.len() > nodes.len() {
            let here: BTreeSet<&str> = nodes.iter().map(|node| &*node.name).collect();
            removed.extend(self.nodes.keys().filter(|name| !here.contains(&***name)).cloned());
        }
        for name in &removed {
            if let Some(entry) = self.nodes.remove(name) {
                self.queue(entry.failures).remove(&(entry.due, Arc::clone(name)));
            }
        }
        (added, removed)
    }

    /// Chooses the nodes to scrape now.
    pub(super) fn step(&mut self, now: Duration) -> ScheduleStep {
        let mut step = ScheduleStep::default();
        let at_work = |running: &&RunningScrape| running.since + SILENT_AFTER > now;
        let mut busy = self.running.values().filter(at_work).count();
        let mut failing = self.running.values().filter(at_work).filter(|running| running.failing).count();
        let max_failing = (self.limits.parallel / 4).max(1);
        loop {
            let room = busy < self.limits.parallel && self.running.len() < self.limits.open;
            let first = |queue: &BTreeSet<(Duration, Arc<str>)>| {
                queue.first().filter(|(due, _)| *due <= now).cloned()
            };
            let (next, is_failing) =
                match (first(&self.failing).filter(|_| failing < max_failing), first(&self.healthy)) {
                    _ if !room => break,
                    (Some(failing_first), Some(healthy)) if failing_first < healthy => (failing_first, true),
                    (_, Some(healthy)) => (healthy, false),
                    (Some(failing_first), None) => (failing_first, true),
                    (None, None) => break,
                };
            let (due, name) = next;
            let queue = if is_failing { &mut self.failing } else { &mut self.healthy };
            queue.remove(&(due, Arc::clone(&name)));
            let Some(entry) = self.nodes.get(&name) else { continue };
            step.due_nodes.push(DueNode { node: Arc::clone(&entry.node), due });
            self.running.insert(name, RunningScrape { since: now, failing: is_failing });
            busy += 1;
            failing += usize::from(is_failing);
        }
        // A slot becomes free when a scrape finishes, which triggers another step, or when it becomes silent.
        let next_silence =
            self.running.values().map(|running| running.since + SILENT_AFTER).filter(|&at| at > now).min();
        let dues = [self.healthy.first(), self.failing.first()].into_iter().flatten().map(|(due, _)| *due);
        step.until = dues.filter(|&due| due > now).chain(next_silence).min();
        step
    }

    /// A scrape finished.
    pub(super) fn done(&mut self, name: &Arc<str>, result: ScrapeResult, now: Duration) -> ScheduleState {
        if self.running.remove(name).is_none() {
            return ScheduleState::Removed;
        }
        let period = self.limits.period;
        let Some(entry) = self.nodes.get_mut(name) else { return ScheduleState::Removed };
        let offset = offset(name, period);
        let regular = next(offset, period, now);
        entry.due = if entry.changed {
            entry.changed = false;
            now
        } else if result == ScrapeResult::Succeeded {
            entry.failures = 0;
            entry.retrying = false;
            if entry.early > 0 && EARLY_SCRAPE_INTERVAL < period {
                entry.early -= 1;
                regular.min(now + EARLY_SCRAPE_INTERVAL)
            } else {
                regular
            }
        } else if entry.retrying {
            entry.retrying = false;
            regular
        } else {
            entry.failures = entry.failures.saturating_add(1);
            let again = now + (period / 5).min(EARLY_SCRAPE_INTERVAL);
            if entry.failures < FAILURES_BEFORE_BACKOFF && again < regular {
                entry.retrying = true;
                again
            } else {
                regular + period * (skipped(entry.failures, period))
            }
        };
        let (due, failures) = (entry.due, entry.failures);
        self.queue(failures).insert((due, Arc::clone(name)));
        ScheduleState::Scheduled
    }

    /// Resets the schedule of a node as if it were new.
    fn renew(&mut self, name: &Arc<str>, now: Duration) {
        let running = self.running.contains_key(name);
        let Some(entry) = self.nodes.get_mut(name) else { return };
        let (due, failures) = (entry.due, entry.failures);
        *entry = ScheduledNode { changed: running, ..ScheduledNode::new(Arc::clone(&entry.node), now) };
        if !running {
            self.queue(failures).remove(&(due, Arc::clone(name)));
            self.healthy.insert((now, Arc::clone(name)));
        }
    }

    fn queue(&mut self, failures: u32) -> &mut BTreeSet<(Duration, Arc<str>)> {
        if failures == 0 { &mut self.healthy } else { &mut self.failing }
    }
}

impl ScheduledNode {
    fn new(node: Arc<Node>, due: Duration) -> Self {
        Self { node, due, early: EARLY_SCRAPES, failures: 0, retrying: false, changed: false }
    }
}

/// Whether a node must be rescheduled: its address changed or it became ready.
fn must_reschedule(before: &Node, now: &Node) -> bool {
    before.addresses != now.addresses
        || before.port != now.port
        || before.path != now.path
        || (now.ready && !before.ready)
}

/// Number of offsets in a period.
const SLOTS_PER_PERIOD: u32 = 128;

/// Offset of a node in the period, derived from its name: stable, and evenly spread over all nodes.
fn offset(name: &str, period: Duration) -> Duration {
    // FNV-1a with a final mix, because node names often differ only in their last digits.
    let mut hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    period / SLOTS_PER_PERIOD * (hash % u64::from(SLOTS_PER_PERIOD)) as u32
}

/// First time after `now` with this offset in its period.
fn next(offset: Duration, period: Duration, now: Duration) -> Duration {
    let periods = now.as_nanos().saturating_sub(offset.as_nanos()) / period.as_nanos().max(1);
    let at = offset + period * u32::try_from(periods).unwrap_or(u32::MAX);
    if at > now { at } else { at + period }
}

/// Number of skipped periods after this many failures in a row: 1, 3, 7, …
fn skipped(failures: u32, period: Duration) -> u32 {
    let most = (MAX_BACKOFF.as_nanos() / period.as_nanos().max(1)).max(1) as u32;
    let periods = 1_u32.checked_shl(failures.saturating_sub(FAILURES_BEFORE_BACKOFF - 1)).unwrap_or(u32::MAX);
    periods.min(most) - 1
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
