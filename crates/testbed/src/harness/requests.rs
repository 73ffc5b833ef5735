//! Plain requests to an API server, and waiting until something is so. A request that cannot be sent and a wait that
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

/// Waits give up after this time, which is long because machines may be busy.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// Time between two looks of a wait.
const WAIT_INTERVAL: Duration = Duration::from_millis(50);

/// Sends a request; JSON `null` is no body. A patch with a field manager is an apply, another one a merge.
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

/// [`respond`], with the code and the body of the response.
pub async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let response = respond(client, method, path, body).await;
    (response.status().as_u16(), response.into_body())
}

/// [`send`], for a request that must succeed.
///
/// # Panics
/// If the response is not a success.
pub async fn write(client: &Client, method: Method, path: &str, body: &Value) -> Value {
    let (code, answer) = send(client, method.clone(), path, Some(body)).await;
    assert!((200..300).contains(&code), "{method} {path}: {code} {answer}");
    answer
}

/// Waits until `look` succeeds; the message of a failure has what it saw last.
///
/// # Panics
/// After [`WAIT_TIMEOUT`].
pub async fn until<T, E: Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(last) if Instant::now() > deadline => {
                panic!("{what} did not happen within {WAIT_TIMEOUT:?}; last seen: {last:#?}")
            }
            Err(_) => tokio::time::sleep(WAIT_INTERVAL).await,
        }
    }
}

/// [`until`] `look` finds something.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    until(what, async || look().await.ok_or(())).await
}
