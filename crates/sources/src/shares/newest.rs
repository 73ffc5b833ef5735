//! Of what several replicas say about one node, the newest counts, and nothing counts twice. Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::kubelet::Scrape;

/// What was last taken of every node.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    taken: HashMap<Arc<str>, Last>,
    /// When another replica last told about a node, newer or not.
    told: HashMap<Arc<str>, Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    /// The latest time in the scrape, as the kubelet tells it.
    time: i64,
    /// When it was taken.
    at: Instant,
    own: bool,
}

impl Newest {
    /// Whether a scrape is to be taken: our own always (the store knows what to do with kubelets whose clock jumps) unless
    /// another replica's is newer; another replica's if it is newer than what is known. What is older than `stale` does not
    /// count any more.
    pub(crate) fn admit(
        &mut self,
        node: &str,
        scrape: &Scrape,
        own: bool,
        now: Instant,
        stale: Duration,
    ) -> bool {
        let Some(time) = latest(scrape) else {
            // Nothing was measured; only whoever scrapes the node may say that.
            return own && self.taken.get(node).is_none_or(|last| last.own || is_old(last, now, stale));
        };
        let good = match self.taken.get(node) {
            None => true,
            Some(last) => (own && last.own) || time > last.time || is_old(last, now, stale),
        };
        if good {
            let last = Last { time, at: now, own };
            match self.taken.get_mut(node) {
                Some(known) => *known = last,
                None => {
                    self.taken.insert(node.into(), last);
                }
            }
        }
        good
    }

    /// When something was last taken of a node.
    pub(crate) fn taken(&self, node: &str) -> Option<Instant> {
        self.taken.get(node).map(|last| last.at)
    }

    /// Another replica told about a node.
    pub(crate) fn tell(&mut self, node: &str, now: Instant) {
        match self.told.get_mut(node) {
            Some(told) => *told = now,
            None => {
                self.told.insert(node.into(), now);
            }
        }
    }

    /// Whether another replica told about a node within this time.
    pub(crate) fn is_told(&self, node: &str, now: Instant, within: Duration) -> bool {
        self.told.get(node).is_some_and(|told| now.saturating_duration_since(*told) <= within)
    }

    /// Forgets nodes that are gone, and says which they were.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        self.told.retain(|node, _| is_known(node));
        self.taken.extract_if(|node, _| !is_known(node)).map(|(node, _)| node).collect()
    }
}

fn is_old(last: &Last, now: Instant, stale: Duration) -> bool {
    now.saturating_duration_since(last.at) > stale
}

fn latest(scrape: &Scrape) -> Option<i64> {
    let containers = scrape.pods.iter().flat_map(|pod| pod.containers.iter().map(|(_, point)| point.time));
    scrape.node.iter().map(|point| point.time).chain(containers).max()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kubelet::Point;

    const STALE: Duration = Duration::from_secs(30);

    fn at(time: i64) -> Scrape {
        Scrape { node: Some(Point { start: None, time, cpu: 1, memory: 1 }), ..Scrape::default() }
    }

    #[test]
    fn the_newest_counts() {
        let start = Instant::now();
        let mut newest = Newest::default();
        let mut admit = |time, own, seconds| {
            newest.admit("n", &at(time), own, start + Duration::from_secs(seconds), STALE)
        };
        assert!(admit(10, false, 0));
        assert!(!admit(10, false, 1), "told twice");
        assert!(!admit(9, false, 1), "older");
        assert!(!admit(9, true, 1), "our own, but older than the other's");
        assert!(admit(11, true, 2));
        assert!(admit(11, true, 3), "the store knows repeated scrapes");
        assert!(admit(5, true, 3), "and clocks that jump");
        assert!(admit(6, false, 4));
        assert!(!admit(1, false, 34));
        assert!(admit(1, false, 35), "nothing came for so long that anything is better");
    }

    #[test]
    fn nothing_measured_hides_nothing_of_others() {
        let start = Instant::now();
        let mut newest = Newest::default();
        let empty = Scrape::default();
        assert!(newest.admit("n", &empty, true, start, STALE));
        assert!(!newest.admit("n", &empty, false, start, STALE));
        assert!(newest.admit("n", &at(1), false, start, STALE));
        assert!(!newest.admit("n", &empty, true, start, STALE));
        assert!(newest.taken("n").is_some());
        assert_eq!(newest.retain(|_| false), ["n".into()]);
        assert!(newest.taken("n").is_none());
    }

    proptest! {
        /// Whatever order the scrapes of two others come in, what is taken only goes forward.
        #[test]
        fn time_goes_forward(times in proptest::collection::vec((0..20_i64, any::<bool>()), 1..50)) {
            let (now, mut newest, mut last) = (Instant::now(), Newest::default(), i64::MIN);
            for (time, _) in times {
                let taken = newest.admit("n", &at(time), false, now, STALE);
                prop_assert_eq!(taken, time > last);
                last = last.max(time);
            }
        }
    }
}
