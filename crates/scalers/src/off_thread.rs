//! Decodes large responses on worker threads, so that the thread that polls all triggers never waits for one of them.
//!
//! [`run`] polls a read on the calling task. When a response larger than [`MAX_INLINE_BYTES`] has arrived, the read asks to be
//! moved ([`decode_elsewhere`]): its next poll, which decodes the response, runs on a worker thread, and then the read
//! returns to its task. Scalers need to know nothing of it.
//!
//! [`log_in`] polls a login of a library that computes for long between two messages, and [`compute_login`] computes a step of our own.
//!
//! One of several namespaces has one of two workers at a time, because the servers of a tenant decide how much there is to compute.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use sources::tenant::{NamespaceParts, in_current_namespace};
use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_blocking;

/// Responses up to this size are decoded where they are received, in bytes.
pub const MAX_INLINE_BYTES: usize = 64 << 10;
/// How many responses are decoded at a time. Together with the limit of a tree it bounds the memory of all trees.
const MAX_WORKERS: usize = 2;

/// How many logins compute at a time. They have workers of their own, so that slow logins delay no decoding.
pub(crate) const MAX_LOGIN_WORKERS: usize = 2;
/// The same of one of several namespaces, also for decoding.
const MAX_NAMESPACE_WORKERS: usize = 1;

static DECODERS: Workers = Workers::new(MAX_WORKERS);
static LOGINS: Workers = Workers::new(MAX_LOGIN_WORKERS);

/// Permits for work on other threads.
struct Workers {
    all: Semaphore,
    parts: NamespaceParts<Semaphore>,
}

impl Workers {
    const fn new(permits: usize) -> Self {
        Self {
            all: Semaphore::const_new(permits),
            parts: NamespaceParts::new(|| Semaphore::new(MAX_NAMESPACE_WORKERS)),
        }
    }
}

thread_local! {
    static POLL_PLACE: Cell<PollPlace> = const { Cell::new(PollPlace::Anywhere) };
}

/// Where the current future is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PollPlace {
    /// Not by [`run`]: it stays where it is.
    Anywhere,
    /// By the task that called [`run`].
    Task,
    /// By that task, which must move it to a worker.
    MoveWanted,
    /// On a worker.
    Worker,
}

type BoxedRead<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What [`run`] does next.
enum Next<T> {
    Done(T),
    Move(Waker),
}

/// Runs a read; large responses are decoded on a worker thread. A panic there is a panic here.
pub async fn run<T: Send + 'static>(read: impl Future<Output = T> + Send + 'static) -> T {
    // The settings of the task do not apply on a worker, except for the namespace.
    let mut read: BoxedRead<T> = Box::pin(in_current_namespace(read));
    loop {
        let next = poll_fn(|context| {
            let (polled, place) = poll_at(PollPlace::Task, &mut read, context);
            match polled {
                Poll::Ready(value) => Poll::Ready(Next::Done(value)),
                Poll::Pending if place == PollPlace::MoveWanted => {
                    Poll::Ready(Next::Move(context.waker().clone()))
                }
                Poll::Pending => Poll::Pending,
            }
        });
        let waker = match next.await {
            Next::Done(value) => return value,
            Next::Move(waker) => waker,
        };
        let (back, polled) = compute(move || {
            let (polled, _) = poll_at(PollPlace::Worker, &mut read, &mut Context::from_waker(&waker));
            (read, polled)
        })
        .await;
        match polled {
            Poll::Ready(value) => return value,
            Poll::Pending => read = back,
        }
    }
}

/// Runs a long computation on a worker thread. A panic there is a panic here.
pub async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    compute_with(&DECODERS, work).await
}

/// Computes one step of a login on a worker thread. A panic there is a panic here.
pub(crate) async fn compute_login<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    compute_with(&LOGINS, work).await
}

/// Runs a login on worker threads. It holds a worker only while it is polled, not while it waits for the server. A panic there is a
/// panic here.
pub async fn log_in<T: Send + 'static>(login: impl Future<Output = T> + Send + 'static) -> T {
    let mut login: BoxedRead<T> = Box::pin(login);
    let woken = Arc::new(LoginWoken(Notify::new()));
    loop {
        let waker = Waker::from(Arc::clone(&woken));
        let (back, polled) = compute_with(&LOGINS, move || {
            let polled = login.as_mut().poll(&mut Context::from_waker(&waker));
            (login, polled)
        })
        .await;
        match polled {
            Poll::Ready(value) => return value,
            Poll::Pending => login = back,
        }
        woken.0.notified().await;
    }
}

/// Remembers that a login can go on.
struct LoginWoken(Notify);

impl Wake for LoginWoken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

async fn compute_with<T: Send + 'static>(
    workers: &'static Workers,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    // That of the namespace first: work that waits for other work of its namespace holds nothing that others wait for. The semaphores
    // are never closed.
    let part = match workers.parts.current_of_several() {
        Some(part) => part.acquire_owned().await.ok(),
        None => None,
    };
    let permit = workers.all.acquire().await.ok();
    let computed = spawn_blocking(move || {
        let _permits = (part, permit);
        work()
    });
    match computed.await {
        Ok(value) => value,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down and takes this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

fn poll_at<T>(place: PollPlace, read: &mut BoxedRead<T>, context: &mut Context<'_>) -> (Poll<T>, PollPlace) {
    let before = POLL_PLACE.replace(place);
    // The place of the thread is restored after a panic, too.
    let _restore = Restore(before);
    let polled = read.as_mut().poll(context);
    (polled, POLL_PLACE.get())
}

struct Restore(PollPlace);

impl Drop for Restore {
    fn drop(&mut self) {
        POLL_PLACE.set(self.0);
    }
}

/// Moves a read to a worker thread before it decodes a response of this size.
pub(crate) async fn decode_elsewhere(bytes: usize) {
    if bytes <= MAX_INLINE_BYTES {
        return;
    }
    poll_fn(|context| match POLL_PLACE.get() {
        PollPlace::Anywhere | PollPlace::Worker => Poll::Ready(()),
        PollPlace::Task | PollPlace::MoveWanted => {
            POLL_PLACE.set(PollPlace::MoveWanted);
            // A set of futures polls only those of its futures that were woken.
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// Returns from a worker to the task of the read before it sends a request, because task-local settings apply to requests.
pub(crate) async fn send_from_task() {
    poll_fn(|context| match POLL_PLACE.get() {
        PollPlace::Worker => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::thread::current;

    use futures::FutureExt as _;
    use futures::stream::{self, StreamExt as _};
    use sources::tenant::{in_namespace, namespace};

    use super::*;

    const LARGE: usize = MAX_INLINE_BYTES + 1;

    #[tokio::test]
    async fn only_large_responses_are_decoded_on_a_worker() {
        let own = current().id();
        let read = |bytes| async move {
            decode_elsewhere(bytes).await;
            current().id()
        };
        assert_eq!(run(read(MAX_INLINE_BYTES)).await, own);
        assert_ne!(run(read(LARGE)).await, own);
        assert_eq!(read(LARGE).await, own, "not under `run`");
        let back = run(async move {
            let decoded = read(LARGE).await;
            send_from_task().await;
            (decoded, current().id())
        });
        let (decoded, sent) = back.await;
        assert_ne!(decoded, own);
        assert_eq!(sent, own);
    }

    #[tokio::test]
    async fn task_local_settings_apply_after_the_return() {
        tokio::task_local! { static SETTING: u8; }
        let read = async {
            decode_elsewhere(LARGE).await;
            let there = SETTING.try_with(|setting| *setting).ok();
            send_from_task().await;
            (there, SETTING.try_with(|setting| *setting).ok())
        };
        assert_eq!(SETTING.scope(7, run(read)).await, (None, Some(7)));
    }

    #[tokio::test]
    async fn sets_of_futures_are_moved_and_finished() {
        let read = async {
            let one = |number: usize| async move {
                decode_elsewhere(LARGE).await;
                tokio::task::yield_now().await;
                decode_elsewhere(LARGE + number).await;
                number
            };
            stream::iter(0..50).map(one).buffer_unordered(5).fold(0, async |sum, one| sum + one).await
        };
        assert_eq!(run(read).await, (0..50).sum::<usize>());
    }

    #[tokio::test]
    async fn others_are_polled_while_a_response_is_decoded() {
        let (reported, receiver) = std::sync::mpsc::channel();
        let decode = tokio::spawn(run(async move {
            decode_elsewhere(LARGE).await;
            // Blocks the worker until the other task has run, which the single thread of this runtime polls.
            receiver.recv_timeout(std::time::Duration::from_mins(1)).is_ok()
        }));
        tokio::task::yield_now().await;
        reported.send(()).unwrap();
        assert!(decode.await.unwrap());
    }

    #[tokio::test]
    async fn computations_run_on_a_worker_and_panic_for_their_caller() {
        let own = current().id();
        assert_ne!(compute(move || current().id()).await, own);
        for _ in 0..=MAX_WORKERS {
            let broken = std::panic::AssertUnwindSafe(compute::<()>(|| panic!("broken key"))).catch_unwind();
            assert_eq!(broken.await.unwrap_err().downcast_ref(), Some(&"broken key"));
        }
    }

    #[tokio::test]
    async fn one_namespace_leaves_a_worker_to_others() {
        for workers in [&DECODERS, &LOGINS] {
            assert_eq!(in_namespace("other", compute_with(workers, || 1)).await, 1);
            let (release, held) = std::sync::mpsc::channel::<()>();
            let mut first =
                Box::pin(in_namespace("slow", compute_with(workers, move || held.recv().is_err())));
            let mut second = Box::pin(in_namespace("slow", compute_with(workers, || 2)));
            assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
            assert_eq!(in_namespace("other", compute_with(workers, || 3)).await, 3);
            assert!(futures::poll!(&mut second).is_pending(), "the first holds the part of the namespace");
            drop(release);
            assert!(first.await);
            assert_eq!(second.await, 2);
        }
    }

    #[tokio::test]
    async fn only_namespace_has_all_workers() {
        static WORKERS: Workers = Workers::new(MAX_WORKERS);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(in_namespace("only", compute_with(&WORKERS, move || held.recv().is_err())));
        assert!(futures::poll!(&mut first).is_pending());
        assert_eq!(in_namespace("only", compute_with(&WORKERS, || 2)).await, 2);
        drop(release);
        assert!(first.await);
    }

    #[tokio::test]
    async fn namespace_is_known_on_a_worker() {
        let read = async {
            decode_elsewhere(LARGE).await;
            namespace()
        };
        assert_eq!(in_namespace("shop", run(read)).await.as_deref(), Some("shop"));
    }

    #[tokio::test]
    async fn every_step_of_a_login_runs_on_a_worker() {
        let own = current().id();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let login = tokio::spawn(log_in(async move {
            let first = current().id();
            let message = receiver.await.unwrap();
            (first, message, current().id())
        }));
        // The login waits for the message meanwhile, and holds no worker.
        for _ in 0..=MAX_LOGIN_WORKERS {
            tokio::task::yield_now().await;
            assert_ne!(log_in(async { current().id() }).await, own);
        }
        sender.send("proof").unwrap();
        let (first, message, second) = login.await.unwrap();
        assert_eq!(message, "proof");
        assert!(first != own && second != own);
    }

    #[tokio::test]
    async fn a_panic_on_a_worker_is_a_panic_of_the_read() {
        // More often than there are workers: a panic must not use one up.
        for _ in 0..=MAX_WORKERS {
            let read = run(async {
                decode_elsewhere(LARGE).await;
                panic!("broken decoder");
            });
            let panic = std::panic::AssertUnwindSafe(read).catch_unwind().await.unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"broken decoder"));
            assert_eq!(POLL_PLACE.get(), PollPlace::Anywhere);
        }
    }
}
