//! What runs on a node, and what it has used.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::fault::Behaviour;
use super::{Measures, page};

/// A pod as a kubelet sees it.
#[derive(Clone, Debug)]
pub struct PodLoad {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its containers.
    pub containers: Vec<Container>,
}

/// A container and what it uses.
#[derive(Clone, Debug)]
pub struct Container {
    pub(super) name: String,
    /// When it started, in milliseconds since the epoch.
    pub(super) started: u64,
    /// Thousandths of a core.
    milli: u64,
    /// Bytes.
    pub(super) memory: u64,
    /// Nanoseconds of processor time up to `since` (milliseconds since the epoch); from then on `milli` counts.
    used: u64,
    since: u64,
    /// What it had used before its node heard of it.
    before: u64,
}

/// A node.
pub(super) struct Node {
    measures: Measures,
    /// Makes nodes measure at different times.
    seed: u64,
    pub(super) pods: Vec<PodLoad>,
    pub(super) behaviour: Behaviour,
    pub(super) requests: u64,
    /// What pods that are gone had used.
    gone: u64,
    /// Time and content of the metrics page of the last measurement.
    page: Option<(u64, Bytes)>,
}

/// What a node itself uses beside its pods: thousandths of a core, and bytes.
const SYSTEM: (u64, u64) = (150, 700 << 20);

impl PodLoad {
    /// A pod whose containers have run for an hour, with thousandths of a core and bytes of each.
    pub fn new(namespace: &str, name: &str, containers: &[(&str, u64, u64)]) -> Self {
        Self::started(namespace, name, Duration::from_hours(1), containers)
    }

    /// The same for so long.
    pub fn started(namespace: &str, name: &str, ago: Duration, containers: &[(&str, u64, u64)]) -> Self {
        let now = now();
        let container = |(name, milli, memory): &(&str, u64, u64)| {
            // As if it had used as much all the time: a millicore is a microsecond each millisecond.
            let used = milli * 1_000 * ago.as_millis() as u64 + 1_000;
            Container {
                name: (*name).to_owned(),
                started: now.saturating_sub(ago.as_millis() as u64),
                milli: *milli,
                memory: *memory,
                used,
                since: now,
                before: used,
            }
        };
        let containers = containers.iter().map(container).collect();
        Self { namespace: namespace.to_owned(), name: name.to_owned(), containers }
    }
}

impl Container {
    /// Nanoseconds of processor time used until a moment.
    pub(super) fn used_at(&self, millis: u64) -> u64 {
        // Counters do not go back: what was measured before a change is what was used until then.
        let back = self.since.saturating_sub(millis) * self.milli * 1_000;
        let forth = millis.saturating_sub(self.since) * self.milli * 1_000;
        (self.used + forth).saturating_sub(back.min(self.used / 2))
    }

    /// … of those that its node counts.
    fn here_at(&self, millis: u64) -> u64 {
        self.used_at(millis).saturating_sub(self.before)
    }

    fn set_cpu(&mut self, milli: u64, now: u64) {
        self.used = self.used_at(now);
        self.since = now;
        self.milli = milli;
    }
}

impl Node {
    pub(super) fn new(measures: Measures, name: &str) -> Self {
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self {
            measures,
            seed: seed >> 16,
            pods: Vec::new(),
            behaviour: Behaviour::default(),
            requests: 0,
            gone: 0,
            page: None,
        }
    }

    pub(super) fn set_pod(&mut self, pod: PodLoad) {
        self.remove_pod(&pod.namespace, &pod.name);
        self.pods.push(pod);
    }

    pub(super) fn remove_pod(&mut self, namespace: &str, name: &str) {
        self.page = None;
        let now = now();
        let goes = |pod: &PodLoad| pod.namespace == namespace && pod.name == name;
        let used = |pod: &PodLoad| pod.containers.iter().map(|one| one.here_at(now)).sum::<u64>();
        self.gone += self.pods.iter().filter(|pod| goes(pod)).map(used).sum::<u64>();
        self.pods.retain(|pod| !goes(pod));
    }

    pub(super) fn set_cpu(&mut self, namespace: &str, name: &str, container: &str, milli: u64) {
        let Some(pod) = self.find(namespace, name) else { return };
        for found in pod.containers.iter_mut().filter(|found| found.name == container) {
            found.set_cpu(milli, now());
        }
        self.page = None;
    }

    fn find(&mut self, namespace: &str, name: &str) -> Option<&mut PodLoad> {
        self.pods.iter_mut().find(|pod| pod.namespace == namespace && pod.name == name)
    }

    /// The page at this moment.
    pub(super) fn page(&mut self) -> Bytes {
        let at = self.measured_at(now());
        if let Some((when, page)) = &self.page
            && *when == at
        {
            return page.clone();
        }
        let page = Bytes::from(page::text(self, at));
        self.page = Some((at, page.clone()));
        page
    }

    /// When the last measurement before a moment was.
    fn measured_at(&self, now: u64) -> u64 {
        let Measures::Every(period) = self.measures else { return now };
        let period = (period.as_millis() as u64).max(2);
        let own = period + self.seed % (period / 2);
        let phase = self.seed % own;
        now.saturating_sub(phase) / own * own + phase
    }

    /// By how much a container was measured before the rest of its node.
    pub(super) fn earlier(&self, number: usize) -> u64 {
        match self.measures {
            Measures::Always => 0,
            Measures::Every(_) => (self.seed + number as u64 * 379) % 2_000,
        }
    }

    /// Nanoseconds of processor time and bytes of the node itself at a moment.
    pub(super) fn total_at(&self, millis: u64) -> (u64, u64) {
        let containers = || self.pods.iter().flat_map(|pod| &pod.containers);
        // A node that runs since the turn of the year 2026, so that its counter is in the range of real ones.
        let up = millis.saturating_sub(1_767_225_600_000) % 10_000_000_000;
        let cpu = containers().map(|container| container.here_at(millis)).sum::<u64>()
            + self.gone
            + up * SYSTEM.0 * 1_000;
        (cpu, containers().map(|container| container.memory).sum::<u64>() + SYSTEM.1)
    }
}

/// Milliseconds since the epoch.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn counters_follow_the_load_and_never_go_back() {
        let mut pod = PodLoad::new("shop", "web-0", &[("app", 250, 1 << 20)]);
        let container = &mut pod.containers[0];
        let start = container.since;
        let first = container.used_at(start);
        // A quarter of a core for ten seconds.
        assert_eq!(container.used_at(start + 10_000) - first, 2_500_000_000);
        container.set_cpu(1_000, start + 10_000);
        assert_eq!(container.used_at(start + 10_000) - first, 2_500_000_000);
        assert_eq!(container.used_at(start + 11_000) - first, 3_500_000_000);
        assert!(container.used_at(start) <= container.used_at(start + 10_000));
    }

    #[test]
    fn everybody_sees_the_same_measurement_until_the_next() {
        let node = Node::new(Measures::Every(Duration::from_secs(10)), "node-7");
        let now = 1_800_000_000_000;
        let at = node.measured_at(now);
        assert!(at <= now && now - at < 15_000);
        assert_eq!(node.measured_at(at), at);
        let next = (1..200).map(|step| node.measured_at(at + step * 100)).find(|next| *next != at).unwrap();
        assert!((10_000..=15_000).contains(&(next - at)), "{}", next - at);
        assert_eq!(Node::new(Measures::Always, "a").measured_at(now), now);
    }
}
