//! Additional listeners: health or exported metrics without TLS, and a service for clients with a certificate of
//! our CA.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::api_group::Route;
use crate::app::MetricsExporter;
use crate::bind::{StartError, bind};
use crate::health::{Endpoint, HealthChecks};
use crate::query::Query;
use crate::response::{self, Body};
use crate::tls::{self, Caller, ConnectionRank, Keyring, ListenerTransport, ServerLimits};

/// An additional listener that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct ExtraListener {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

impl ExtraListener {
    /// Health without TLS and authentication: `/healthz` and `/livez` are liveness, `/readyz` is readiness. `/healthz` does
    /// not include readiness checks, because liveness probes use it and must not restart a process that still starts.
    pub async fn health(address: SocketAddr, checks: HealthChecks) -> Result<Self, StartError> {
        let page = move |path: &str, query: Query| {
            let endpoint = match Endpoint::of(path)? {
                Endpoint::Healthz => Endpoint::Livez,
                endpoint => endpoint,
            };
            Some(checks.all(endpoint, &query))
        };
        Self::start(address, ListenerTransport::Plain, OpenPages(Box::new(page)), small()).await
    }

    /// Exported metrics at `/metrics`, without TLS and authentication.
    pub async fn exported_metrics(address: SocketAddr, metrics: MetricsExporter) -> Result<Self, StartError> {
        let page = move |path: &str, _: Query| {
            (path == "metrics").then(|| {
                let made = metrics();
                response::with_type(200, &made.content_type, response::full(made.text))
            })
        };
        Self::start(address, ListenerTransport::Plain, OpenPages(Box::new(page)), small()).await
    }

    /// A service over HTTP/2 for clients with a certificate that one of the keyring's CAs has signed.
    pub async fn mutual_tls(
        address: SocketAddr,
        keyring: &Keyring,
        route: Route,
    ) -> Result<Self, StartError> {
        let acceptor = TlsAcceptor::from(Arc::new(tls::mutual_config(keyring)?));
        // Clients with our certificate may stay idle; HTTP/2 keep-alive finds those that are gone.
        let limits = ServerLimits { idle: Duration::from_hours(24), ..ServerLimits::default() };
        Self::start(address, ListenerTransport::Tls(acceptor), RoutedService(route), limits).await
    }

    /// A service without TLS, for clients on this machine: the service itself authenticates them.
    pub async fn loopback(address: SocketAddr, route: Route) -> Result<Self, StartError> {
        // Browsers keep streams of events open for as long as a page is.
        let limits = ServerLimits { connections: 256, idle: Duration::from_hours(24), ..small() };
        Self::start(address, ListenerTransport::Plain, RoutedService(route), limits).await
    }

    async fn start<S: tls::ConnectionHandler>(
        address: SocketAddr,
        transport: ListenerTransport,
        handler: S,
        limits: ServerLimits,
    ) -> Result<Self, StartError> {
        let (listener, address) = bind(address).await?;
        let (stop, stopped) = watch::channel(false);
        let listening = tokio::spawn(tls::listen(listener, transport, Arc::new(handler), limits, stopped));
        Ok(Self { address, stop, listening })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, waits for running requests within the grace period, and closes.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.listening).await;
    }
}

impl Drop for ExtraListener {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Small limits, enough for probes and scrapers.
fn small() -> ServerLimits {
    ServerLimits {
        connections: 64,
        connections_per_peer: 32,
        head: Duration::from_secs(10),
        head_size: 16 * 1024,
        streams: 8,
        idle: Duration::from_secs(30),
        grace: Duration::from_secs(1),
        ..ServerLimits::default()
    }
}

/// Handles a path and a query; none if the path does not exist.
type Page = dyn Fn(&str, Query) -> Option<Response<Body>> + Send + Sync;

/// Read-only pages without authentication.
struct OpenPages(Box<Page>);

impl tls::ConnectionHandler for OpenPages {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, caller: Caller) -> Response<Body> {
        let _busy = caller.activity.begin();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return response::text(405, "Method Not Allowed\n");
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let found = (self.0)(request.uri().path().trim_matches('/'), query);
        found.unwrap_or_else(|| response::text(404, "404 page not found\n"))
    }
}

struct RoutedService(Route);

impl tls::ConnectionHandler for RoutedService {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, caller: Caller) -> Response<Body> {
        let _busy = caller.activity.begin();
        // The handshake has verified its certificate, or it is a client on this machine.
        caller.activity.rise(ConnectionRank::Authorized);
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        // Boxed, because the compiler cannot prove `Send` for the body's future otherwise.
        let answer: BoxFuture<'static, Result<Response<Body>, Infallible>> =
            Box::pin(self.0.clone().oneshot(request));
        match answer.await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests;
