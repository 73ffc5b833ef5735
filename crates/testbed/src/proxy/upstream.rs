//! The API server to which a proxy forwards requests.

use std::io;

use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};

use super::ProxyCaller;
use super::body::Body;
use crate::error::{Attempt as _, Error};

/// An API server, and the credentials of requests to it.
#[derive(Clone)]
pub(super) struct Upstream {
    url: Uri,
    caller: ProxyCaller,
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

impl Upstream {
    /// The server of a kubeconfig.
    pub(super) async fn new(kubeconfig: &str, caller: ProxyCaller) -> Result<Self, Error> {
        let unreadable = || "read a kubeconfig".to_owned();
        let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(io::Error::other).attempt(unreadable)?;
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(io::Error::other).attempt(unreadable)?;
        if caller == ProxyCaller::Client {
            config.auth_info = AuthInfo::default();
        }
        let tls = config.rustls_client_config().map_err(io::Error::other).attempt(|| "set up TLS".into())?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        // One connection per request in flight, so that a stalled body does not block other requests.
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { url: config.cluster_url, caller, client })
    }

    /// Forwards a request.
    pub(super) async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, io::Error> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let root = self.url.path().trim_end_matches('/');
        let target = Uri::builder()
            .scheme(self.url.scheme_str().unwrap_or("https"))
            .authority(self.url.authority().map_or("", |authority| authority.as_str()))
            .path_and_query(format!("{root}{path}"))
            .build();
        *request.uri_mut() = target.map_err(io::Error::other)?;
        *request.version_mut() = http::Version::HTTP_11;
        strip(request.headers_mut());
        request.headers_mut().remove(HOST);
        if self.caller == ProxyCaller::Administrator {
            request.headers_mut().remove(AUTHORIZATION);
        }
        let mut response = self.client.request(request).await.map_err(io::Error::other)?;
        strip(response.headers_mut());
        *response.version_mut() = http::Version::default();
        Ok(response)
    }
}

/// Hop-by-hop headers are not forwarded.
fn strip(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")] {
        headers.remove(name);
    }
}
