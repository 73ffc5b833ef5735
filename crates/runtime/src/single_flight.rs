//! Single-flight: concurrent callers with the same key share one request.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use locks::MutexExt as _;
use tokio::time::Instant;

/// Requests under way, by key. Results are not kept: a caller that comes after the result starts a new request.
///
/// Nothing is spawned: a request is driven by its callers, and is dropped when the last of them goes away.
#[derive(Debug)]
pub struct SingleFlight<K, T: Clone>(Mutex<HashMap<K, Flight<T>>>);

/// Whether a caller started the request or joined one under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightRole {
    /// The caller started it.
    Started,
    /// The caller joined it.
    Joined,
}

#[derive(Debug)]
struct Flight<T: Clone> {
    started: Instant,
    /// Weak, because a request without callers is not polled and must not be joined.
    request: WeakShared<BoxFuture<'static, T>>,
}

impl<K, T: Clone> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, T: Clone> SingleFlight<K, T> {
    /// The result of the request for `key` that is under way, or of the one that `start` makes.
    pub async fn run<F>(&self, key: K, start: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.run_within(&key, Duration::MAX, || start().boxed()).await.0
    }

    /// As [`SingleFlight::run`], but joins only a request that is under way for no longer than `max_age`.
    pub async fn run_within(
        &self,
        key: &K,
        max_age: Duration,
        start: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> (T, FlightRole) {
        let (request, role) = self.join(key, max_age, start);
        let result = request.clone().await;
        self.remove(key, &request);
        (result, role)
    }

    /// Whether no request is registered.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// How many requests are registered, those included whose callers have gone.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    fn join(
        &self,
        key: &K,
        max_age: Duration,
        start: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> (Shared<BoxFuture<'static, T>>, FlightRole) {
        let mut flights = self.lock();
        let now = Instant::now();
        if let Some(flight) = flights.get(key)
            && now.saturating_duration_since(flight.started) <= max_age
            && let Some(request) = flight.request.upgrade()
            && request.peek().is_none()
        {
            return (request, FlightRole::Joined);
        }
        // Requests whose callers have gone leave their keys behind.
        if flights.len() >= flights.capacity() {
            flights.retain(|_, flight| flight.request.upgrade().is_some());
        }
        let request = start().shared();
        if let Some(weak) = request.downgrade() {
            flights.insert(key.clone(), Flight { started: now, request: weak });
        }
        (request, FlightRole::Started)
    }

    /// Removes a request that has a result, unless another is already under way for its key.
    fn remove(&self, key: &K, request: &Shared<BoxFuture<'static, T>>) {
        let mut flights = self.lock();
        let is_own = |flight: &Flight<T>| flight.request.upgrade().is_none_or(|other| other.ptr_eq(request));
        if flights.get(key).is_some_and(is_own) {
            flights.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Flight<T>>> {
        self.0.locked()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{sleep, timeout};

    use super::FlightRole::{Joined, Started};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Answers after `delay` with the number of requests before it.
    fn slow(count: &Arc<AtomicU32>, delay: Duration) -> BoxFuture<'static, u32> {
        let count = Arc::clone(count);
        async move {
            let number = count.fetch_add(1, Ordering::SeqCst);
            sleep(delay).await;
            number
        }
        .boxed()
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_request_and_the_next_caller_starts_another() {
        let (flights, count) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)));
        let call = || flights.run_within(&"a", SECOND, || slow(&count, SECOND / 2));
        let other = flights.run_within(&"b", SECOND, || slow(&count, SECOND / 2));
        let (a, b, c, d) = tokio::join!(call(), call(), other, call());
        assert_eq!((a, b, d), ((0, Started), (0, Joined), (0, Joined)));
        assert_eq!(c, (1, Started));
        assert_eq!(call().await, (2, Started));
        assert_eq!(flights.run("a", || slow(&count, SECOND)).await, 3);
        assert!(flights.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_older_than_the_limit_is_not_joined() {
        let (flights, count) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)));
        let first = flights.run_within(&"a", SECOND, || slow(&count, 5 * SECOND));
        let late = async {
            sleep(2 * SECOND).await;
            flights.run_within(&"a", SECOND, || slow(&count, SECOND)).await
        };
        assert_eq!(tokio::join!(first, late), ((0, Started), (1, Started)));
        assert!(flights.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_leaves_does_not_end_the_request_for_others() {
        let (flights, count) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)));
        let gone = timeout(SECOND / 4, flights.run_within(&"a", SECOND, || slow(&count, SECOND / 2)));
        let stays = async {
            sleep(SECOND / 8).await;
            flights.run_within(&"a", SECOND, || slow(&count, SECOND)).await
        };
        let (gone, stays) = tokio::join!(gone, stays);
        assert!(gone.is_err());
        assert_eq!(stays, (0, Joined));
        // Without callers the request is not polled, so the next caller starts another.
        let gone = timeout(SECOND / 4, flights.run_within(&"a", SECOND, || slow(&count, SECOND / 2)));
        assert!(gone.await.is_err());
        assert_eq!(flights.run_within(&"a", SECOND, || slow(&count, SECOND)).await, (2, Started));
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_requests_are_pruned() {
        let flights: SingleFlight<u32, u32> = SingleFlight::default();
        for key in 0..1000 {
            let call = flights.run(key, move || async move {
                sleep(SECOND).await;
                key
            });
            assert!(timeout(SECOND / 1000, call).await.is_err());
        }
        assert!(flights.len() < 100);
    }
}
