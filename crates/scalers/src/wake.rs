//! Streams on which sources report that something has changed, so that they are queried before their next poll is due.
//!
//! A stream carries no values: a wake-up causes the same query as a poll, so that a wrong wake-up costs one query and the next poll
//! makes up for a lost one. Equal sources of a namespace share one stream. It is opened again with backoff when it ends.

mod permits;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use locks::MutexExt as _;
use sources::tenant::in_namespace;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::backends::Backends;
use crate::{ScalerFuture, Trigger, WakeFuture};
pub use permits::StreamPermits;

/// Delay before a stream is opened again; it doubles each time, and starts over after a stream that lasted longer than the maximum.
const MIN_RECONNECT_DELAY: Duration = Duration::from_secs(1);
const MAX_RECONNECT_DELAY: Duration = Duration::from_mins(1);

/// A source that reports when something has changed. Equal sources share a stream.
pub(crate) trait WakeSource: Clone + Eq + Hash + Send + Sync + 'static {
    /// The kind of source in exported metrics.
    const TYPE: &'static str;

    /// Its name in logs, without secrets.
    fn name(&self) -> String;

    /// Opens a stream and signals each change, and once after it was opened, because of changes before. It ends with the stream.
    fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()>;
}

/// Wakes all tasks that wait for a source. Signals that were not received yet are one.
#[derive(Clone, Debug)]
pub(crate) struct WakeSignal(Arc<watch::Sender<()>>);

impl WakeSignal {
    /// A signal and its receiver.
    pub(crate) fn channel() -> (Self, watch::Receiver<()>) {
        let (sender, receiver) = watch::channel(());
        (Self(Arc::new(sender)), receiver)
    }

    /// Requests a query of the source.
    pub(crate) fn query_now(&self) {
        self.0.send_replace(());
    }
}

/// The streams of one kind of source for the triggers of a namespace.
pub(crate) struct WakeStreams<S: WakeSource> {
    namespace: Arc<str>,
    permits: Arc<StreamPermits>,
    all: Arc<AllStreams<S>>,
}

/// All streams of one kind of source, by namespace and source. Namespaces share none, so that each stream counts for one of them.
struct AllStreams<S: WakeSource>(Mutex<StreamsBySource<S>>);

type StreamsBySource<S> = HashMap<(Arc<str>, S), Weak<WakeStream>>;

/// The stream of one source, which ends when this is dropped.
struct WakeStream {
    changes: watch::Receiver<()>,
    task: AbortHandle,
}

impl Drop for WakeStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S: WakeSource> Default for AllStreams<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The streams of all triggers that use these backends.
pub fn stream_permits(backends: &Backends) -> Arc<StreamPermits> {
    backends.state()
}

impl<S: WakeSource> WakeStreams<S> {
    /// The streams for the namespace of a trigger.
    pub(crate) fn new(trigger: &Trigger, backends: &Backends) -> Self {
        let namespace = Arc::from(&*trigger.owner.namespace);
        Self { namespace, permits: stream_permits(backends), all: backends.state() }
    }

    /// Reports when a source is to be queried, until the future is dropped.
    pub(crate) fn follow(&self, source: S, query_now: mpsc::Sender<()>) -> WakeFuture {
        let stream = self.stream(source);
        let mut changes = stream.changes.clone();
        Box::pin(async move {
            while changes.changed().await.is_ok() {
                if query_now.send(()).await.is_err() {
                    break;
                }
            }
            // The receiver is gone, or the stream panicked; the object is polled.
            drop(stream);
            std::future::pending::<()>().await;
        })
    }

    fn stream(&self, source: S) -> Arc<WakeStream> {
        let mut streams = self.all.0.locked();
        let key = (Arc::clone(&self.namespace), source);
        if let Some(known) = streams.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        streams.retain(|_, stream| stream.strong_count() > 0);
        let (signal, changes) = WakeSignal::channel();
        let running = run(key.1.clone(), Arc::clone(&self.namespace), Arc::clone(&self.permits), signal);
        let task = tokio::spawn(in_namespace(Arc::clone(&self.namespace), running)).abort_handle();
        let stream = Arc::new(WakeStream { changes, task });
        streams.insert(key, Arc::downgrade(&stream));
        stream
    }
}

/// Keeps a stream open while the namespace has a permit for it.
async fn run<S: WakeSource>(source: S, namespace: Arc<str>, permits: Arc<StreamPermits>, signal: WakeSignal) {
    let mut delay = MIN_RECONNECT_DELAY;
    let mut is_failing = false;
    loop {
        let mut permit = permits.acquire(&namespace).await;
        let began = Instant::now();
        let result = tokio::select! {
            result = source.follow(&signal) => result,
            () = permit.ended() => Ok(()),
        };
        drop(permit);
        let has_lasted = began.elapsed() > MAX_RECONNECT_DELAY;
        let was_failing = is_failing && !has_lasted;
        is_failing = result.is_err();
        if let Err(error) = result {
            permits.count_failure(S::TYPE);
            let (namespace, source) = (&*namespace, source.name());
            // One warning until a stream lasts or ends without an error: sources of tenants do not fill the log.
            if was_failing {
                tracing::debug!(namespace, source, %error, "the stream that wakes objects failed again");
            } else {
                tracing::warn!(namespace, source, %error, "the stream that wakes objects failed; they are polled");
            }
        }
        let wait = if has_lasted { MIN_RECONNECT_DELAY } else { delay };
        sleep(wait).await;
        delay = (wait * 2).min(MAX_RECONNECT_DELAY);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::test_support::{FakeCluster, backends};
    use crate::{Owner, ScalerError};

    /// A source whose streams a test ends.
    #[derive(Clone)]
    struct Scripted {
        name: &'static str,
        opened: Arc<AtomicUsize>,
        fails: bool,
    }

    impl PartialEq for Scripted {
        fn eq(&self, other: &Self) -> bool {
            self.name == other.name
        }
    }

    impl Eq for Scripted {}

    impl Hash for Scripted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.name.hash(state);
        }
    }

    impl WakeSource for Scripted {
        const TYPE: &'static str = "scripted";

        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()> {
            Box::pin(async move {
                self.opened.fetch_add(1, Ordering::SeqCst);
                signal.query_now();
                if self.fails {
                    return Err(ScalerError::new("connection refused"));
                }
                std::future::pending().await
            })
        }
    }

    fn scripted(name: &'static str, fails: bool) -> Scripted {
        Scripted { name, opened: Arc::default(), fails }
    }

    fn streams(namespace: &str, backends: &Backends) -> WakeStreams<Scripted> {
        let owner = Owner { namespace: namespace.to_owned(), ..Owner::default() };
        WakeStreams::new(&Trigger { owner, ..Trigger::default() }, backends)
    }

    #[tokio::test(start_paused = true)]
    async fn equal_sources_share_a_stream_that_ends_with_the_last_of_them() {
        let backends = backends(FakeCluster::default());
        let streams_of_ns = streams("ns", &backends);
        let alive = || {
            let all = streams_of_ns.all.0.lock().unwrap();
            all.values().filter(|stream| stream.strong_count() > 0).count()
        };
        let source = scripted("a", false);
        let (one, mut received) = mpsc::channel(1);
        let (two, mut also_received) = mpsc::channel(1);
        let first = tokio::spawn(streams_of_ns.follow(source.clone(), one));
        let second = tokio::spawn(streams("ns", &backends).follow(source.clone(), two));
        assert_eq!((received.recv().await, also_received.recv().await), (Some(()), Some(())));
        assert_eq!(source.opened.load(Ordering::SeqCst), 1);
        for task in [first, second] {
            assert_eq!(alive(), 1);
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert_eq!(alive(), 0);
        let (three, mut received) = mpsc::channel(1);
        let _third = tokio::spawn(streams_of_ns.follow(source.clone(), three));
        assert_eq!(received.recv().await, Some(()));
        assert_eq!(source.opened.load(Ordering::SeqCst), 2, "a new stream");
        let (four, mut received) = mpsc::channel(1);
        let _fourth = tokio::spawn(streams("other", &backends).follow(source.clone(), four));
        assert_eq!(received.recv().await, Some(()));
        assert_eq!(source.opened.load(Ordering::SeqCst), 3, "another namespace has its own");
    }

    #[tokio::test(start_paused = true)]
    async fn stream_that_fails_is_opened_again_with_backoff_and_counted() {
        let backends = backends(FakeCluster::default());
        let source = scripted("a", true);
        let (sender, mut received) = mpsc::channel(1);
        let _following = tokio::spawn(streams("ns", &backends).follow(source.clone(), sender));
        tokio::spawn(async move { while received.recv().await.is_some() {} });
        sleep(Duration::from_mins(10)).await;
        // At 0, 1, 3, 7, 15, 31, 63 s, and then once per minute.
        let opened = source.opened.load(Ordering::SeqCst);
        assert!((14..=16).contains(&opened), "{opened}");
        let failures = stream_permits(&backends).failures();
        assert_eq!(failures.into_iter().collect::<Vec<_>>(), [("scripted", opened as u64)]);
    }

    #[tokio::test(start_paused = true)]
    async fn stream_whose_permit_ends_waits_for_another() {
        let permits = Arc::new(StreamPermits::new(2));
        let all = Arc::new(AllStreams::default());
        let follow = |namespace: &str, name| {
            let (permits, all) = (Arc::clone(&permits), Arc::clone(&all));
            let (source, (sender, received)) = (scripted(name, false), mpsc::channel(1));
            let streams = WakeStreams { namespace: namespace.into(), permits, all };
            (source.clone(), tokio::spawn(streams.follow(source, sender)), received)
        };
        let (_first, _first_task, mut received) = follow("large", "a");
        assert_eq!(received.recv().await, Some(()));
        let (second, _second_task, mut received) = follow("large", "b");
        assert_eq!(received.recv().await, Some(()));
        let (_small, small_task, mut received) = follow("small", "c");
        assert_eq!(received.recv().await, Some(()), "the large namespace has lost a permit");
        sleep(Duration::from_mins(1)).await;
        assert_eq!(second.opened.load(Ordering::SeqCst), 1);
        assert_eq!((permits.open(), permits.waiting()), (2, 1));
        assert!(permits.failures().is_empty(), "that is no failure");
        small_task.abort();
        sleep(Duration::from_mins(1)).await;
        assert_eq!(second.opened.load(Ordering::SeqCst), 2);
        assert_eq!((permits.open(), permits.waiting()), (2, 0));
    }
}
