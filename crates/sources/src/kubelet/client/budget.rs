//! Memory for answers, all together: however many kubelets say however much, there is no more.
//!
//! Nobody waits for more while he has what others wait for: there are short, long and very long answers, and only a long
//! one waits to become a very long one.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What every answer may have without asking. Most need no more.
const SHORT: usize = 64 << 10;
/// What a long answer may have.
const LONG: usize = 1 << 20;

/// What all answers may have together.
#[derive(Debug)]
pub(super) struct Budget {
    long: Arc<Semaphore>,
    very_long: Arc<Semaphore>,
}

/// What a kubelet said; its memory is given back when this is dropped.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    size: Size,
}

#[derive(Debug, Default)]
enum Size {
    #[default]
    Short,
    Long(#[expect(dead_code, reason = "it is given back when it is dropped")] OwnedSemaphorePermit),
    VeryLong(#[expect(dead_code, reason = "it is given back when it is dropped")] OwnedSemaphorePermit),
}

impl Body {
    /// What it said.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Budget {
    /// One half for long answers, one for very long ones of up to `limit` bytes; of each there can always be one.
    pub(super) fn new(memory: usize, limit: usize) -> Self {
        let each = |size: usize| {
            Arc::new(Semaphore::new((memory / 2 / size.max(1)).clamp(1, Semaphore::MAX_PERMITS)))
        };
        Self { long: each(LONG), very_long: each(limit) }
    }

    /// Makes sure that `more` bytes can be added to `body`; waits while others have too much.
    pub(super) async fn reserve(&self, body: &mut Body, more: usize) {
        let needed = body.bytes.len() + more;
        if needed <= body.bytes.capacity() {
            return;
        }
        // These are never closed.
        if needed > LONG && !matches!(body.size, Size::VeryLong(_)) {
            let Ok(permit) = Arc::clone(&self.very_long).acquire_owned().await else { return };
            body.size = Size::VeryLong(permit);
        } else if needed > SHORT && matches!(body.size, Size::Short) {
            let Ok(permit) = Arc::clone(&self.long).acquire_owned().await else { return };
            body.size = Size::Long(permit);
        }
        let most = match body.size {
            Size::Short => SHORT,
            Size::Long(_) => LONG,
            Size::VeryLong(_) => usize::MAX,
        };
        // Doubling, so that a long answer is not copied for each of its pieces.
        let capacity = needed.max(body.bytes.capacity() * 2).max(4 << 10).min(most);
        body.bytes.reserve_exact(capacity - body.bytes.len());
    }

    pub(super) fn add(body: &mut Body, piece: &[u8]) {
        body.bytes.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn short_answers_are_free_and_long_ones_wait_for_each_other() {
        let budget = Budget::new(4 << 20, 2 << 20);
        let mut short: Vec<Body> = (0..100).map(|_| Body::default()).collect();
        for body in &mut short {
            budget.reserve(body, SHORT).await;
        }
        let [mut one, mut two, mut three] = [(); 3].map(|()| Body::default());
        budget.reserve(&mut one, SHORT + 1).await;
        budget.reserve(&mut two, LONG).await;
        assert!(budget.reserve(&mut three, SHORT + 1).now_or_never().is_none());
        // One that becomes very long leaves the long ones.
        budget.reserve(&mut one, LONG + 1).await;
        assert!(budget.reserve(&mut three, LONG).now_or_never().is_some());
        assert!(budget.reserve(&mut two, LONG + 1).now_or_never().is_none());
        drop(one);
        assert!(budget.reserve(&mut two, LONG + 1).now_or_never().is_some());
    }

    #[tokio::test]
    async fn nobody_has_more_than_he_was_given() {
        let budget = Budget::new(64 << 20, 16 << 20);
        let mut body = Body::default();
        for _ in 0..3000 {
            budget.reserve(&mut body, 1000).await;
            Budget::add(&mut body, &[b'x'; 1000]);
            let most = match body.size {
                Size::Short => SHORT,
                Size::Long(_) => LONG,
                Size::VeryLong(_) => 2 * body.bytes.len(),
            };
            assert!(body.bytes.capacity() <= most, "{} of {most}", body.bytes.capacity());
        }
        assert_eq!(body.bytes().len(), 3_000_000);
    }
}
