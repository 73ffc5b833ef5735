//! All roles in one process: start, reload and orderly stop.

use std::future::pending;
use std::sync::Arc;

use cluster::Clock;
use cluster::connect::{Connection, connect};
use cluster::lease::Leadership;
use cluster::metrics::LocalMetrics;
use controllers::metrics::Rules;
use controllers::metrics::exported_metrics::{CONTENT_TYPE, join_roles};
use runtime::build_info;
use serve::{App, Certificate, Exposition, ExtraListener, Keyring, MetricsExporter, Server, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use super::flags::Role;
use super::options::RunOptions;
use crate::certificates;
use crate::certificates::trust::{self, CaBundleObjects, ServingCa};
use crate::commands::controller::{self, ControllerArgs, ControllerProcess, stopped};
use crate::commands::metrics::{self, MetricsProcess, OtherRoles};
use crate::commands::operator::{self, OperatorProcess};
use crate::failure::{CommandResult, Failure};
use crate::hosting::{CommonServer, Hosting};
use crate::lease_thread::LeaseRuntime;
use crate::serving;

/// The maximum number of threads, as for the metrics server alone.
const MAX_THREADS: usize = 4;

/// The running roles and their server.
struct RunningRoles {
    controller: Option<ControllerProcess>,
    metrics: Option<MetricsProcess>,
    operator: Option<OperatorProcess>,
    server: Server,
    probes: Option<ExtraListener>,
    /// Tasks that keep the certificate and `caBundle`s up to date.
    background: JoinSet<()>,
}

/// What all roles serve together.
#[derive(Default)]
struct CommonApp {
    app: App,
    exporters: Vec<(&'static str, MetricsExporter)>,
}

/// Runs until SIGINT or SIGTERM, or until a role ends by itself.
pub(super) fn run(options: &RunOptions) -> CommandResult {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let connection =
            connect(&options.target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        // Dropped last: leases are released and the listener of probes is stopped on this thread.
        let (_thread, lease_runtime) = LeaseRuntime::start(&options.target).await?;
        let mut roles = start(&connection, options, &lease_runtime).await?;
        let names: Vec<&str> = options.roles().into_iter().map(Role::name).collect();
        tracing::info!(
            server = connection.server, version = build_info::VERSION, revision = build_info::REVISION, roles = names.join(","),
            address = %roles.server.address(), "the roles run"
        );
        let reload = reload(options, &roles);
        let outcome = tokio::select! {
            failure = roles.ended() => Err(failure),
            result = reload => result,
            result = stopped() => result,
        };
        serving::log_stop(&outcome);
        roles.server.drain();
        if let (Ok(()), Some(metrics)) = (&outcome, &options.metrics) {
            tokio::time::sleep(metrics.serving.stop_after).await;
        }
        roles.stop().await;
        outcome
    });
    // A DNS lookup may hang in a blocking thread; the process does not wait for it.
    runtime.shutdown_background();
    outcome
}

/// Applies changed configuration files; does not return.
fn reload(options: &RunOptions, roles: &RunningRoles) -> impl Future<Output = CommandResult> + use<> {
    let controller = options.controller.as_ref().zip(roles.controller.as_ref());
    let controller = controller.map(|(args, process)| (args.reloader(), process.handle.clone()));
    let rules = roles.metrics.as_ref().and_then(|metrics| metrics.sources.rules.clone());
    async move {
        let (mut for_controller, mut for_rules) =
            (signal(SignalKind::hangup())?, signal(SignalKind::hangup())?);
        let controller_reloads = async {
            if let Some((reloader, handle)) = controller {
                let reloads = reloader.run(handle, async move || {
                    for_controller.recv().await;
                });
                reloads.await;
            }
        };
        let rules_reload = async {
            while for_rules.recv().await.is_some() {
                rules.iter().for_each(Rules::request_reload);
            }
        };
        tokio::join!(controller_reloads, rules_reload);
        pending().await
    }
}

/// Starts the roles and their server.
async fn start(
    connection: &Connection,
    options: &RunOptions,
    lease_runtime: &LeaseRuntime,
) -> Result<RunningRoles, Failure> {
    let (client, clock, wanted) = (&connection.client, Clock::system(), &options.serving);
    let mut background = JoinSet::new();
    let opened = certificates::open(&wanted.shared, &wanted.names, client, &clock).await;
    let keyring = opened.map(|(keyring, renewer)| {
        // Every replica serves, so every replica may renew: the API server accepts one of concurrent writes.
        background.spawn(renewer.run(Leadership::without_election()));
        keyring
    });
    let has_metrics_role = options.metrics.is_some();
    let hosting = Hosting {
        common_server: Some(CommonServer { keyring: keyring.clone(), has_metrics_role }),
        local_metrics: LocalMetrics::default(),
    };
    let mut common = CommonApp::default();
    let operator = match &options.operator {
        Some(options) => {
            operator::log_options(options);
            let role = operator::prepare(connection, options, clock.clone(), lease_runtime, &hosting).await?;
            common.add(Role::Operator, role.app().clone());
            Some(role)
        }
        None => None,
    };
    let mut watches_pods = false;
    let mut controller = match &options.controller {
        Some(args) => {
            let options = args.merged_options()?;
            args.log_options(&options);
            // A controller of some namespaces does not see all pods.
            watches_pods = options.settings()?.namespaces.is_empty();
            let role =
                controller::prepare(connection, &options, clock.clone(), lease_runtime, &hosting).await?;
            common.add(Role::Controller, role.app.clone());
            Some(role)
        }
        None => None,
    };
    let metrics = match &options.metrics {
        Some(options) => {
            let external = operator.as_ref().map(|role| role.handle.external_metrics());
            let others = OtherRoles { operator: external, watches_pods };
            let mut role = metrics::prepare(connection, options, &hosting, others).await?;
            hosting.local_metrics.provide(role.providers.clone());
            if let (Some(controller), Some(observer)) = (&mut controller, role.pod_observer.take()) {
                controller.controller.observe_pods(observer);
            }
            common.add(Role::Metrics, role.app.clone());
            Some(role)
        }
        None => None,
    };
    let app = common.finish(lease_runtime);
    let mut checks = app.checks.clone();
    let server = serving::start(server_options(options, keyring.as_ref())?, client.clone(), app).await?;
    checks.add_ready("shutdown", server.shutdown_check());
    let probes = lease_runtime.thread.run(serving::probes(wanted.probes, checks)).await?;
    let leadership = operator.as_ref().map(|role| role.leadership.clone());
    if let Some(authority) = serving_ca(keyring, &server, leadership.is_some()) {
        let leadership = leadership.unwrap_or_else(Leadership::without_election);
        let owner = options.operator.as_ref().map(|options| options.owner.clone());
        background.spawn(trust::keep(
            client.clone(),
            leadership,
            ca_bundle_objects(options),
            owner,
            authority,
        ));
    }
    let operator = match (operator, &options.operator) {
        (Some(role), Some(options)) => Some(role.run(options, None, None).await?),
        _ => None,
    };
    let metrics = metrics.map(|role| role.run(None, None));
    let controller = controller.map(|role| role.run(None, None));
    Ok(RunningRoles { controller, metrics, operator, server, probes, background })
}

/// The CA that is written into `caBundle`s. Replicas that do not share a certificate have different ones: then only the leader of the
/// operator writes its own.
fn serving_ca(keyring: Option<Keyring>, server: &Server, has_operator: bool) -> Option<ServingCa> {
    match keyring {
        Some(keyring) => Some(ServingCa::Shared(keyring)),
        None => has_operator.then(|| ServingCa::Fixed(server.ca_pem().map(str::to_owned))),
    }
}

/// The objects that name our CA.
fn ca_bundle_objects(options: &RunOptions) -> CaBundleObjects {
    let operator = options.operator.as_ref().map(|options| options.serving.ca_bundle_objects());
    let mut objects = operator.unwrap_or_default();
    let own = |runs: bool, names: &'static [&'static str]| names.iter().filter(move |_| runs);
    let names = own(options.controller.is_some(), controller::API_SERVICES)
        .chain(own(options.metrics.is_some(), metrics::API_SERVICES));
    objects.api_services.extend(names.map(|&name| name.to_owned()));
    objects.api_services.sort_unstable();
    objects.api_services.dedup();
    objects.names.clone_from(&options.serving.names);
    objects
}

/// The options of the one server: those of the metrics role where it runs, whose clients send the most.
fn server_options(options: &RunOptions, keyring: Option<&Keyring>) -> Result<ServerOptions, Failure> {
    let wanted = &options.serving;
    let certificate = match keyring {
        Some(keyring) => Certificate::Shared(keyring.clone()),
        None => serving::certificate(wanted.certificate.clone(), wanted.names.clone()),
    };
    let mut served = match (&options.metrics, &options.controller) {
        (Some(metrics), _) => metrics::server_options(&metrics.serving, certificate),
        (None, controller) => {
            let mut served = ServerOptions { certificate, ..ServerOptions::default() };
            let given = controller.as_ref().map(ControllerArgs::merged_options).transpose()?;
            if let Some(paths) = given.and_then(|options| options.authorization_always_allow_paths) {
                served.open_paths = paths;
            }
            served
        }
    };
    served.address = wanted.address;
    if options.operator.is_some() {
        served.open_paths.extend(serve::admission::open_paths());
    }
    Ok(served)
}

impl CommonApp {
    /// Adds what a role serves. Its health checks are named `ROLE/CHECK`.
    fn add(&mut self, role: Role, app: App) {
        self.app.version = app.version;
        self.app.checks.extend(app.checks.below(role.name()));
        self.app.groups.extend(app.groups);
        self.app.routes.extend(app.routes);
        self.app.decisions = self.app.decisions.take().or(app.decisions);
        if role == Role::Metrics {
            // Requests are counted for its exported metrics.
            self.app.traffic = app.traffic;
        }
        self.exporters.extend(app.metrics.map(|exporter| (role.name(), exporter)));
    }

    fn finish(self, lease_runtime: &LeaseRuntime) -> App {
        let Self { mut app, exporters } = self;
        let workers = lease_runtime.thread.clone();
        app.checks.add_live("workers", move || {
            if workers.is_beating() { Ok(()) } else { Err("the worker threads are stuck".into()) }
        });
        app.metrics = Some(Arc::new(move || {
            let pages: Vec<(&str, String)> =
                exporters.iter().map(|(role, exporter)| (*role, exporter().text)).collect();
            Exposition { content_type: CONTENT_TYPE.to_owned(), text: join_roles(&pages) }
        }));
        app
    }
}

impl RunningRoles {
    /// Waits until a role or a task beside them ends by itself.
    async fn ended(&mut self) -> Failure {
        tokio::select! {
            failure = or_never(self.controller.as_mut().map(ControllerProcess::ended)) => failure,
            failure = or_never(self.metrics.as_mut().map(MetricsProcess::ended)) => failure,
            failure = or_never(self.operator.as_mut().map(OperatorProcess::ended)) => failure,
            failure = serving::panicked("process", &mut self.background) => failure,
        }
    }

    /// Stops in order: reconciles end, events are sent and leases released; then requests and scrapes end.
    async fn stop(mut self) {
        self.background.abort_all();
        let controller = async {
            if let Some(process) = self.controller {
                process.stop().await;
            }
        };
        let operator = async {
            if let Some(process) = self.operator {
                process.stop().await;
            }
        };
        tokio::join!(controller, operator);
        self.server.stop().await;
        if let Some(process) = self.metrics {
            process.stop().await;
        }
        if let Some(probes) = self.probes {
            probes.stop().await;
        }
    }
}

/// The result of a future, if there is one.
async fn or_never<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
