//! HTTP/2 over TLS, with keep-alive pings.

use std::io;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt as _;
use kube::{Client, Config};
use tower::util::option_layer;
use tower::{BoxError, Layer as _, ServiceExt as _};

use super::leader_only::{self, LeaderBody};
use super::limiter::ConcurrencyLimiter;

/// How long a connection may take, its TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of keep-alive pings, and the time within which each must be answered.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// The `User-Agent` of our requests.
const USER_AGENT_VALUE: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// A client for `config` whose requests pass through `limiter`.
pub(super) fn client(mut config: Config, limiter: &ConcurrencyLimiter) -> Result<Client, kube::Error> {
    // Fails if a provider is already installed in this process, which is then used.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    config.headers.push((USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE)));
    let auth = config.auth_layer()?;

    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    // HTTP/1.1 has no pings; TCP keep-alive detects a dead peer.
    http.set_keepalive(Some(KEEP_ALIVE_INTERVAL));
    http.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    let mut https =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().map_err(kube::client::RustlsTlsError::InvalidServerName);
        let name = name.map_err(kube::Error::RustlsTls)?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = https.enable_all_versions().wrap_connector(http).map_future(|connecting| {
        Box::pin(async move {
            let late = |_| BoxError::from(io::Error::from(io::ErrorKind::TimedOut));
            tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.map_err(late)?
        })
    });

    let hyper = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_while_idle(true)
        .build::<_, LeaderBody>(connector);
    let service = hyper.map_request(leader_only::guarded).map_err(BoxError::from);
    let service = config.extra_headers_layer()?.layer(service);
    let service = option_layer(auth).layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(Client::new(limiter.layer(service), config.default_namespace))
}
