//! Which replicas there are, who of them lives, and whose a node is. Pure: time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use super::rendezvous;

/// Replicas at most; more would only talk to each other.
const MOST: usize = 64;

/// A replica of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// What it calls itself: the name of its pod.
    pub id: String,
    /// Where it serves, as `host:port`.
    pub address: String,
}

/// Ourselves and the others.
#[derive(Debug)]
pub(crate) struct Members {
    own: String,
    others: Vec<Member>,
    /// A replica that was not heard of for so long does not live.
    silence: Duration,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) replica: Replica,
    /// When it last answered.
    pub(crate) heard: Option<Instant>,
    /// When it last came to life or fell silent.
    pub(crate) since: Instant,
    /// What is wrong with it.
    pub(crate) problem: Option<(String, &'static str)>,
}

impl Members {
    pub(crate) fn new(own: String, silence: Duration) -> Self {
        Self { own, others: Vec::new(), silence }
    }

    /// The others are these now. Those that stay keep what is known of them, as long as they stay where they are.
    pub(crate) fn set(&mut self, replicas: Vec<Replica>, now: Instant) {
        let mut others: Vec<Member> = Vec::new();
        for replica in replicas {
            let twice = others.iter().any(|other| other.replica.id == replica.id);
            if replica.id == self.own || twice || others.len() >= MOST {
                continue;
            }
            let known = self.others.iter().position(|other| other.replica == replica);
            others.push(match known {
                Some(place) => self.others.swap_remove(place),
                None => Member { replica, heard: None, since: now, problem: None },
            });
        }
        self.others = others;
    }

    pub(crate) fn others(&self) -> &[Member] {
        &self.others
    }

    /// Who this is.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// One of them answered.
    pub(crate) fn heard(&mut self, id: &str, now: Instant) {
        let silence = self.silence;
        if let Some(member) = self.find(id) {
            if !member.lives(now, silence) {
                member.since = now;
            }
            member.heard = Some(now);
            member.problem = None;
        }
    }

    /// One of them did not.
    pub(crate) fn failed(&mut self, id: &str, cause: String, remedy: &'static str) {
        if let Some(member) = self.find(id) {
            member.problem = Some((cause, remedy));
        }
    }

    pub(crate) fn lives(&self, member: &Member, now: Instant) -> bool {
        member.lives(now, self.silence)
    }

    /// Whose a node is.
    pub(crate) fn owner(&self, node: &str, now: Instant) -> &str {
        rendezvous::owner(node, self.living(now)).unwrap_or(&self.own)
    }

    /// How many of those who live come before us: 0 if the node is ours.
    pub(crate) fn rank(&self, node: &str, now: Instant) -> usize {
        self.living(now)
            .filter(|other| *other != self.own && rendezvous::before(node, other, &self.own))
            .count()
    }

    fn living(&self, now: Instant) -> impl Iterator<Item = &str> {
        let others = self.others.iter().filter(move |other| other.lives(now, self.silence));
        others.map(|other| other.replica.id.as_str()).chain(std::iter::once(self.own.as_str()))
    }

    fn find(&mut self, id: &str) -> Option<&mut Member> {
        self.others.iter_mut().find(|other| other.replica.id == id)
    }
}

impl Member {
    fn lives(&self, now: Instant, silence: Duration) -> bool {
        self.heard.is_some_and(|heard| now.saturating_duration_since(heard) <= silence)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    const SILENCE: Duration = Duration::from_secs(10);

    fn replica(id: &str) -> Replica {
        Replica { id: id.to_owned(), address: format!("{id}:443") }
    }

    fn members(own: &str, others: &[&str], heard: &[&str], now: Instant) -> Members {
        let mut members = Members::new(own.to_owned(), SILENCE);
        members.set(others.iter().map(|id| replica(id)).collect(), now);
        for id in heard {
            members.heard(id, now);
        }
        members
    }

    #[test]
    fn whoever_is_silent_loses_his_nodes_until_he_is_back() {
        let start = Instant::now();
        let mut members = members("a", &["a", "b", "b", "c"], &[], start);
        assert_eq!(members.others().len(), 2);
        let nodes: Vec<String> = (0..50).map(|n| format!("node-{n}")).collect();
        let ours = |members: &Members, now| nodes.iter().filter(|node| members.rank(node, now) == 0).count();
        assert_eq!(ours(&members, start), 50, "nobody was heard of yet");
        members.heard("b", start);
        members.heard("c", start);
        let third = ours(&members, start);
        assert!((8..26).contains(&third), "{third}");
        let later = start + SILENCE + Duration::from_secs(1);
        members.heard("b", later);
        assert!(ours(&members, later) > third);
        assert!(nodes.iter().all(|node| members.owner(node, later) != "c"));
        members.heard("c", later);
        assert_eq!(ours(&members, later), third);
        // At another address it is another one.
        members.set(vec![replica("b"), Replica { id: "c".into(), address: "elsewhere:443".into() }], later);
        assert!(ours(&members, later) > third);
    }

    #[test]
    fn there_are_never_too_many() {
        let mut members = Members::new("a".into(), SILENCE);
        members.set((0..1000).map(|n| replica(&n.to_string())).collect(), Instant::now());
        assert_eq!(members.others().len(), MOST);
    }

    proptest! {
        /// Whoever hears whom: every node is scraped by somebody who runs.
        #[test]
        fn no_node_is_left_alone(
            heard in proptest::collection::vec(any::<u8>(), 5),
            running in 1..32_u8,
            node in "[a-z]{1,8}",
        ) {
            let (now, ids) = (Instant::now(), ["a", "b", "c", "d", "e"]);
            let runs = |place: usize| running & (1 << place) != 0;
            let scrapers = (0..5).filter(|own| runs(*own)).filter(|own| {
                let others = (0..5).filter(|other| other != own && runs(*other) && heard[*own] & (1 << other) != 0);
                let others: Vec<&str> = others.map(|other| ids[other]).collect();
                members(ids[*own], &ids, &others, now).rank(&node, now) == 0
            });
            let count = scrapers.count();
            prop_assert!(count >= 1);
            // Those who all hear each other divide them exactly.
            if heard.iter().all(|set| set & running == running) {
                prop_assert_eq!(count, 1);
            }
        }
    }
}
