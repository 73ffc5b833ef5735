#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod cluster;
mod garbage;

use std::convert::Infallible;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use super::*;
use crate::federation::{Body, Route, full};
use crate::http::{Auth, Secret};
use crate::kubelet::{MetricsPoint, PodPoints};

const MAX_NAME_BYTES: &str = "plimsoll-metrics.plimsoll.svc";

/// A CA and a server with a certificate of it.
fn tls() -> (String, TlsAcceptor) {
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![MAX_NAME_BYTES.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    (authority.pem(), TlsAcceptor::from(Arc::new(config)))
}

/// Authorization, which `serve` implements in production.
fn with_token(inner: Route) -> Route {
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let answer: BoxFuture<'static, Result<Response<Body>, Infallible>> =
            if request.headers().get(AUTHORIZATION).is_some_and(|token| token == "Bearer right") {
                inner.clone().oneshot(request).boxed()
            } else {
                let mut answer = Response::new(full("no"));
                *answer.status_mut() = StatusCode::FORBIDDEN;
                async { Ok(answer) }.boxed()
            };
        answer
    }))
}

fn endpoint(ca: &str, token: &str) -> Endpoint {
    Endpoint {
        ca_bundle: Some(ca.as_bytes().to_vec()),
        server_name: Some(MAX_NAME_BYTES.into()),
        auth: Auth::Token(Secret::new(token)),
        ..Endpoint::default()
    }
}

fn inventory(nodes: usize) -> Inventory {
    let inventory = Inventory::new();
    for n in 0..nodes {
        inventory.set_node(Node { name: format!("node-{n}").into(), ..Node::default() });
        inventory.set_pod(crate::inventory::Pod {
            namespace: "default".into(),
            name: format!("pod-{n}").into(),
            ..crate::inventory::Pod::default()
        });
    }
    inventory.nodes_complete();
    inventory.pods_complete();
    inventory
}

fn sharding(
    id: &str,
    resolution: Duration,
    endpoint: Endpoint,
    nodes: usize,
) -> (Sharding, Store, Inventory) {
    let inventory = inventory(nodes);
    let settings = crate::store::StoreSettings {
        resolution,
        keep: resolution * 8,
        compat: api::provider::Compat::Better,
    };
    let store = Store::new(settings, inventory.clone());
    let settings = ShardingSettings { id: id.into(), resolution, endpoint, clock: Clock::system() };
    (Sharding::new(settings, inventory.clone(), store.clone()), store, inventory)
}

/// A scrape of a node and pod that have used half a core since the epoch.
fn kubelet(node: &str, nanos: i64) -> Scrape {
    let point = MetricsPoint { start: Some(1), time: nanos, cpu: (nanos / 2) as u64, memory: 1 << 20 };
    let pod = PodPoints {
        namespace: "default".into(),
        name: node.replace("node", "pod").into(),
        containers: vec![("main".into(), point)],
    };
    Scrape { node: Some(point), pods: vec![pod], incomplete: Vec::new() }
}
