//! TLS and HTTP of one node.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::fault::{Behaviour, Body, ok};
use super::held;
use super::node::Node;
use crate::error::{Attempt as _, Error};
use crate::pki::Identity;
use crate::side;

/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Answers for a node until it is dropped.
pub(super) fn serve(
    listener: TcpListener,
    identity: &Identity,
    clients: &Arc<RootCertStore>,
    node: Arc<Mutex<Node>>,
) -> Result<impl Future<Output = ()> + Send + use<>, Error> {
    let failed = || "set up a simulated kubelet".to_owned();
    let tls = acceptor(identity, clients).attempt(failed)?;
    listener.set_nonblocking(true).attempt(failed)?;
    let _inside = side::handle().enter();
    let listener = tokio::net::TcpListener::from_std(listener).attempt(failed)?;
    Ok(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(tls.clone(), stream, Arc::clone(&node)));
                    }
                    // Out of file descriptors, most likely; some connection will end.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    })
}

fn acceptor(identity: &Identity, clients: &Arc<RootCertStore>) -> std::io::Result<TlsAcceptor> {
    let other = std::io::Error::other;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(clients), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(std::io::Error::other)?;
    let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).map_err(other)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(std::io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![chain], key)
        .map_err(std::io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn connection(tls: TlsAcceptor, stream: TcpStream, node: Arc<Mutex<Node>>) {
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await else { return };
    let certified = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
    let service = service_fn(move |request: Request<Incoming>| {
        let node = Arc::clone(&node);
        async move { Ok::<_, Infallible>(answer(&request, certified, &node).await) }
    });
    // What a client does wrong is its own affair.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: &Request<Incoming>, certified: bool, node: &Mutex<Node>) -> Response<Body> {
    if !certified && !request.headers().contains_key(AUTHORIZATION) {
        return with_code(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    if request.uri().path() != "/metrics/resource" {
        return with_code(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let (behaviour, page) = {
        let mut node = held(node);
        node.requests += 1;
        (node.behaviour.clone(), node.page())
    };
    if let Behaviour::Slow(wait) = &behaviour {
        tokio::time::sleep(*wait).await;
    }
    let mut response = behaviour.answer(page);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn with_code(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = ok(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = code;
    response
}
