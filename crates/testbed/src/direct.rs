//! Requests to a TLS server on this machine, with any client credentials. The certificate of the server is not verified, because tests
//! choose the server by its port.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Attempt as _, Error};
use crate::pki::Identity;

/// The credentials of a client: a certificate, a token, headers, or none.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    certificate: Option<Identity>,
    headers: Vec<(String, String)>,
}

/// A client of one server, which reuses its connections.
#[derive(Clone)]
pub struct DirectClient {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    port: u16,
    headers: Vec<(String, String)>,
}

/// A response of the server.
#[derive(Clone, Debug)]
pub struct DirectResponse {
    /// The status code.
    pub code: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The body without decoding of its content encoding.
    pub body: Bytes,
}

const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);

impl Caller {
    /// A client without credentials.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// A client with a certificate.
    pub fn with_certificate(identity: &Identity) -> Self {
        Self { certificate: Some(identity.clone()), headers: Vec::new() }
    }

    /// A client with a bearer token.
    pub fn token(token: &str) -> Self {
        Self::anonymous().with("authorization", &format!("Bearer {token}"))
    }

    /// The same client with a further header.
    pub fn with(mut self, header: &str, value: &str) -> Self {
        self.headers.push((header.to_owned(), value.to_owned()));
        self
    }
}

impl DirectClient {
    /// Creates a client of the server on this port.
    pub fn new(port: u16, caller: &Caller) -> Result<Self, Error> {
        let failed = || "set up a client".to_owned();
        let config = config(caller).attempt(failed)?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_only();
        let connector = builder.enable_http1().wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, port, headers: caller.headers.clone() })
    }

    /// Sends GET.
    pub async fn get(&self, path: &str) -> io::Result<DirectResponse> {
        self.get_as(path, None).await
    }

    /// Sends GET with an `Accept` header.
    pub async fn get_as(&self, path: &str, accept: Option<&str>) -> io::Result<DirectResponse> {
        let mut request = Request::get(format!("https://127.0.0.1:{}{path}", self.port));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(accept) = accept {
            request = request.header(http::header::ACCEPT, accept);
        }
        let request = request.body(Empty::new()).map_err(io::Error::other)?;
        let answered = async {
            let (parts, body) = self.client.request(request).await.map_err(io::Error::other)?.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            Ok(DirectResponse { code: parts.status.as_u16(), headers: parts.headers, body })
        };
        tokio::time::timeout(REQUEST_TIMEOUT, answered).await.map_err(io::Error::other)?
    }
}

impl DirectResponse {
    /// The body as JSON; null if it is no JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn config(caller: &Caller) -> io::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let anyone = localkube::any_server_verifier(&provider);
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = config.dangerous().with_custom_certificate_verifier(anyone);
    let Some(identity) = &caller.certificate else { return Ok(config.with_no_client_auth()) };
    let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(io::Error::other)?;
    config.with_client_auth_cert(vec![chain], key).map_err(io::Error::other)
}
