//! A request that is to be sent: bounded in number, not sent during a pause of its source, and conditional if its response is known.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::header::IF_NONE_MATCH;
use locks::MutexExt as _;
use runtime::Clock;
use sources::http::{HttpClient, HttpError, HttpErrorCause, HttpRequest, HttpResponse};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::etags::Etags;
use super::quota::{self, Quotas};
use super::{HttpResult, MAX_PERMIT_TIME, RequestKey, request_log};

/// A request that is to be sent. Its timeout begins when it is sent: requests of one trigger do not share a deadline.
pub(super) struct OutgoingRequest {
    pub(super) client: HttpClient,
    pub(super) request: HttpRequest,
    /// Bounds the requests to one server under way.
    pub(super) permits: Arc<Semaphore>,
    pub(super) quotas: Arc<Mutex<Quotas>>,
    /// Identifies the caller and the server, for pauses.
    pub(super) caller: RequestKey,
    pub(super) etags: Arc<Mutex<Etags>>,
    /// Identifies the response; none if it cannot be used again.
    pub(super) response: Option<RequestKey>,
    pub(super) clock: Clock,
}

impl OutgoingRequest {
    /// Sends the request, unless its source requires a pause.
    pub(super) async fn send(self) -> HttpResult {
        let Self { client, request, permits, quotas, caller, etags, response, clock } = self;
        let limited = |cause: HttpErrorCause| HttpError { server: client.server().to_owned(), cause };
        let refusal =
            || quotas.locked().refusal(caller, Instant::now()).map_or(Ok(()), |cause| Err(limited(cause)));
        refusal()?;
        // The semaphore is never closed.
        let permit = permits.acquire().await;
        // Another request may have met the limit meanwhile.
        refusal()?;
        let known = response.and_then(|key| etags.locked().get(key, Instant::now()));
        let request = match &known {
            Some(known) => request.header(IF_NONE_MATCH, known.etag.clone()),
            None => request,
        };
        let mut sending = std::pin::pin!(request_log::recorded(client.send(request)));
        let answer = match timeout(MAX_PERMIT_TIME, &mut sending).await {
            Ok(answer) => answer?,
            Err(_) => {
                drop(permit);
                sending.await?
            }
        };
        let (now, wall) = (Instant::now(), clock.now());
        if let Some(pause) = quota::pause(answer.status, &answer.headers, wall) {
            let cause = quotas.locked().note(caller, &pause, now, wall);
            if quota::is_refusal(answer.status) {
                return Err(limited(cause));
            }
        }
        match (known, response) {
            (Some(known), _) if answer.status == StatusCode::NOT_MODIFIED => {
                Ok(HttpResponse { status: known.status, headers: answer.headers, body: known.body })
            }
            (_, Some(key)) => {
                etags.locked().keep(key, &answer, now);
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}
