//! Membership: replicas, their liveness, and the owner of a node. Time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use super::rendezvous;

/// Maximum number of peers; the exchange grows with their square.
const MAX_PEERS: usize = 64;

/// A replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Name of its pod.
    pub id: String,
    /// Address as `host:port`.
    pub address: String,
}

/// This replica and its peers.
#[derive(Debug)]
pub(crate) struct Members {
    own: String,
    others: Vec<Member>,
    /// A peer without a response for this long is not alive.
    liveness_timeout: Duration,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) replica: Replica,
    /// Time of the last response.
    pub(crate) last_response: Option<Instant>,
    /// Time of the last change of liveness.
    pub(crate) since: Instant,
    /// Last error and remedy.
    pub(crate) problem: Option<(String, &'static str)>,
}

impl Members {
    pub(crate) fn new(own: String, liveness_timeout: Duration) -> Self {
        Self { own, others: Vec::new(), liveness_timeout }
    }

    /// Sets the peers. A peer with the same name and address keeps its state.
    pub(crate) fn set(&mut self, replicas: Vec<Replica>, now: Instant) {
        let mut others: Vec<Member> = Vec::new();
        for replica in replicas {
            let twice = others.iter().any(|other| other.replica.id == replica.id);
            if replica.id == self.own || twice || others.len() >= MAX_PEERS {
                continue;
            }
            let known = self.others.iter().position(|other| other.replica == replica);
            others.push(match known {
                Some(index) => self.others.swap_remove(index),
                None => Member { replica, last_response: None, since: now, problem: None },
            });
        }
        self.others = others;
    }

    pub(crate) fn others(&self) -> &[Member] {
        &self.others
    }

    /// Name of this replica.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// A peer responded.
    pub(crate) fn mark_alive(&mut self, id: &str, now: Instant) {
        let liveness_timeout = self.liveness_timeout;
        if let Some(member) = self.find(id) {
            if !member.is_alive(now, liveness_timeout) {
                member.since = now;
            }
            member.last_response = Some(now);
            member.problem = None;
        }
    }

    /// A request to a peer failed.
    pub(crate) fn mark_failed(&mut self, id: &str, cause: String, remedy: &'static str) {
        if let Some(member) = self.find(id) {
            member.problem = Some((cause, remedy));
        }
    }

    pub(crate) fn is_alive(&self, member: &Member, now: Instant) -> bool {
        member.is_alive(now, self.liveness_timeout)
    }

    /// Owner of a node.
    pub(crate) fn owner(&self, node: &str, now: Instant) -> &str {
        rendezvous::owner(node, self.live_replicas(now)).unwrap_or(&self.own)
    }

    /// Number of live peers that rank before this replica; 0 if it owns the node.
    pub(crate) fn rank(&self, node: &str, now: Instant) -> usize {
        self.live_replicas(now)
            .filter(|other| *other != self.own && rendezvous::before(node, other, &self.own))
            .count()
    }

    fn live_replicas(&self, now: Instant) -> impl Iterator<Item = &str> {
        let others = self.others.iter().filter(move |other| other.is_alive(now, self.liveness_timeout));
        others.map(|other| other.replica.id.as_str()).chain(std::iter::once(self.own.as_str()))
    }

    fn find(&mut self, id: &str) -> Option<&mut Member> {
        self.others.iter_mut().find(|other| other.replica.id == id)
    }
}

impl Member {
    fn is_alive(&self, now: Instant, liveness_timeout: Duration) -> bool {
        self.last_response.is_some_and(|at| now.saturating_duration_since(at) <= liveness_timeout)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MEMBER_TIMEOUT: Duration = Duration::from_secs(10);

    fn replica(id: &str) -> Replica {
        Replica { id: id.to_owned(), address: format!("{id}:443") }
    }

    fn members(own: &str, others: &[&str], responded: &[&str], now: Instant) -> Members {
        let mut members = Members::new(own.to_owned(), MEMBER_TIMEOUT);
        members.set(others.iter().map(|id| replica(id)).collect(), now);
        for id in responded {
            members.mark_alive(id, now);
        }
        members
    }

    #[test]
    fn silent_replica_loses_its_nodes_until_it_responds() {
        let start = Instant::now();
        let mut members = members("a", &["a", "b", "b", "c"], &[], start);
        assert_eq!(members.others().len(), 2);
        let nodes: Vec<String> = (0..50).map(|n| format!("node-{n}")).collect();
        let ours = |members: &Members, now| nodes.iter().filter(|node| members.rank(node, now) == 0).count();
        assert_eq!(ours(&members, start), 50, "no peer has responded yet");
        members.mark_alive("b", start);
        members.mark_alive("c", start);
        let third = ours(&members, start);
        assert!((8..26).contains(&third), "{third}");
        let later = start + MEMBER_TIMEOUT + Duration::from_secs(1);
        members.mark_alive("b", later);
        assert!(ours(&members, later) > third);
        assert!(nodes.iter().all(|node| members.owner(node, later) != "c"));
        members.mark_alive("c", later);
        assert_eq!(ours(&members, later), third);
        // A new address makes it another peer.
        members.set(vec![replica("b"), Replica { id: "c".into(), address: "elsewhere:443".into() }], later);
        assert!(ours(&members, later) > third);
    }

    #[test]
    fn number_of_peers_is_bounded() {
        let mut members = Members::new("a".into(), MEMBER_TIMEOUT);
        members.set((0..1000).map(|n| replica(&n.to_string())).collect(), Instant::now());
        assert_eq!(members.others().len(), MAX_PEERS);
    }

    proptest! {
        /// For any reachability between replicas, every node is scraped by a running replica.
        #[test]
        fn every_node_has_a_scraper(
            responded in proptest::collection::vec(any::<u8>(), 5),
            running in 1..32_u8,
            node in "[a-z]{1,8}",
        ) {
            let (now, ids) = (Instant::now(), ["a", "b", "c", "d", "e"]);
            let runs = |index: usize| running & (1 << index) != 0;
            let scrapers = (0..5).filter(|own| runs(*own)).filter(|own| {
                let others = (0..5).filter(|other| other != own && runs(*other) && responded[*own] & (1 << other) != 0);
                let others: Vec<&str> = others.map(|other| ids[other]).collect();
                members(ids[*own], &ids, &others, now).rank(&node, now) == 0
            });
            let count = scrapers.count();
            prop_assert!(count >= 1);
            // Replicas that all reach each other shard the nodes exactly.
            if responded.iter().all(|set| set & running == running) {
                prop_assert_eq!(count, 1);
            }
        }
    }
}
