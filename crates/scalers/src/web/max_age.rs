//! Maximum age of shared responses, per read.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static READ_AGE: ReadAge;
}

/// One read of a scaler, which may send several requests.
struct ReadAge {
    age: Duration,
    /// Responses to requests that began earlier are not used.
    not_before: Option<Instant>,
    /// When the oldest response that was used arrived.
    since: Cell<Option<Instant>>,
}

/// Runs a read that accepts shared responses up to `age` old. Also returns when the oldest response that was used arrived;
/// none if it used no response of an HTTP request or of a connection pool.
///
/// A read because of an event also does not join a request that began before the event, because the response may not show the event
/// yet.
pub async fn with_max_age_after<F: Future>(
    age: Duration,
    event: Option<Instant>,
    reading: F,
) -> (F::Output, Option<Instant>) {
    let read_age = ReadAge { age, not_before: event, since: Cell::new(None) };
    let reading = async {
        let read = reading.await;
        (read, READ_AGE.with(|read_age| read_age.since.get()))
    };
    READ_AGE.scope(read_age, reading).await
}

/// The maximum age, if one is set.
pub(crate) fn allowed() -> Option<Duration> {
    READ_AGE.try_with(|read_age| read_age.age).ok()
}

/// Whether a request that began at this time may be joined.
pub(super) fn may_join(begun: Instant) -> bool {
    let not_before = READ_AGE.try_with(|read_age| read_age.not_before).ok().flatten();
    not_before.is_none_or(|not_before| begun >= not_before)
}

/// Records that a response of this time was used.
pub(crate) fn used(at: Instant) {
    // Outside of [`with_max_age_after`] nothing is recorded.
    let _ = READ_AGE.try_with(|read_age| {
        read_age.since.set(Some(read_age.since.get().map_or(at, |known| known.min(at))));
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use locks::MutexExt as _;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::web::tests::server;
    use crate::web::{HttpCall, HttpSettings, SharedEntry, SharedHttpClient};

    const TIMEOUT: Duration = Duration::from_mins(1);

    /// Polls a read, which must not end, until its request has reached the server.
    async fn poll_until(mut reading: impl Future + Unpin, is_sent: impl Fn() -> bool) {
        let sending = async {
            while !is_sent() {
                assert!(
                    futures::poll!(&mut reading).is_pending(),
                    "the read ended before the server answered"
                );
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, sending)
            .await
            .expect("no request of the read reached the server within a minute");
    }

    #[tokio::test]
    async fn read_because_of_an_event_joins_no_earlier_request() {
        let gate = Arc::new(Semaphore::new(0));
        let (url, requests) = server(Some(Arc::clone(&gate)), 200).await;
        let web = SharedHttpClient::new(HttpSettings::allowing_loopback());
        let read = |event: Option<Instant>| {
            let age = if event.is_some() { Duration::ZERO } else { TIMEOUT };
            Box::pin(with_max_age_after(age, event, web.send(HttpCall::get(&url, TIMEOUT))))
        };
        let mut before = read(None);
        poll_until(&mut before, || requests.load(Ordering::SeqCst) == 1).await;
        let event = Instant::now();
        let mut woken = read(Some(event));
        poll_until(&mut woken, || requests.load(Ordering::SeqCst) == 2).await;
        // The second request began after the event, so that all others join it.
        let mut others = [read(Some(event)), read(None)];
        for other in &mut others {
            assert!(futures::poll!(other).is_pending());
        }
        gate.add_permits(2);
        woken.await.0.unwrap();
        for other in others {
            other.await.0.unwrap();
        }
        // The earlier request ends last, and its response does not replace the later one.
        before.await.0.unwrap();
        assert_eq!(requests.load(Ordering::SeqCst), 2);
        let is_later = |entry: &SharedEntry| matches!(entry, SharedEntry::RecentResponse(recent) if recent.begun >= event);
        let kept: Vec<bool> = web.shared_requests.locked().by_key.values().map(is_later).collect();
        assert_eq!(kept, [true]);
    }
}
