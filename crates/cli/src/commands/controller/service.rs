//! The server of the controller: health, exported metrics, decisions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use api::decisions::passes::{PassList, PassQuery, UnknownCursor};
use api::decisions::{DecisionRecord, DifferenceList};
use controllers::hpa::{HpaControllerHandle, exported_metrics};
use controllers::metrics::exported_metrics::CONTENT_TYPE as PROMETHEUS_CONTENT_TYPE;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serve::{App, Certificate, Exposition, HealthChecks, Keyring, Server};

use super::options::ControllerOptions;
use crate::certificates::Shared;
use crate::failure::Failure;
use crate::hosting::Hosting;
use crate::instance::own_namespace;
use crate::lease_thread::LeaseRuntime;
use crate::serving;
use crate::stored_decisions::StoredDecisions;

/// The name of the controller's Service, in manifests and in `plimsoll up`.
pub(crate) const SERVICE: &str = "plimsoll-controller";
/// The default of `--secure-port`.
pub(super) const DEFAULT_PORT: i32 = 10257;

struct Records(HpaControllerHandle);

impl serve::DecisionSource for Records {
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        StoredDecisions(self.0.records()).latest(namespace)
    }

    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>> {
        StoredDecisions(self.0.records()).of(namespace, name)
    }

    fn at(&self, namespace: &str, name: &str, at: Timestamp) -> Option<DecisionRecord> {
        StoredDecisions(self.0.records()).at(namespace, name, at)
    }

    fn between(
        &self,
        namespace: &str,
        name: &str,
        since: Timestamp,
        until: Timestamp,
    ) -> Option<Vec<DecisionRecord>> {
        StoredDecisions(self.0.records()).between(namespace, name, since, until)
    }

    fn passes(&self, query: &PassQuery) -> Result<PassList, UnknownCursor> {
        StoredDecisions(self.0.records()).passes(query)
    }

    fn follow(&self, namespace: &str, name: &str) -> Option<BoxStream<'static, DecisionRecord>> {
        StoredDecisions(self.0.records()).follow(namespace, name)
    }

    fn differences(&self, namespace: Option<&str>) -> DifferenceList {
        self.0.differences(namespace)
    }
}

/// Where the certificate is stored that replicas share.
pub(super) fn shared(options: &ControllerOptions) -> Shared {
    let rotates = options.enable_cert_rotation.unwrap_or(false) && options.tls_cert_file.is_none();
    if !rotates || options.secure_port.is_some_and(|port| port < 0) {
        return Shared::Nothing;
    }
    let name = options.cert_secret_name.clone().unwrap_or_else(|| format!("{SERVICE}-certs"));
    Shared::Secret { namespace: own_namespace(), name }
}

/// Starts the server, unless `--secure-port` is negative.
pub(super) async fn start(
    options: &ControllerOptions,
    lease_runtime: &LeaseRuntime,
    app: App,
    keyring: Option<Keyring>,
) -> Result<Option<Server>, Failure> {
    let port = options.secure_port.unwrap_or(DEFAULT_PORT);
    if port < 0 {
        return Ok(None);
    }
    let port = serving::port(i64::from(port))?;
    let given = serving::pair(options.tls_cert_file.clone(), options.tls_private_key_file.clone())?;
    let certificate = match keyring {
        Some(keyring) => Certificate::Shared(keyring),
        None => serving::certificate(given, serving::names(SERVICE, &own_namespace())),
    };
    let mut served = serve::ServerOptions {
        address: SocketAddr::new(options.bind_address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port),
        certificate,
        ..serve::ServerOptions::default()
    };
    if let Some(paths) = &options.authorization_always_allow_paths {
        served.open_paths.clone_from(paths);
    }
    let client = lease_runtime.client.clone();
    lease_runtime.thread.run(serving::start(served, client, app)).await.map(Some)
}

/// What the controller serves. A common page of several roles is in the text format of Prometheus.
pub(super) fn app(handle: &HpaControllerHandle, lease_runtime: &LeaseRuntime, hosting: &Hosting) -> App {
    let (exported, is_common) = (handle.clone(), hosting.is_common());
    let metrics = move || {
        let (content_type, text) = if is_common {
            (PROMETHEUS_CONTENT_TYPE, exported.prometheus_text())
        } else {
            (exported_metrics::CONTENT_TYPE, exported.exposition())
        };
        Exposition { content_type: content_type.to_owned(), text }
    };
    App {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks: checks(handle, lease_runtime),
        metrics: Some(Arc::new(metrics)),
        decisions: Some(Arc::new(Records(handle.clone()))),
        ..App::default()
    }
}

/// The health checks of the controller.
fn checks(handle: &HpaControllerHandle, lease_runtime: &LeaseRuntime) -> HealthChecks {
    let (controller, synced, main) = (handle.clone(), handle.clone(), lease_runtime.clone());
    let is_alive = move |silence| main.thread.is_beating() && controller.is_alive(silence);
    serving::checks(is_alive, move || {
        if synced.synced() {
            synced.watches_current()
        } else {
            Err("autoscalers and pods are not listed yet".into())
        }
    })
}
