//! Deduplication of scrapes: the newest scrape of a node wins, and none is stored twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::kubelet::Scrape;

/// Last accepted scrape of every node.
#[derive(Debug, Default)]
pub(crate) struct NewestScrapes {
    accepted: HashMap<Arc<str>, AcceptedScrape>,
    /// When a peer last reported a node, newer or not.
    reported: HashMap<Arc<str>, Instant>,
}

#[derive(Clone, Copy, Debug)]
struct AcceptedScrape {
    /// Latest sample time in the scrape, by the kubelet clock.
    time: i64,
    /// When the scrape was accepted.
    at: Instant,
    own: bool,
}

impl NewestScrapes {
    /// Whether to store a scrape. A scrape of this replica is accepted unless a peer has a newer one (the store
    /// handles kubelets whose clock jumps); a scrape of a peer must be newer than the last one. Scrapes accepted
    /// longer than `stale` ago are ignored.
    pub(crate) fn admit(
        &mut self,
        node: &str,
        scrape: &Scrape,
        own: bool,
        now: Instant,
        stale: Duration,
    ) -> bool {
        let Some(time) = latest(scrape) else {
            // An empty scrape counts only from the replica that scrapes the node.
            return own && self.accepted.get(node).is_none_or(|last| last.own || is_old(last, now, stale));
        };
        let good = match self.accepted.get(node) {
            None => true,
            Some(last) => (own && last.own) || time > last.time || is_old(last, now, stale),
        };
        if good {
            let last = AcceptedScrape { time, at: now, own };
            match self.accepted.get_mut(node) {
                Some(known) => *known = last,
                None => {
                    self.accepted.insert(node.into(), last);
                }
            }
        }
        good
    }

    /// When a scrape of a node was last accepted.
    pub(crate) fn accepted(&self, node: &str) -> Option<Instant> {
        self.accepted.get(node).map(|last| last.at)
    }

    /// A peer reported a node.
    pub(crate) fn mark_reported(&mut self, node: &str, now: Instant) {
        match self.reported.get_mut(node) {
            Some(reported) => *reported = now,
            None => {
                self.reported.insert(node.into(), now);
            }
        }
    }

    /// Whether a peer reported a node within this time.
    pub(crate) fn is_reported(&self, node: &str, now: Instant, within: Duration) -> bool {
        self.reported.get(node).is_some_and(|reported| now.saturating_duration_since(*reported) <= within)
    }

    /// Forgets removed nodes and returns them.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        self.reported.retain(|node, _| is_known(node));
        self.accepted.extract_if(|node, _| !is_known(node)).map(|(node, _)| node).collect()
    }
}

fn is_old(last: &AcceptedScrape, now: Instant, stale: Duration) -> bool {
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
    use crate::kubelet::MetricsPoint;

    const STALE_AFTER: Duration = Duration::from_secs(30);

    fn at(time: i64) -> Scrape {
        Scrape { node: Some(MetricsPoint { start: None, time, cpu: 1, memory: 1 }), ..Scrape::default() }
    }

    #[test]
    fn newest_scrape_wins() {
        let start = Instant::now();
        let mut newest = NewestScrapes::default();
        let mut admit = |time, own, seconds| {
            newest.admit("n", &at(time), own, start + Duration::from_secs(seconds), STALE_AFTER)
        };
        assert!(admit(10, false, 0));
        assert!(!admit(10, false, 1), "duplicate");
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
    fn empty_scrape_does_not_hide_samples_of_peers() {
        let start = Instant::now();
        let mut newest = NewestScrapes::default();
        let empty = Scrape::default();
        assert!(newest.admit("n", &empty, true, start, STALE_AFTER));
        assert!(!newest.admit("n", &empty, false, start, STALE_AFTER));
        assert!(newest.admit("n", &at(1), false, start, STALE_AFTER));
        assert!(!newest.admit("n", &empty, true, start, STALE_AFTER));
        assert!(newest.accepted("n").is_some());
        assert_eq!(newest.retain(|_| false), ["n".into()]);
        assert!(newest.accepted("n").is_none());
    }

    proptest! {
        /// For any order of scrapes of two peers, accepted times only increase.
        #[test]
        fn accepted_times_only_increase(times in proptest::collection::vec((0..20_i64, any::<bool>()), 1..50)) {
            let (now, mut newest, mut last) = (Instant::now(), NewestScrapes::default(), i64::MIN);
            for (time, _) in times {
                let accepted = newest.admit("n", &at(time), false, now, STALE_AFTER);
                prop_assert_eq!(accepted, time > last);
                last = last.max(time);
            }
        }
    }
}
