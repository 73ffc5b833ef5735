//! A real control plane with KEDA's operator and two of Plimsoll, each in its own namespace.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use api::keda::KedaProfile;
use api::provider::Compat;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use controllers::hpa::Records;
use controllers::operator::{Operator, OperatorHandle, OperatorParts, OperatorSettings};
use kube::Client;
use testbed::keda::{Keda, KedaOptions, RELEASES};
use testbed::{Access, ControlPlane, Options};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::source::Sources;
use crate::differential::env::{NO_WORKLOADS, connect, prepare, until_synced};

/// One of the compared operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ComparedOperator {
    /// KEDA.
    Keda,
    /// Plimsoll with `--compat strict`.
    Strict,
    /// Plimsoll with its defaults.
    Better,
}

/// All operators and their cluster. Fields are dropped in this order.
pub(crate) struct KedaEnv {
    pub(crate) ours: Vec<RunningOperator>,
    keda: Keda,
    pub(crate) sources: Sources,
    pub(crate) client: Client,
    _plane: ControlPlane,
}

/// One operator of ours.
pub(crate) struct RunningOperator {
    pub(crate) operator: ComparedOperator,
    pub(crate) handle: OperatorHandle,
    task: JoinHandle<()>,
    _stop: watch::Sender<bool>,
}

/// Response time of sources with `--rush`, so that changes happen while a poll is under way.
const SLOW_RESPONSE_TIME: Duration = Duration::from_millis(400);
/// How often our operators check whether Secrets changed: often enough that a step need not wait for it.
const SECRETS_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl ComparedOperator {
    pub(crate) const ALL: [Self; 3] = [Self::Keda, Self::Strict, Self::Better];

    /// The namespace.
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Keda => "ns-theirs",
            Self::Strict => "ns-strict",
            Self::Better => "ns-better",
        }
    }
}

/// Starts the control plane; blocks.
pub(crate) fn plane() -> anyhow::Result<ControlPlane> {
    let options = Options { controller_manager_args: vec![NO_WORKLOADS.to_owned()], ..Options::default() };
    Ok(ControlPlane::start(&options)?)
}

impl KedaEnv {
    /// Starts all operators.
    pub(crate) async fn start(
        plane: ControlPlane,
        release: &str,
        sabotage: bool,
        rush: bool,
    ) -> anyhow::Result<Self> {
        let release = RELEASES.into_iter().find(|known| *known == release).context("unknown release")?;
        let profile = KedaProfile::of_release(release).context("no profile for this release")?;
        let access = plane.access().clone();
        let client = testbed::harness::connect(&access.kubeconfig_for(access.admin())).await?;
        testbed::keda::prepare(&access, "keda").await?;
        prepare(&client, &ComparedOperator::ALL.map(ComparedOperator::namespace)).await?;
        let sources = Sources::start(if rush { SLOW_RESPONSE_TIME } else { Duration::ZERO }).await?;
        let options = KedaOptions {
            release,
            // KEDA also watches its own namespace, which has the Secrets of ClusterTriggerAuthentications.
            namespace: Some(format!("{},keda", ComparedOperator::Keda.namespace())),
            adapter: true,
            ..KedaOptions::default()
        };
        let keda = Keda::start(&access, &options).await?;
        let mut ours = Vec::new();
        for (compared, compat) in
            [(ComparedOperator::Strict, Compat::Strict), (ComparedOperator::Better, Compat::Better)]
        {
            let settings = OperatorSettings { compat, profile, ..OperatorSettings::default() };
            ours.push(RunningOperator::start(&access, compared, settings, sabotage).await?);
        }
        Ok(Self { ours, keda, sources, client, _plane: plane })
    }

    /// Fails if an operator has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(code) = self.keda.ended() {
            anyhow::bail!("KEDA's operator has ended ({code}):\n{}", self.keda.log());
        }
        for ours in &self.ours {
            ensure!(!ours.task.is_finished(), "our operator has ended ({:?})", ours.operator);
        }
        Ok(())
    }

    /// The last lines of the log of KEDA's operator.
    pub(crate) fn keda_log(&self) -> String {
        self.keda.log()
    }
}

impl Drop for RunningOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningOperator {
    async fn start(
        access: &Access,
        compared: ComparedOperator,
        settings: OperatorSettings,
        sabotage: bool,
    ) -> anyhow::Result<Self> {
        let client = connect(access, compared.namespace(), &access.kubeconfig_for(access.admin())).await?;
        let (clock, discovery) = (Clock::system(), Discovery::new(client.clone()));
        let settings = OperatorSettings {
            namespaces: vec![compared.namespace().to_owned()],
            secrets_check: SECRETS_CHECK_INTERVAL,
            // With `--sabotage` the operator reads no Secrets, so that the run must find differences.
            restrict_secret_access: sabotage,
            ..settings
        };
        let (operator, handle) = Operator::new(OperatorParts {
            recorder: EventRecorder::start(client.clone(), "keda-operator", clock.clone()),
            client,
            discovery,
            leadership: Leadership::without_election(),
            clock,
            settings,
            web: scalers::web::HttpSettings::allowing_loopback(),
            auth: None,
            samples: None,
            build: None,
            records: Records::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(operator.run(stopped));
        until_synced("our operator", || handle.synced()).await?;
        Ok(Self { operator: compared, handle, task, _stop: stop })
    }
}
