//! One budget of bytes for all responses under way, so that many large responses at once take no more memory than a few.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a response that no budget counts: most responses are that short, and their number is bounded by that of requests.
pub const UNCOUNTED_BYTES: usize = 64 << 10;
/// The unit of shares.
const UNIT_BYTES: usize = 1 << 10;

/// A budget. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct ByteBudget {
    units: Arc<Semaphore>,
    all: u32,
}

/// A share of a budget, returned when it is dropped.
#[derive(Debug)]
pub struct ByteShare(OwnedSemaphorePermit);

/// A body with its share of the budget.
struct CountedBody {
    body: Vec<u8>,
    _share: ByteShare,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl ByteBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        let all = units(bytes);
        Self { units: Arc::new(Semaphore::new(all as usize)), all }
    }

    /// Waits for a share. It cannot wait for itself: a response takes one share, once, before it needs the memory. A share
    /// larger than the budget is the whole budget.
    pub async fn share(&self, bytes: usize) -> Option<ByteShare> {
        let wanted = units(bytes).min(self.all);
        // The semaphore is never closed.
        Arc::clone(&self.units).acquire_many_owned(wanted).await.ok().map(ByteShare)
    }

    /// A share, if it is available now.
    pub fn try_share(&self, bytes: usize) -> Option<ByteShare> {
        let wanted = units(bytes).min(self.all);
        Arc::clone(&self.units).try_acquire_many_owned(wanted).ok().map(ByteShare)
    }
}

impl ByteShare {
    /// Returns what exceeds this many bytes.
    fn shrink(&mut self, bytes: usize) {
        let more = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(more));
    }

    /// The body, which holds the share until its last clone is dropped.
    pub(super) fn attach(mut self, mut body: Vec<u8>) -> Bytes {
        body.shrink_to_fit();
        self.shrink(body.len());
        Bytes::from_owner(CountedBody { body, _share: self })
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn shares_are_returned_with_the_last_clone_of_a_body() {
        let budget = ByteBudget::new(8 << 20);
        let first = budget.share(6 << 20).await.unwrap();
        assert!(budget.try_share(4 << 20).is_none());
        // Only what the body needs is kept.
        let body = first.attach(vec![0; 1 << 20]);
        let second = budget.try_share(7 << 20).unwrap();
        let mut waiting = Box::pin(budget.share(1));
        assert!((&mut waiting).now_or_never().is_none());
        let clone = body.slice(..10);
        drop(body);
        assert!((&mut waiting).now_or_never().is_none());
        drop(clone);
        assert!(waiting.await.is_some());
        drop(second);
        // A share larger than the budget waits for all of it, not for ever.
        assert!(budget.share(usize::MAX).await.is_some());
    }
}
