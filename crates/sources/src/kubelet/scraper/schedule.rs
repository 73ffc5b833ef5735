//! When which node is asked. Nothing but arithmetic: time comes as an argument, measured from the start of the scraper.
//!
//! - Every node has its own place in the period, by its name: load is even, and nothing waits for the slowest. There are
//!   128 of them, so that in a large cluster we wake up once for a few nodes and not for each.
//! - A new node is asked at once, and a few times more soon after. Kubelets measure every 10 to 15 seconds, so one of
//!   these has the second point that a rate needs, long before the second period is over.
//! - A node that fails is asked once more within the period, then in each period, then ever more seldom. When its
//!   address changes or it becomes ready it is as new.
//! - At most so many at a time. A kubelet that is silent for a second takes nobody's turn any more, and nodes that
//!   failed before have only a quarter of the turns: those that are well never wait for those that are not.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::inventory::Node;

/// How often and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    pub(super) period: Duration,
    /// At work at a time.
    pub(super) parallel: usize,
    /// At a time, those that are silent included.
    pub(super) open: usize,
}

/// How soon a new node is asked again, and how often.
const EARLY: Duration = Duration::from_secs(5);
const EARLY_TIMES: u8 = 3;
/// After so long a kubelet is silent.
const SILENT: Duration = Duration::from_secs(1);
/// Failed periods after which a node is asked less often, and how seldom it becomes at most.
const PATIENCE: u32 = 4;
const SELDOM: Duration = Duration::from_mins(2);

/// What is to be done now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) ask: Vec<Ask>,
    /// When there may be more to do, even if nothing happens until then.
    pub(super) until: Option<Duration>,
}

/// A node that is asked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) node: Arc<Node>,
    /// When it should have been.
    pub(super) due: Duration,
}

#[derive(Debug)]
pub(super) struct Schedule {
    rhythm: Rhythm,
    nodes: HashMap<Arc<str>, Entry>,
    /// Nodes that wait, the most urgent first: those that are well, and those that failed.
    well: BTreeSet<(Duration, Arc<str>)>,
    ailing: BTreeSet<(Duration, Arc<str>)>,
    /// Nodes that are being asked.
    running: HashMap<Arc<str>, Running>,
}

#[derive(Debug)]
struct Entry {
    node: Arc<Node>,
    due: Duration,
    /// How often it is still asked early.
    early: u8,
    /// Periods in a row in which it failed.
    failures: u32,
    /// Whether it is asked a second time in its period.
    retrying: bool,
    /// It changed while it was asked.
    changed: bool,
}

#[derive(Debug)]
struct Running {
    since: Duration,
    ailing: bool,
}

impl Schedule {
    pub(super) fn new(rhythm: Rhythm) -> Self {
        Self {
            rhythm,
            nodes: HashMap::new(),
            well: BTreeSet::new(),
            ailing: BTreeSet::new(),
            running: HashMap::new(),
        }
    }

    /// These are the nodes now; those that came, and those that are gone.
    pub(super) fn set(&mut self, nodes: &[Arc<Node>], now: Duration) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut came = Vec::new();
        for node in nodes {
            match self.nodes.get_mut(&node.name) {
                Some(entry) => {
                    let before = std::mem::replace(&mut entry.node, Arc::clone(node));
                    if is_elsewhere(&before, node) {
                        self.renew(&node.name, now);
                    }
                }
                None => {
                    came.push(Arc::clone(&node.name));
                    self.nodes.insert(Arc::clone(&node.name), Entry::new(Arc::clone(node), now));
                    // It left and came back while it was asked: it waits for that answer.
                    if !self.running.contains_key(&node.name) {
                        self.well.insert((now, Arc::clone(&node.name)));
                    }
                }
            }
        }
        let mut gone = Vec::new();
        if self.nodes.len() > nodes.len() {
            let here: BTreeSet<&str> = nodes.iter().map(|node| &*node.name).collect();
            gone.extend(self.nodes.keys().filter(|name| !here.contains(&***name)).cloned());
        }
        for name in &gone {
            if let Some(entry) = self.nodes.remove(name) {
                self.queue(entry.failures).remove(&(entry.due, Arc::clone(name)));
            }
        }
        (came, gone)
    }

    /// Who is asked now.
    pub(super) fn step(&mut self, now: Duration) -> Step {
        let mut step = Step::default();
        let at_work = |running: &&Running| running.since + SILENT > now;
        let mut busy = self.running.values().filter(at_work).count();
        let mut ailing = self.running.values().filter(at_work).filter(|running| running.ailing).count();
        let few = (self.rhythm.parallel / 4).max(1);
        loop {
            let room = busy < self.rhythm.parallel && self.running.len() < self.rhythm.open;
            let first = |queue: &BTreeSet<(Duration, Arc<str>)>| {
                queue.first().filter(|(due, _)| *due <= now).cloned()
            };
            let (next, is_ailing) = match (first(&self.ailing).filter(|_| ailing < few), first(&self.well)) {
                _ if !room => break,
                (Some(sick), Some(well)) if sick < well => (sick, true),
                (_, Some(well)) => (well, false),
                (Some(sick), None) => (sick, true),
                (None, None) => break,
            };
            let (due, name) = next;
            let queue = if is_ailing { &mut self.ailing } else { &mut self.well };
            queue.remove(&(due, Arc::clone(&name)));
            let Some(entry) = self.nodes.get(&name) else { continue };
            step.ask.push(Ask { node: Arc::clone(&entry.node), due });
            self.running.insert(name, Running { since: now, ailing: is_ailing });
            busy += 1;
            ailing += usize::from(is_ailing);
        }
        // Turns come back when somebody answers, which is another step anyway, or falls silent.
        let silence =
            self.running.values().map(|running| running.since + SILENT).filter(|&at| at > now).min();
        let dues = [self.well.first(), self.ailing.first()].into_iter().flatten().map(|(due, _)| *due);
        step.until = dues.filter(|&due| due > now).chain(silence).min();
        step
    }

    /// A node was asked, with or without success. False if it is not asked any more.
    pub(super) fn done(&mut self, name: &Arc<str>, good: bool, now: Duration) -> bool {
        if self.running.remove(name).is_none() {
            return false;
        }
        let period = self.rhythm.period;
        let Some(entry) = self.nodes.get_mut(name) else { return false };
        let place = place(name, period);
        let regular = next(place, period, now);
        entry.due = if entry.changed {
            entry.changed = false;
            now
        } else if good {
            entry.failures = 0;
            entry.retrying = false;
            if entry.early > 0 && EARLY < period {
                entry.early -= 1;
                regular.min(now + EARLY)
            } else {
                regular
            }
        } else if entry.retrying {
            entry.retrying = false;
            regular
        } else {
            entry.failures = entry.failures.saturating_add(1);
            let again = now + (period / 5).min(EARLY);
            if entry.failures < PATIENCE && again < regular {
                entry.retrying = true;
                again
            } else {
                regular + period * (skipped(entry.failures, period))
            }
        };
        let (due, failures) = (entry.due, entry.failures);
        self.queue(failures).insert((due, Arc::clone(name)));
        true
    }

    /// A node is as new.
    fn renew(&mut self, name: &Arc<str>, now: Duration) {
        let running = self.running.contains_key(name);
        let Some(entry) = self.nodes.get_mut(name) else { return };
        let (due, failures) = (entry.due, entry.failures);
        *entry = Entry { changed: running, ..Entry::new(Arc::clone(&entry.node), now) };
        if !running {
            self.queue(failures).remove(&(due, Arc::clone(name)));
            self.well.insert((now, Arc::clone(name)));
        }
    }

    fn queue(&mut self, failures: u32) -> &mut BTreeSet<(Duration, Arc<str>)> {
        if failures == 0 { &mut self.well } else { &mut self.ailing }
    }
}

impl Entry {
    fn new(node: Arc<Node>, due: Duration) -> Self {
        Self { node, due, early: EARLY_TIMES, failures: 0, retrying: false, changed: false }
    }
}

/// Whether a node is to be asked anew: it is elsewhere, or has become ready.
fn is_elsewhere(before: &Node, now: &Node) -> bool {
    before.addresses != now.addresses
        || before.port != now.port
        || before.path != now.path
        || (now.ready && !before.ready)
}

/// Places in the period.
const PLACES: u32 = 128;

/// The place of a node in the period: always the same, and even for all nodes.
fn place(name: &str, period: Duration) -> Duration {
    // FNV-1a, and its bits mixed once more: names of nodes differ in their last digits only.
    let mut hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    period / PLACES * (hash % u64::from(PLACES)) as u32
}

/// The first time after `now` that has this place in its period.
fn next(place: Duration, period: Duration, now: Duration) -> Duration {
    let periods = now.as_nanos().saturating_sub(place.as_nanos()) / period.as_nanos().max(1);
    let at = place + period * u32::try_from(periods).unwrap_or(u32::MAX);
    if at > now { at } else { at + period }
}

/// Periods that are left out after so many failures in a row: 1, 3, 7 …
fn skipped(failures: u32, period: Duration) -> u32 {
    let most = (SELDOM.as_nanos() / period.as_nanos().max(1)).max(1) as u32;
    let periods = 1_u32.checked_shl(failures.saturating_sub(PATIENCE - 1)).unwrap_or(u32::MAX);
    periods.min(most) - 1
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
