//! A simulated node: its pods, and the page of its last measurement.

use bytes::Bytes;

use super::fault::Behaviour;
use super::load::{PodLoad, now};
use super::{Measures, page};

/// A simulated node.
pub(super) struct Node {
    measures: Measures,
    /// A number derived from the name, so that nodes measure at different times.
    seed: u64,
    pub(super) pods: Vec<PodLoad>,
    pub(super) behaviour: Behaviour,
    pub(super) requests: u64,
    /// The CPU time of removed pods in nanoseconds.
    cpu_of_removed_pods: u64,
    /// The time and content of the metrics page of the last measurement.
    page: Option<(u64, Bytes)>,
}

/// The usage of the node in addition to its pods.
const SYSTEM_MILLICORES_AND_BYTES: (u64, u64) = (150, 700 << 20);

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
            cpu_of_removed_pods: 0,
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
        let used = |pod: &PodLoad| pod.containers.iter().map(|one| one.used_on_node_at(now)).sum::<u64>();
        self.cpu_of_removed_pods += self.pods.iter().filter(|pod| goes(pod)).map(used).sum::<u64>();
        self.pods.retain(|pod| !goes(pod));
    }

    pub(super) fn set_cpu(&mut self, namespace: &str, name: &str, container: &str, millicores: u64) {
        let Some(pod) = self.find(namespace, name) else { return };
        for found in pod.containers.iter_mut().filter(|found| found.name == container) {
            found.set_cpu(millicores, now());
        }
        self.page = None;
    }

    fn find(&mut self, namespace: &str, name: &str) -> Option<&mut PodLoad> {
        self.pods.iter_mut().find(|pod| pod.namespace == namespace && pod.name == name)
    }

    /// The metrics page now.
    pub(super) fn page(&mut self) -> Bytes {
        let at = self.measured_at(now());
        if let Some((when, page)) = &self.page
            && *when == at
        {
            return page.clone();
        }
        let page = Bytes::from(self.text_at(at));
        self.page = Some((at, page.clone()));
        page
    }

    /// The text of the metrics page at a time.
    pub(super) fn text_at(&self, at: u64) -> String {
        page::text(&self.pods, self.total_at(at), at, |number| self.earlier(number))
    }

    /// The time of the last measurement before a time.
    fn measured_at(&self, now: u64) -> u64 {
        let Measures::Every(period) = self.measures else { return now };
        let period = (period.as_millis() as u64).max(2);
        let own = period + self.seed % (period / 2);
        let phase = self.seed % own;
        now.saturating_sub(phase) / own * own + phase
    }

    /// By how many milliseconds a container is measured before the rest of its node.
    fn earlier(&self, number: usize) -> u64 {
        match self.measures {
            Measures::Always => 0,
            Measures::Every(_) => (self.seed + number as u64 * 379) % 2_000,
        }
    }

    /// The CPU time in nanoseconds and the memory in bytes of the whole node at a time.
    fn total_at(&self, millis: u64) -> (u64, u64) {
        let containers = || self.pods.iter().flat_map(|pod| &pod.containers);
        // The node counts from the begin of 2026, so that its counter is in the range of real ones.
        let up = millis.saturating_sub(1_767_225_600_000) % 10_000_000_000;
        let cpu = containers().map(|container| container.used_on_node_at(millis)).sum::<u64>()
            + self.cpu_of_removed_pods
            + up * SYSTEM_MILLICORES_AND_BYTES.0 * 1_000;
        (cpu, containers().map(|container| container.memory).sum::<u64>() + SYSTEM_MILLICORES_AND_BYTES.1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    #[test]
    fn page_is_constant_between_measurements() {
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
