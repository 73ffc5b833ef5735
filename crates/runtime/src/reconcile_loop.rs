//! Reconciles under way. A panic in one of them is caught and reported; its key is retried with backoff, the others go on.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::backoff::delay_after;
use crate::exported_metrics::MetricsWriter;

/// Reconciles under way, by key.
pub struct Reconciles<K, O> {
    running: FuturesUnordered<BoxFuture<'static, (K, std::thread::Result<O>)>>,
    /// How many reconciles of a key panicked in a row.
    failures: HashMap<K, u32>,
    panics: PanicCounter,
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileResult<O> {
    /// It returned.
    Finished(O),
    /// It panicked.
    Panicked {
        /// The text of the panic.
        message: String,
        /// The backoff after which the key is to be reconciled again.
        retry_after: Duration,
    },
}

/// Counts reconciles that panicked. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct PanicCounter(Arc<AtomicU64>);

impl PanicCounter {
    /// The number so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Exports `plimsoll_reconcile_panics_total`.
    pub fn export(&self, writer: &mut MetricsWriter) {
        let help = "Reconciles that panicked; each is retried with backoff.";
        writer.family("counter", "plimsoll_reconcile_panics_total", help).value(&[], self.get());
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, O: Send + 'static> Reconciles<K, O> {
    /// None under way; `panics` counts those that panic.
    pub fn new(panics: PanicCounter) -> Self {
        Self { running: FuturesUnordered::new(), failures: HashMap::new(), panics }
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Starts the reconcile of `key`.
    pub fn start(&mut self, key: K, reconcile: impl Future<Output = O> + Send + 'static) {
        // Unlike an async block, these keep the future once.
        self.running.push(AssertUnwindSafe(reconcile).catch_unwind().map(|result| (key, result)).boxed());
    }

    /// The next reconcile that ends; none if none is under way.
    pub async fn next(&mut self) -> Option<(K, ReconcileResult<O>)> {
        let (key, result) = self.running.next().await?;
        let result = match result {
            Ok(outcome) => {
                self.failures.remove(&key);
                ReconcileResult::Finished(outcome)
            }
            Err(payload) => {
                let message = crate::panic_text(&*payload);
                self.panics.0.fetch_add(1, Ordering::Relaxed);
                let failures = self.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                ReconcileResult::Panicked { message, retry_after: delay_after(*failures) }
            }
        };
        Some((key, result))
    }

    /// Waits until all that are under way have ended, but no longer than `limit`.
    pub async fn drain(&mut self, limit: Duration) {
        // What is still under way then is dropped.
        let _ = tokio::time::timeout(limit, async { while self.next().await.is_some() {} }).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use tokio::time::sleep;

    use super::*;

    async fn reconcile(key: &'static str) -> &'static str {
        sleep(Duration::from_secs(1)).await;
        assert_ne!(key, "broken", "cannot be reconciled");
        key
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_reported_and_counted_and_the_others_go_on() {
        let panics = PanicCounter::default();
        let mut reconciles = Reconciles::new(panics.clone());
        let mut delays = Vec::new();
        for _ in 0..3 {
            reconciles.start("broken", reconcile("broken"));
            reconciles.start("good", reconcile("good"));
            while let Some((key, result)) = reconciles.next().await {
                match result {
                    ReconcileResult::Finished(outcome) => assert_eq!((key, outcome), ("good", "good")),
                    ReconcileResult::Panicked { message, retry_after } => {
                        assert!(key == "broken" && message.contains("cannot be reconciled"), "{message}");
                        delays.push(retry_after.as_secs());
                    }
                }
            }
        }
        assert_eq!(delays, [1, 2, 4]);
        assert_eq!(panics.get(), 3);
        reconciles.start("broken", async { "repaired" });
        assert_eq!(reconciles.next().await, Some(("broken", ReconcileResult::Finished("repaired"))));
        reconciles.start("broken", reconcile("broken"));
        let Some((_, ReconcileResult::Panicked { retry_after, .. })) = reconciles.next().await else {
            panic!("it did not panic")
        };
        assert_eq!(retry_after.as_secs(), 1, "a success resets the backoff");
    }
}
