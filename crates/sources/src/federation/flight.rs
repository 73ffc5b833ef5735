//! The same question of several at the same time is sent once.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};

type Pending<V> = BoxFuture<'static, V>;

/// Questions that are under way.
pub(crate) struct Flight<K, V>(Mutex<HashMap<K, WeakShared<Pending<V>>>>);

impl<K: Clone + Eq + Hash, V: Clone + Send + Sync + 'static> Flight<K, V> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// The answer to a question; whoever asks it while it is under way gets the same one.
    ///
    /// Nothing is spawned: the question ends when the last who waits for it goes away.
    pub(crate) async fn ask<F>(&self, key: K, ask: impl FnOnce() -> F) -> V
    where
        F: Future<Output = V> + Send + 'static,
    {
        let shared: Shared<Pending<V>> = {
            let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match pending.get(&key).and_then(WeakShared::upgrade) {
                Some(shared) => shared,
                None => {
                    // Whoever asked may have gone away without an answer.
                    if pending.len() >= pending.capacity() {
                        pending.retain(|_, shared| shared.upgrade().is_some());
                    }
                    let shared = ask().boxed().shared();
                    if let Some(weak) = shared.downgrade() {
                        pending.insert(key.clone(), weak);
                    }
                    shared
                }
            }
        };
        let answer = shared.clone().await;
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may ask the same again by now; his question stays.
        if pending.get(&key).is_some_and(|own| own.upgrade().is_none_or(|own| own.ptr_eq(&shared))) {
            pending.remove(&key);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn concurrent_calls_share_one_execution() {
        let flight = Flight::new();
        let count = Arc::new(AtomicUsize::new(0));
        let ask = |key: &'static str| {
            let count = Arc::clone(&count);
            flight.ask(key, move || async move {
                sleep(Duration::from_secs(1)).await;
                count.fetch_add(1, Ordering::Relaxed)
            })
        };
        let (a, b, c) = futures::join!(ask("x"), ask("x"), ask("y"));
        assert_eq!((a, b, c), (0, 0, 1));
        assert_eq!(ask("x").await, 2);
        assert!(flight.0.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_callers_do_not_affect_others_or_leak_entries() {
        let flight: Flight<u32, u32> = Flight::new();
        let slow = |key| {
            flight.ask(key, move || async move {
                sleep(Duration::from_secs(1)).await;
                key
            })
        };
        let (gone, stays) = futures::join!(timeout(Duration::from_millis(1), slow(1)), slow(1));
        assert!(gone.is_err());
        assert_eq!(stays, 1);
        for key in 0..1000 {
            assert!(timeout(Duration::from_millis(1), slow(key)).await.is_err());
        }
        assert!(flight.0.lock().unwrap().len() < 100);
    }
}
