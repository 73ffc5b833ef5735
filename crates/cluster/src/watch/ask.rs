//! One request, and its answer piece by piece.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;

use super::WatchSource;
use super::failure::{Status, WatchFailure};
use crate::connect::cause;

/// How much of an error is read.
const ERROR_BODY: usize = 64 << 10;
/// How long is waited for it.
const ERROR_TIME: Duration = Duration::from_secs(10);

/// Asks, and waits for the beginning of a good answer.
pub(super) async fn ask(
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

/// The next bytes; none at the end.
pub(super) async fn frame(body: &mut Body, silence: Duration) -> Result<Option<Bytes>, WatchFailure> {
    match timeout(silence, body.frame()).await {
        Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
        Ok(Some(Err(error))) => Err(WatchFailure::broken(cause(&error))),
        Ok(None) => Ok(None),
        Err(_) => Err(WatchFailure::silent(silence)),
    }
}

/// Why the server refused.
async fn refusal(answer: Response<Body>) -> WatchFailure {
    let code = answer.status().as_u16();
    let pause = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = timeout(ERROR_TIME, Limited::new(answer.into_body(), ERROR_BODY).collect()).await;
    let text = body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let status: Status = serde_json::from_slice(&text).unwrap_or_default();
    WatchFailure::refused(code, status, pause.map(Duration::from_secs))
}
