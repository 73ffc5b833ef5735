//! The operator in this process, so that a test can inject faults.

use std::time::Duration;

use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use controllers::hpa::Records;
use controllers::operator::{Operator, OperatorHandle, OperatorParts, OperatorSettings};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::TestNamespace;

/// An operator that acts in the namespace of a test.
pub(crate) struct InProcessOperator {
    pub(crate) handle: OperatorHandle,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    recorder: EventRecorder,
}

impl InProcessOperator {
    /// Starts an operator and waits until its watches are synced.
    pub(crate) async fn start(ns: &TestNamespace) -> Self {
        Self::start_with(ns, Clock::system()).await
    }

    /// The same with another clock.
    pub(crate) async fn start_with(ns: &TestNamespace, clock: Clock) -> Self {
        let client = ns.client().clone();
        let recorder = EventRecorder::start(client.clone(), "keda-operator", clock.clone());
        let settings =
            OperatorSettings { namespaces: vec![ns.namespace.clone()], ..OperatorSettings::default() };
        let (operator, handle) = Operator::new(OperatorParts {
            discovery: Discovery::new(client.clone()),
            client,
            leadership: Leadership::without_election(),
            recorder: recorder.clone(),
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
        let running = Self { handle, stop, task, recorder };
        ns.until("an operator that is synced", async || {
            if running.handle.synced() { Ok(()) } else { Err("not synced") }
        })
        .await;
        running
    }

    /// Whether it still runs: a panic of its loop would have ended it.
    pub(crate) fn is_alive(&self) -> bool {
        !self.task.is_finished()
    }

    /// Stops the operator and waits until its events are written.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        self.task.await.unwrap();
        self.recorder.flush(Duration::from_secs(5)).await;
    }
}
