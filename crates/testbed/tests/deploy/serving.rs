//! The decisions of a controller, served as `plimsoll controller` does.

use std::net::Ipv4Addr;
use std::sync::Arc;

use api::decisions::{DecisionRecord, DifferenceList};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controllers::hpa::HpaControllerHandle;
use futures::stream::BoxStream;
use kube::Client;
use serde_json::{Value, json};
use serve::{App, Certificate, Exposition, Server, ServiceBackend, ServiceRef};
use testbed::harness;

pub(crate) struct ServedDecisions {
    server: Server,
    service_ref: ServiceRef,
}

struct Records(HpaControllerHandle);

impl serve::DecisionSource for Records {
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        self.0.records().latest(namespace)
    }

    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>> {
        Some(self.0.records().of(namespace, name)).filter(|records| !records.is_empty())
    }

    fn follow(&self, _: &str, _: &str) -> Option<BoxStream<'static, DecisionRecord>> {
        None
    }

    fn differences(&self, namespace: Option<&str>) -> DifferenceList {
        self.0.differences(namespace)
    }
}

/// Serves on a free port, behind the authentication and authorization of the cluster that `client` leads to.
pub(crate) async fn start(
    client: &Client,
    handle: &HpaControllerHandle,
    namespace: &str,
    service: &str,
) -> ServedDecisions {
    let names = vec!["127.0.0.1".to_owned(), format!("{service}.{namespace}.svc")];
    let options = serve::ServerOptions {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        certificate: Certificate::SelfSigned(names),
        ..serve::ServerOptions::default()
    };
    let metrics_handle = handle.clone();
    let content_type = controllers::hpa::exported_metrics::CONTENT_TYPE.to_owned();
    let app = App {
        metrics: Some(Arc::new(move || Exposition {
            content_type: content_type.clone(),
            text: metrics_handle.exposition(),
        })),
        decisions: Some(Arc::new(Records(handle.clone()))),
        ..App::default()
    };
    let server = Server::start(options, client.clone(), app).await.unwrap();
    let behind = ServiceBackend::ThisMachine(server.port());
    ServedDecisions {
        server,
        service_ref: ServiceRef { namespace: namespace.to_owned(), service: service.to_owned(), behind },
    }
}

impl ServedDecisions {
    /// The objects that register the server with the cluster.
    pub(crate) fn api_services(&self) -> Vec<Value> {
        self.server.api_services(&self.service_ref)
    }

    /// A client that connects to the server directly, with or without a token.
    pub(crate) async fn client(&self, token: Option<&str>) -> Client {
        let authority = STANDARD.encode(self.server.ca_pem().unwrap());
        let server = format!("https://127.0.0.1:{}", self.server.port());
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "it", "user": token.map_or(json!({}), |token| json!({"token": token}))}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        harness::connect(&kubeconfig.to_string()).await.unwrap()
    }
}
