//! Answers that hold for a while: bounded, and asked for once however many wait.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio::time::Instant;

/// The answer that somebody waits for.
type Pending<V, E> = BoxFuture<'static, Result<V, E>>;

/// Answers of others, kept for as long as they hold; failures to answer are not.
pub(crate) struct Cache<K, V, E> {
    held: Mutex<Held<K, V, E>>,
    life: Duration,
}

struct Held<K, V, E> {
    recent: Recent<K, V>,
    asked: HashMap<K, WeakShared<Pending<V, E>>>,
}

impl<K: Clone + Eq + Hash, V: Clone, E: Clone> Cache<K, V, E> {
    pub(crate) fn new(capacity: usize, life: Duration) -> Self {
        Self { held: Mutex::new(Held { recent: Recent::new(capacity), asked: HashMap::new() }), life }
    }

    /// What is known, else what `ask` answers; whoever wants the same at the same time waits for the same answer.
    pub(crate) async fn get(&self, key: K, ask: impl FnOnce() -> Pending<V, E>) -> Result<V, E> {
        let pending: Shared<Pending<V, E>> = {
            let mut held = self.lock();
            if let Some(known) = held.recent.get(&key, Instant::now()) {
                return Ok(known.clone());
            }
            match held.asked.get(&key).and_then(WeakShared::upgrade) {
                Some(pending) => pending,
                None => {
                    let pending = ask().shared();
                    held.remember(key.clone(), &pending);
                    pending
                }
            }
        };
        let answer = pending.await;
        let mut held = self.lock();
        held.asked.remove(&key);
        if let Ok(value) = &answer {
            held.recent.put(key, value.clone(), Instant::now() + self.life);
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Held<K, V, E>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V: Clone, E: Clone> Held<K, V, E> {
    fn remember(&mut self, key: K, pending: &Shared<Pending<V, E>>) {
        // Whoever asked may have gone away without an answer.
        if self.asked.len() >= self.recent.capacity {
            self.asked.retain(|_, pending| pending.upgrade().is_some());
        }
        if let Some(weak) = pending.downgrade() {
            self.asked.insert(key, weak);
        }
    }
}

/// Values with an end; the oldest give way when there are too many.
struct Recent<K, V> {
    values: HashMap<Arc<K>, (V, Instant)>,
    order: VecDeque<(Arc<K>, Instant)>,
    capacity: usize,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    fn new(capacity: usize) -> Self {
        Self { values: HashMap::new(), order: VecDeque::new(), capacity }
    }

    fn get(&self, key: &K, now: Instant) -> Option<&V> {
        self.values.get(key).filter(|(_, end)| now < *end).map(|(value, _)| value)
    }

    fn put(&mut self, key: K, value: V, end: Instant) {
        while self.order.len() >= self.capacity {
            let Some((oldest, end)) = self.order.pop_front() else { break };
            // The value may have been put again since, and then has a later place in the order.
            if self.values.get(&oldest).is_some_and(|(_, last)| *last == end) {
                self.values.remove(&oldest);
            }
        }
        let key = Arc::new(key);
        self.order.push_back((Arc::clone(&key), end));
        self.values.insert(key, (value, end));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn values_end_and_the_oldest_give_way() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut recent = Recent::new(2);
        recent.put("a", 1, at(10));
        assert_eq!((recent.get(&"a", at(9)), recent.get(&"a", at(10))), (Some(&1), None));
        recent.put("a", 2, at(20));
        recent.put("b", 3, at(20));
        assert_eq!((recent.get(&"a", at(9)), recent.get(&"b", at(9))), (Some(&2), Some(&3)));
        recent.put("c", 4, at(20));
        assert_eq!((recent.get(&"a", at(9)), recent.get(&"c", at(9))), (None, Some(&4)));
        assert!(recent.values.len() <= 2 && recent.order.len() <= 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_is_asked_once_and_failures_are_asked_again() {
        let cache: Cache<&str, u32, &str> = Cache::new(8, Duration::from_secs(10));
        let count = Arc::new(AtomicU32::new(0));
        let ask = |fails: bool| {
            let count = Arc::clone(&count);
            move || -> Pending<u32, &'static str> {
                Box::pin(async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let count = count.fetch_add(1, Ordering::Relaxed);
                    if fails { Err("no") } else { Ok(count) }
                })
            }
        };
        assert_eq!(cache.get("a", ask(true)).await, Err("no"));
        let both = futures::join!(cache.get("a", ask(false)), cache.get("a", ask(false)));
        assert_eq!(both, (Ok(1), Ok(1)));
        assert_eq!(cache.get("a", ask(false)).await, Ok(1));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(cache.get("a", ask(false)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_go_away_leave_nothing_behind() {
        let cache: Cache<u32, u32, &str> = Cache::new(4, Duration::from_secs(10));
        for key in 0..100 {
            let never = cache.get(key, || Box::pin(std::future::pending()));
            assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
        }
        assert!(cache.lock().asked.len() <= 5);
        assert_eq!(cache.get(3, || Box::pin(async { Ok(7) })).await, Ok(7));
    }
}
