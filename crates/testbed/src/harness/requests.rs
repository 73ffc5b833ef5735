//! Plain requests to an API server, and waiting for conditions. A request that cannot be sent and a wait that
//! takes too long fail the test.

#![allow(clippy::panic, reason = "used by tests and benchmarks, which fail by it")]

use std::fmt::Debug;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The timeout of a wait, which is long because machines may be busy.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// The time between two probes of a wait.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// Sends a request; JSON `null` is no body. A patch with a field manager is a server-side apply, any other patch a merge patch.
///
/// # Panics
/// If there is no response.
pub async fn respond(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Response<Value> {
    let content = match method {
        Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = body.filter(|body| !body.is_null()).map(|body| body.to_string().into_bytes());
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    let sent = async {
        let request = request.body(Body::from(bytes.unwrap_or_default())).map_err(kube::Error::HttpError)?;
        let (parts, body) = client.send(request).await?.into_parts();
        Ok::<_, kube::Error>((parts, body.collect().await?.to_bytes()))
    };
    let (parts, text) = sent.await.unwrap_or_else(|error| panic!("{path}: {error}"));
    let body = serde_json::from_slice(&text).unwrap_or_else(|_| json!(String::from_utf8_lossy(&text)));
    Response::from_parts(parts, body)
}

/// Sends a request as [`respond`] does, and returns the status code and the body of the response.
pub async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let response = respond(client, method, path, body).await;
    (response.status().as_u16(), response.into_body())
}

/// Sends a request that must succeed, and returns the body of the response.
///
/// # Panics
/// If the response is not a success.
pub async fn write(client: &Client, method: Method, path: &str, body: &Value) -> Value {
    let (code, response) = send(client, method.clone(), path, Some(body)).await;
    assert!((200..300).contains(&code), "{method} {path}: {code} {response}");
    response
}

/// Waits until `probe` succeeds. The message of a failure has its last error.
///
/// # Panics
/// After [`WAIT_TIMEOUT`].
pub async fn until<T, E: Debug>(what: &str, mut probe: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        match probe().await {
            Ok(found) => return found,
            Err(last) if Instant::now() > deadline => {
                panic!("{what} did not happen within {WAIT_TIMEOUT:?}; last seen: {last:#?}")
            }
            Err(_) => tokio::time::sleep(PROBE_INTERVAL).await,
        }
    }
}

/// Waits until `probe` returns a value.
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    until(what, async || probe().await.ok_or(())).await
}
