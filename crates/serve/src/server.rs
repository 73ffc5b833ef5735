//! The server: it starts, it is told where it is, it stops.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Authorizer};
use crate::app::App;
use crate::extra_listener::bind;
use crate::identity::{self, Authenticator, ClientTrust};
use crate::registration::ServiceRef;
use crate::router::Router;
use crate::tls::{self, Certificate, CertificateError, ServerLimits};

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 is any free one.
    pub address: SocketAddr,
    /// The server's certificate.
    pub certificate: Certificate,
    /// Who may do what.
    pub access: Access,
    /// Paths that everybody may get: exact, or the beginning of one and `*`.
    pub open_paths: Vec<String>,
    /// What clients may take.
    pub limits: ServerLimits,
    /// Whom to trust besides those the cluster publishes.
    pub trusted: ClientTrust,
    /// How long answers of the API server about users hold.
    pub reviews: ReviewTtls,
}

/// How long answers of the API server about users hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReviewTtls {
    /// That somebody may do something. It is asked again before that, while nobody waits.
    pub allowed: Duration,
    /// That he may not.
    pub denied: Duration,
    /// Whose token it is.
    pub tokens: Duration,
}

impl Default for ReviewTtls {
    /// What is allowed holds longer than the 15 seconds between two looks of an autoscaler.
    fn default() -> Self {
        let (minute, moment) = (Duration::from_mins(1), Duration::from_secs(10));
        Self { allowed: minute, denied: moment, tokens: moment }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 10257)),
            certificate: Certificate::SelfMade(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]),
            access: Access::Delegated,
            open_paths: ["/healthz", "/livez", "/readyz"].map(str::to_owned).to_vec(),
            limits: ServerLimits::default(),
            trusted: ClientTrust::default(),
            reviews: ReviewTtls::default(),
        }
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be had.
    #[error("failed to listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS cannot be spoken.
    #[error("failed to set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A server that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    authority: Option<String>,
    versions: Vec<(String, String)>,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
    #[allow(dead_code, reason = "held for their end")]
    keeping: JoinSet<()>,
}

impl Server {
    /// Starts to serve. It needs no answer from the API server to start.
    pub async fn start(options: ServerOptions, client: Client, app: App) -> Result<Self, StartError> {
        let ServerOptions { address, certificate, access, open_paths, limits, trusted, reviews } = options;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut certificate = tls::Keeper::new(&certificate, Arc::clone(&provider), Timestamp::now())?;
        let authority = certificate.authority().map(str::to_owned);
        let config = tls::config(Arc::clone(&provider), certificate.shown())?;
        let (listener, address) = bind(address).await?;
        let mut keeping = JoinSet::new();
        keeping.spawn(async move {
            loop {
                tokio::time::sleep(tls::PERIOD).await;
                certificate.look(Timestamp::now());
            }
        });
        let guard = match access {
            Access::Anyone => {
                if !address.ip().is_loopback() {
                    tracing::warn!(%address, "anyone who reaches this address may read everything here");
                }
                None
            }
            Access::Delegated => {
                let source = identity::Source::new(provider, trusted);
                let authenticator = authenticator(&client, source, reviews, &mut keeping).await;
                Some((authenticator, Authorizer::new(client, open_paths, reviews)))
            }
        };
        let (stop, stopped) = watch::channel(false);
        let site = Arc::new(Router::new(app, guard, limits, stopped.clone()));
        let versions = site.versions();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listening =
            tokio::spawn(tls::listen(listener, tls::Greeting::Tls(acceptor), site, limits, stopped));
        tracing::info!(%address, "serving");
        Ok(Self { address, authority, versions, stop, listening, keeping })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The authority behind its certificate (PEM); none if the certificate was given without it.
    pub fn ca_pem(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// The versions of API groups it serves.
    pub fn versions(&self) -> &[(String, String)] {
        &self.versions
    }

    /// The Service and the APIServices that make it part of the cluster's API.
    pub fn api_services(&self, place: &ServiceRef) -> Vec<Value> {
        place.objects(&self.versions, self.ca_pem())
    }

    /// Takes no more connections, ends watches, lets requests end for a while, and is gone.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.listening).await;
    }
}

/// Finds out who asks, and learns from now on whom to trust.
async fn authenticator(
    client: &Client,
    mut source: identity::Source,
    reviews: ReviewTtls,
    keeping: &mut JoinSet<()>,
) -> Authenticator {
    let keeper = identity::Keeper::new();
    keeper.look(client, &mut source).await;
    keeping.spawn(keeper.clone().run(client.clone(), source));
    Authenticator::new(client.clone(), keeper, reviews.tokens)
}
