//! The controller process: start, reload and orderly stop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::connect::{ConnectTarget, Connection, connect};
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::{Election, Leadership, LeaseSettings};
use cluster::metrics::MetricsClient;
use cluster::{AutoscalerKey, Clock};
use controllers::hpa::records::{HistoryFollower, HistoryLimits, Recording, RecordingLimits};
use controllers::hpa::{
    GROUP_SHARE_OF_PERIOD, HpaController, HpaControllerHandle, HpaControllerParts, Records,
};
use runtime::build_info;
use serve::{App, ExtraListener, Keyring, Server};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::ControllerArgs;
use super::options::{ControllerOptions, GoDuration};
use super::service;
use crate::failure::{CommandResult, Failure};
use crate::hosting::{CommonServer, Hosting};
use crate::instance::{instance_identity, own_namespace, pod_address};
use crate::leader_history;
use crate::lease_thread::LeaseRuntime;
use crate::main_runtime::main_runtime;
use crate::probe_thread::ProbeRuntime;
use crate::serving;
use crate::telemetry::TraceTarget;

/// How long the controller waits for its events to be sent when it stops.
const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// The component of events, as in Kubernetes.
const COMPONENT: &str = "horizontal-pod-autoscaler";

/// The APIService of decisions.
pub(crate) const API_SERVICES: &[&str] = &["v1alpha1.decisions.plimsoll.dev"];

/// A controller that does not run yet, and what it serves.
pub(crate) struct ControllerRole {
    pub(crate) controller: HpaController,
    pub(crate) app: App,
    keyring: Option<Keyring>,
    handle: HpaControllerHandle,
    background: JoinSet<()>,
    election: Option<Election>,
    recorder: EventRecorder,
}

/// A running controller.
pub(crate) struct ControllerProcess {
    pub(crate) handle: HpaControllerHandle,
    /// None if other roles share the server, or without one.
    pub(crate) server: Option<Server>,
    probes: Option<ExtraListener>,
    /// Tasks that keep certificates and `caBundle`s up to date and export traces.
    background: JoinSet<()>,
    stop: watch::Sender<bool>,
    /// None after it has ended.
    task: Option<JoinHandle<()>>,
    election: Option<Election>,
    recorder: EventRecorder,
}

/// Runs until SIGINT or SIGTERM.
pub(super) fn run(args: &ControllerArgs, options: &ControllerOptions) -> CommandResult {
    // Invalid options are reported before the cluster is contacted.
    options.settings()?;
    options.probes()?;
    traces(options)?;
    lease(options)?;
    // One thread: reconciles wait for the network, not for each other. The lease and the probes have a thread of their own.
    let runtime = main_runtime()?;
    runtime.block_on(async {
        let target = ConnectTarget { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let connection = connect(&target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        // Dropped last: the lease is released and the server stopped on this thread.
        let (_thread, lease_runtime) = LeaseRuntime::start(&target).await?;
        let mut process = start(&connection, options, Clock::system(), &lease_runtime).await?;
        tracing::info!(
            server = connection.server, version = build_info::VERSION, revision = build_info::REVISION,
            mode = ?options.settings()?.mode, "the controller runs"
        );
        let reloader = args.reloader();
        let mut hangup = signal(SignalKind::hangup())?;
        let reloaded = reloader.run(process.handle.clone(), async move || {
            hangup.recv().await;
        });
        let outcome = tokio::select! {
            failure = process.ended() => Err(failure),
            () = reloaded => Ok(()),
            result = stopped() => result,
        };
        serving::log_stop(&outcome);
        process.stop().await;
        outcome
    })
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn stopped() -> CommandResult {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// Starts a controller on a cluster, with a server of its own.
pub(crate) async fn start(
    connection: &Connection,
    options: &ControllerOptions,
    clock: Clock,
    lease_runtime: &LeaseRuntime,
) -> Result<ControllerProcess, Failure> {
    let mut role = prepare(connection, options, clock, lease_runtime, &Hosting::default()).await?;
    // On the thread of the lease: probes are answered whatever the reconciles do.
    let server = service::start(options, lease_runtime, role.app.clone(), role.keyring.take()).await?;
    let probes = serving::probes(options.probes()?, role.app.checks.clone());
    let probes = lease_runtime.thread.run(probes).await?;
    Ok(role.run(server, probes))
}

/// Prepares a controller on a cluster.
pub(crate) async fn prepare(
    connection: &Connection,
    options: &ControllerOptions,
    clock: Clock,
    lease_runtime: &LeaseRuntime,
    hosting: &Hosting,
) -> Result<ControllerRole, Failure> {
    let settings = options.settings()?;
    let client = connection.client.clone();
    let discovery = Discovery::new(client.clone());
    let freshness = settings.period / GROUP_SHARE_OF_PERIOD;
    let samples =
        MetricsClient::local_first(client.clone(), discovery.clone(), freshness, &hosting.local_metrics);
    let recorder = EventRecorder::start(client.clone(), COMPONENT, clock.clone());
    let (election, leadership) = start_election(lease_runtime, options, &clock)?;
    let rotating = leadership.clone();
    let mut background = JoinSet::new();
    let mut records = records(options, &clock)?;
    if let Some(target) = traces(options)? {
        records = target.export(records, &mut background)?;
    }
    let (controller, handle) = HpaController::new(HpaControllerParts {
        client: client.clone(),
        discovery,
        samples,
        leadership,
        recorder: recorder.clone(),
        clock: clock.clone(),
        settings,
        records,
    });
    handle.measure(&connection.limiter);
    let shared = service::shared(options);
    let keyring = match &hosting.common_server {
        Some(CommonServer { keyring, .. }) => keyring.clone(),
        None => {
            let names = serving::names(service::SERVICE, &own_namespace());
            let rotation = serving::Rotation { shared: shared.clone(), names, api_services: API_SERVICES };
            serving::rotated(rotation, &client, &clock, &rotating, &mut background).await
        }
    };
    if rotating.has_election() {
        let (api_version, known) = (api::decisions::API_VERSION, handle.clone());
        let follower = HistoryFollower {
            records: handle.records(),
            leadership: rotating,
            clock,
            fetch: leader_history::fetcher(
                &shared,
                keyring.as_ref(),
                api_version,
                service::SERVICE,
                &connection.credentials,
            ),
            exists: Arc::new(move |key: &AutoscalerKey| known.exists(key)),
        };
        background.spawn(follower.run());
    }
    let app = service::app(&handle, lease_runtime, hosting);
    Ok(ControllerRole { controller, app, keyring, handle, background, election, recorder })
}

impl ControllerRole {
    /// Runs the controller. The listeners are stopped with it.
    pub(crate) fn run(self, server: Option<Server>, probes: Option<ExtraListener>) -> ControllerProcess {
        let Self { controller, handle, background, election, recorder, .. } = self;
        let (stop, stopped) = watch::channel(false);
        let task = Some(tokio::spawn(controller.run(stopped)));
        ControllerProcess { handle, server, probes, background, stop, task, election, recorder }
    }
}

impl ControllerProcess {
    /// Waits until the controller, a task beside it or the election ends by itself, which is a defect.
    pub(crate) async fn ended(&mut self) -> Failure {
        tokio::select! {
            failure = serving::ended("controller", &mut self.task) => failure,
            failure = serving::panicked("controller", &mut self.background) => failure,
            failure = serving::election_ended(self.election.as_mut()) => failure,
        }
    }

    /// Stops in order: reconciles end, events are sent, the lease is released, the server closes.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.send(true);
        self.background.abort_all();
        if let Some(task) = self.task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the controller task failed");
        }
        self.recorder.flush(EVENT_FLUSH_TIMEOUT).await;
        if let Some(election) = self.election {
            election.release().await;
        }
        if let Some(server) = self.server {
            server.stop().await;
        }
        if let Some(probes) = self.probes {
            probes.stop().await;
        }
    }
}

/// Where traces of decisions are exported to, if anywhere.
pub(crate) fn traces(options: &ControllerOptions) -> Result<Option<TraceTarget>, Failure> {
    let (endpoint, unchanged) =
        (options.otlp_traces_endpoint.as_deref(), options.trace_unchanged.unwrap_or(0.0));
    TraceTarget::of(service::SERVICE, endpoint, unchanged, &|name: &str| std::env::var(name).ok())
}

fn records(options: &ControllerOptions, clock: &Clock) -> Result<Records, Failure> {
    if options.decisions.is_some() {
        tracing::warn!("--decisions has no effect: all decisions are kept for the time that --history says");
    }
    let mut limits = HistoryLimits::default();
    limits.age = options.history.map_or(limits.age, |GoDuration(age)| age);
    let records = recorded(Records::new(limits), options.record.as_deref(), clock)?;
    match &options.decision_log {
        Some(file) => {
            let all = options.decision_log_all.unwrap_or(false);
            let opened = records.with_log(file, all);
            opened.map_err(|error| Failure::file("write", file, &error))
        }
        None => Ok(records),
    }
}

/// Reads the passes of an earlier recording in a folder and records into it, if one is given.
pub(crate) fn recorded(records: Records, folder: Option<&Path>, clock: &Clock) -> Result<Records, Failure> {
    let Some(folder) = folder else { return Ok(records) };
    let recording = Recording::start(folder, RecordingLimits::default());
    let recording = recording.map_err(|error| Failure::file("record into", folder, &error))?;
    match records.restore(folder, clock.now()) {
        Ok(0) => {}
        Ok(passes) => tracing::info!(passes, "the history was read from the recording"),
        // The past is lost, which is no reason not to start.
        Err(error) => tracing::warn!(%error, "the history cannot be read from the recording"),
    }
    Ok(records.with_recording(recording))
}

/// Takes part in leader election, unless it is switched off.
fn start_election(
    lease_runtime: &LeaseRuntime,
    options: &ControllerOptions,
    clock: &Clock,
) -> Result<(Option<Election>, Leadership), Failure> {
    let Some(lease) = lease(options)? else { return Ok((None, Leadership::without_election())) };
    let LeaseRuntime { thread: ProbeRuntime { handle, heartbeat }, client } = lease_runtime.clone();
    let (election, leadership) = Election::start_on(&handle, client, lease, clock.clone(), heartbeat);
    Ok((Some(election), leadership))
}

/// The lease; none without leader election.
fn lease(options: &ControllerOptions) -> Result<Option<LeaseSettings>, Failure> {
    // A controller that writes nothing needs no lease: several may run.
    let acts = matches!(options.mode, None | Some(super::options::ModeName::Active));
    if !options.leader_elect.unwrap_or(acts) {
        return Ok(None);
    }
    let or = |given: Option<GoDuration>, default: u64| {
        let given = given.and_then(|GoDuration(duration)| Duration::try_from(duration).ok());
        given.unwrap_or(Duration::from_secs(default))
    };
    let lease = LeaseSettings {
        namespace: options.leader_elect_resource_namespace.clone().unwrap_or_else(own_namespace),
        name: options.leader_elect_resource_name.clone().unwrap_or_else(|| "plimsoll-controller".into()),
        identity: instance_identity(),
        lease_duration: or(options.leader_elect_lease_duration, 15),
        renew_deadline: or(options.leader_elect_renew_deadline, 10),
        retry_period: or(options.leader_elect_retry_period, 2),
        address: pod_address(
            std::env::var("POD_IP").ok(),
            options.secure_port.unwrap_or(service::DEFAULT_PORT).into(),
        ),
    };
    lease.validate().map_err(Failure::input)?;
    Ok(Some(lease))
}
