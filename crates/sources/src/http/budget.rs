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
    /// From which shares are taken, too.
    part: Option<Arc<ByteBudget>>,
}

/// A share of a budget, returned when it is dropped.
#[derive(Debug)]
pub struct ByteShare {
    permit: OwnedSemaphorePermit,
    /// The same share of a part, and the part, which exists as long as its shares.
    of_part: Option<(OwnedSemaphorePermit, Arc<ByteBudget>)>,
}

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
        Self { units: Arc::new(Semaphore::new(all as usize)), all, part: None }
    }

    /// The same budget for one of several users: its shares are taken from its part, too, which the others leave alone.
    #[must_use]
    pub fn within(&self, part: Arc<Self>) -> Self {
        Self { part: Some(part), ..self.clone() }
    }

    /// Waits for a share. It cannot wait for itself: a response takes one share, once, before it needs the memory. A share
    /// larger than the budget is the whole budget.
    pub async fn share(&self, bytes: usize) -> Option<ByteShare> {
        let wanted = self.wanted(bytes);
        // The semaphores are never closed. That of the part is first: who waits for it holds nothing that other users wait for.
        let of_part = match &self.part {
            Some(part) => {
                let permit = Arc::clone(&part.units).acquire_many_owned(wanted).await.ok()?;
                Some((permit, Arc::clone(part)))
            }
            None => None,
        };
        let permit = Arc::clone(&self.units).acquire_many_owned(wanted).await.ok()?;
        Some(ByteShare { permit, of_part })
    }

    /// A share, if it is available now.
    pub fn try_share(&self, bytes: usize) -> Option<ByteShare> {
        let wanted = self.wanted(bytes);
        let of_part = match &self.part {
            Some(part) => {
                let permit = Arc::clone(&part.units).try_acquire_many_owned(wanted).ok()?;
                Some((permit, Arc::clone(part)))
            }
            None => None,
        };
        let permit = Arc::clone(&self.units).try_acquire_many_owned(wanted).ok()?;
        Some(ByteShare { permit, of_part })
    }

    /// Whether a share would be available now, as far as this budget is concerned and not its part.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.units.available_permits() >= self.wanted(bytes) as usize
    }

    /// The units of a share.
    fn wanted(&self, bytes: usize) -> u32 {
        let all = self.part.as_ref().map_or(self.all, |part| part.all.min(self.all));
        units(bytes).min(all)
    }
}

impl ByteShare {
    /// Returns what exceeds this many bytes.
    fn shrink(&mut self, bytes: usize) {
        let more = self.permit.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.permit.split(more));
        if let Some((permit, _)) = &mut self.of_part {
            drop(permit.split(more));
        }
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
        assert!(budget.has_room(7 << 20) && !budget.has_room(8 << 20));
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

    #[tokio::test]
    async fn part_of_one_user_leaves_the_rest_to_others() {
        let all = ByteBudget::new(8 << 20);
        let [own, other] = [(); 2].map(|()| all.within(Arc::new(ByteBudget::new(4 << 20))));
        // A share larger than the part is the whole part.
        let first = own.share(8 << 20).await.unwrap();
        assert!(own.try_share(1).is_none() && own.share(1).now_or_never().is_none());
        let second = other.try_share(8 << 20).unwrap();
        assert!(all.try_share(1).is_none());
        // Both the part and the whole get back what a body does not need.
        let body = first.attach(vec![0; 1 << 20]);
        assert!(own.try_share(4 << 20).is_none());
        assert!(own.try_share(3 << 20).is_some());
        drop((body, second));
        assert!(own.try_share(4 << 20).is_some() && all.try_share(8 << 20).is_some());
    }
}
