//! Requests sent while a scaler reads one metric, for exported metrics and for the cause of a failure.

use std::cell::RefCell;
use std::time::Duration;

use sources::http::{HttpError, HttpResponse};
use tokio::time::Instant;

use crate::ScalerError;

tokio::task_local! {
    static REQUEST_LOG: RefCell<RequestLog>;
}

/// Maximum number of requests recorded per read.
const MAX_RECORDED_REQUESTS: usize = 64;

/// Requests sent during one read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLog {
    /// Requests that were sent; shared responses are not among them.
    pub sent: Vec<SentRequest>,
    /// Number of responses without a value.
    pub empty: u32,
    /// Status code of the last response, also of a shared one; none if the last request got no response.
    pub last_status: Option<u16>,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// Status code; none without a response.
    pub code: Option<u16>,
    /// Duration of the request.
    pub took: Duration,
}

/// Runs a read and returns the requests it sent.
pub async fn with_request_log<F: Future>(reading: F) -> (F::Output, RequestLog) {
    let reading = async {
        let read = reading.await;
        (read, REQUEST_LOG.with(RefCell::take))
    };
    REQUEST_LOG.scope(RefCell::default(), reading).await
}

/// Counts a response without a value.
pub fn count_empty_response() {
    note(|log| log.empty = log.empty.saturating_add(1));
}

/// Remembers the last response.
pub(super) fn answered(answer: &Result<HttpResponse, HttpError>) {
    let status = answer.as_ref().ok().map(|answer| answer.status.as_u16());
    note(|log| log.last_status = status);
}

impl ScalerError {
    /// With the status of the last HTTP response of this read as the cause, if none is known. Scalers report an unexpected status
    /// with a message of their own, from which no caller could tell what the source refused.
    #[must_use]
    pub fn with_last_status(self) -> Self {
        self.with_status(REQUEST_LOG.try_with(|log| log.try_borrow().ok()?.last_status).ok().flatten())
    }
}

fn note(change: impl FnOnce(&mut RequestLog)) {
    // Outside of [`with_request_log`] nothing is recorded.
    let _ = REQUEST_LOG.try_with(|log| log.try_borrow_mut().map(|mut log| change(&mut log)));
}

/// A request in flight; dropping it records a request without response.
struct OpenRequest {
    began: Instant,
    code: Option<u16>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let sent = SentRequest { code: self.code, took: self.began.elapsed() };
        note(|log| {
            if log.sent.len() < MAX_RECORDED_REQUESTS {
                log.sent.push(sent);
            }
        });
    }
}

/// Records a request in the log of the task that completes or drops it.
pub(super) async fn recorded(
    sending: impl Future<Output = Result<HttpResponse, HttpError>>,
) -> Result<HttpResponse, HttpError> {
    let mut open = OpenRequest { began: Instant::now(), code: None };
    let answer = sending.await;
    open.code = answer.as_ref().ok().map(|answer| answer.status.as_u16());
    answer
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn answer(status: StatusCode) -> HttpResponse {
        HttpResponse { status, headers: HeaderMap::new(), body: Bytes::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_requests_are_recorded() {
        let ((), log) = with_request_log(async {
            let slow = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok(answer(StatusCode::BAD_GATEWAY))
            };
            recorded(slow).await.unwrap();
            let never = recorded(std::future::pending());
            let _ = tokio::time::timeout(Duration::from_secs(3), never).await;
            count_empty_response();
        })
        .await;
        let codes: Vec<_> = log.sent.iter().map(|sent| (sent.code, sent.took.as_secs())).collect();
        assert_eq!((codes, log.empty), (vec![(Some(502), 2), (None, 3)], 1));
        // Requests outside of a log succeed as well.
        assert!(recorded(async { Ok(answer(StatusCode::OK)) }).await.is_ok());
        count_empty_response();
    }
}
