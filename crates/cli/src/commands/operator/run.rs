//! The operator process: start and orderly stop.

use std::sync::Arc;
use std::time::Duration;

use cluster::connect::{Connection, connect};
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::{Election, Leadership};
use cluster::{AutoscalerKey, Clock};
use controllers::hpa::Records;
use controllers::hpa::records::HistoryFollower;
use controllers::operator::auth::{AuthRules, VaultRules};
use controllers::operator::operator_identity::audiences::TokenMode;
use controllers::operator::{
    Admission, Operator, OperatorHandle, OperatorParts, OperatorSettings, cluster_reader, installed_profile,
};
use kube::Client;
use runtime::build_info;
use serve::{App, ExtraListener, Keyring, Server};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::options::OperatorOptions;
use super::{outbound, service};
use crate::certificates::trust::{self, ServingCa};
use crate::certificates::{self, Shared};
use crate::commands::controller::{recorded, stopped};
use crate::failure::{CommandResult, Failure};
use crate::hosting::{CommonServer, Hosting};
use crate::leader_history;
use crate::lease_thread::LeaseRuntime;
use crate::main_runtime::main_runtime;
use crate::probe_thread::ProbeRuntime;
use crate::serving;

/// How long the operator waits for its events to be sent when it stops.
const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// The default component of events.
const COMPONENT: &str = "keda-operator";
/// Variables of KEDA's operator that are ignored.
pub(crate) const IDLE_VARIABLES: [&str; 7] = [
    "KEDA_HTTP_TLS_CIPHER_LIST",
    "KEDA_KUBERNETES_API_TIMEOUT",
    "KEDA_SERVICE_MIN_TLS_VERSION",
    "KEDA_SERVICE_TLS_CIPHER_LIST",
    "KEDA_SCALEDOBJECT_CTRL_MAX_RECONCILES",
    "KEDA_SCALEDJOB_CTRL_MAX_RECONCILES",
    "KEDA_CHECK_UNEXPECTED_SCALERS_PARAMS",
];

/// An operator that does not run yet, and what it serves.
pub(crate) struct OperatorRole {
    pub(crate) handle: OperatorHandle,
    pub(crate) leadership: Leadership,
    served: service::OperatorApp,
    operator: Operator,
    clock: Clock,
    keyring: Option<Keyring>,
    background: JoinSet<()>,
    election: Option<Election>,
    recorder: EventRecorder,
}

/// A running operator.
pub(crate) struct OperatorProcess {
    /// None if other roles share the server.
    pub(crate) server: Option<Server>,
    extra_listeners: Vec<ExtraListener>,
    #[cfg(feature = "desk")]
    pub(crate) handle: OperatorHandle,
    stop: watch::Sender<bool>,
    /// None after it has ended.
    task: Option<JoinHandle<()>>,
    /// Tasks that keep certificates and `caBundle`s up to date and export telemetry.
    background: JoinSet<()>,
    election: Option<Election>,
    recorder: EventRecorder,
}

/// Runs until SIGINT or SIGTERM.
pub(super) fn run(options: &OperatorOptions) -> CommandResult {
    // One thread: most of the time is spent waiting, and several threads spend CPU on waking each other. The lease and the
    // probes have a thread of their own, and large responses of sources are decoded on workers.
    let runtime = main_runtime()?;
    runtime.block_on(async {
        let connection =
            connect(&options.target).await.map_err(|error| Failure::Outside(error.to_string()))?;
        // Dropped last: the lease is released and the listeners are stopped on this thread.
        let (_thread, lease_runtime) = LeaseRuntime::start(&options.target).await?;
        let mut process = start(&connection, options, Clock::system(), &lease_runtime).await?;
        log_options(options);
        let address = process.server.as_ref().map(|server| server.address().to_string());
        tracing::info!(
            server = connection.server, version = build_info::VERSION, revision = build_info::REVISION, act = ?options.settings.scaling_mode,
            address = %address.unwrap_or_default(), "the operator runs"
        );
        let outcome = tokio::select! {
            failure = process.ended() => Err(failure),
            result = stopped() => result,
        };
        serving::log_stop(&outcome);
        process.stop().await;
        outcome
    })
}

/// Names flags and variables without effect, and an unsafe one.
pub(crate) fn log_options(options: &OperatorOptions) {
    for flag in &options.idle {
        tracing::info!(flag = format!("--{flag}"), "this flag has no effect here; see docs/operator.md");
    }
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    for variable in IDLE_VARIABLES.into_iter().filter(is_set) {
        tracing::info!(variable, "this variable has no effect here; see docs/operator.md");
    }
    if options.settings.identity.token_mode == TokenMode::Legacy {
        tracing::warn!(
            "--service-account-token-mode=legacy: audiences of service account tokens are not checked"
        );
    }
}

/// How long metrics of pods are cached.
const POD_METRICS_TTL: std::time::Duration = std::time::Duration::from_secs(5);

/// The settings, with the profile that the cluster has if it is to be found out.
async fn in_profile(client: &Client, options: &OperatorOptions) -> OperatorSettings {
    let mut settings = options.settings.clone();
    if options.auto_profile {
        match installed_profile(client).await {
            Ok(profile) => settings.profile = profile,
            Err(error) => tracing::warn!(%error, profile = %settings.profile,
                "--keda-profile=auto: the schemas of KEDA's resources cannot be read; set the profile, or install the definitions and restart"),
        }
        tracing::info!(profile = %settings.profile, "KEDA profile");
    }
    settings
}

/// Starts an operator on a cluster, with a server of its own.
pub(crate) async fn start(
    connection: &Connection,
    options: &OperatorOptions,
    clock: Clock,
    lease_runtime: &LeaseRuntime,
) -> Result<OperatorProcess, Failure> {
    let mut role = prepare(connection, options, clock, lease_runtime, &Hosting::default()).await?;
    let app = role.app().clone();
    let probes = serving::probes(options.serving.health, app.checks.clone());
    let server = service::start(options, lease_runtime, app, role.keyring.clone()).await?;
    let authority = match (&role.keyring, &options.serving.shared) {
        // The owner of the folder also distributes the CA.
        (Some(_), Shared::Folder(_)) => ServingCa::Fixed(None),
        (Some(keyring), _) => ServingCa::Shared(keyring.clone()),
        (None, _) => ServingCa::Fixed(server.ca_pem().map(str::to_owned)),
    };
    let (client, objects) = (connection.client.clone(), options.serving.ca_bundle_objects());
    let owner = Some(options.owner.clone());
    role.background.spawn(trust::keep(client, role.leadership.clone(), objects, owner, authority));
    let probes = lease_runtime.thread.run(probes).await?;
    role.run(options, Some(server), probes).await
}

/// Prepares an operator on a cluster.
pub(crate) async fn prepare(
    connection: &Connection,
    options: &OperatorOptions,
    clock: Clock,
    lease_runtime: &LeaseRuntime,
    hosting: &Hosting,
) -> Result<OperatorRole, Failure> {
    let client = connection.client.clone();
    let settings = in_profile(&client, options).await;
    let discovery = Discovery::new(client.clone());
    let recorder = EventRecorder::start(client.clone(), COMPONENT, clock.clone());
    let (election, leadership) = match &options.lease {
        None => (None, Leadership::without_election()),
        Some(lease) => {
            let LeaseRuntime { thread: ProbeRuntime { handle, heartbeat }, client } = lease_runtime.clone();
            let (election, leadership) =
                Election::start_on(&handle, client, lease.clone(), clock.clone(), heartbeat);
            (Some(election), leadership)
        }
    };
    let admission = Admission::new(client.clone(), discovery.clone(), options.settings.compat)
        .in_profile(settings.profile);
    // For `cpu` and `memory` triggers of objects that scale without an HPA.
    let samples = cluster::metrics::MetricsClient::local_first(
        client.clone(),
        discovery.clone(),
        POD_METRICS_TTL,
        &hosting.local_metrics,
    );
    let auth = credentials(&settings);
    let mut background = JoinSet::new();
    let mut records = recorded(Records::new(options.history), options.record.as_deref(), &clock)?;
    if let Some(target) = &options.otlp_traces {
        records = target.export(records, &mut background)?;
    }
    let (operator, handle) = Operator::new(OperatorParts {
        client: client.clone(),
        discovery,
        leadership: leadership.clone(),
        recorder: recorder.clone(),
        clock: clock.clone(),
        settings,
        web: options.web.clone(),
        auth: Some(auth),
        samples: Some(samples),
        build: None,
        records,
    });
    let admission = admission.recording(&recorder, &handle);
    let reader = cluster_reader(client.clone(), Discovery::new(client.clone()), options.settings.compat);
    options.web.dialer.protect(outbound::known(&connection.server).await);
    background.spawn(outbound::protect(options.web.dialer.clone(), connection.server.clone(), reader));
    let keyring = match &hosting.common_server {
        Some(CommonServer { keyring, .. }) => keyring.clone(),
        None => {
            let (shared, names) = (&options.serving.shared, &options.serving.names);
            let opened = certificates::open(shared, names, &client, &clock).await;
            opened.map(|(keyring, keep)| {
                background.spawn(keep.run(leadership.clone()));
                keyring
            })
        }
    };
    if leadership.has_election() {
        let shared = &options.serving.shared;
        let (api_version, known) = (api::decisions::OPERATOR_API_VERSION, handle.clone());
        let follower = HistoryFollower {
            records: handle.records(),
            leadership: leadership.clone(),
            clock: clock.clone(),
            fetch: leader_history::fetcher(
                shared,
                keyring.as_ref(),
                api_version,
                super::SERVICE,
                &connection.credentials,
            ),
            exists: Arc::new(move |key: &AutoscalerKey| known.exists(key)),
        };
        background.spawn(follower.run());
    }
    let parts = service::ServiceParts {
        handle: handle.clone(),
        admission,
        leadership: leadership.clone(),
        thread: lease_runtime.thread.clone(),
    };
    let served = service::app(options, parts, hosting)?;
    Ok(OperatorRole { handle, leadership, served, operator, clock, keyring, background, election, recorder })
}

impl OperatorRole {
    /// What is served.
    pub(crate) fn app(&self) -> &App {
        &self.served.app
    }

    /// Runs the operator. The listeners are stopped with it.
    pub(crate) async fn run(
        self,
        options: &OperatorOptions,
        server: Option<Server>,
        probes: Option<ExtraListener>,
    ) -> Result<OperatorProcess, Failure> {
        let Self { handle, served, operator, clock, keyring, mut background, election, recorder, .. } = self;
        if let Some(target) = &options.otlp_metrics {
            background.spawn(target.export(Arc::clone(&served.exported_metrics), clock.clone())?);
        }
        let mut extra_listeners =
            service::extra_listeners(options, served, keyring.as_ref(), &handle, &clock).await?;
        extra_listeners.extend(probes);
        let (stop, stopped) = watch::channel(false);
        let task = Some(tokio::spawn(operator.run(stopped)));
        Ok(OperatorProcess {
            server,
            extra_listeners,
            #[cfg(feature = "desk")]
            handle,
            stop,
            task,
            background,
            election,
            recorder,
        })
    }
}

/// How credentials are resolved: by the settings, and Vault by its own variables.
fn credentials(settings: &OperatorSettings) -> AuthRules {
    let vault = VaultRules::from_variables(|name| std::env::var(name).ok());
    AuthRules { vault, ..AuthRules::from(settings) }
}

impl OperatorProcess {
    /// Waits until the operator, a task beside it or the election ends by itself, which is a defect.
    pub(crate) async fn ended(&mut self) -> Failure {
        tokio::select! {
            failure = serving::ended("operator", &mut self.task) => failure,
            failure = serving::panicked("operator", &mut self.background) => failure,
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
            tracing::error!(%error, "the operator task failed");
        }
        self.recorder.flush(EVENT_FLUSH_TIMEOUT).await;
        if let Some(election) = self.election {
            election.release().await;
        }
        for listener in self.extra_listeners {
            listener.stop().await;
        }
        if let Some(server) = self.server {
            server.stop().await;
        }
    }
}
