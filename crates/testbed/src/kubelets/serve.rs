//! The TLS and HTTP server of one node.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use localkube::access::server_config;
use localkube::listen;
use rustls::RootCertStore;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::fault::{Behaviour, KubeletBody, ok};
use super::locked;
use super::node::Node;
use crate::error::{Attempt as _, Error};
use crate::pki::Identity;
use crate::simulated;

/// Serves the metrics of a node until the future is dropped.
pub(super) fn serve(
    listener: TcpListener,
    identity: &Identity,
    clients: &RootCertStore,
    node: Arc<Mutex<Node>>,
) -> Result<impl Future<Output = ()> + Send + use<>, Error> {
    let failed = || "set up a simulated kubelet".to_owned();
    let config = server_config(identity, Some(clients.clone()))?;
    let tls = TlsAcceptor::from(Arc::new(config));
    listener.set_nonblocking(true).attempt(failed)?;
    let _guard = simulated::handle().enter();
    let listener = tokio::net::TcpListener::from_std(listener).attempt(failed)?;
    let serve = move |stream| connection(tls.clone(), stream, Arc::clone(&node));
    Ok(async move { listen::accept(listener, serve).await })
}

async fn connection(tls: TlsAcceptor, stream: TcpStream, node: Arc<Mutex<Node>>) {
    let Some(stream) = listen::handshake(&tls, stream).await else { return };
    let certified = listen::has_certificate(&stream);
    let handler = move |request: Request<Incoming>| {
        let node = Arc::clone(&node);
        async move { respond(&request, certified, &node).await }
    };
    listen::serve_http(stream, handler).await;
}

async fn respond(request: &Request<Incoming>, certified: bool, node: &Mutex<Node>) -> Response<KubeletBody> {
    if !certified && !request.headers().contains_key(AUTHORIZATION) {
        return with_code(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    if request.uri().path() != "/metrics/resource" {
        return with_code(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let (behaviour, page) = {
        let mut node = locked(node);
        node.requests += 1;
        (node.behaviour.clone(), node.page())
    };
    if let Behaviour::Slow(wait) = &behaviour {
        tokio::time::sleep(*wait).await;
    }
    let mut response = behaviour.respond(page);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn with_code(code: StatusCode, text: &'static str) -> Response<KubeletBody> {
    let mut response = ok(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = code;
    response
}
