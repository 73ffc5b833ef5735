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
    /// When the oldest response that was used arrived.
    since: Cell<Option<Instant>>,
}

/// Runs a read that accepts shared responses up to `age` old. Also returns when the oldest response that was used arrived;
/// none if it used no response of an HTTP request or of a connection pool.
pub async fn with_max_age<F: Future>(age: Duration, reading: F) -> (F::Output, Option<Instant>) {
    let asking = ReadAge { age, since: Cell::new(None) };
    let reading = async {
        let read = reading.await;
        (read, READ_AGE.with(|asking| asking.since.get()))
    };
    READ_AGE.scope(asking, reading).await
}

/// The maximum age, if one is set.
pub(crate) fn allowed() -> Option<Duration> {
    READ_AGE.try_with(|asking| asking.age).ok()
}

/// Records that a response of this time was used.
pub(crate) fn used(at: Instant) {
    // Outside of [`with_max_age`] nothing is recorded.
    let _ = READ_AGE
        .try_with(|asking| asking.since.set(Some(asking.since.get().map_or(at, |known| known.min(at)))));
}
