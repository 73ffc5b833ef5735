//! A real control plane with KEDA's operator and two of Plimsoll, each in its own namespace.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use api::provider::Compat;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use controllers::hpa::Records;
use controllers::operator::{Operator, OperatorHandle, OperatorParts, OperatorSettings};
use http::Method;
use kube::Client;
use serde_json::json;
use testbed::keda::{Keda, KedaOptions};
use testbed::{Access, ControlPlane, Options};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::source::Sources;
use crate::differential::env::{NO_WORKLOADS, send, until_found};
use crate::differential::scenario::target;

/// Who acts on a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// KEDA 2.20.2.
    Keda,
    /// Plimsoll with `--compat strict`.
    Strict,
    /// Plimsoll with its defaults.
    Better,
}

/// All operators and what they act on. Fields end in this order.
pub(crate) struct KedaEnv {
    pub(crate) ours: Vec<RunningOperator>,
    keda: Keda,
    pub(crate) sources: Sources,
    pub(crate) client: Client,
    _plane: ControlPlane,
}

/// One operator of ours.
pub(crate) struct RunningOperator {
    pub(crate) subject: Subject,
    pub(crate) handle: OperatorHandle,
    task: JoinHandle<()>,
    _stop: watch::Sender<bool>,
}

/// So long a source takes whose rounds are to be met by a change.
const SLOW: Duration = Duration::from_millis(400);
const POLL: Duration = Duration::from_millis(30);
/// How long one request may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How often ours looks whether secrets changed: often enough that a step need not wait for it.
const SECRETS: Duration = Duration::from_secs(1);

impl Subject {
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
    pub(crate) async fn start(plane: ControlPlane, sabotage: bool, rush: bool) -> anyhow::Result<Self> {
        let access = plane.access().clone();
        let client = testbed::harness::connect(&access.kubeconfig_for(access.admin())).await?;
        testbed::keda::prepare(&access, "keda").await?;
        for definition in target::definitions() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            send(&client, Method::POST, path, &definition).await.context("failed to define a resource")?;
        }
        for subject in Subject::ALL {
            let namespace = subject.namespace();
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            send(&client, Method::POST, "/api/v1/namespaces", &object)
                .await
                .context("failed to make a namespace")?;
            until_found(&client, &format!("/api/v1/namespaces/{namespace}/serviceaccounts/default")).await?;
            for kind in [target::Kind::Worker, target::Kind::Blind] {
                until_found(&client, &kind.collection().replace("{ns}", namespace)).await?;
            }
        }
        let sources = Sources::start(if rush { SLOW } else { Duration::ZERO }).await?;
        let options = KedaOptions {
            // Its own too, where the Secrets of ClusterTriggerAuthentications are.
            namespace: Some(format!("{},keda", Subject::Keda.namespace())),
            adapter: true,
            ..KedaOptions::default()
        };
        let keda = Keda::start(&access, &options).await?;
        let mut ours = Vec::new();
        for (subject, compat) in [(Subject::Strict, Compat::Strict), (Subject::Better, Compat::Better)] {
            ours.push(RunningOperator::start(&access, subject, compat, sabotage).await?);
        }
        Ok(Self { ours, keda, sources, client, _plane: plane })
    }

    /// Fails if an operator has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(code) = self.keda.ended() {
            anyhow::bail!("KEDA's operator has ended ({code}):\n{}", self.keda.log());
        }
        for ours in &self.ours {
            ensure!(!ours.task.is_finished(), "our operator has ended ({:?})", ours.subject);
        }
        Ok(())
    }

    /// The end of the log of KEDA's operator.
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
        subject: Subject,
        compat: Compat,
        sabotage: bool,
    ) -> anyhow::Result<Self> {
        let file = access.folder.join(format!("{}.kubeconfig", subject.namespace()));
        std::fs::write(&file, access.kubeconfig_for(access.admin()))
            .context("failed to write a kubeconfig")?;
        let target = cluster::connect::ConnectTarget { kubeconfig: Some(file), context: None };
        let client = cluster::connect::connect(&target).await?.client;
        let (clock, discovery) = (Clock::system(), Discovery::new(client.clone()));
        let settings = OperatorSettings {
            namespaces: vec![subject.namespace().to_owned()],
            compat,
            secrets_check: SECRETS,
            // Where secrets are looked for is what a run that must find something changes.
            restrict_secret_access: sabotage,
            ..OperatorSettings::default()
        };
        let (operator, handle) = Operator::new(OperatorParts {
            recorder: EventRecorder::start(client.clone(), "keda-operator", clock.clone()),
            client,
            discovery,
            leadership: Leadership::without_election(),
            clock,
            settings,
            web: scalers::web::HttpSettings::default(),
            auth: None,
            samples: None,
            build: None,
            records: Records::new(1),
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(operator.run(stopped));
        let until = Instant::now() + DEADLINE;
        while !handle.synced() {
            ensure!(Instant::now() < until, "our operator has not begun after {} s", DEADLINE.as_secs());
            tokio::time::sleep(POLL).await;
        }
        Ok(Self { subject, handle, task, _stop: stop })
    }
}
