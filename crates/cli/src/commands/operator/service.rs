//! The listeners of the operator: external metrics, admission, decisions, health, exported metrics, and gRPC for KEDA's adapter.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::Clock;
use cluster::lease::Leadership;
use controllers::metrics::MetricsWriter;
use controllers::metrics::exported_metrics::{CONTENT_TYPE, process};
use controllers::operator::{Admission, OperatorHandle};
use external_scaler::metrics_adapter::CallMetrics;
use serve::admission::{AdmissionHandler, Reviewers, open_paths, routes};
use serve::metrics::{MetricsApiSettings, external};
use serve::{
    App, Certificate, Exposition, ExtraListener, HealthChecks, Keyring, MetricsExporter, Server,
    operator_group,
};
use tokio::runtime::Handle;

use super::admission::{AdmissionCounts, AdmissionWebhook};
use super::metrics_service;
use super::options::OperatorOptions;
use crate::failure::Failure;
use crate::hosting::Hosting;
use crate::lease_thread::LeaseRuntime;
use crate::probe_thread::{ProbeRuntime, on_runtime};
use crate::serving;
use crate::stored_decisions::StoredDecisions;

/// What the served APIs need.
pub(super) struct ServiceParts {
    pub(super) handle: OperatorHandle,
    pub(super) admission: Admission,
    pub(super) leadership: Leadership,
    /// Where probes are answered.
    pub(super) thread: ProbeRuntime,
}

/// What the operator serves.
pub(super) struct OperatorApp {
    pub(super) app: App,
    /// Exported metrics, for a listener without TLS and for OTLP.
    pub(super) exported_metrics: MetricsExporter,
    calls: Arc<CallMetrics>,
}

/// What the operator serves.
pub(super) fn app(
    options: &OperatorOptions,
    parts: ServiceParts,
    hosting: &Hosting,
) -> Result<OperatorApp, Failure> {
    let ServiceParts { handle, admission, leadership, thread } = parts;
    let (judged, calls) = (Arc::<AdmissionCounts>::default(), Arc::<CallMetrics>::default());
    let admit: Arc<dyn AdmissionHandler> =
        Arc::new(AdmissionWebhook { rules: admission, judged: Arc::clone(&judged) });
    let reviewers = match &options.serving.webhook_clients {
        None => Reviewers::default(),
        Some(file) => Reviewers::signed_by(file, serve::Clock::default())
            .map_err(|error| Failure::input(format!("--webhook-client-ca: {error}")))?,
    };
    let lease = options.lease.as_ref().map(|lease| (lease.name.clone(), leadership));
    let exported_metrics = page(handle.clone(), judged, Arc::clone(&calls), lease);
    let mut groups = Vec::new();
    // A metrics role in this process serves the operator's metrics with its own.
    if !hosting.common_server.as_ref().is_some_and(|common| common.has_metrics_role) {
        let settings = MetricsApiSettings::from(options.settings.compat);
        groups.extend(external(handle.external_metrics(), &settings));
    }
    groups.push(operator_group(Arc::new(StoredDecisions(handle.records()))));
    // The work of requests stays on the main thread, with the connections to sources. The thread of the listener, which also renews
    // the lease, only reads requests and writes responses.
    let main = Handle::current();
    for group in &mut groups {
        group.route = on_runtime(group.route.clone(), &main);
    }
    let routes = routes(&admit, &reviewers).into_iter();
    let app = App {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks: checks(&handle, &thread),
        metrics: Some(Arc::clone(&exported_metrics)),
        groups,
        routes: routes.map(|(path, route)| (path, on_runtime(route, &main))).collect(),
        ..App::default()
    };
    Ok(OperatorApp { app, exported_metrics, calls })
}

/// Starts the server on the thread of the lease.
pub(super) async fn start(
    options: &OperatorOptions,
    lease_runtime: &LeaseRuntime,
    app: App,
    keyring: Option<Keyring>,
) -> Result<Server, Failure> {
    let wanted = &options.serving;
    let certificate = match keyring {
        Some(keyring) => Certificate::Shared(keyring),
        None => serving::certificate(wanted.certificate.clone(), wanted.names.clone()),
    };
    let mut served = serve::ServerOptions {
        address: SocketAddr::new(wanted.address, wanted.port),
        certificate,
        ..serve::ServerOptions::default()
    };
    served.open_paths.extend(open_paths());
    lease_runtime.thread.run(serving::start(served, lease_runtime.client.clone(), app)).await
}

/// Starts the listeners of exported metrics without TLS and of KEDA's own adapter.
pub(super) async fn extra_listeners(
    options: &OperatorOptions,
    served: OperatorApp,
    keyring: Option<&Keyring>,
    handle: &OperatorHandle,
    clock: &Clock,
) -> Result<Vec<ExtraListener>, Failure> {
    let (wanted, mut listeners) = (&options.serving, Vec::new());
    let OperatorApp { exported_metrics, calls, .. } = served;
    if let Some(open) = wanted.exported_metrics {
        listeners.extend(serving::listening(
            "metrics-bind-address",
            open,
            ExtraListener::exported_metrics(open.address, exported_metrics).await,
        )?);
    }
    // Without a shared certificate no client could present one.
    if let (Some(open), Some(keyring)) = (wanted.metrics_service, keyring) {
        let inputs = metrics_service::ServiceInputs { handle, clock, calls };
        let started = metrics_service::start(open.address, keyring, inputs, wanted.raw_metrics).await;
        listeners.extend(serving::listening("metrics-service-bind-address", open, started)?);
    }
    Ok(listeners)
}

/// Renders all exported metrics.
fn page(
    handle: OperatorHandle,
    judged: Arc<AdmissionCounts>,
    calls: Arc<CallMetrics>,
    lease: Option<(String, Leadership)>,
) -> MetricsExporter {
    Arc::new(move || {
        let mut page = MetricsWriter::default();
        page.written(&handle.exported_metrics());
        judged.write_metrics(&mut page);
        metrics_service::write_metrics(&mut page, &calls);
        let help = "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. \
                    'name' is the string used to identify the lease. Please make sure to group by name.";
        page.family("gauge", "leader_election_master_status", help);
        if let Some((name, leadership)) = &lease {
            page.value(&[("name", name)], u8::from(leadership.is_leader()));
        }
        process(&mut page);
        Exposition { content_type: CONTENT_TYPE.to_owned(), text: page.finish() }
    })
}

/// Replicas that are not the leader are ready too: they serve metrics.
fn checks(handle: &OperatorHandle, thread: &ProbeRuntime) -> HealthChecks {
    let (operator, synced, main) = (handle.clone(), handle.clone(), thread.clone());
    let is_alive = move |silence| main.is_beating() && operator.is_alive(silence);
    serving::checks(is_alive, move || {
        if synced.synced() {
            synced.watches_current()
        } else {
            Err("ScaledObjects and their targets are not listed yet".into())
        }
    })
}
