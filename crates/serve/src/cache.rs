//! A bounded cache with single-flight requests and refresh before expiry.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use locks::MutexExt as _;
use tokio::time::Instant;

/// A request that is under way.
type Pending<V, E> = BoxFuture<'static, Result<V, E>>;

/// How long a value is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheTtl {
    /// After this the value expires.
    pub(crate) whole: Duration,
    /// After this the value is still served, and refreshed in the background so that no caller waits at its expiry.
    pub(crate) fresh: Duration,
}

impl CacheTtl {
    /// A time to live without background refresh.
    pub(crate) fn of(whole: Duration) -> Self {
        Self { whole, fresh: whole }
    }
}

/// The pause after a failed background refresh.
const REFRESH_RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Caches values by key; errors are not cached.
pub(crate) struct Cache<K, V, E> {
    held: Arc<Mutex<CacheState<K, V, E>>>,
    life: Arc<dyn Fn(&V) -> CacheTtl + Send + Sync>,
}

struct CacheState<K, V, E> {
    recent: ExpiringMap<K, V>,
    requested: HashMap<K, WeakShared<Pending<V, E>>>,
}

impl<K, V, E> Cache<K, V, E>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(capacity: usize, life: impl Fn(&V) -> CacheTtl + Send + Sync + 'static) -> Self {
        let held = CacheState { recent: ExpiringMap::new(capacity), requested: HashMap::new() };
        Self { held: Arc::new(Mutex::new(held)), life: Arc::new(life) }
    }

    /// Whether a value is cached.
    pub(crate) fn holds(&self, key: &K) -> bool {
        self.held.locked().recent.get(key, Instant::now()).is_some()
    }

    /// The cached value, else the result of `fetch`. Concurrent calls with the same key share one request.
    pub(crate) async fn get(&self, key: K, fetch: impl FnOnce() -> Pending<V, E>) -> Result<V, E> {
        let pending: Shared<Pending<V, E>> = {
            let mut held = self.held.locked();
            let known = held.recent.get(&key, Instant::now()).map(|(value, fresh)| (value.clone(), fresh));
            let running = held.requested.get(&key).and_then(WeakShared::upgrade);
            match (known, running) {
                (Some((value, true)), _) | (Some((value, false)), Some(_)) => return Ok(value),
                (Some((value, false)), None) => {
                    let pending = fetch().shared();
                    held.remember(key.clone(), &pending);
                    drop(held);
                    self.fetch_again(key, pending);
                    return Ok(value);
                }
                (None, Some(pending)) => pending,
                (None, None) => {
                    let pending = fetch().shared();
                    held.remember(key.clone(), &pending);
                    pending
                }
            }
        };
        let answer = pending.await;
        settle(&self.held, key, &answer, self.life.as_ref());
        answer
    }

    /// Refreshes a value in the background.
    fn fetch_again(&self, key: K, pending: Shared<Pending<V, E>>) {
        let (held, life) = (Arc::clone(&self.held), Arc::clone(&self.life));
        tokio::spawn(async move {
            let answer = pending.await;
            settle(&held, key, &answer, life.as_ref());
        });
    }
}

fn settle<K: Clone + Eq + Hash, V: Clone, E: Clone>(
    held: &Mutex<CacheState<K, V, E>>,
    key: K,
    answer: &Result<V, E>,
    life: &dyn Fn(&V) -> CacheTtl,
) {
    let (mut held, now) = (held.locked(), Instant::now());
    held.requested.remove(&key);
    match answer {
        Ok(value) => {
            let CacheTtl { whole, fresh } = life(value);
            held.recent.put(key, value.clone(), now + fresh, now + whole);
        }
        Err(_) => held.recent.keep(&key, now + REFRESH_RETRY_PAUSE),
    }
}

impl<K: Clone + Eq + Hash, V: Clone, E: Clone> CacheState<K, V, E> {
    fn remember(&mut self, key: K, pending: &Shared<Pending<V, E>>) {
        // A caller that was dropped leaves its entry behind.
        if self.requested.len() >= self.recent.capacity {
            self.requested.retain(|_, pending| pending.upgrade().is_some());
        }
        if let Some(weak) = pending.downgrade() {
            self.requested.insert(key, weak);
        }
    }
}

/// Values with an expiry; the oldest are evicted when there are too many.
pub(crate) struct ExpiringMap<K, V> {
    values: HashMap<Arc<K>, CacheEntry<V>>,
    order: VecDeque<(Arc<K>, Instant)>,
    capacity: usize,
}

struct CacheEntry<V> {
    value: V,
    fresh: Instant,
    end: Instant,
}

impl<K: Eq + Hash, V> ExpiringMap<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { values: HashMap::new(), order: VecDeque::new(), capacity }
    }

    /// The value, and whether it is still fresh.
    pub(crate) fn get(&self, key: &K, now: Instant) -> Option<(&V, bool)> {
        let entry = self.values.get(key).filter(|entry| now < entry.end)?;
        Some((&entry.value, now < entry.fresh))
    }

    pub(crate) fn put(&mut self, key: K, value: V, fresh: Instant, end: Instant) {
        while self.order.len() >= self.capacity {
            let Some((oldest, end)) = self.order.pop_front() else { break };
            // A value that was put again has a later entry in the order.
            if self.values.get(&oldest).is_some_and(|last| last.end == end) {
                self.values.remove(&oldest);
            }
        }
        let key = Arc::new(key);
        self.order.push_back((Arc::clone(&key), end));
        self.values.insert(key, CacheEntry { value, fresh, end });
    }

    /// Postpones the refresh of a value; its expiry stays.
    fn keep(&mut self, key: &K, fresh: Instant) {
        if let Some(entry) = self.values.get_mut(key) {
            entry.fresh = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn values_expire_and_the_oldest_are_evicted() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut recent = ExpiringMap::new(2);
        recent.put("a", 1, at(5), at(10));
        assert_eq!((recent.get(&"a", at(4)), recent.get(&"a", at(9))), (Some((&1, true)), Some((&1, false))));
        assert_eq!(recent.get(&"a", at(10)), None);
        recent.put("a", 2, at(20), at(20));
        recent.put("b", 3, at(20), at(20));
        assert_eq!((recent.get(&"a", at(9)), recent.get(&"b", at(9))), (Some((&2, true)), Some((&3, true))));
        recent.put("c", 4, at(20), at(20));
        assert_eq!((recent.get(&"a", at(9)), recent.get(&"c", at(9))), (None, Some((&4, true))));
        assert!(recent.values.len() <= 2 && recent.order.len() <= 2);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_calls_share_a_request_and_errors_are_not_cached() {
        let cache: Cache<&str, u32, &str> = Cache::new(8, |_| CacheTtl::of(Duration::from_secs(10)));
        let count = Arc::new(AtomicU32::new(0));
        let fetch = |fails: bool| {
            let count = Arc::clone(&count);
            move || -> Pending<u32, &'static str> {
                Box::pin(async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let count = count.fetch_add(1, Ordering::Relaxed);
                    if fails { Err("no") } else { Ok(count) }
                })
            }
        };
        assert_eq!(cache.get("a", fetch(true)).await, Err("no"));
        let both = futures::join!(cache.get("a", fetch(false)), cache.get("a", fetch(false)));
        assert_eq!(both, (Ok(1), Ok(1)));
        assert_eq!(cache.get("a", fetch(false)).await, Ok(1));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(cache.get("a", fetch(false)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn values_are_refreshed_in_the_background_before_they_expire() {
        let seconds = Duration::from_secs;
        let cache: Cache<&str, u32, &str> =
            Cache::new(8, move |_| CacheTtl { whole: seconds(60), fresh: seconds(40) });
        let value = |found: Result<u32, &'static str>| {
            move || -> Pending<u32, &'static str> {
                Box::pin(async move {
                    tokio::time::sleep(seconds(1)).await;
                    found
                })
            }
        };
        assert_eq!(cache.get("a", value(Ok(1))).await, Ok(1));
        tokio::time::advance(seconds(45)).await;
        let begin = Instant::now();
        assert_eq!(cache.get("a", value(Err("no"))).await, Ok(1));
        assert_eq!(begin.elapsed(), Duration::ZERO);
        tokio::time::sleep(seconds(3)).await;
        // The refresh failed, and is not retried at once.
        assert_eq!(cache.get("a", value(Ok(2))).await, Ok(1));
        tokio::time::sleep(seconds(6)).await;
        assert_eq!(cache.get("a", value(Ok(3))).await, Ok(1));
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(cache.get("a", value(Ok(4))).await, Ok(3));
        tokio::time::advance(seconds(61)).await;
        assert_eq!(cache.get("a", value(Ok(5))).await, Ok(5));
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_callers_leave_no_entries_behind() {
        let cache: Cache<u32, u32, &str> = Cache::new(4, |_| CacheTtl::of(Duration::from_secs(10)));
        for key in 0..100 {
            let never = cache.get(key, || Box::pin(std::future::pending()));
            assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
        }
        assert!(cache.held.locked().requested.len() <= 5);
        assert_eq!(cache.get(3, || Box::pin(async { Ok(7) })).await, Ok(7));
    }
}
