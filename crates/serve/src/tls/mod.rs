//! The listener: TLS with HTTP/1.1 and HTTP/2, with limits on connections, sizes and idle time.
//!
//! ```text
//! certificate  the server's certificate: files, or self-signed
//! pem          a certificate and its key
//! issue        parameters of issued certificates
//! bundle       a CA and a certificate that replicas share, and their renewal
//! keyring      the current bundle, for several listeners
//! handshake    TLS configurations and client certificates
//! activity     what a connection does: requests, idle time
//! connections  how many there may be, and which makes room
//! ```

mod activity;
mod bundle;
mod certificate;
mod connections;
mod handshake;
mod issue;
mod keyring;
mod pem;

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
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(crate) use activity::{Activity, ConnectionRank};
pub use bundle::{BundleRenewal, CertificateBundle, CertificateLifetimes};
pub use certificate::Certificate;
pub(crate) use certificate::{CertificateReloader, RELOAD_PERIOD};
use connections::{ConnectionPlace, ConnectionTable};
pub(crate) use handshake::{config, mutual_config};
pub use keyring::Keyring;
pub use pem::CertificateError;

use crate::body::Body;
use crate::identity::Peer;
use crate::peer_address::PeerAddress;
use crate::throttle::Throttle;

/// The TLS write buffer: long responses need few system calls.
const TLS_WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// How long a connection that is idle or makes room may take to end.
const MAX_IDLE_CLOSE_TIME: Duration = Duration::from_secs(1);

/// How many streams a client may reset before they were processed; more of them end the connection (rapid reset).
const MAX_RESET_STREAMS: usize = 20;

/// How many streams may be reset for errors of the client; more of them end the connection.
const MAX_ERROR_STREAMS: usize = 128;

/// Limits for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Concurrent connections. A new one displaces the one that is idle longest.
    pub connections: usize,
    /// Concurrent connections of one client address.
    pub connections_per_peer: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// TLS handshakes that one client address may begin at once, each of which costs the server more than the client.
    pub handshakes: u32,
    /// More TLS handshakes of one client address, per second.
    pub handshakes_per_second: u32,
    /// Time to send the first request of a connection.
    pub first: Duration,
    /// Time to send the head of a request.
    pub head: Duration,
    /// Size of the head of a request.
    pub head_size: u32,
    /// Size of the body of a request.
    pub body_size: usize,
    /// Concurrent requests on one connection.
    pub streams: u32,
    /// Concurrent requests in total; those of `system:masters` are not limited.
    pub requests: usize,
    /// Concurrent watches in total.
    pub watches: usize,
    /// Timeout of a request.
    pub answer: Duration,
    /// Timeout of a watch.
    pub watch: Duration,
    /// Time after which an idle connection is closed.
    pub idle: Duration,
    /// Grace period of running requests when the server stops.
    pub grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_peer: 128,
            handshake: Duration::from_secs(5),
            handshakes: 1024,
            handshakes_per_second: 128,
            first: Duration::from_secs(5),
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

/// The client of a connection.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Its certificate.
    pub(crate) certificate: Option<Arc<Peer>>,
    /// Its address; none inside this process.
    pub(crate) address: Option<PeerAddress>,
    /// What its connection does.
    pub(crate) activity: Activity,
}

/// Handles the requests of a connection.
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// Handles one request.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// The transport of a listener.
#[derive(Clone)]
pub(crate) enum ListenerTransport {
    /// TLS.
    Tls(TlsAcceptor),
    /// Plain TCP.
    Plain,
}

/// Accepts connections until `stop`, then waits for them within the grace period.
pub(crate) async fn listen<S: ConnectionHandler>(
    listener: TcpListener,
    transport: ListenerTransport,
    handler: Arc<S>,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    let table = ConnectionTable::new(limits.connections, limits.connections_per_peer);
    let handshakes = Throttle::new(limits.handshakes, limits.handshakes_per_second);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some((stream, address)) = accepted else { continue };
        while connections.try_join_next().is_some() {}
        let peer = PeerAddress::from(address.ip());
        if matches!(transport, ListenerTransport::Tls(_)) && !handshakes.take(&peer) {
            table.log_refused_handshake(peer);
            continue;
        }
        // Without a place the connection is closed at once: a client that waits would not know why.
        let Some(place) = table.admit(peer) else { continue };
        let (transport, handler, stop) = (transport.clone(), Arc::clone(&handler), stop.clone());
        connections.spawn(serve(stream, address, place, transport, handler, limits, stop));
    }
    drop(listener);
    let end = async { while connections.join_next().await.is_some() {} };
    // Each connection enforces the grace period itself; this ends those that hang.
    if tokio::time::timeout(limits.grace + Duration::from_secs(1), end).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            // Accepting fails for one connection, or until other connections free file descriptors.
            tracing::debug!(%error, "failed to accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn serve<S: ConnectionHandler>(
    stream: TcpStream,
    address: SocketAddr,
    place: ConnectionPlace,
    transport: ListenerTransport,
    handler: Arc<S>,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    // Watch events are small frames that must not be delayed.
    let _ = stream.set_nodelay(true);
    let caller = |certificate| {
        let (address, activity) = (Some(address.ip().into()), place.activity.clone());
        Caller { certificate, address, activity }
    };
    let acceptor = match transport {
        ListenerTransport::Tls(acceptor) => acceptor,
        ListenerTransport::Plain => return serve_http(stream, caller(None), handler, limits, stop).await,
    };
    let handshake = tokio::time::timeout(
        limits.handshake,
        acceptor.accept_with(stream, |it| it.set_buffer_limit(Some(TLS_WRITE_BUFFER_BYTES))),
    );
    let stream = tokio::select! {
        result = handshake => match result {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%address, %error, "TLS handshake failed"),
            Err(_) => return tracing::debug!(%address, "TLS handshake timed out"),
        },
        () = place.activity.closed() => return,
        _ = stop.wait_for(|stop| *stop) => return,
    };
    let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec);
    let certificate = match chain.map(Peer::new) {
        None => None,
        Some(Some(peer)) => Some(Arc::new(peer)),
        Some(None) => return tracing::debug!(%address, "failed to parse the client certificate"),
    };
    serve_http(stream, caller(certificate), handler, limits, stop).await;
}

/// Serves a connection until the client closes it, it is idle for too long, it makes room for another, or the server stops.
async fn serve_http<S: ConnectionHandler>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    caller: Caller,
    handler: Arc<S>,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    let activity = caller.activity.clone();
    activity.handshake_completed();
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, caller) = (Arc::clone(&handler), caller.clone());
        async move {
            let guard = caller.activity.guard();
            let answer = handler.answer(request, caller).await;
            guard.ended();
            Ok::<_, Infallible>(answer)
        }
    });
    let builder = builder(&limits);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let end = tokio::select! {
        // A client that disconnects is not an error of the server.
        _ = connection.as_mut() => return,
        () = activity.clone().idle(limits.idle, limits.first) => ConnectionEnd::Idle,
        () = activity.closed() => ConnectionEnd::MakesRoom,
        _ = stop.wait_for(|stop| *stop) => ConnectionEnd::ServerStops,
    };
    let is_unknown = activity.snapshot().rank == ConnectionRank::Unknown;
    let grace = match end {
        // A client without a request that was allowed must not delay the shutdown.
        _ if !activity.has_begun() => return,
        ConnectionEnd::MakesRoom if is_unknown => return,
        ConnectionEnd::Idle | ConnectionEnd::MakesRoom => limits.grace.min(MAX_IDLE_CLOSE_TIME),
        ConnectionEnd::ServerStops => limits.grace,
    };
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(grace, connection).await;
}

/// Why the server ends a connection.
enum ConnectionEnd {
    Idle,
    MakesRoom,
    ServerStops,
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
        // This also bounds CONTINUATION frames: h2 accepts as many as such a list of headers can need.
        .max_header_list_size(limits.head_size)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(MAX_ERROR_STREAMS)
        .max_send_buf_size(256 * 1024)
        // Detects peers that are gone without closing the connection.
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
