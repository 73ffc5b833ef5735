//! Memory of reviews under way, divided among client addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use locks::MutexExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::peer_address::PeerAddress;

/// The unit of a budget, in bytes.
const UNIT_BYTES: usize = 1 << 10;

/// A part of all memory is for the reviews of one address: a quarter, so that slow ones do not delay those of others.
const ADDRESS_PARTS: usize = 4;

/// A budget of memory.
pub(super) struct MemoryBudget {
    units: usize,
    all: Arc<Semaphore>,
    by_address: Mutex<HashMap<PeerAddress, Weak<Semaphore>>>,
}

/// A share of a budget, returned when this is dropped.
#[derive(Debug)]
pub(super) struct MemoryShare {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    pub(super) fn new(bytes: usize) -> Self {
        let units = bytes / UNIT_BYTES;
        Self { units, all: Arc::new(Semaphore::new(units)), by_address: Mutex::default() }
    }

    /// Waits for a share of this many bytes, at most the part of one address. A review without an address has only the limit of all.
    pub(super) async fn share(&self, address: Option<PeerAddress>, bytes: usize) -> MemoryShare {
        let units = bytes.div_ceil(UNIT_BYTES).min(self.units / ADDRESS_PARTS);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        // That of the address first: a review that waits for others of its address holds nothing that other addresses wait for.
        let own = address.map(|address| self.of_address(address));
        let mut permits = Vec::new();
        for semaphore in own.into_iter().chain([Arc::clone(&self.all)]) {
            // The semaphores are never closed.
            permits.extend(semaphore.acquire_many_owned(units).await.ok());
        }
        MemoryShare { _permits: permits }
    }

    /// The part of an address, as long as one of its reviews has or awaits a share.
    fn of_address(&self, address: PeerAddress) -> Arc<Semaphore> {
        let mut parts = self.by_address.locked();
        if let Some(part) = parts.get(&address).and_then(Weak::upgrade) {
            return part;
        }
        parts.retain(|_, part| part.strong_count() > 0);
        let part = Arc::new(Semaphore::new(self.units / ADDRESS_PARTS));
        parts.insert(address, Arc::downgrade(&part));
        part
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures::FutureExt as _;

    use super::*;

    fn address(last: u8) -> PeerAddress {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    #[tokio::test]
    async fn one_address_gets_a_quarter_of_the_memory() {
        let budget = MemoryBudget::new(400 << 10);
        let share = |last, kib: usize| budget.share(Some(address(last)), kib << 10);
        let held = share(1, 60).await;
        let mut waiting = Box::pin(share(1, 60));
        assert!((&mut waiting).now_or_never().is_none());
        // Others do not wait, not even behind the one that waits.
        let others = [share(2, 100).await, share(3, 100).await, share(4, 100).await];
        drop(held);
        let last = waiting.await;
        // All memory together is limited, too.
        assert!(share(5, 60).now_or_never().is_none());
        drop(others);
        assert!(share(5, 60).now_or_never().is_some());
        drop(last);
        assert!(budget.share(None, 400 << 10).now_or_never().is_some());
        assert!(budget.by_address.locked().values().all(|part| part.strong_count() == 0));
    }
}
