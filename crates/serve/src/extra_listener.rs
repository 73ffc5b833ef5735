//! Listeners beside the one with everything: health or figures without TLS for those who expect them so, and a service for
//! those alone who show a certificate of ours.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::app::{MetricsExporter, Route};
use crate::health::{Endpoint, HealthChecks};
use crate::identity::Peer;
use crate::request::Query;
use crate::response::{self, Body};
use crate::server::StartError;
use crate::tls::{self, Activity, Greeting, Keyring, ServerLimits};

/// A listener that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct ExtraListener {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

impl ExtraListener {
    /// Health without TLS, for anybody: `/healthz` and `/livez` say whether the program should go on, `/readyz` whether it
    /// should be asked. A probe that restarts programs must not do so while one still begins.
    pub async fn health(address: SocketAddr, checks: HealthChecks) -> Result<Self, StartError> {
        let page = move |path: &str, query: Query| {
            let endpoint = match Endpoint::of(path)? {
                Endpoint::Healthz => Endpoint::Livez,
                endpoint => endpoint,
            };
            Some(checks.all(endpoint, &query))
        };
        Self::start(address, Greeting::Plain, Open(Box::new(page)), small()).await
    }

    /// Figures without TLS, for anybody: `/metrics`.
    pub async fn exported_metrics(address: SocketAddr, metrics: MetricsExporter) -> Result<Self, StartError> {
        let page = move |path: &str, _: Query| {
            (path == "metrics").then(|| {
                let made = metrics();
                response::with_type(200, &made.content_type, response::full(made.text))
            })
        };
        Self::start(address, Greeting::Plain, Open(Box::new(page)), small()).await
    }

    /// A service over HTTP/2 for those who show a certificate that the keyring's authorities have signed.
    pub async fn mutual_tls(
        address: SocketAddr,
        keyring: &Keyring,
        route: Route,
    ) -> Result<Self, StartError> {
        let acceptor = TlsAcceptor::from(Arc::new(keyring.mutual()?));
        // Who holds one of our certificates may stay; those who are gone are noticed.
        let limits = ServerLimits { idle: Duration::from_hours(24), ..ServerLimits::default() };
        Self::start(address, Greeting::Tls(acceptor), Routed(route), limits).await
    }

    async fn start<S: tls::ConnectionHandler>(
        address: SocketAddr,
        greeting: Greeting,
        site: S,
        limits: ServerLimits,
    ) -> Result<Self, StartError> {
        let (listener, address) = bind(address).await?;
        let (stop, stopped) = watch::channel(false);
        let listening = tokio::spawn(tls::listen(listener, greeting, Arc::new(site), limits, stopped));
        Ok(Self { address, stop, listening })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests end for a while, and is gone.
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

/// Listens at an address. As Go does: `0.0.0.0` is every address, of either kind.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let every = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let wide = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
    let found = match TcpListener::bind(if address.ip() == every { wide } else { address }).await {
        Err(error) if address.ip() == every && !in_use(&error) => TcpListener::bind(address).await,
        found => found,
    };
    let failed = |source| StartError::Listen { address, source };
    let listener = found.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn in_use(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::AddrInUse | std::io::ErrorKind::PermissionDenied)
}

/// What a probe or a scraper needs, and not more.
fn small() -> ServerLimits {
    let moment = Duration::from_secs(10);
    ServerLimits {
        connections: 64,
        head: moment,
        head_size: 16 * 1024,
        streams: 8,
        idle: Duration::from_secs(30),
        grace: Duration::from_secs(1),
        ..ServerLimits::default()
    }
}

/// Answers a path and a query; none if there is nothing at that path.
type Page = dyn Fn(&str, Query) -> Option<Response<Body>> + Send + Sync;

/// What may be read by anybody, and never written.
struct Open(Box<Page>);

impl tls::ConnectionHandler for Open {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        _: Option<Arc<Peer>>,
        activity: Activity,
    ) -> Response<Body> {
        let _busy = activity.begin();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return response::text(405, "Method Not Allowed\n");
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let found = (self.0)(request.uri().path().trim_matches('/'), query);
        found.unwrap_or_else(|| response::text(404, "404 page not found\n"))
    }
}

struct Routed(Route);

impl tls::ConnectionHandler for Routed {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        _: Option<Arc<Peer>>,
        activity: Activity,
    ) -> Response<Body> {
        let _busy = activity.begin();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        // A future of its own type: the compiler cannot see through the body's otherwise.
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
