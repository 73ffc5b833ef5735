//! Listeners on this machine: the accept loop, TLS handshakes and HTTP connections of all simulated servers.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a TLS handshake may take.
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted: file descriptors are exhausted until another connection ends.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves every connection until this future is dropped, which also ends the connections.
pub async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Small frames, such as those of watches, must not be delayed.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve(stream));
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The TLS connection of a client; none if the handshake fails or takes too long.
pub async fn handshake(tls: &TlsAcceptor, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    tokio::time::timeout(TLS_HANDSHAKE_TIMEOUT, tls.accept(stream)).await.ok()?.ok()
}

/// Whether the client of a TLS connection presented a certificate.
pub fn has_certificate(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty())
}

/// Serves HTTP/1.1 and HTTP/2 on a connection. Errors of the client end it and are ignored.
pub async fn serve_http<S, F, R, B>(stream: S, answer: F)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
