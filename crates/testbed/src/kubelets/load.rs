//! The load of pods and containers: what they use, and what they have used so far.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    /// Processor time used before the container was added to its node.
    before: u64,
}

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

    /// Nanoseconds of processor time used until a moment since the node knows the container.
    pub(super) fn here_at(&self, millis: u64) -> u64 {
        self.used_at(millis).saturating_sub(self.before)
    }

    pub(super) fn set_cpu(&mut self, milli: u64, now: u64) {
        self.used = self.used_at(now);
        self.since = now;
        self.milli = milli;
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
    fn cpu_counters_follow_the_load_and_never_decrease() {
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
}
