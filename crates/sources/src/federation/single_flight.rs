//! Single-flight: concurrent identical queries are sent once.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::Mutex;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};

use crate::lock::locked;

type Pending<V> = BoxFuture<'static, V>;

/// Calls in flight by key.
pub(crate) struct SingleFlight<K, V>(Mutex<HashMap<K, WeakShared<Pending<V>>>>);

impl<K: Clone + Eq + Hash, V: Clone + Send + Sync + 'static> SingleFlight<K, V> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Returns the result of `call`; callers with the same key share one execution.
    ///
    /// Nothing is spawned: the call is cancelled when its last caller is dropped.
    pub(crate) async fn run<F>(&self, key: K, call: impl FnOnce() -> F) -> V
    where
        F: Future<Output = V> + Send + 'static,
    {
        let shared: Shared<Pending<V>> = {
            let mut pending = locked(&self.0);
            match pending.get(&key).and_then(WeakShared::upgrade) {
                Some(shared) => shared,
                None => {
                    // Callers may have been dropped before completion.
                    if pending.len() >= pending.capacity() {
                        pending.retain(|_, shared| shared.upgrade().is_some());
                    }
                    let shared = call().boxed().shared();
                    if let Some(weak) = shared.downgrade() {
                        pending.insert(key.clone(), weak);
                    }
                    shared
                }
            }
        };
        let answer = shared.clone().await;
        let mut pending = locked(&self.0);
        // A newer call with the same key may be in flight; it stays.
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
        let flight = SingleFlight::new();
        let count = Arc::new(AtomicUsize::new(0));
        let ask = |key: &'static str| {
            let count = Arc::clone(&count);
            flight.run(key, move || async move {
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
        let flight: SingleFlight<u32, u32> = SingleFlight::new();
        let slow = |key| {
            flight.run(key, move || async move {
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
