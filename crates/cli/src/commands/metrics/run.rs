//! The metrics server process: start, reload and orderly stop.

use std::path::Path;
use std::time::Duration;

use cluster::Clock;
use cluster::connect::{Connection, connect};
use cluster::lease::Leadership;
use cluster::request::{Request, send};
use controllers::metrics::{ClusterInventory, Kubelets, Providers, Rules, Sources};
use serde_json::Value;
use sources::federation::{self, FederationConfig, OwnService, Router, with_loop_guard};
use sources::prometheus::config::AdapterConfig;
use sources::sharding;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::options::{MetricsOptions, Origin};
use super::{kubelets, operator_upstream, prometheus, service};
use crate::commands::controller::stopped;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::instance::{hostname, own_namespace};
use crate::probe_thread::{ProbeRuntime, ProbeThread};
use crate::serving;

/// The maximum number of threads: more would only wait for the same data.
const MAX_THREADS: usize = 4;

/// The APIServices that may be ours.
const API_SERVICES: &[&str] = &[
    "v1beta1.metrics.k8s.io",
    "v1.metrics.k8s.io",
    "v1alpha1.metrics.plimsoll.dev",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
    "v1beta1.external.metrics.k8s.io",
];

/// A running metrics server.
pub(crate) struct MetricsProcess {
    pub(crate) server: serve::Server,
    probes: Option<serve::ExtraListener>,
    pub(crate) sources: Sources,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// Runs until SIGINT or SIGTERM.
pub(super) fn run(options: &MetricsOptions) -> Outcome {
    // Invalid options are reported before the cluster is contacted.
    let rules = options.config.as_deref().map(prometheus::read).transpose()?;
    options.origin(rules.is_some_and(|(_, config)| config.resource_rules.is_some()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let connection =
            connect(&options.target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        // Dropped last: the listener of probes is stopped on this thread.
        let (_thread, beside) = ProbeThread::start("probes")?;
        let process = start(&connection, options, &beside).await?;
        tracing::info!(
            server = connection.server,
            version = env!("CARGO_PKG_VERSION"),
            "the metrics server runs"
        );
        let mut hangup = signal(SignalKind::hangup())?;
        let rules = process.sources.rules.clone();
        let stop_requested = async {
            while hangup.recv().await.is_some() {
                rules.iter().for_each(Rules::ask);
            }
        };
        tokio::select! {
            () = stop_requested => {}
            result = stopped() => result?,
        }
        tracing::info!("stopping");
        tokio::time::sleep(options.serving.stop_after).await;
        process.stop().await;
        Ok(())
    });
    // A DNS lookup may hang in a blocking thread; the process does not wait for it.
    runtime.shutdown_background();
    outcome
}

/// Starts a metrics server on a cluster.
pub(crate) async fn start(
    connection: &Connection,
    options: &MetricsOptions,
    beside: &ProbeRuntime,
) -> Result<MetricsProcess, Failure> {
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
    let census = (origin != Origin::Nowhere).then(|| ClusterInventory::start(client));
    let kubelets = match &census {
        Some(census) if origin == Origin::Kubelets => {
            let (ours, clock) = (&connection.credentials, &options.serving.clock);
            let mut settings = kubelets::settings(&options.kubelets, options.compat, ours, clock)?;
            // metrics-server has no sharding.
            let shares = options.shares.as_ref().filter(|_| !options.compat.is_strict());
            settings.sharding = shares.map(|shares| kubelets::division(shares, options.kubelets.resolution));
            let started = Kubelets::start(client, census, settings, stopping, &mut tasks);
            Some(started.map_err(|error| Failure::Outside(error.to_string()))?)
        }
        _ => None,
    };
    let rules = match (config, &options.config) {
        (Some(config), Some(file)) => {
            Some(rules(connection, options, file, config, origin, census.as_ref(), &mut tasks).await?)
        }
        _ => None,
    };
    let own = own(connection, options).await;
    let router = router(options, &own, rules.as_ref(), &mut tasks)?;
    if let (Some(router), Some(service)) = (&router, &options.operator) {
        tasks.spawn(operator_upstream::keep(client.clone(), router.clone(), service.clone()));
    }
    let mut providers = providers(kubelets.as_ref(), rules.as_ref(), router.as_ref());
    if options.upstreams.is_none() {
        // The operator has no custom metrics.
        providers.custom = rules.as_ref().filter(|rules| rules.serves_custom()).map(Rules::custom);
    }
    let mut routes = Vec::new();
    if let Some(shares) = kubelets.as_ref().and_then(Kubelets::sharding) {
        routes.push((sharding::PATH.to_owned(), shares.route()));
    }
    let sources = Sources {
        instance: hostname(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        compat: options.compat,
        started: options.serving.clock.now(),
        census,
        kubelets,
        rules,
        router,
    };
    let guard = |route| with_loop_guard(route, &own);
    let mut names = serving::names(service::SERVICE, &own_namespace());
    names.push(format!("{}.{}.svc", own.service, own.namespace));
    names.dedup();
    let rotation =
        serving::Rotation { shared: options.serving.shared.clone(), names, api_services: API_SERVICES };
    // Every replica answers by itself, so every replica may renew: the API server accepts one of concurrent writes.
    let alone = Leadership::without_election();
    let keyring = serving::rotated(rotation, client, &Clock::system(), &alone, &mut tasks).await;
    let server =
        service::start(&options.serving, client.clone(), &sources, &providers, routes, guard, keyring)
            .await?;
    let mut checks = service::checks(&sources);
    let workers = beside.clone();
    // A server whose worker threads are all stuck does not answer on its secure port, either.
    checks.add_live("loop", move || {
        if workers.is_beating() { Ok(()) } else { Err("the worker threads are stuck".into()) }
    });
    let probes = beside.run(serving::probes(options.serving.probes, checks)).await?;
    said(&providers, origin, &sources);
    Ok(MetricsProcess { server, probes, sources, stop, tasks })
}

async fn rules(
    connection: &Connection,
    options: &MetricsOptions,
    file: &Path,
    config: AdapterConfig,
    origin: Origin,
    census: Option<&ClusterInventory>,
    tasks: &mut JoinSet<()>,
) -> Result<Rules, Failure> {
    let resource = origin == Origin::Prometheus;
    let settings =
        prometheus::settings(&options.prometheus, options.compat, file.to_owned(), config, resource).await?;
    let started = Rules::start(&connection.client, settings, census, tasks).await;
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
    tasks: &mut JoinSet<()>,
) -> Result<Option<Router>, Failure> {
    if options.upstreams.is_none() && options.operator.is_none() {
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
            let router = std::sync::Arc::new(router.clone());
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
    let (namespace, service) = match &options.shares {
        Some(shares) => (shares.namespace.clone(), shares.service.clone()),
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
fn said(providers: &Providers, origin: Origin, sources: &Sources) {
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

impl MetricsProcess {
    /// Stops in order: requests end, then scrapes.
    pub(crate) async fn stop(self) {
        self.server.stop().await;
        self.stop.send_replace(true);
        let mut tasks = self.tasks;
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        if let Some(probes) = self.probes {
            probes.stop().await;
        }
    }
}
