//! How old an answer may be for whoever asks now, and how old it was.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    static ASKING: Asking;
}

/// One question to a scaler, which may ask several servers.
struct Asking {
    age: Duration,
    /// When the oldest answer came that was used.
    since: Cell<Option<Instant>>,
}

/// Has a scaler read while answers that others got no longer than `age` ago do as well. Also tells when the oldest answer
/// came that was used; none if nobody was asked over HTTP.
pub async fn no_older_than<F: Future>(age: Duration, reading: F) -> (F::Output, Option<Instant>) {
    let asking = Asking { age, since: Cell::new(None) };
    let reading = async {
        let read = reading.await;
        (read, ASKING.with(|asking| asking.since.get()))
    };
    ASKING.scope(asking, reading).await
}

/// How old an answer may be, if it was said.
pub(super) fn allowed() -> Option<Duration> {
    ASKING.try_with(|asking| asking.age).ok()
}

/// An answer of this moment is used.
pub(super) fn used(at: Instant) {
    // Whoever does not say how old it may be does not ask how old it was.
    let _ = ASKING
        .try_with(|asking| asking.since.set(Some(asking.since.get().map_or(at, |known| known.min(at)))));
}
