//! One request for all who want the same thing at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio::time::{Duration, Instant};

/// Answers that are under way, by what was asked. An answer that has come is not kept.
#[derive(Debug)]
pub(crate) struct SingleFlight<K, T: Clone>(Mutex<HashMap<K, Flight<T>>>);

#[derive(Debug)]
struct Flight<T: Clone> {
    started: Instant,
    // Weak: when all who waited have gone, nobody drives it any more and it must not be joined.
    answer: WeakShared<BoxFuture<'static, T>>,
}

impl<K, T: Clone> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, T: Clone> SingleFlight<K, T> {
    /// Waits for the answer that is under way since no longer than `within`, or for the one of `ask`. Tells whether it
    /// asked itself.
    pub(crate) async fn join(
        &self,
        key: &K,
        within: Duration,
        ask: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> (T, bool) {
        let (answer, asked) = self.board(key, within, ask);
        let value = answer.clone().await;
        self.land(key, &answer);
        (value, asked)
    }

    fn board(
        &self,
        key: &K,
        within: Duration,
        ask: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> (Shared<BoxFuture<'static, T>>, bool) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(flight) = flights.get(key)
            && now.saturating_duration_since(flight.started) <= within
            && let Some(answer) = flight.answer.upgrade()
            && answer.peek().is_none()
        {
            return (answer, false);
        }
        let answer = ask().shared();
        if let Some(weak) = answer.downgrade() {
            flights.insert(key.clone(), Flight { started: now, answer: weak });
        }
        (answer, true)
    }

    /// Forgets the answer that has come, unless another is already under way.
    fn land(&self, key: &K, answer: &Shared<BoxFuture<'static, T>>) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = |flight: &Flight<T>| flight.answer.upgrade().is_none_or(|other| other.ptr_eq(answer));
        if flights.get(key).is_some_and(ours) {
            flights.remove(key);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Answers after `wait` with how many were asked before.
    fn slow(count: &Arc<AtomicU32>, wait: Duration) -> BoxFuture<'static, u32> {
        let count = Arc::clone(count);
        async move {
            let number = count.fetch_add(1, Ordering::SeqCst);
            sleep(wait).await;
            number
        }
        .boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_together_share_one_answer_and_the_next_asks_again() {
        let (flights, count) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)));
        let ask = || flights.join(&"a", SECOND, || slow(&count, SECOND / 2));
        let other = flights.join(&"b", SECOND, || slow(&count, SECOND / 2));
        let (a, b, c, d) = tokio::join!(ask(), ask(), other, ask());
        assert_eq!((a, b, d), ((0, true), (0, false), (0, false)));
        assert_eq!(c, (1, true));
        assert_eq!(ask().await, (2, true));
        assert!(flights.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_long_under_way_is_not_joined() {
        let (flights, count) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)));
        let first = flights.join(&"a", SECOND, || slow(&count, 5 * SECOND));
        let late = async {
            sleep(2 * SECOND).await;
            flights.join(&"a", SECOND, || slow(&count, SECOND)).await
        };
        assert_eq!(tokio::join!(first, late), ((0, true), (1, true)));
        assert!(flights.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_does_not_take_the_answer_along() {
        let (flights, count) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)));
        let gone = tokio::time::timeout(SECOND / 4, flights.join(&"a", SECOND, || slow(&count, SECOND / 2)));
        let stays = async {
            sleep(SECOND / 8).await;
            flights.join(&"a", SECOND, || slow(&count, SECOND)).await
        };
        let (gone, stays) = tokio::join!(gone, stays);
        assert!(gone.is_err());
        assert_eq!(stays, (0, false));
        // When all have left, nobody drives it: the next one asks.
        let gone = tokio::time::timeout(SECOND / 4, flights.join(&"a", SECOND, || slow(&count, SECOND / 2)));
        assert!(gone.await.is_err());
        assert_eq!(flights.join(&"a", SECOND, || slow(&count, SECOND)).await, (2, true));
    }
}
