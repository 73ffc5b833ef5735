//! Permits of anonymous requests, divided among client addresses.

use std::collections::HashMap;
use std::sync::Mutex;

use locks::MutexExt as _;

use crate::peer_address::PeerAddress;

/// An address gets a permit as long as it holds less than the free permits divided by this number: one address alone gets a quarter
/// of all, two get a fifth each, ten a thirteenth. So an address that holds none gets one as long as any is free, and it takes many
/// addresses to use up all.
const FREE_PERMITS_PER_HELD: usize = 3;

/// A number of permits, of which no client address can take most.
#[derive(Debug)]
pub(crate) struct AddressPermits {
    max: usize,
    held: Mutex<HashMap<Option<PeerAddress>, usize>>,
}

/// A permit of one request, returned when this is dropped.
#[derive(Debug)]
pub(crate) struct AddressPermit<'a> {
    permits: &'a AddressPermits,
    address: Option<PeerAddress>,
}

impl AddressPermits {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, held: Mutex::default() }
    }

    /// Takes a permit; none if the address holds its part, or if all are held.
    pub(crate) fn try_acquire(&self, address: Option<PeerAddress>) -> Option<AddressPermit<'_>> {
        let mut held = self.held.locked();
        let free = self.max.saturating_sub(held.values().sum());
        let own = held.get(&address).copied().unwrap_or_default();
        if own.saturating_mul(FREE_PERMITS_PER_HELD) >= free {
            return None;
        }
        held.insert(address, own + 1);
        drop(held);
        Some(AddressPermit { permits: self, address })
    }
}

impl Drop for AddressPermit<'_> {
    fn drop(&mut self) {
        let mut held = self.permits.held.locked();
        if let Some(count) = held.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn address(last: u8) -> PeerAddress {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    #[test]
    fn one_address_gets_a_quarter_of_the_permits() {
        let permits = AddressPermits::new(100);
        let take = |last| permits.try_acquire(Some(address(last)));
        let mut held: Vec<_> = std::iter::from_fn(|| take(1)).collect();
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
        let permits = AddressPermits::new(100);
        // They take turns until none of them gets another one.
        let mut held = Vec::new();
        loop {
            let round: Vec<_> = (0..10).filter_map(|last| permits.try_acquire(Some(address(last)))).collect();
            if round.is_empty() {
                break;
            }
            held.extend(round);
        }
        assert!((70..80).contains(&held.len()), "{}", held.len());
        assert!(permits.try_acquire(Some(address(10))).is_some());
        drop(held);
        let only = AddressPermits::new(1);
        let first = only.try_acquire(Some(address(1)));
        assert!(first.is_some() && only.try_acquire(Some(address(2))).is_none());
    }
}
