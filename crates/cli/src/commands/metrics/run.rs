//! The metrics server process: start, reload and orderly stop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::provider::ExternalMetricsProvider;
use cluster::Clock;
use cluster::connect::{Connection, connect};
use cluster::lease::Leadership;
use cluster::request::{Request, send};
use controllers::hpa::PodObserver;
use controllers::metrics::{ClusterInventory, Kubelets, Providers, Rules, Sources};
use runtime::build_info;
use serde_json::Value;
use serve::{App, ExtraListener, Keyring, Server};
use sources::federation::{self, FederationConfig, OwnService, Router, with_loop_guard};
use sources::prometheus::config::AdapterConfig;
use sources::sharding;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::options::{MetricsOptions, Origin};
use super::{kubelets, operator_upstream, prometheus, service};
use crate::commands::controller::stopped;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::hosting::{CommonServer, Hosting};
use crate::instance::{hostname, own_namespace};
use crate::probe_thread::{ProbeRuntime, ProbeThread};
use crate::serving;

/// The maximum number of threads: more would only wait for the same data.
const MAX_THREADS: usize = 4;

/// The APIServices that may be ours.
pub(crate) const API_SERVICES: &[&str] = &[
    "v1beta1.metrics.k8s.io",
    "v1.metrics.k8s.io",
    "v1alpha1.metrics.plimsoll.dev",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "v1beta1.external.metrics.k8s.io",
];

/// What a metrics server takes from other roles in its process.
#[derive(Default)]
pub(crate) struct OtherRoles {
    /// The operator's external metrics.
    pub(crate) operator: Option<Arc<dyn ExternalMetricsProvider>>,
    /// Whether a controller watches all pods.
    pub(crate) watches_pods: bool,
}

/// A metrics server that does not serve yet, and what it serves.
pub(crate) struct MetricsRole {
    pub(crate) app: App,
    pub(crate) providers: Providers,
    /// Takes part in the controller's watch of pods.
    pub(crate) pod_observer: Option<PodObserver>,
    keyring: Option<Keyring>,
    sources: Sources,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// A running metrics server.
pub(crate) struct MetricsProcess {
    /// None if other roles share the server.
    pub(crate) server: Option<Server>,
    probes: Option<ExtraListener>,
    pub(crate) sources: Sources,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// Runs until SIGINT or SIGTERM.
pub(super) fn run(options: &MetricsOptions) -> CommandResult {
    // Invalid options are reported before the cluster is contacted.
    let rules = options.config.as_deref().map(prometheus::read).transpose()?;
    options.origin(rules.is_some_and(|(_, config)| config.resource_rules.is_some()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let connection =
            connect(&options.target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        // Dropped last: the listener of probes is stopped on this thread.
        let (_thread, probe_runtime) = ProbeThread::start("probes")?;
        let mut process = start(&connection, options, &probe_runtime).await?;
        tracing::info!(
            server = connection.server,
            version = build_info::VERSION,
            revision = build_info::REVISION,
            "the metrics server runs"
        );
        let mut hangup = signal(SignalKind::hangup())?;
        let rules = process.sources.rules.clone();
        let stop_requested = async {
            while hangup.recv().await.is_some() {
                rules.iter().for_each(Rules::request_reload);
            }
        };
        let outcome = tokio::select! {
            failure = process.ended() => Err(failure),
            () = stop_requested => Ok(()),
            result = stopped() => result,
        };
        serving::log_stop(&outcome);
        process.drain();
        if outcome.is_ok() {
            tokio::time::sleep(options.serving.stop_after).await;
        }
        process.stop().await;
        outcome
    });
    // A DNS lookup may hang in a blocking thread; the process does not wait for it.
    runtime.shutdown_background();
    outcome
}

/// Starts a metrics server on a cluster, with a server of its own.
pub(crate) async fn start(
    connection: &Connection,
    options: &MetricsOptions,
    probe_runtime: &ProbeRuntime,
) -> Result<MetricsProcess, Failure> {
    let mut role = prepare(connection, options, &Hosting::default(), OtherRoles::default()).await?;
    let (client, keyring) = (connection.client.clone(), role.keyring.take());
    let server = service::start(&options.serving, client, role.app.clone(), keyring).await?;
    let mut checks = role.app.checks.clone();
    checks.add_ready("shutdown", server.shutdown_check());
    let workers = probe_runtime.clone();
    // A server whose worker threads are all stuck does not answer on its secure port, either.
    checks.add_live("loop", move || {
        if workers.is_beating() { Ok(()) } else { Err("the worker threads are stuck".into()) }
    });
    let probes = probe_runtime.run(serving::probes(options.serving.probes, checks)).await?;
    Ok(role.run(Some(server), probes))
}

/// Prepares a metrics server on a cluster.
pub(crate) async fn prepare(
    connection: &Connection,
    options: &MetricsOptions,
    hosting: &Hosting,
    others: OtherRoles,
) -> Result<MetricsRole, Failure> {
    if !options.idle.is_empty() {
        let flags: Vec<String> = options.idle.iter().map(|name| format!("--{name}")).collect();
        tracing::info!(
            flags = flags.join(" "),
            "these flags are taken and do nothing here (docs/metrics.md)"
        );
    }
    let config = options.config.as_deref().map(prometheus::read).transpose()?.map(|(_, config)| config);
    let origin = options.origin(config.as_ref().is_some_and(|config| config.resource_rules.is_some()))?;
    let client = &connection.client;
    let (stop, stopping) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let (cluster_inventory, pod_observer) = match (origin, others.watches_pods) {
        (Origin::Nowhere, _) => (None, None),
        (_, false) => (Some(ClusterInventory::start(client)), None),
        (_, true) => {
            let (cluster_inventory, observer) = ClusterInventory::with_observed_pods(client);
            (Some(cluster_inventory), Some(observer))
        }
    };
    let kubelets = match &cluster_inventory {
        Some(cluster_inventory) if origin == Origin::Kubelets => {
            let (ours, clock) = (&connection.credentials, &options.serving.clock);
            let mut settings = kubelets::settings(&options.kubelets, options.compat, ours, clock)?;
            // metrics-server has no sharding.
            let sharding = options.sharding.as_ref().filter(|_| !options.compat.is_strict());
            settings.sharding =
                sharding.map(|sharding| kubelets::division(sharding, options.kubelets.resolution));
            let started = Kubelets::start(client, cluster_inventory, settings, stopping, &mut tasks);
            Some(started.map_err(|error| Failure::Outside(error.to_string()))?)
        }
        _ => None,
    };
    let rules = match (config, &options.config) {
        (Some(config), Some(file)) => Some(
            rules(connection, options, file, config, origin, cluster_inventory.as_ref(), &mut tasks).await?,
        ),
        _ => None,
    };
    let own = own(connection, options).await;
    let router = router(options, &own, rules.as_ref(), others.operator, &mut tasks)?;
    if let (Some(router), Some(service)) = (&router, &options.operator) {
        tasks.spawn(operator_upstream::keep(client.clone(), router.clone(), service.clone()));
    }
    let mut providers = providers(kubelets.as_ref(), rules.as_ref(), router.as_ref());
    if options.upstreams.is_none() {
        // The operator has no custom metrics.
        providers.custom = rules.as_ref().filter(|rules| rules.serves_custom()).map(Rules::custom);
    }
    let mut routes = Vec::new();
    if let Some(sharding) = kubelets.as_ref().and_then(Kubelets::sharding) {
        routes.push((sharding::PATH.to_owned(), sharding.route()));
    }
    let sources = Sources {
        instance: hostname(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        compat: options.compat,
        started: options.serving.clock.now(),
        cluster_inventory,
        kubelets,
        rules,
        router,
    };
    let guard = |route| with_loop_guard(route, &own);
    let keyring = match &hosting.common_server {
        Some(CommonServer { keyring, .. }) => keyring.clone(),
        None => {
            let mut names = serving::names(service::SERVICE, &own_namespace());
            names.push(format!("{}.{}.svc", own.service, own.namespace));
            names.dedup();
            let shared = options.serving.shared.clone();
            let rotation = serving::Rotation { shared, names, api_services: API_SERVICES };
            // Every replica answers by itself, so every replica may renew: the API server accepts one of concurrent writes.
            let alone = Leadership::without_election();
            serving::rotated(rotation, client, &Clock::system(), &alone, &mut tasks).await
        }
    };
    let app = service::app(&sources, &providers, routes, guard, &options.serving.clock);
    log_sources(&providers, origin, &sources);
    Ok(MetricsRole { app, providers, pod_observer, keyring, sources, stop, tasks })
}

async fn rules(
    connection: &Connection,
    options: &MetricsOptions,
    file: &Path,
    config: AdapterConfig,
    origin: Origin,
    cluster_inventory: Option<&ClusterInventory>,
    tasks: &mut JoinSet<()>,
) -> Result<Rules, Failure> {
    let resource = origin == Origin::Prometheus;
    let settings =
        prometheus::settings(&options.prometheus, options.compat, file.to_owned(), config, resource).await?;
    let started = Rules::start(&connection.client, settings, cluster_inventory, tasks).await;
    started.map_err(|error| match error {
        controllers::metrics::rules::RulesError::Config(error) => {
            let place = error.rule.map(|rule| format!("{}[{rule}]: ", error.stage)).unwrap_or_default();
            let shown = file.display();
            Failure::input(format!(
                "{shown}: {place}{error}\n  remedy: plimsoll metrics lint {shown} shows the place"
            ))
        }
        other => Failure::Outside(other.to_string()),
    })
}

/// The upstream metrics API servers.
fn router(
    options: &MetricsOptions,
    own: &OwnService,
    rules: Option<&Rules>,
    operator: Option<Arc<dyn ExternalMetricsProvider>>,
    tasks: &mut JoinSet<()>,
) -> Result<Option<Router>, Failure> {
    if options.upstreams.is_none() && options.operator.is_none() && operator.is_none() {
        return Ok(None);
    }
    let config = match &options.upstreams {
        Some(file) => FederationConfig::read(&files::read(file)?, own)?,
        None => FederationConfig::default(),
    };
    let mut providers = federation::LocalProviders::default();
    if let Some(rules) = rules {
        providers.custom.push(("rules".to_owned(), rules.custom()));
        providers.external.push(("rules".to_owned(), rules.external()));
    }
    providers.external.extend(operator.map(|provider| ("operator".to_owned(), provider)));
    let router = Router::new(own.clone(), providers, config);
    let running = router.clone();
    tasks.spawn(async move { running.run().await });
    if let Some(file) = options.upstreams.clone() {
        let following = router.clone();
        tasks.spawn(async move { following.follow(&file).await });
    }
    Ok(Some(router))
}

fn providers(kubelets: Option<&Kubelets>, rules: Option<&Rules>, router: Option<&Router>) -> Providers {
    let resource = kubelets.map(Kubelets::provider).or_else(|| rules.and_then(Rules::resource));
    match router {
        Some(router) => {
            let router = Arc::new(router.clone());
            Providers { resource, custom: Some(router.clone()), external: Some(router) }
        }
        None => Providers {
            resource,
            custom: rules.filter(|rules| rules.serves_custom()).map(Rules::custom),
            external: rules.filter(|rules| rules.serves_external()).map(Rules::external),
        },
    }
}

/// Our identity in loop detection between servers: common to all our replicas.
async fn own(connection: &Connection, options: &MetricsOptions) -> OwnService {
    let (namespace, service) = match &options.sharding {
        Some(sharding) => (sharding.namespace.clone(), sharding.service.clone()),
        None => (own_namespace(), service::SERVICE.to_owned()),
    };
    if options.upstreams.is_none() && options.operator.is_none() {
        return OwnService { id: format!("{namespace}/{service}"), namespace, service };
    }
    let request = Request::get("/api/v1/namespaces/kube-system", "namespaces", Duration::from_secs(5));
    let system = send(&connection.client, request).await.ok();
    let system: Option<Value> = system.and_then(|body| serde_json::from_slice(&body).ok());
    let uid = system.as_ref().and_then(|object| object.pointer("/metadata/uid")).and_then(Value::as_str);
    OwnService { id: format!("{}/{namespace}/{service}", uid.unwrap_or_default()), namespace, service }
}

/// Logs what is served.
fn log_sources(providers: &Providers, origin: Origin, sources: &Sources) {
    let resource = match (providers.resource.is_some(), origin) {
        (false, _) => "not served",
        (true, Origin::Prometheus) => "from prometheus",
        (true, _) => "from kubelets",
    };
    let others = match (&sources.rules, &sources.router) {
        (None, None) => "not served",
        (Some(_), None) => "from prometheus",
        (None, Some(_)) => "from upstreams",
        (Some(_), Some(_)) => "from prometheus and upstreams",
    };
    tracing::info!("serving metrics.k8s.io: {resource}; custom and external metrics: {others}");
}

impl MetricsRole {
    /// The running metrics server. The listeners are stopped with it.
    pub(crate) fn run(self, server: Option<Server>, probes: Option<ExtraListener>) -> MetricsProcess {
        let Self { sources, stop, tasks, .. } = self;
        MetricsProcess { server, probes, sources, stop, tasks }
    }
}

impl MetricsProcess {
    /// Waits until a part of the metrics server panics.
    pub(crate) async fn ended(&mut self) -> Failure {
        serving::panicked("metrics server", &mut self.tasks).await
    }

    /// Makes `/readyz` fail; requests are still served.
    fn drain(&self) {
        if let Some(server) = &self.server {
            server.drain();
        }
    }

    /// Stops in order: requests end, then scrapes.
    pub(crate) async fn stop(self) {
        if let Some(server) = self.server {
            server.stop().await;
        }
        self.stop.send_replace(true);
        let mut tasks = self.tasks;
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        if let Some(probes) = self.probes {
            probes.stop().await;
        }
    }
}
