//! The listener: TLS with HTTP/1.1 and HTTP/2, a bounded number of connections, and an end for those that do nothing.
//!
//! ```text
//! certificate  the server's own: given as files, or made here
//! material     an authority and a certificate that replicas share, and when others must follow
//! keyring      what is shown and whom to believe at this moment, for several listeners
//! handshake    what is asked of clients while greeting
//! activity     whether a connection does anything
//! ```

mod activity;
mod bundle;
mod certificate;
mod handshake;
mod keyring;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(crate) use activity::Activity;
pub use bundle::{BundleRenewal, CertificateBundle, CertificateLifetimes};
pub use certificate::{Certificate, CertificateError};
pub(crate) use certificate::{Keeper, PERIOD};
pub(crate) use handshake::config;
pub use keyring::Keyring;

use crate::identity::Peer;
use crate::response::Body;

/// How much is encrypted before it is handed to the system: long answers go out in few calls.
const WRITTEN: usize = 256 * 1024;

/// What one client may take of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at a time; further ones wait.
    pub connections: usize,
    /// Time to greet.
    pub handshake: Duration,
    /// Time to send the head of a request.
    pub head: Duration,
    /// Size of the head of a request.
    pub head_size: u32,
    /// Size of the body of a request.
    pub body_size: usize,
    /// Requests at a time on one connection.
    pub streams: u32,
    /// Requests at a time in all; those of administrators are not counted.
    pub requests: usize,
    /// Followed answers (watches) at a time in all.
    pub watches: usize,
    /// Time to answer a request.
    pub answer: Duration,
    /// Time an answer may be followed.
    pub watch: Duration,
    /// Time a connection may do nothing.
    pub idle: Duration,
    /// Time that requests have to end when the server stops.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(32),
            head_size: 128 * 1024,
            body_size: 3 * 1024 * 1024,
            streams: 100,
            requests: 400,
            watches: 200,
            answer: Duration::from_mins(1),
            watch: Duration::from_hours(1),
            idle: Duration::from_secs(90),
            grace: Duration::from_secs(10),
        }
    }
}

/// Answers requests of a connection.
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// Answers one request.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Option<Arc<Peer>>,
        activity: Activity,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// How clients are greeted.
#[derive(Clone)]
pub(crate) enum Greeting {
    /// With TLS.
    Tls(TlsAcceptor),
    /// Not at all: anybody may listen.
    Plain,
}

/// Takes connections until told to stop, then lets them end.
pub(crate) async fn listen<S: ConnectionHandler>(
    listener: TcpListener,
    greeting: Greeting,
    site: Arc<S>,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some((stream, address, permit)) = accepted else { continue };
        while connections.try_join_next().is_some() {}
        let (greeting, site, stop) = (greeting.clone(), Arc::clone(&site), stop.clone());
        connections.spawn(async move {
            serve(stream, address, greeting, site, limits, stop).await;
            drop(permit);
        });
    }
    drop(listener);
    let end = async { while connections.join_next().await.is_some() {} };
    // Each connection keeps to the limit by itself; this is for those that hang in between.
    if tokio::time::timeout(limits.grace + Duration::from_secs(1), end).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => Some((stream, address, permit)),
        Err(error) => {
            // It fails for one connection, or for want of files, which others will give back.
            tracing::debug!(%error, "failed to take a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn serve<S: ConnectionHandler>(
    stream: TcpStream,
    address: SocketAddr,
    greeting: Greeting,
    site: Arc<S>,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    // Watches send small frames that must not wait for each other.
    let _ = stream.set_nodelay(true);
    let acceptor = match greeting {
        Greeting::Tls(acceptor) => acceptor,
        Greeting::Plain => return converse(stream, None, site, limits, stop).await,
    };
    let greeting = tokio::time::timeout(
        limits.handshake,
        acceptor.accept_with(stream, |it| it.set_buffer_limit(Some(WRITTEN))),
    );
    let stream = tokio::select! {
        greeted = greeting => match greeted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%address, %error, "a client failed to greet"),
            Err(_) => return tracing::debug!(%address, "a client took too long to greet"),
        },
        _ = stop.wait_for(|stop| *stop) => return,
    };
    let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec);
    let peer = match chain.map(Peer::new) {
        None => None,
        Some(Some(peer)) => Some(Arc::new(peer)),
        Some(None) => return tracing::debug!(%address, "a client's certificate cannot be read"),
    };
    converse(stream, peer, site, limits, stop).await;
}

/// Answers requests until the client is gone, does nothing for too long, or we stop.
async fn converse<S: ConnectionHandler>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Option<Arc<Peer>>,
    site: Arc<S>,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    let activity = Activity::new();
    let idle = activity.clone().idle(limits.idle);
    let service = service_fn(move |request: Request<Incoming>| {
        let (site, peer, activity) = (Arc::clone(&site), peer.clone(), activity.clone());
        async move { Ok::<_, Infallible>(site.answer(request, peer, activity).await) }
    });
    let builder = builder(&limits);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that goes away in the middle is not an error of ours.
        _ = connection.as_mut() => return,
        () = idle => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(limits.grace, connection).await;
}

fn builder(limits: &ServerLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size((limits.head_size as usize).max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.head_size)
        .max_send_buf_size(256 * 1024)
        // Notices a peer that is gone without a word.
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
