//! List and watch requests, and the frames of their responses.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use super::WatchSource;
use super::failure::{WatchFailure, WatchStatus};
use crate::connect::cause;

/// How much of an error body is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The timeout of reading an error body.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a list or watch request, and waits for the head of a successful response.
pub(super) async fn send(
    client: &Client,
    source: &WatchSource,
    silence: Duration,
    parameters: &[(&str, &str)],
) -> Result<Body, WatchFailure> {
    let watch = parameters.iter().any(|(name, _)| *name == "watch");
    let mut request = Request::new(Body::empty());
    let uri = source.uri(parameters);
    *request.uri_mut() = uri.parse().map_err(|error| WatchFailure::broken(format!("{uri}: {error}")))?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(source.accept(watch)));
    let answer = timeout(silence, client.send(request)).await;
    let answer = answer.map_err(|_| WatchFailure::silent(silence))?;
    let answer = answer.map_err(|error| WatchFailure::broken(cause(&error)))?;
    if answer.status() == StatusCode::OK {
        return Ok(answer.into_body());
    }
    Err(refusal(answer).await)
}

/// The next frame; none at the end of the body.
pub(super) async fn frame(body: &mut Body, silence: Duration) -> Result<Option<Bytes>, WatchFailure> {
    match timeout(silence, body.frame()).await {
        Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
        Ok(Some(Err(error))) => Err(WatchFailure::broken(cause(&error))),
        Ok(None) => Ok(None),
        Err(_) => Err(WatchFailure::silent(silence)),
    }
}

/// The error of a response.
async fn refusal(answer: Response<Body>) -> WatchFailure {
    let code = answer.status().as_u16();
    let pause = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = timeout(ERROR_BODY_TIMEOUT, Limited::new(answer.into_body(), MAX_ERROR_BYTES).collect()).await;
    let text = body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let status: WatchStatus = serde_json::from_slice(&text).unwrap_or_default();
    WatchFailure::refused(Some(code), status, pause.map(Duration::from_secs))
}
