//! The deadline of a read that sends many requests: it begins anew with each response.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::time::{Instant, timeout_at};

tokio::task_local! {
    /// When the last response of this read arrived, or when the read began.
    static LAST_RESPONSE: Arc<Mutex<Instant>>;
}

/// Runs a read whose single requests may take `each` and that may take `all` in total; none if it takes longer.
pub async fn with_request_deadline<F: Future>(each: Duration, all: Duration, read: F) -> Option<F::Output> {
    let began = Instant::now();
    let last = Arc::new(Mutex::new(began));
    let next = || (*last.locked() + each).min(began + all.max(each));
    let mut read = std::pin::pin!(LAST_RESPONSE.scope(Arc::clone(&last), read));
    loop {
        let deadline = next();
        if let Ok(done) = timeout_at(deadline, &mut read).await {
            return Some(done);
        }
        if next() <= deadline {
            return None;
        }
    }
}

/// Notes that a response has arrived.
pub(super) fn responded() {
    // Outside of [`with_request_deadline`] nothing is noted.
    let _ = LAST_RESPONSE.try_with(|last| *last.locked() = Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_response_begins_a_new_deadline() {
        let (each, all) = (Duration::from_secs(10), Duration::from_secs(30));
        let requests = |count: u32, took: u64| async move {
            for _ in 0..count {
                tokio::time::sleep(Duration::from_secs(took)).await;
                responded();
            }
            count
        };
        assert_eq!(with_request_deadline(each, all, requests(1, 9)).await, Some(1));
        assert_eq!(with_request_deadline(each, all, requests(3, 9)).await, Some(3));
        assert_eq!(with_request_deadline(each, all, requests(4, 9)).await, None, "in total");
        let began = Instant::now();
        assert_eq!(with_request_deadline(each, all, requests(2, 11)).await, None, "one request");
        assert_eq!(began.elapsed().as_secs(), 10);
        // Other sources than HTTP have one deadline.
        assert_eq!(with_request_deadline(each, all, tokio::time::sleep(Duration::from_secs(11))).await, None);
    }
}
