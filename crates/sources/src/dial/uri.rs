//! Connections of HTTP and gRPC clients.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::{DialError, Dialer};

/// Connects to the host of a URI; the client adds TLS.
#[derive(Clone, Debug)]
pub struct UriConnector(Dialer);

impl UriConnector {
    /// A connector that uses this dialer.
    pub fn new(dialer: Dialer) -> Self {
        Self(dialer)
    }
}

impl Service<Uri> for UriConnector {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<TokioIo<TcpStream>, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.0.clone();
        Box::pin(async move {
            let is_tls = uri.scheme_str() == Some("https");
            let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
            let host = uri.host().ok_or_else(|| DialError::Invalid(uri.to_string()))?;
            dialer.connect(host, port).await.map(TokioIo::new)
        })
    }
}
