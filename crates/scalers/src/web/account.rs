//! What was sent over HTTP while a scaler read one metric, for figures.

use std::cell::RefCell;
use std::time::Duration;

use sources::http::{HttpError, HttpResponse};
use tokio::time::Instant;

tokio::task_local! {
    static ACCOUNT: RefCell<Account>;
}

/// No reading sends more than is counted here.
const MOST: usize = 64;

/// What a scaler did while it read one metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Requests that were sent; what others had asked a moment ago is not sent again.
    pub sent: Vec<Sent>,
    /// Answers in which nothing was found where a number should be.
    pub empty: u32,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The code of the answer; none if there was no answer.
    pub code: Option<u16>,
    /// How long it took.
    pub took: Duration,
}

/// Has a scaler read, and tells what it did meanwhile.
pub async fn accounted<F: Future>(reading: F) -> (F::Output, Account) {
    let reading = async {
        let read = reading.await;
        (read, ACCOUNT.with(RefCell::take))
    };
    ACCOUNT.scope(RefCell::default(), reading).await
}

/// An answer held nothing where a number should be.
pub fn empty() {
    note(|account| account.empty = account.empty.saturating_add(1));
}

fn note(change: impl FnOnce(&mut Account)) {
    // Whoever does not account for it does not ask.
    let _ = ACCOUNT.try_with(|account| account.try_borrow_mut().map(|mut account| change(&mut account)));
}

/// One that is under way; whoever does not wait for its end has no answer.
struct Sending {
    began: Instant,
    code: Option<u16>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        let sent = Sent { code: self.code, took: self.began.elapsed() };
        note(|account| {
            if account.sent.len() < MOST {
                account.sent.push(sent);
            }
        });
    }
}

/// Counts a request that is sent: with whoever waits for it at its end.
pub(super) async fn counted(
    sending: impl Future<Output = Result<HttpResponse, HttpError>>,
) -> Result<HttpResponse, HttpError> {
    let mut open = Sending { began: Instant::now(), code: None };
    let answer = sending.await;
    open.code = answer.as_ref().ok().map(|answer| answer.status.as_u16());
    answer
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn answer(status: StatusCode) -> HttpResponse {
        HttpResponse { status, headers: HeaderMap::new(), body: Bytes::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_is_counted_also_if_nobody_waits_for_its_end() {
        let ((), account) = accounted(async {
            let slow = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok(answer(StatusCode::BAD_GATEWAY))
            };
            counted(slow).await.unwrap();
            let never = counted(std::future::pending());
            let _ = tokio::time::timeout(Duration::from_secs(3), never).await;
            empty();
        })
        .await;
        let codes: Vec<_> = account.sent.iter().map(|sent| (sent.code, sent.took.as_secs())).collect();
        assert_eq!((codes, account.empty), (vec![(Some(502), 2), (None, 3)], 1));
        // Who asks without an account is answered all the same.
        assert!(counted(async { Ok(answer(StatusCode::OK)) }).await.is_ok());
        empty();
    }
}
