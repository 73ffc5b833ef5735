//! Streams on which sources say that something has changed, so that they are asked before their next poll is due.
//!
//! A stream carries no values: whoever is woken asks the source as a poll does, so that a wrong wake-up costs one query and a lost
//! one is made good by the next poll. Equal sources share one stream. It is opened again with backoff when it ends.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::ScalerFuture;

/// Maximum number of open streams; further ones wait until another ends, and their objects are polled meanwhile.
const MAX_OPEN_STREAMS: usize = 256;
/// Delay before a stream is opened again; it doubles each time, and starts over after a stream that lasted longer than the maximum.
const MIN_RECONNECT_DELAY: Duration = Duration::from_secs(1);
const MAX_RECONNECT_DELAY: Duration = Duration::from_mins(1);

static OPEN_STREAMS: Semaphore = Semaphore::const_new(MAX_OPEN_STREAMS);

/// Forwards wake-ups until it is dropped.
pub type WakeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source that says when something has changed. Equal sources share a stream.
pub(crate) trait WakeSource: Clone + Eq + Hash + Send + Sync + 'static {
    /// Its name in logs, without secrets.
    fn name(&self) -> String;

    /// Opens a stream and signals each change, and once after it was opened, because of changes before. It ends with the stream.
    fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()>;
}

/// Wakes all who wait for a source. Signals that nobody has heard yet are one.
#[derive(Clone, Debug)]
pub(crate) struct WakeSignal(Arc<watch::Sender<()>>);

impl WakeSignal {
    /// The source is to be asked.
    pub(crate) fn ask_now(&self) {
        self.0.send_replace(());
    }
}

/// All streams of one kind of source.
pub(crate) struct WakeStreams<S: WakeSource>(Mutex<HashMap<S, Weak<WakeStream>>>);

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

impl<S: WakeSource> Default for WakeStreams<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: WakeSource> WakeStreams<S> {
    /// Says when a source is to be asked, until the future is dropped.
    pub(crate) fn follow(&self, source: S, ask_now: mpsc::Sender<()>) -> WakeFuture {
        let stream = self.stream(source);
        let mut changes = stream.changes.clone();
        Box::pin(async move {
            while changes.changed().await.is_ok() {
                if ask_now.send(()).await.is_err() {
                    break;
                }
            }
            // Nobody listens any more, or the stream panicked; the object is polled.
            drop(stream);
            std::future::pending::<()>().await;
        })
    }

    fn stream(&self, source: S) -> Arc<WakeStream> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = streams.get(&source).and_then(Weak::upgrade) {
            return known;
        }
        streams.retain(|_, stream| stream.strong_count() > 0);
        let (sender, changes) = watch::channel(());
        let task = tokio::spawn(run(source.clone(), WakeSignal(Arc::new(sender)))).abort_handle();
        let stream = Arc::new(WakeStream { changes, task });
        streams.insert(source, Arc::downgrade(&stream));
        stream
    }
}

/// Keeps a stream open.
async fn run<S: WakeSource>(source: S, signal: WakeSignal) {
    let mut delay = MIN_RECONNECT_DELAY;
    loop {
        // The semaphore is never closed.
        let permit = OPEN_STREAMS.acquire().await;
        let began = Instant::now();
        let ended = source.follow(&signal).await;
        drop(permit);
        if let Err(error) = ended {
            tracing::debug!(source = source.name(), %error, "the stream that wakes objects ended");
        }
        let wait = if began.elapsed() > MAX_RECONNECT_DELAY { MIN_RECONNECT_DELAY } else { delay };
        sleep(wait).await;
        delay = (wait * 2).min(MAX_RECONNECT_DELAY);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::ScalerError;

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
        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn follow<'a>(&'a self, signal: &'a WakeSignal) -> ScalerFuture<'a, ()> {
            Box::pin(async move {
                self.opened.fetch_add(1, Ordering::SeqCst);
                signal.ask_now();
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

    #[tokio::test(start_paused = true)]
    async fn equal_sources_share_a_stream_that_ends_with_the_last_of_them() {
        let streams = WakeStreams::default();
        let source = scripted("a", false);
        let (one, mut heard) = mpsc::channel(1);
        let (two, mut heard_too) = mpsc::channel(1);
        let first = tokio::spawn(streams.follow(source.clone(), one));
        let second = tokio::spawn(streams.follow(source.clone(), two));
        assert_eq!((heard.recv().await, heard_too.recv().await), (Some(()), Some(())));
        assert_eq!(source.opened.load(Ordering::SeqCst), 1);
        for task in [first, second] {
            assert_eq!(
                streams.0.lock().unwrap().values().filter(|stream| stream.strong_count() > 0).count(),
                1
            );
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert_eq!(streams.0.lock().unwrap().values().filter(|stream| stream.strong_count() > 0).count(), 0);
        let (three, mut heard) = mpsc::channel(1);
        let _third = tokio::spawn(streams.follow(source.clone(), three));
        assert_eq!(heard.recv().await, Some(()));
        assert_eq!(source.opened.load(Ordering::SeqCst), 2, "a new stream");
    }

    #[tokio::test(start_paused = true)]
    async fn stream_that_fails_is_opened_again_with_backoff() {
        let streams = WakeStreams::default();
        let source = scripted("a", true);
        let (sender, mut heard) = mpsc::channel(1);
        let _following = tokio::spawn(streams.follow(source.clone(), sender));
        tokio::spawn(async move { while heard.recv().await.is_some() {} });
        sleep(Duration::from_mins(10)).await;
        // At 0, 1, 3, 7, 15, 31, 63 s, and then once per minute.
        let opened = source.opened.load(Ordering::SeqCst);
        assert!((14..=16).contains(&opened), "{opened}");
    }
}
