//! Client for a webhook or an aggregated API over TLS. Connections are reused.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;

use crate::access::{Identity, PkiError, parts, roots};

/// Resolves an address for each connection.
pub(crate) type ServiceResolver = Arc<dyn Fn() -> Option<SocketAddr> + Send + Sync>;

/// The address of a server.
#[derive(Clone)]
pub(crate) enum PeerAddress {
    /// The host name of the request.
    ByName,
    /// A fixed address.
    At(SocketAddr),
    /// A service; its name appears in errors.
    Service(String, ServiceResolver),
}

/// How the server's certificate is verified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServerTrust<'a> {
    /// Signed by one of these authorities (PEM).
    Bundle(&'a [u8]),
    /// Not verified.
    Anybody,
}

/// A request failed; the text is the one of Go's HTTP client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PeerError(pub(crate) String);

/// A client for one server.
#[derive(Clone)]
pub(crate) struct PeerClient {
    client: Client<HttpsConnector<PeerDialer>, Full<Bytes>>,
}

impl PeerClient {
    pub(crate) fn new(
        address: PeerAddress,
        trust: ServerTrust<'_>,
        identity: Option<&Identity>,
    ) -> Result<Self, PkiError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = PeerVerifier::new(trust, Arc::clone(&provider))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| PkiError::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = parts(identity)?;
                config.with_client_auth_cert(chain, key).map_err(|error| PkiError::Tls(error.to_string()))?
            }
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_all_versions()
            .wrap_connector(PeerDialer { address });
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Sends a request.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, PeerError> {
        self.client.request(request).await.map_err(|error| PeerError(go_error_text(&error)))
    }
}

/// The text of the innermost error that is known.
fn go_error_text(error: &(dyn Error + 'static)) -> String {
    let mut at = Some(error);
    let mut last = String::new();
    while let Some(error) = at {
        if let Some(text) = error.downcast_ref::<rustls::Error>().map(go_tls_error_text) {
            return text;
        }
        if let Some(ConnectError(text)) = error.downcast_ref() {
            return text.clone();
        }
        last = error.to_string();
        // An `io::Error` does not report the error that it wraps as its source.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        at = wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source());
    }
    if last.contains("closed") || last.contains("eof") { "EOF".to_owned() } else { last }
}

fn go_tls_error_text(error: &rustls::Error) -> String {
    let detail = match error {
        // rustls reports a CA certificate used as a server certificate as another error.
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_)) => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        rustls::Error::InvalidCertificate(CertificateError::Expired) => {
            "x509: certificate has expired or is not yet valid".to_owned()
        }
        rustls::Error::InvalidCertificate(other) => format!("x509: {other}"),
        other => return format!("tls: {other}"),
    };
    format!("tls: failed to verify certificate: {detail}")
}

/// No connection was made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ConnectError(String);

fn connect_error(text: String) -> io::Error {
    io::Error::other(ConnectError(text))
}

/// Opens connections.
#[derive(Clone)]
struct PeerDialer {
    address: PeerAddress,
}

impl tower::Service<Uri> for PeerDialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<TcpStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let address = self.address.clone();
        async move {
            let address = match address {
                PeerAddress::At(address) => address,
                PeerAddress::Service(name, find) => find().ok_or_else(|| {
                    connect_error(format!("service {} not found", api::gotext::quote(&name)))
                })?,
                PeerAddress::ByName => look_up(&uri).await?,
            };
            let stream = TcpStream::connect(address).await.map_err(|error| {
                let reason = match error.kind() {
                    io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                    _ => error.to_string(),
                };
                connect_error(format!("dial tcp {address}: connect: {reason}"))
            })?;
            // Small requests must not be delayed.
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        }
        .boxed()
    }
}

async fn look_up(uri: &Uri) -> io::Result<SocketAddr> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let mut found = tokio::net::lookup_host((host, uri.port_u16().unwrap_or(443)))
        .await
        .map_err(|_| connect_error(format!("dial tcp: lookup {host}: no such host")))?;
    found.next().ok_or_else(|| connect_error(format!("dial tcp: lookup {host}: no such host")))
}

/// Verifies server certificates. Like Go, it accepts a certificate of the bundle itself as well as one signed by it:
/// self-signed webhook certificates are often used as their own bundle.
#[derive(Debug)]
struct PeerVerifier {
    anybody: bool,
    signed: Option<Arc<WebPkiServerVerifier>>,
    bundle: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl PeerVerifier {
    fn new(trust: ServerTrust<'_>, provider: Arc<CryptoProvider>) -> Result<Self, PkiError> {
        let (anybody, pem) = match trust {
            ServerTrust::Anybody => (true, &[][..]),
            ServerTrust::Bundle(pem) => (false, pem),
        };
        let tls = |error: String| PkiError::Tls(error);
        let bundle: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let bundle = bundle.map_err(|error| tls(error.to_string()))?;
        // Without a bundle no certificate is trusted: the system's roots are not used.
        let signed = if bundle.is_empty() {
            None
        } else {
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(pem)?), Arc::clone(&provider));
            Some(builder.build().map_err(|error| tls(error.to_string()))?)
        };
        Ok(Self { anybody, signed, bundle, provider })
    }
}

/// A verifier that accepts the certificate of every server, for tests.
pub fn any_server_verifier(provider: &Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(PeerVerifier { anybody: true, signed: None, bundle: Vec::new(), provider: Arc::clone(provider) })
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.anybody || self.bundle.iter().any(|own| own.as_ref() == end_entity.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.signed {
            Some(signed) => signed.verify_server_cert(end_entity, intermediates, name, ocsp, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
