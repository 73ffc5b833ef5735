//! Starts and stops the server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::Client;
use runtime::{CheckFailure, Clock};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Authorizer};
use crate::app::App;
use crate::bind::{StartError, bind};
use crate::identity::{self, Authenticator, ClientTrust};
use crate::registration::ServiceRef;
use crate::review::ReviewTtls;
use crate::router::Router;
use crate::tls::{self, Certificate, ServerLimits};

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to bind; port 0 is any free port.
    pub address: SocketAddr,
    /// The server's certificate.
    pub certificate: Certificate,
    /// How requests are authorized.
    pub access: Access,
    /// Paths without authorization: exact, or a prefix and `*`.
    pub open_paths: Vec<String>,
    /// Limits for clients.
    pub limits: ServerLimits,
    /// CAs in addition to, or instead of, those that the cluster publishes.
    pub trusted: ClientTrust,
    /// How long results of reviews are cached.
    pub reviews: ReviewTtls,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 10257)),
            certificate: Certificate::SelfSigned(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]),
            access: Access::Delegated,
            open_paths: ["/healthz", "/livez", "/readyz"].map(str::to_owned).to_vec(),
            limits: ServerLimits::default(),
            trusted: ClientTrust::default(),
            reviews: ReviewTtls::default(),
        }
    }
}

/// A server that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    authority: Option<String>,
    versions: Vec<(String, String)>,
    stop: watch::Sender<bool>,
    draining: Arc<AtomicBool>,
    listening: JoinHandle<()>,
    #[allow(dead_code, reason = "aborts the tasks when the server is dropped")]
    keeping: JoinSet<()>,
}

impl Server {
    /// Starts the server. It does not need the API server to start.
    pub async fn start(options: ServerOptions, client: Client, app: App) -> Result<Self, StartError> {
        let ServerOptions { address, certificate, access, open_paths, limits, trusted, reviews } = options;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut certificate =
            tls::CertificateReloader::new(&certificate, Arc::clone(&provider), app.clock.now())?;
        let authority = certificate.authority().map(str::to_owned);
        let config = tls::config(Arc::clone(&provider), certificate.shown())?;
        let (listener, address) = bind(address).await?;
        let mut keeping = JoinSet::new();
        let clock = app.clock.clone();
        keeping.spawn(async move {
            loop {
                tokio::time::sleep(tls::RELOAD_PERIOD).await;
                certificate.reload(clock.now());
            }
        });
        let guard = match access {
            Access::Anyone => {
                if !address.ip().is_loopback() {
                    tracing::warn!(%address, "every client that reaches this address may read everything");
                }
                None
            }
            Access::Delegated => {
                let source = identity::TrustSource::new(provider, trusted);
                let authenticator =
                    authenticator(&client, source, reviews, app.clock.clone(), &mut keeping).await;
                Some((authenticator, Authorizer::new(client, open_paths, reviews)))
            }
        };
        let (stop, stopped) = watch::channel(false);
        let router = Arc::new(Router::new(app, guard, limits, stopped.clone()));
        let (versions, draining) = (router.versions(), router.draining());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listening = tokio::spawn(tls::listen(
            listener,
            tls::ListenerTransport::Tls(acceptor),
            router,
            limits,
            stopped,
        ));
        tracing::info!(%address, "serving");
        Ok(Self { address, authority, versions, stop, draining, listening, keeping })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bound port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The CA of its certificate (PEM); none if the certificate was given without it.
    pub fn ca_pem(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// The served group versions.
    pub fn versions(&self) -> &[(String, String)] {
        &self.versions
    }

    /// The Service and the APIServices that register it with the cluster.
    pub fn api_services(&self, place: &ServiceRef) -> Vec<Value> {
        place.objects(&self.versions, self.ca_pem())
    }

    /// Makes `/readyz` fail while requests are still served, so that clients leave before the server stops.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// The check that fails after [`drain`](Self::drain), for a listener of probes beside the server.
    pub fn shutdown_check(&self) -> impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static + use<> {
        let draining = Arc::clone(&self.draining);
        move || {
            let stops = draining.load(Ordering::Relaxed);
            if stops { Err(CheckFailure::from("the server is stopping")) } else { Ok(()) }
        }
    }

    /// Stops accepting, ends watches, waits for running requests within the grace period, and closes.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.listening).await;
    }
}

/// Reads the cluster's CAs, keeps reading them, and returns an authenticator that uses them.
async fn authenticator(
    client: &Client,
    mut source: identity::TrustSource,
    reviews: ReviewTtls,
    clock: Clock,
    keeping: &mut JoinSet<()>,
) -> Authenticator {
    let trust_reader = identity::ClientTrustReader::new();
    trust_reader.read(client, &mut source).await;
    keeping.spawn(trust_reader.clone().run(client.clone(), source));
    Authenticator::new(client.clone(), trust_reader, reviews.tokens, clock)
}
