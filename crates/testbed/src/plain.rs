//! HTTP without TLS, to and from servers on this machine.

use std::io;
use std::sync::LazyLock;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::simulated;

type PlainClient = Client<HttpConnector, Full<Bytes>>;

/// Sends GET, and returns the response with its whole body.
pub(crate) async fn get(url: &str) -> io::Result<Response<Bytes>> {
    send(Request::get(url).body(Full::default()).map_err(io::Error::other)?).await
}

/// Sends a request, and returns the response with its whole body.
pub(crate) async fn send(request: Request<Full<Bytes>>) -> io::Result<Response<Bytes>> {
    // The client runs on a shared runtime, because pooled connections need a runtime that outlives that of the caller.
    static CLIENT: LazyLock<PlainClient> =
        LazyLock::new(|| Client::builder(TokioExecutor::new()).build_http());
    let answer = async {
        let (parts, body) = CLIENT.request(request).await.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    simulated::handle().spawn(answer).await.map_err(io::Error::other)?
}

/// Sends JSON with a header that authorizes the request, and returns the JSON of the response. `null` is no body.
pub(crate) async fn send_json(
    method: Method,
    url: &str,
    (header, secret): (&str, &str),
    body: &Value,
) -> io::Result<Value> {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(url).header(header, secret);
    let request = request.header("content-type", "application/json").body(Full::new(body));
    let answer = send(request.map_err(io::Error::other)?).await?;
    if !answer.status().is_success() {
        let said = String::from_utf8_lossy(answer.body()).into_owned();
        return Err(io::Error::other(format!("{}: {said}", answer.status())));
    }
    Ok(serde_json::from_slice(answer.body()).unwrap_or_default())
}
