//! A test server with decisions, and its clients.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::indexing_slicing)]

pub mod cluster;
pub mod frames;
pub mod usage;

use std::sync::Arc;

use api::decisions::{API_VERSION, DecisionMeta, DecisionMode, DecisionRecord, DifferenceList};
use bytes::Bytes;
use engine::spec::{Spec, TargetRef};
use engine::{Observation, PodSelection, Scale, State, Status};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::{SignedDuration, Timestamp};
use localkube::access::Identity;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use serve::{DecisionSource, Server};

pub const DECISIONS: &str = "/apis/decisions.plimsoll.dev/v1alpha1";

pub fn record(namespace: &str, name: &str, second: i64) -> DecisionRecord {
    let last = Timestamp::from_second(1_800_000_000 + second).unwrap();
    let spec = Spec {
        namespace: namespace.into(),
        name: name.into(),
        target: TargetRef { kind: "Deployment".into(), name: name.into() },
        min: 1.into(),
        max: 10.into(),
        metrics: Vec::new(),
        ..Spec::default()
    };
    let seen = Observation {
        config: Arc::default(),
        spec: Arc::new(spec.clone()),
        status: Status::default(),
        scale: Ok(Scale { spec_replicas: 12.into(), status_replicas: 12.into(), selector: String::new() }),
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    DecisionRecord {
        api_version: API_VERSION.into(),
        kind: "Decision".into(),
        metadata: DecisionMeta { name: format!("hpa.{name}"), namespace: namespace.into() },
        mode: DecisionMode::Active,
        first: last,
        last,
        times: 1,
        period: SignedDuration::from_secs(15),
        spec,
        decision: State::default().step(last, &seen),
        round: None,
    }
}

/// One autoscaler in namespace `a` and one in `b`; each wait for further decisions returns one.
pub struct FakeDecisionSource;

impl DecisionSource for FakeDecisionSource {
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        let mut all = vec![record("a", "web", 0), record("b", "web", 0)];
        all.retain(|record| namespace.is_none_or(|namespace| record.metadata.namespace == namespace));
        all
    }

    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>> {
        let known = matches!(namespace, "a" | "b") && name == "hpa.web";
        known.then(|| vec![record(namespace, "web", 0)])
    }

    fn follow(&self, namespace: &str, name: &str) -> Option<BoxStream<'static, DecisionRecord>> {
        self.of(namespace, name)?;
        let namespace = namespace.to_owned();
        let next = futures::stream::unfold(1, move |count| {
            let record = record(&namespace, "web", count);
            async move {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                Some((record, count + 1))
            }
        });
        Some(next.boxed())
    }

    fn follow_all(&self, namespace: Option<&str>) -> Option<BoxStream<'static, DecisionRecord>> {
        self.follow(namespace.unwrap_or("a"), "hpa.web")
    }

    fn differences(&self, _: Option<&str>) -> DifferenceList {
        DifferenceList::default()
    }
}

/// A client with or without a certificate.
pub struct Visitor {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
}

pub fn tls(authority: &str, identity: Option<&Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

impl Visitor {
    pub fn new(server: &Server, identity: Option<&Identity>) -> Self {
        let config = tls(server.ca_pem().unwrap(), identity);
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_all_versions().build();
        let http = Client::builder(TokioExecutor::new()).build(connector);
        Self { http, base: format!("https://localhost:{}", server.port()) }
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.http.request(request.body(Full::new(Bytes::from(body))).unwrap()).await
    }

    /// The code and the text of a response.
    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let response = self.send("GET", path, headers, Vec::new()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// The code and, of an error, its message.
    pub async fn get_message(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let (code, text) = self.get(path, headers).await;
        let message = serde_json::from_str::<Value>(&text).ok();
        (
            code,
            message.and_then(|status| Some(status.get("message")?.as_str()?.to_owned())).unwrap_or_default(),
        )
    }
}
