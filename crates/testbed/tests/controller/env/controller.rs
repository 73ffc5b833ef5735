//! Our controller in this process.

use std::time::Duration;

use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::metrics::MetricsClient;
use controllers::hpa::{HpaController, HpaControllerHandle, HpaControllerParts, HpaSettings, Records};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A controller in this process.
pub(crate) struct RunningController {
    pub(crate) handle: HpaControllerHandle,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
    recorder: EventRecorder,
}

impl RunningController {
    pub(crate) fn start(client: Client, settings: HpaSettings) -> Self {
        Self::start_with(client, settings, Leadership::without_election(), Clock::system())
    }

    pub(crate) fn start_with(
        client: Client,
        settings: HpaSettings,
        leadership: Leadership,
        clock: Clock,
    ) -> Self {
        let discovery = Discovery::new(client.clone());
        let samples = MetricsClient::new(client.clone(), discovery.clone(), settings.period / 4);
        let recorder = EventRecorder::start(client.clone(), "horizontal-pod-autoscaler", clock.clone());
        let (controller, handle) = HpaController::new(HpaControllerParts {
            client,
            discovery,
            samples,
            leadership,
            recorder: recorder.clone(),
            clock,
            settings,
            records: Records::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let task = Some(tokio::spawn(controller.run(stopped)));
        Self { handle, stop, task, recorder }
    }

    /// Whether the controller still runs; a panic would have ended it.
    pub(crate) fn is_alive(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// The number of recorded decisions on an HPA.
    pub(crate) fn decisions(&self, namespace: &str, hpa: &str) -> u64 {
        let records = self.handle.records().of(namespace, &format!("hpa.{hpa}"));
        records.iter().map(|record| record.times).sum()
    }

    /// Stops the controller gracefully.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
        self.recorder.flush(Duration::from_secs(5)).await;
    }

    /// Aborts the controller, as a crash would.
    pub(crate) async fn kill(mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Drop for RunningController {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
