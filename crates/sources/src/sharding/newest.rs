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
    origin: ScrapeOrigin,
}

/// Which replica scraped the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScrapeOrigin {
    Own,
    Peer,
}

impl NewestScrapes {
    /// Whether to store a scrape. A scrape of this replica is accepted unless a peer has a newer one (the store
    /// handles kubelets whose clock jumps); a scrape of a peer must be newer than the last one. Scrapes accepted
    /// longer than `stale` ago are ignored.
    pub(crate) fn admit(
        &mut self,
        node: &str,
        scrape: &Scrape,
        origin: ScrapeOrigin,
        now: Instant,
        stale: Duration,
    ) -> bool {
        let own = origin == ScrapeOrigin::Own;
        let is_own = |last: &AcceptedScrape| last.origin == ScrapeOrigin::Own;
        let Some(time) = latest(scrape) else {
            // An empty scrape counts only from the replica that scrapes the node.
            return own
                && self.accepted.get(node).is_none_or(|last| is_own(last) || is_old(last, now, stale));
        };
        let good = match self.accepted.get(node) {
            None => true,
            Some(last) => (own && is_own(last)) || time > last.time || is_old(last, now, stale),
        };
        if good {
            let last = AcceptedScrape { time, at: now, origin };
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

    use super::ScrapeOrigin::{Own, Peer};
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
        let mut admit = |time, origin, seconds| {
            newest.admit("n", &at(time), origin, start + Duration::from_secs(seconds), STALE_AFTER)
        };
        assert!(admit(10, Peer, 0));
        assert!(!admit(10, Peer, 1), "duplicate");
        assert!(!admit(9, Peer, 1), "older");
        assert!(!admit(9, Own, 1), "our own, but older than the other's");
        assert!(admit(11, Own, 2));
        assert!(admit(11, Own, 3), "the store knows repeated scrapes");
        assert!(admit(5, Own, 3), "and clocks that jump");
        assert!(admit(6, Peer, 4));
        assert!(!admit(1, Peer, 34));
        assert!(admit(1, Peer, 35), "nothing came for so long that anything is better");
    }

    #[test]
    fn empty_scrape_does_not_hide_samples_of_peers() {
        let start = Instant::now();
        let mut newest = NewestScrapes::default();
        let empty = Scrape::default();
        assert!(newest.admit("n", &empty, Own, start, STALE_AFTER));
        assert!(!newest.admit("n", &empty, Peer, start, STALE_AFTER));
        assert!(newest.admit("n", &at(1), Peer, start, STALE_AFTER));
        assert!(!newest.admit("n", &empty, Own, start, STALE_AFTER));
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
                let accepted = newest.admit("n", &at(time), Peer, now, STALE_AFTER);
                prop_assert_eq!(accepted, time > last);
                last = last.max(time);
            }
        }
    }
}
