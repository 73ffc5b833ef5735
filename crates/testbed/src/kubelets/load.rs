//! The resource usage of pods and containers, now and in total.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A pod and the usage of its containers.
#[derive(Clone, Debug)]
pub struct PodLoad {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The containers of the pod.
    pub containers: Vec<Container>,
}

/// A container and its usage.
#[derive(Clone, Debug)]
pub struct Container {
    pub(super) name: String,
    /// The start time in milliseconds since the epoch.
    pub(super) started: u64,
    /// The CPU usage in thousandths of a core.
    millicores: u64,
    /// The memory usage in bytes.
    pub(super) memory: u64,
    /// The CPU time in nanoseconds until `since` (milliseconds since the epoch). After that the container uses `millicores`.
    used: u64,
    since: u64,
    /// The CPU time in nanoseconds before the container was added to its node.
    before: u64,
}

impl PodLoad {
    /// A pod that was started an hour ago, with the CPU usage (thousandths of a core) and memory usage (bytes) of each container.
    pub fn new(namespace: &str, name: &str, containers: &[(&str, u64, u64)]) -> Self {
        Self::started(namespace, name, Duration::from_hours(1), containers)
    }

    /// A pod that was started this long ago.
    pub fn started(namespace: &str, name: &str, ago: Duration, containers: &[(&str, u64, u64)]) -> Self {
        let now = now();
        let container = |(name, millicores, memory): &(&str, u64, u64)| {
            // The container counts as if it had used as much all the time: a millicore is a microsecond of CPU time per millisecond.
            let used = millicores * 1_000 * ago.as_millis() as u64 + 1_000;
            Container {
                name: (*name).to_owned(),
                started: now.saturating_sub(ago.as_millis() as u64),
                millicores: *millicores,
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
    /// The CPU time in nanoseconds at a time.
    pub(super) fn used_at(&self, millis: u64) -> u64 {
        // Counters must not decrease: a time before the last change of usage counts back with the current usage, but not below half.
        let back = self.since.saturating_sub(millis) * self.millicores * 1_000;
        let forth = millis.saturating_sub(self.since) * self.millicores * 1_000;
        (self.used + forth).saturating_sub(back.min(self.used / 2))
    }

    /// The CPU time in nanoseconds at a time, since the container was added to its node.
    pub(super) fn used_on_node_at(&self, millis: u64) -> u64 {
        self.used_at(millis).saturating_sub(self.before)
    }

    pub(super) fn set_cpu(&mut self, millicores: u64, now: u64) {
        self.used = self.used_at(now);
        self.since = now;
        self.millicores = millicores;
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
        // The container uses a quarter of a core for ten seconds.
        assert_eq!(container.used_at(start + 10_000) - first, 2_500_000_000);
        container.set_cpu(1_000, start + 10_000);
        assert_eq!(container.used_at(start + 10_000) - first, 2_500_000_000);
        assert_eq!(container.used_at(start + 11_000) - first, 3_500_000_000);
        assert!(container.used_at(start) <= container.used_at(start + 10_000));
    }
}
