//! Connections of HTTP and gRPC clients.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::proxy::ProxyServer;
use super::{DialError, Dialer};
use crate::tenant::{in_namespace, namespace};

/// Connects to the host of a URI; the client adds TLS.
#[derive(Clone, Debug)]
pub struct UriConnector {
    dialer: Dialer,
    proxy: Option<ProxyServer>,
    /// Whether the proxy has to open a tunnel for connections without TLS, too.
    always_tunnels: bool,
    /// The namespace that the client was made for: some clients connect on a task of their own.
    namespace: Option<Arc<str>>,
}

/// A connection to a server, or to a proxy that forwards requests without TLS.
#[derive(Debug)]
pub struct DialedStream {
    stream: TokioIo<TcpStream>,
    /// Whether requests name the server.
    is_forwarded: bool,
}

impl UriConnector {
    /// A connector that connects through a proxy, if there is one.
    pub fn through(dialer: Dialer, proxy: Option<ProxyServer>) -> Self {
        Self { dialer, proxy, always_tunnels: false, namespace: namespace() }
    }

    /// A connector whose connections are tunnels of a proxy, if there is one: for protocols that a proxy does not forward.
    pub fn tunneled(dialer: Dialer, proxy: Option<ProxyServer>) -> Self {
        Self { dialer, proxy, always_tunnels: true, namespace: namespace() }
    }
}

impl Service<Uri> for UriConnector {
    type Response = DialedStream;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<DialedStream, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { dialer, proxy, always_tunnels, namespace: own } = self.clone();
        let connecting = async move {
            let is_tls = uri.scheme_str() == Some("https");
            let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
            let host = uri.host().ok_or_else(|| DialError::Invalid(uri.to_string()))?;
            let Some(proxy) = proxy else {
                let stream = TokioIo::new(dialer.connect(host, port).await?);
                return Ok(DialedStream { stream, is_forwarded: false });
            };
            let mut stream = proxy.connect(&dialer, host, port).await?;
            let is_tunnel = is_tls || always_tunnels;
            if is_tunnel {
                proxy.open_tunnel(&mut stream, host, port).await?;
            }
            Ok(DialedStream { stream: TokioIo::new(stream), is_forwarded: !is_tunnel })
        };
        match namespace().or(own) {
            Some(namespace) => Box::pin(in_namespace(namespace, connecting)),
            None => Box::pin(connecting),
        }
    }
}

impl Connection for DialedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarded)
    }
}

impl Read for DialedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for DialedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}
