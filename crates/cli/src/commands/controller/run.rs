//! The controller as a process: started, steered, and stopped in order.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use cluster::Clock;
use cluster::connect::{ConnectTarget, Connection, connect};
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::{Election, Leadership, LeaseSettings};
use cluster::metrics::MetricsClient;
use controllers::hpa::work_queue::TOGETHER;
use controllers::hpa::{HpaController, HpaControllerHandle, HpaControllerParts, Records};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Args;
use super::options::{GoDuration, Options};
use super::reload::Reloader;
use super::service;
use crate::failure::{Failure, Outcome};

/// How long events may take to be delivered when the controller stops.
const LAST_EVENTS: Duration = Duration::from_secs(3);
/// The component that events name, as in Kubernetes.
const COMPONENT: &str = "horizontal-pod-autoscaler";

/// A controller that runs.
pub(crate) struct Process {
    pub(crate) handle: HpaControllerHandle,
    pub(crate) server: Option<serve::Server>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    election: Option<Election>,
    recorder: EventRecorder,
}

/// Runs until told to stop.
pub(super) fn run(args: &Args, options: &Options) -> Outcome {
    // What the user got wrong is told before anything is tried.
    options.settings()?;
    lease(options)?;
    // One thread: passes wait for the network, not for each other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let target = ConnectTarget { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let connection = connect(&target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        let process = start(&connection, options, Clock::system()).await?;
        tracing::info!(
            server = connection.server, version = env!("CARGO_PKG_VERSION"),
            mode = ?options.settings()?.mode, "the controller runs"
        );
        let reloader = Reloader::new(args.options.clone(), args.config.clone());
        let mut hangup = signal(SignalKind::hangup())?;
        let reloaded = reloader.run(process.handle.clone(), async move || {
            hangup.recv().await;
        });
        tokio::select! {
            () = reloaded => {}
            result = stopped() => result?,
        }
        tracing::info!("stopping");
        process.stop().await;
        Ok(())
    })
}

/// Waits until somebody wants us to stop.
pub(crate) async fn stopped() -> Outcome {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// Starts a controller on a cluster.
pub(crate) async fn start(
    connection: &Connection,
    options: &Options,
    clock: Clock,
) -> Result<Process, Failure> {
    let settings = options.settings()?;
    let client = connection.client.clone();
    let discovery = Discovery::new(client.clone());
    let samples = MetricsClient::new(client.clone(), discovery.clone(), settings.period / TOGETHER);
    let recorder = EventRecorder::start(client.clone(), COMPONENT, clock.clone());
    let (election, leadership) = stand(connection, options, &clock)?;
    let (controller, handle) = HpaController::new(HpaControllerParts {
        client: client.clone(),
        discovery,
        samples,
        leadership,
        recorder: recorder.clone(),
        clock: clock.clone(),
        settings,
        records: records(options)?,
    });
    handle.measure(&connection.limiter);
    let server = service::start(options, client, &handle).await?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(controller.run(stopped));
    Ok(Process { handle, server, stop, task, election, recorder })
}

impl Process {
    /// Stops in order: passes end, events are delivered, the lease is given back, the server closes.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the controller ended badly");
        }
        self.recorder.flush(LAST_EVENTS).await;
        if let Some(election) = self.election {
            election.release().await;
        }
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}

fn records(options: &Options) -> Result<Records, Failure> {
    let records = Records::new(options.decisions.unwrap_or(20));
    match &options.decision_log {
        Some(file) => {
            let all = options.decision_log_all.unwrap_or(false);
            let opened = records.with_log(file, all);
            opened.map_err(|error| Failure::file("write", file, &error))
        }
        None => Ok(records),
    }
}

/// Stands for election, unless nobody else can be there.
fn stand(
    connection: &Connection,
    options: &Options,
    clock: &Clock,
) -> Result<(Option<Election>, Leadership), Failure> {
    let Some(lease) = lease(options)? else { return Ok((None, Leadership::without_election())) };
    let (election, leadership) = Election::start(connection.client.clone(), lease, clock.clone());
    Ok((Some(election), leadership))
}

/// The lease to stand for; none if nobody else can be there.
fn lease(options: &Options) -> Result<Option<LeaseSettings>, Failure> {
    // Whoever writes nothing needs no lease: several may look on.
    let acts = matches!(options.mode, None | Some(super::options::ModeName::Active));
    if !options.leader_elect.unwrap_or(acts) {
        return Ok(None);
    }
    let or = |given: Option<GoDuration>, default: u64| {
        let given = given.and_then(|GoDuration(duration)| Duration::try_from(duration).ok());
        given.unwrap_or(Duration::from_secs(default))
    };
    let lease = LeaseSettings {
        namespace: options.leader_elect_resource_namespace.clone().unwrap_or_else(home),
        name: options.leader_elect_resource_name.clone().unwrap_or_else(|| "plimsoll-controller".into()),
        identity: identity(),
        lease_duration: or(options.leader_elect_lease_duration, 15),
        renew_deadline: or(options.leader_elect_renew_deadline, 10),
        retry_period: or(options.leader_elect_retry_period, 2),
    };
    lease.validate().map_err(Failure::input)?;
    Ok(Some(lease))
}

/// Where our own objects live: the pod's namespace, or that of Kubernetes' own controllers.
pub(crate) fn home() -> String {
    let own = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok();
    own.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "kube-system".into())
}

/// The name of this instance, like no other.
pub(crate) fn identity() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}_{random:016x}", hostname())
}

/// What this machine calls itself; in a pod, its name.
pub(crate) fn hostname() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).filter(|name| !name.is_empty());
    host.unwrap_or_else(|| "plimsoll".into())
}
