//! Permits of open streams, divided among namespaces: one of them cannot take those of others.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Maximum number of open streams; further ones wait, and their objects are polled meanwhile.
const MAX_OPEN_STREAMS: usize = 256;
/// How often a stream without a permit tries to get one.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The permits of all streams of a process, and what is counted of them.
pub struct StreamPermits {
    max: usize,
    granted: Mutex<GrantedPermits>,
    waiting: AtomicUsize,
    failures: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Default)]
struct GrantedPermits {
    /// By namespace and number. A permit ends when its sender is dropped.
    by_namespace: HashMap<Arc<str>, BTreeMap<u64, oneshot::Sender<()>>>,
    /// Number of permits that were granted so far.
    made: u64,
}

/// Permits one open stream while it exists and has not ended.
pub(super) struct StreamPermit {
    permits: Arc<StreamPermits>,
    namespace: Arc<str>,
    number: u64,
    ended: oneshot::Receiver<()>,
}

/// Counts, while it exists, a stream that waits for a permit.
struct WaitingStream<'a>(&'a AtomicUsize);

impl Default for StreamPermits {
    fn default() -> Self {
        Self::new(MAX_OPEN_STREAMS)
    }
}

impl StreamPermits {
    pub(super) fn new(max: usize) -> Self {
        Self { max, granted: Mutex::default(), waiting: AtomicUsize::new(0), failures: Mutex::default() }
    }

    /// Number of open streams.
    pub fn open(&self) -> usize {
        self.granted().by_namespace.values().map(BTreeMap::len).sum()
    }

    /// Number of streams that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Number of streams that failed, by type of source.
    pub fn failures(&self) -> BTreeMap<&'static str, u64> {
        self.failures.locked().clone()
    }

    pub(super) fn count_failure(&self, type_: &'static str) {
        *self.failures.locked().entry(type_).or_default() += 1;
    }

    /// A permit, as soon as there is one for this namespace.
    pub(super) async fn acquire(self: &Arc<Self>, namespace: &Arc<str>) -> StreamPermit {
        if let Some(permit) = self.try_acquire(namespace) {
            return permit;
        }
        let _waiting = WaitingStream::new(&self.waiting);
        loop {
            sleep(RETRY_INTERVAL).await;
            if let Some(permit) = self.try_acquire(namespace) {
                return permit;
            }
        }
    }

    /// A permit, if one is left or a namespace has at least two more than this one and loses one.
    pub(super) fn try_acquire(self: &Arc<Self>, namespace: &Arc<str>) -> Option<StreamPermit> {
        let mut granted = self.granted();
        let total: usize = granted.by_namespace.values().map(BTreeMap::len).sum();
        let own = granted.by_namespace.get(namespace).map_or(0, BTreeMap::len);
        if total >= self.max && !granted.end_one_of_the_largest(own) {
            return None;
        }
        let (sender, ended) = oneshot::channel();
        granted.made += 1;
        let number = granted.made;
        granted.by_namespace.entry(Arc::clone(namespace)).or_default().insert(number, sender);
        Some(StreamPermit { permits: Arc::clone(self), namespace: Arc::clone(namespace), number, ended })
    }

    fn granted(&self) -> MutexGuard<'_, GrantedPermits> {
        self.granted.locked()
    }
}

impl GrantedPermits {
    /// Ends the newest permit of the namespace with the most; false if that has at most one more than `own`, so that namespaces with
    /// equal shares do not take from each other for ever.
    fn end_one_of_the_largest(&mut self, own: usize) -> bool {
        let largest = self.by_namespace.values_mut().max_by_key(|permits| permits.len());
        largest.is_some_and(|permits| permits.len() > own + 1 && permits.pop_last().is_some())
    }
}

impl StreamPermit {
    /// Waits until another namespace gets this permit.
    pub(super) async fn ended(&mut self) {
        // The sender sends nothing: it is dropped.
        let _ = (&mut self.ended).await;
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut granted = self.permits.granted();
        if let Some(own) = granted.by_namespace.get_mut(&self.namespace) {
            own.remove(&self.number);
            if own.is_empty() {
                granted.by_namespace.remove(&self.namespace);
            }
        }
    }
}

impl<'a> WaitingStream<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitingStream<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[tokio::test]
    async fn namespace_with_fewer_streams_gets_one_of_the_largest() {
        let permits = Arc::new(StreamPermits::new(4));
        let [large, small, third] = ["large", "small", "third"].map(Arc::<str>::from);
        let mut taken: Vec<StreamPermit> = iter::from_fn(|| permits.try_acquire(&large)).collect();
        assert_eq!((taken.len(), permits.open()), (4, 4), "one namespace uses all that nobody else needs");
        let first = permits.try_acquire(&small).unwrap();
        let second = permits.try_acquire(&small).unwrap();
        assert_eq!(permits.open(), 4);
        assert!(permits.try_acquire(&small).is_none(), "both have two");
        assert!(permits.try_acquire(&large).is_none(), "both have two");
        let other = permits.try_acquire(&third).unwrap();
        assert!(permits.try_acquire(&third).is_none(), "2, 1 and 1 is the best division");
        // The newest permits of the largest end; the end of a permit is final, and dropping it changes nothing.
        let mut newest = taken.pop().unwrap();
        newest.ended().await;
        drop(newest);
        assert_eq!(permits.open(), 4);
        drop((first, second, other, taken));
        assert_eq!(permits.open(), 0);
        assert!(permits.granted().by_namespace.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_streams_are_counted_and_get_permits_that_become_free() {
        let permits = Arc::new(StreamPermits::new(1));
        let namespace: Arc<str> = "ns".into();
        let first = permits.acquire(&namespace).await;
        let task = tokio::spawn({
            let (permits, namespace) = (Arc::clone(&permits), Arc::clone(&namespace));
            async move { permits.acquire(&namespace).await }
        });
        sleep(Duration::from_mins(1)).await;
        assert_eq!((permits.open(), permits.waiting()), (1, 1));
        drop(first);
        let second = task.await.unwrap();
        assert_eq!((permits.open(), permits.waiting()), (1, 0));
        drop(second);
    }
}
