//! HTTP without TLS, to and from servers on this machine.

use std::io;
use std::sync::LazyLock;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::side;

type Plain = Client<HttpConnector, Full<Bytes>>;

/// Asks for a page; the body whole.
pub(crate) async fn get(url: &str) -> io::Result<Response<Bytes>> {
    send(Request::get(url).body(Full::default()).map_err(io::Error::other)?).await
}

/// Sends a request; the body whole.
pub(crate) async fn send(request: Request<Full<Bytes>>) -> io::Result<Response<Bytes>> {
    // Pooled connections need a runtime that outlives the caller's.
    static CLIENT: LazyLock<Plain> = LazyLock::new(|| Client::builder(TokioExecutor::new()).build_http());
    let answer = async {
        let (parts, body) = CLIENT.request(request).await.map_err(io::Error::other)?.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(parts, body))
    };
    side::handle().spawn(answer).await.map_err(io::Error::other)?
}
