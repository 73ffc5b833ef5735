//! Permits of requests and watches, divided among clients: addresses of anonymous ones, users by name.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use locks::MutexExt as _;

/// A number of permits, of which no client can take most. Clones share them.
#[derive(Debug)]
pub(crate) struct ClientPermits<K: Eq + Hash> {
    max: usize,
    division: PermitDivision,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

/// How permits are divided. A client that holds none gets one as long as any is free, and it takes many clients to use up all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermitDivision {
    /// Not at all: whoever comes first gets one.
    Undivided,
    /// A client gets a permit as long as it holds less than are free: one alone gets half of all, two get a third each, ten an eleventh.
    LessThanFree,
    /// A client gets a permit as long as it holds less than a third of those that are free: one alone gets a quarter of all, two get a
    /// fifth each, ten a thirteenth.
    LessThanThirdOfFree,
}

impl PermitDivision {
    /// The least ratio of free permits to those that a client holds that lets the client get another one.
    fn free_per_held(self) -> usize {
        match self {
            Self::Undivided => 0,
            Self::LessThanFree => 1,
            Self::LessThanThirdOfFree => 3,
        }
    }
}

/// A permit, returned when this is dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit<K: Eq + Hash> {
    held: Arc<Mutex<HashMap<K, usize>>>,
    client: K,
}

impl<K: Eq + Hash> Clone for ClientPermits<K> {
    fn clone(&self) -> Self {
        Self { max: self.max, division: self.division, held: Arc::clone(&self.held) }
    }
}

impl<K: Clone + Eq + Hash> ClientPermits<K> {
    pub(crate) fn new(max: usize, division: PermitDivision) -> Self {
        Self { max, division, held: Arc::default() }
    }

    /// Takes a permit; none if the client holds its part, or if all are held.
    pub(crate) fn try_acquire(&self, client: K) -> Option<ClientPermit<K>> {
        let mut held = self.held.locked();
        let free = self.max.saturating_sub(held.values().sum());
        let own = held.get(&client).copied().unwrap_or_default();
        if own.saturating_mul(self.division.free_per_held()) >= free {
            return None;
        }
        held.insert(client.clone(), own + 1);
        drop(held);
        Some(ClientPermit { held: Arc::clone(&self.held), client })
    }
}

impl<K: Eq + Hash> Drop for ClientPermit<K> {
    fn drop(&mut self) {
        let mut held = self.held.locked();
        if let Some(count) = held.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn one_address_gets_a_quarter_of_the_permits() {
        let permits = ClientPermits::new(100, PermitDivision::LessThanThirdOfFree);
        let take = |address| permits.try_acquire(address);
        let mut held: Vec<_> = iter::from_fn(|| take(1)).collect();
        assert_eq!(held.len(), 25);
        // One that was returned can be taken again.
        held.pop();
        held.extend(take(1));
        assert!(take(1).is_none() && take(2).is_some());
        drop(held);
        assert!(permits.held.locked().is_empty());
    }

    #[test]
    fn few_addresses_do_not_use_up_all_permits() {
        let permits = ClientPermits::new(100, PermitDivision::LessThanThirdOfFree);
        // They take turns until none of them gets another one.
        let mut held = Vec::new();
        loop {
            let round: Vec<_> = (0..10).filter_map(|address| permits.try_acquire(address)).collect();
            if round.is_empty() {
                break;
            }
            held.extend(round);
        }
        assert!((70..80).contains(&held.len()), "{}", held.len());
        assert!(permits.try_acquire(10).is_some());
        drop(held);
        let only = ClientPermits::new(1, PermitDivision::LessThanThirdOfFree);
        let first = only.try_acquire(1);
        assert!(first.is_some() && only.try_acquire(2).is_none());
    }

    #[test]
    fn one_user_leaves_half_of_the_permits_to_others() {
        let permits = ClientPermits::new(400, PermitDivision::LessThanFree);
        let tenant: Vec<_> = iter::from_fn(|| permits.try_acquire("tenant")).collect();
        assert_eq!(tenant.len(), 200);
        let controller: Vec<_> = iter::from_fn(|| permits.try_acquire("controller")).collect();
        assert_eq!(controller.len(), 100);
        assert!(permits.try_acquire("other").is_some());
        // Without users there is nobody to divide them among.
        let undivided = ClientPermits::new(3, PermitDivision::Undivided);
        let all: Vec<_> = iter::from_fn(|| undivided.try_acquire("")).collect();
        assert_eq!(all.len(), 3);
    }
}
