//! Memory limit of all response bodies together.
//!
//! Bodies are short, long or very long. Deadlocks are impossible: a body waits for a permit only while it holds none,
//! except a long one that becomes very long.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a body that need no permit; enough for most nodes.
const SHORT_BODY_BYTES: usize = 64 << 10;
/// Bytes of a long body.
const LONG_BODY_BYTES: usize = 1 << 20;

/// Permits for long and very long bodies.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    long: Arc<Semaphore>,
    very_long: Arc<Semaphore>,
}

/// A response body; dropping it returns its permit.
#[derive(Debug, Default)]
pub struct ScrapeBody {
    bytes: Vec<u8>,
    size: BodySize,
}

#[derive(Debug, Default)]
enum BodySize {
    #[default]
    Short,
    Long(#[expect(dead_code, reason = "dropping the permit returns it")] OwnedSemaphorePermit),
    VeryLong(#[expect(dead_code, reason = "dropping the permit returns it")] OwnedSemaphorePermit),
}

impl ScrapeBody {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl MemoryBudget {
    /// Half of `memory` for long bodies, half for very long ones of up to `limit` bytes; at least one of each is
    /// always possible.
    pub(super) fn new(memory: usize, limit: usize) -> Self {
        let each = |size: usize| {
            Arc::new(Semaphore::new((memory / 2 / size.max(1)).clamp(1, Semaphore::MAX_PERMITS)))
        };
        Self { long: each(LONG_BODY_BYTES), very_long: each(limit) }
    }

    /// Reserves `more` bytes for `body`; waits while other bodies hold the permits.
    pub(super) async fn reserve(&self, body: &mut ScrapeBody, more: usize) {
        let needed = body.bytes.len() + more;
        if needed <= body.bytes.capacity() {
            return;
        }
        // The semaphores are never closed.
        if needed > LONG_BODY_BYTES && !matches!(body.size, BodySize::VeryLong(_)) {
            let Ok(permit) = Arc::clone(&self.very_long).acquire_owned().await else { return };
            body.size = BodySize::VeryLong(permit);
        } else if needed > SHORT_BODY_BYTES && matches!(body.size, BodySize::Short) {
            let Ok(permit) = Arc::clone(&self.long).acquire_owned().await else { return };
            body.size = BodySize::Long(permit);
        }
        let most = match body.size {
            BodySize::Short => SHORT_BODY_BYTES,
            BodySize::Long(_) => LONG_BODY_BYTES,
            BodySize::VeryLong(_) => usize::MAX,
        };
        // The capacity doubles, so that a long body is not copied for each chunk.
        let capacity = needed.max(body.bytes.capacity() * 2).max(4 << 10).min(most);
        body.bytes.reserve_exact(capacity - body.bytes.len());
    }

    pub(super) fn add(body: &mut ScrapeBody, piece: &[u8]) {
        body.bytes.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn short_bodies_need_no_permit_and_long_ones_wait() {
        let budget = MemoryBudget::new(4 << 20, 2 << 20);
        let mut short: Vec<ScrapeBody> = (0..100).map(|_| ScrapeBody::default()).collect();
        for body in &mut short {
            budget.reserve(body, SHORT_BODY_BYTES).await;
        }
        let [mut one, mut two, mut three] = [(); 3].map(|()| ScrapeBody::default());
        budget.reserve(&mut one, SHORT_BODY_BYTES + 1).await;
        budget.reserve(&mut two, LONG_BODY_BYTES).await;
        assert!(budget.reserve(&mut three, SHORT_BODY_BYTES + 1).now_or_never().is_none());
        // A body that becomes very long returns its permit for long ones.
        budget.reserve(&mut one, LONG_BODY_BYTES + 1).await;
        assert!(budget.reserve(&mut three, LONG_BODY_BYTES).now_or_never().is_some());
        assert!(budget.reserve(&mut two, LONG_BODY_BYTES + 1).now_or_never().is_none());
        drop(one);
        assert!(budget.reserve(&mut two, LONG_BODY_BYTES + 1).now_or_never().is_some());
    }

    #[tokio::test]
    async fn capacity_never_exceeds_the_permit() {
        let budget = MemoryBudget::new(64 << 20, 16 << 20);
        let mut body = ScrapeBody::default();
        for _ in 0..3000 {
            budget.reserve(&mut body, 1000).await;
            MemoryBudget::add(&mut body, &[b'x'; 1000]);
            let most = match body.size {
                BodySize::Short => SHORT_BODY_BYTES,
                BodySize::Long(_) => LONG_BODY_BYTES,
                BodySize::VeryLong(_) => 2 * body.bytes.len(),
            };
            assert!(body.bytes.capacity() <= most, "{} of {most}", body.bytes.capacity());
        }
        assert_eq!(body.bytes().len(), 3_000_000);
    }
}
