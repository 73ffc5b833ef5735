//! The port of each node, which responds like a kubelet: `/metrics/resource` over TLS, for authenticated clients.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::ServerConfig;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::NodesError;
use super::plan::Admission;
use super::run::SharedState;
use crate::access::{Authority, parts};
use crate::listen;

/// The TLS configuration of all nodes, and the CA certificate for clients.
pub(crate) struct KubeletTls {
    pub(crate) ca_pem: String,
    tls: TlsAcceptor,
}

impl KubeletTls {
    /// Creates an authority and one certificate for all nodes, which share an address.
    pub(crate) fn new() -> Result<Self, NodesError> {
        let authority = Authority::new("simulated-kubelets")?;
        let (chain, key) = parts(&authority.server(&[&Ipv4Addr::LOCALHOST.to_string(), "localhost"])?)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let anyone = Arc::new(AnyClient(provider.signature_verification_algorithms));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(anyone)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { ca_pem: authority.certificate().to_owned(), tls: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Serves a node on `listener` until it is dropped.
    pub(crate) fn serve(
        &self,
        listener: TcpListener,
        node: usize,
        shared: SharedState,
        admission: Admission,
    ) -> impl Future<Output = ()> + Send + use<> {
        let tls = self.tls.clone();
        let serve = move |stream| serve(tls.clone(), stream, node, shared.clone(), admission);
        async move { listen::accept(listener, serve).await }
    }
}

async fn serve(tls: TlsAcceptor, stream: TcpStream, node: usize, shared: SharedState, admission: Admission) {
    let Some(stream) = listen::handshake(&tls, stream).await else { return };
    let certified = listen::has_certificate(&stream);
    let respond = move |request: http::Request<Incoming>| {
        let admitted = admission == Admission::Anyone || certified || has_token(request.headers());
        let answer = answer(request.method(), request.uri().path(), admitted, || shared.metrics(node));
        let is_lost = shared.is_lost(node);
        async move {
            if is_lost {
                // A machine that is gone does not respond; the client gives up.
                std::future::pending::<()>().await;
            }
            answer
        }
    };
    listen::serve_http(stream, respond).await;
}

fn has_token(headers: &HeaderMap) -> bool {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    token.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|token| !token.trim().is_empty())
}

fn answer(
    method: &Method,
    path: &str,
    admitted: bool,
    metrics: impl Fn() -> Option<String>,
) -> Response<Full<Bytes>> {
    let plain = "text/plain; charset=utf-8";
    let (code, kind, body) = match (admitted, path) {
        (false, _) => (StatusCode::UNAUTHORIZED, plain, "Unauthorized".to_owned()),
        (true, "/metrics/resource" | "/healthz") if method != Method::GET => {
            (StatusCode::METHOD_NOT_ALLOWED, plain, "405: Method Not Allowed".to_owned())
        }
        (true, "/metrics/resource") => match metrics() {
            Some(page) => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page),
            None => (StatusCode::NOT_FOUND, plain, "404 page not found\n".to_owned()),
        },
        (true, "/healthz") => (StatusCode::OK, plain, "ok".to_owned()),
        (true, _) => (StatusCode::NOT_FOUND, plain, "404 page not found\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// Accepts any client certificate: a simulated kubelet does not check identities.
#[derive(Debug)]
struct AnyClient(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_serves_metrics_and_health_to_authenticated_clients() {
        let page = || Some("page".to_owned());
        let code =
            |method: Method, path: &str, admitted| answer(&method, path, admitted, page).status().as_u16();
        assert_eq!(code(Method::GET, "/metrics/resource", true), 200);
        assert_eq!(code(Method::GET, "/metrics/resource", false), 401);
        assert_eq!(code(Method::GET, "/nothing", false), 401);
        assert_eq!(code(Method::GET, "/nothing", true), 404);
        assert_eq!(code(Method::GET, "/healthz", true), 200);
        assert_eq!(code(Method::POST, "/metrics/resource", true), 405);
    }

    #[test]
    fn bearer_token_must_be_present() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            has_token(&headers)
        };
        assert!(with("Bearer abc"));
        assert!(!with("Bearer ") && !with("Basic abc") && !has_token(&HeaderMap::new()));
    }
}
