//! An HTTP API that says one number in several formats behind several doors: `/{door}/{format}`.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::components::local;
use crate::error::{Attempt as _, Error};
use crate::kubelets::held;
use crate::pki::{Authority, Identity};
use crate::side;

/// Who is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Everybody.
    Open,
    /// User `ada` with the password.
    Basic,
    /// Clients with a token, which they get for the password.
    Bearer,
    /// The same in header `X-API-KEY`.
    Key,
    /// The same in parameter `api_key`.
    Query,
    /// Clients with a certificate.
    Certificate,
}

/// A running API; it ends when it is dropped.
pub struct HttpApi {
    port: u16,
    tls_port: u16,
    said: Arc<Mutex<String>>,
    tasks: [AbortHandle; 2],
}

const PASSWORD: &str = "hunter2";

impl Door {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Basic => "basic",
            Self::Bearer => "bearer",
            Self::Key => "key",
            Self::Query => "query",
            Self::Certificate => "certificate",
        }
    }

    fn lets_in(name: &str, headers: &HeaderMap, query: &str, certified: bool) -> bool {
        let says = |header: &str, wanted: &str| headers.get(header).is_some_and(|value| value == wanted);
        match name {
            "open" => true,
            "basic" => {
                says("authorization", &format!("Basic {}", STANDARD.encode(format!("ada:{PASSWORD}"))))
            }
            "bearer" => says("authorization", &format!("Bearer {PASSWORD}")),
            "key" => says("x-api-key", PASSWORD),
            "query" => query.split('&').any(|pair| pair == format!("api_key={PASSWORD}")),
            "certificate" => certified,
            _ => false,
        }
    }
}

impl HttpApi {
    /// Starts one, with and without TLS; certificates of clients are those that this authority signed.
    pub fn start(identity: &Identity, clients: &Authority) -> Result<Self, Error> {
        let failed = || "start an HTTP API".to_owned();
        let tls = acceptor(identity, clients).attempt(failed)?;
        let said = Arc::new(Mutex::new("0".to_owned()));
        let _inside = side::handle().enter();
        let (plain, port) = listener().attempt(failed)?;
        let (secure, tls_port) = listener().attempt(failed)?;
        let state = Arc::clone(&said);
        let first = tokio::spawn(async move {
            while let Ok((stream, _)) = plain.accept().await {
                tokio::spawn(serve(stream, false, Arc::clone(&state)));
            }
        });
        let state = Arc::clone(&said);
        let second = tokio::spawn(async move {
            while let Ok((stream, _)) = secure.accept().await {
                let (tls, state) = (tls.clone(), Arc::clone(&state));
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let certified = stream.get_ref().1.peer_certificates().is_some();
                    serve(stream, certified, state).await;
                });
            }
        });
        Ok(Self { port, tls_port, said, tasks: [first.abort_handle(), second.abort_handle()] })
    }

    /// Where the number is in a format: `json`, `yaml`, `xml` or `prometheus`.
    pub fn url(&self, door: Door, format: &str) -> String {
        format!("{}/{}/{format}", local("http", self.port), door.name())
    }

    /// The same with TLS.
    pub fn tls_url(&self, door: Door, format: &str) -> String {
        format!("{}/{}/{format}", local("https", self.tls_port), door.name())
    }

    /// The password of all doors.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// What it says from now on.
    pub fn say(&self, number: &str) {
        number.clone_into(&mut held(&self.said));
    }
}

impl Drop for HttpApi {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn listener() -> io::Result<(tokio::net::TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((tokio::net::TcpListener::from_std(listener)?, port))
}

fn acceptor(identity: &Identity, clients: &Authority) -> io::Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut store = RootCertStore::empty();
    let authority =
        CertificateDer::from_pem_slice(clients.certificate().as_bytes()).map_err(io::Error::other)?;
    store.add(authority).map_err(io::Error::other)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(io::Error::other)?;
    let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![chain], key)
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve<S>(stream: S, certified: bool, said: Arc<Mutex<String>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&request, certified, &held(&said));
        async move { Ok::<_, Infallible>(answer) }
    });
    // What a client does wrong is its own affair.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

fn answer(request: &Request<Incoming>, certified: bool, number: &str) -> Response<Full<Bytes>> {
    let mut parts = request.uri().path().trim_start_matches('/').splitn(2, '/');
    let (door, format) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let query = request.uri().query().unwrap_or_default();
    if !Door::lets_in(door, request.headers(), query, certified) {
        return with(401, "who are you?");
    }
    match format {
        "json" => with(200, &format!("{{\"tasks\": {{\"waiting\": [7, {number}]}}}}")),
        "yaml" => with(200, &format!("tasks:\n  waiting:\n  - 7\n  - {number}\n")),
        "xml" => with(200, &format!("<tasks kind=\"all\"><waiting>{number}</waiting></tasks>")),
        "prometheus" => with(
            200,
            &format!(
                "# TYPE waiting gauge\nwaiting{{queue=\"mail\"}} {number}\nwaiting{{queue=\"other\"}} 7\n"
            ),
        ),
        _ => with(404, "there is no such page"),
    }
}

fn with(status: u16, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())));
    if let Ok(status) = status.try_into() {
        *response.status_mut() = status;
    }
    response
}
