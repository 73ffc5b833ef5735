//! The loop of the HPA controller: changes in, reconciles when they are due.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use api::decisions::DifferenceList;
use cluster::clock::SteadyClock;
use cluster::connect::ConcurrencyLimiter;
use cluster::discovery::Discovery;
use cluster::events::{EventRecorder, ObjectReference};
use cluster::index::TargetKind;
use cluster::lease::Leadership;
use cluster::scale::ScaleClient;
use cluster::{AutoscalerKey, Clock};
use engine::Event;
use kube::Client;
use locks::{MutexExt as _, RwLockExt as _};
use runtime::exported_metrics::MetricsWriter;
use runtime::leader::{TermEnd, stopped};
use runtime::reconcile_loop::PanicCounter;
use runtime::{FaultInjector, Liveness, ReconcileResult, Reconciles, WatchSet, WorkQueue};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::act::ScaleWriter;
use super::consistency::WrittenStatuses;
use super::exported_metrics::{HpaMetrics, ProcessCounts};
use super::observe::Observer;
use super::persisted_state::PersistedStates;
use super::profile::ProfileChoice;
use super::reconcile::{HpaReconcileOutcome, Reconciler};
use super::records::Records;
use super::report::StatusWriter;
use super::settings::HpaSettings;
use super::shadow::Shadow;
use super::store::{AutoscalerChange, AutoscalerStore};
use super::watches::{HpaReflectors, PodObserver};

/// The interval of housekeeping: clock jumps, watches of new target kinds, gauges.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(1);
/// How long reconciles may take to end when the controller stops.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The parts of a controller.
pub struct HpaControllerParts {
    /// The API server.
    pub client: Client,
    /// Discovery.
    pub discovery: Discovery,
    /// The client of the metrics APIs.
    pub samples: cluster::metrics::MetricsClient,
    /// Whether this process is the leader.
    pub leadership: Leadership,
    /// Records events.
    pub recorder: EventRecorder,
    /// The wall clock.
    pub clock: Clock,
    /// Flags and configuration.
    pub settings: HpaSettings,
    /// The store of decisions.
    pub records: Records,
}

/// The controller, not yet running.
pub struct HpaController {
    pub(super) reconciler: Arc<Reconciler>,
    signals: mpsc::UnboundedReceiver<AutoscalerChange>,
    reflectors: HpaReflectors,
    steady: Arc<SteadyClock>,
    changed: watch::Receiver<u64>,
    handle: HpaControllerHandle,
    health: SharedHealth,
}

/// Inspects and controls a running controller. Cheap to clone.
#[derive(Clone)]
pub struct HpaControllerHandle {
    pub(super) reconciler: Arc<Reconciler>,
    pub(super) changed: Arc<watch::Sender<u64>>,
    health: SharedHealth,
}

/// The health that a running controller shares with its handle.
#[derive(Clone, Default)]
struct SharedHealth {
    liveness: Liveness,
    watches: WatchSet,
    panics: PanicCounter,
    faults: FaultInjector,
    limiter: Arc<OnceLock<ConcurrencyLimiter>>,
}

impl HpaController {
    /// A controller and its handle.
    pub fn new(parts: HpaControllerParts) -> (Self, HpaControllerHandle) {
        let store = Arc::new(Mutex::new(AutoscalerStore::default()));
        let steady = Arc::new(SteadyClock::new(parts.clock));
        let clock = steady.clone();
        let settings = Arc::new(parts.settings);
        let (signal_sender, signals) = mpsc::unbounded_channel();
        let scales = ScaleClient::new(parts.client.clone(), parts.discovery);
        let faults = FaultInjector::default();
        let reflectors = HpaReflectors::new(
            parts.client.clone(),
            store.clone(),
            settings.clone(),
            signal_sender,
            faults.clone(),
        );
        let reconciler = Arc::new(Reconciler {
            observer: Observer {
                store,
                scales: scales.clone(),
                metrics: parts.samples,
                targets: Mutex::new(HashMap::new()),
            },
            scale_writer: ScaleWriter {
                scales: scales.with_leadership(parts.leadership.clone()),
                leadership: parts.leadership.clone(),
            },
            status_writer: StatusWriter { client: parts.client, leadership: parts.leadership.clone() },
            recorder: parts.recorder,
            leadership: parts.leadership,
            clock: Clock::new(move || clock.now()),
            settings: RwLock::new(settings),
            states: Mutex::new(PersistedStates::default()),
            versions: Mutex::default(),
            written_statuses: WrittenStatuses::default(),
            records: parts.records,
            shadow: Mutex::new(Shadow::default()),
            metrics: Arc::new(HpaMetrics::default()),
        });
        let (changed, seen) = watch::channel(0);
        let health = SharedHealth { watches: reflectors.watches(), faults, ..SharedHealth::default() };
        let handle = HpaControllerHandle {
            reconciler: reconciler.clone(),
            changed: Arc::new(changed),
            health: health.clone(),
        };
        reconciler.metrics.set_profile(reconciler.settings().config.kubernetes);
        let controller =
            Self { reconciler, signals, reflectors, steady, changed: seen, handle: handle.clone(), health };
        (controller, handle)
    }

    /// Lets an observer take part in the watch of pods. Only for a controller of all namespaces.
    pub fn observe_pods(&mut self, observer: PodObserver) {
        self.reflectors.observe_pods(observer);
    }

    /// Runs until `stop`; reconciles under way may finish.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        self.health.liveness.start();
        tokio::select! {
            () = self.reflectors.start() => {}
            () = stopped(&mut stop) => return,
        }
        self.health.liveness.mark_synced();
        let _release = tokio::select! {
            follower = self.handle.clone().detect_release() => follower,
            () = stopped(&mut stop) => return,
        };
        let leadership = self.reconciler.leadership.clone();
        loop {
            self.reconciler.metrics.end_term();
            self.reconciler.shadow.locked().clear();
            tokio::select! {
                () = leadership.acquired() => {}
                () = stopped(&mut stop) => return,
                () = self.idle() => {}
            }
            tracing::info!("leading");
            self.reconciler.metrics.begin_term();
            if self.lead(&mut stop).await == TermEnd::Stopped {
                return;
            }
            tracing::warn!("no longer leading; another instance may take over");
        }
    }

    /// Housekeeping while another process is the leader.
    async fn idle(&mut self) {
        let mut housekeeping = tokio::time::interval(HOUSEKEEPING_INTERVAL);
        loop {
            tokio::select! {
                signal = self.signals.recv() => {
                    if signal.is_none() {
                        std::future::pending::<()>().await;
                    }
                }
                _ = housekeeping.tick() => self.housekeep(),
            }
        }
    }

    /// Reconciles every autoscaler when it is due, until the term ends.
    async fn lead(&mut self, stop: &mut watch::Receiver<bool>) -> TermEnd {
        let reconciler = self.reconciler.clone();
        // The state of an earlier term may be out of date; the annotations of objects count.
        reconciler.states().clear();
        // Earlier changes are in the store, from which the queue is filled.
        while self.signals.try_recv().is_ok() {}
        let now = Instant::now();
        let mut queue = WorkQueue::new(now);
        let settings = reconciler.settings();
        for entry in reconciler.observer.store().entries() {
            if settings.config.profile().reconciles_at_once {
                queue.add_at_once(&entry.key, now, entry.period(&settings));
            } else {
                queue.add_spread(&entry.key, now, entry.period(&settings));
            }
        }
        let unreadable: Vec<(AutoscalerKey, String)> = reconciler
            .observer
            .store()
            .unreadable()
            .map(|(key, error)| (key.clone(), error.clone()))
            .collect();
        for (key, error) in unreadable {
            self.report_unreadable(&key, error);
        }
        let mut running: Reconciles<AutoscalerKey, HpaReconcileOutcome> =
            Reconciles::new(self.health.panics.clone());
        let mut housekeeping = tokio::time::interval(HOUSEKEEPING_INTERVAL);
        loop {
            let now = Instant::now();
            let limit = reconciler.settings().concurrency.max(1);
            while running.len() < limit
                && let Some((key, late)) = queue.pop_due(now)
            {
                let (reconciler, faults, of) = (reconciler.clone(), self.health.faults.clone(), key.clone());
                running.start(key, async move {
                    faults.check_reconcile(&of);
                    reconciler.reconcile(&of, late).await
                });
            }
            let next = queue.next_due().filter(|_| running.len() < limit);
            tokio::select! {
                () = stopped(stop) => {
                    running.drain(STOP_GRACE_PERIOD).await;
                    return TermEnd::Stopped;
                }
                () = reconciler.leadership.lost() => return TermEnd::LeadershipLost,
                Some(signal) = self.signals.recv() => self.signal(&mut queue, signal),
                Some((key, result)) = running.next() => self.finish(&mut queue, &key, result),
                () = tokio::time::sleep_until(next.unwrap_or(now)), if next.is_some() => {}
                Ok(()) = self.changed.changed() => self.apply_settings(&mut queue),
                _ = housekeeping.tick() => {
                    self.housekeep();
                    // Not in every turn: counting takes time for each autoscaler that waits.
                    reconciler.metrics.set_overdue(queue.overdue(now));
                    reconciler.metrics.set_autoscalers(reconciler.observer.store().len());
                }
            }
        }
    }

    /// Schedules the next reconcile of an autoscaler after one has ended.
    fn finish(
        &self,
        queue: &mut WorkQueue<AutoscalerKey>,
        key: &AutoscalerKey,
        result: ReconcileResult<HpaReconcileOutcome>,
    ) {
        let now = Instant::now();
        match result {
            ReconcileResult::Finished(
                HpaReconcileOutcome::Reconciled
                | HpaReconcileOutcome::Stale
                | HpaReconcileOutcome::LeadershipLost,
            ) => queue.finish(key, now),
            ReconcileResult::Finished(HpaReconcileOutcome::Deleted) => queue.remove(key),
            ReconcileResult::Panicked { message, retry_after } => {
                tracing::error!(
                    namespace = &*key.namespace, name = key.record_name(), error = message, retry_after = ?retry_after,
                    "a reconcile panicked"
                );
                let text =
                    format!("reconcile panicked and is retried in {} s: {message}", retry_after.as_secs());
                self.reconciler.recorder.record(&reference(key), &Event::warning("ReconcilePanicked", text));
                queue.finish_with_delay(key, now, retry_after);
            }
        }
    }

    fn signal(&self, queue: &mut WorkQueue<AutoscalerKey>, signal: AutoscalerChange) {
        let now = Instant::now();
        let settings = self.reconciler.settings();
        let period = |key: &AutoscalerKey| {
            self.reconciler.observer.store().get(key).map(|entry| entry.period(&settings))
        };
        match signal {
            AutoscalerChange::New(key) => {
                if let Some(period) = period(&key) {
                    if settings.config.profile().reconciles_at_once {
                        queue.add_at_once(&key, now, period);
                    } else {
                        queue.add_after_period(&key, now, period);
                    }
                }
            }
            AutoscalerChange::Changed(key) => {
                if let Some(period) = period(&key) {
                    queue.enqueue(&key, now, period);
                }
            }
            AutoscalerChange::Unreadable(key, error) => self.report_unreadable(&key, error),
        }
    }

    /// Reports an autoscaler that cannot be decoded by an event, since its status cannot be written.
    fn report_unreadable(&self, key: &AutoscalerKey, error: String) {
        tracing::warn!(
            namespace = &*key.namespace,
            name = key.record_name(),
            error,
            "an autoscaler cannot be read and is left alone"
        );
        self.reconciler.metrics.count_unreadable();
        self.reconciler.recorder.record(&reference(key), &Event::warning("InvalidObject", error));
    }

    /// Applies new settings.
    fn apply_settings(&self, queue: &mut WorkQueue<AutoscalerKey>) {
        let settings = self.reconciler.settings();
        let now = Instant::now();
        for entry in self.reconciler.observer.store().entries() {
            queue.enqueue(&entry.key, now, entry.period(&settings));
        }
    }

    /// Handles clock jumps, watches of new target kinds, gauges.
    fn housekeep(&mut self) {
        if let Some(step) = self.steady.resync() {
            tracing::warn!(seconds = step.as_secs_f64(), "the clock has jumped; windows keep their length");
            self.reconciler.states().shift(step);
        }
        let wanted: HashSet<TargetKind> = {
            let store = self.reconciler.observer.store();
            self.reconciler.metrics.set_pods(store.pods.len());
            store.target_kinds()
        };
        let healths = self.reflectors.targets(&wanted);
        *self.reconciler.observer.targets.locked() = healths;
        self.health.liveness.mark_alive();
    }
}

/// The reference of an autoscaler whose object is unknown.
fn reference(key: &AutoscalerKey) -> ObjectReference {
    ObjectReference {
        api_version: key.kind.api_version(),
        kind: key.kind.name(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        uid: String::new(),
        resource_version: String::new(),
    }
}

impl HpaControllerHandle {
    /// The stored decisions.
    pub fn records(&self) -> Records {
        self.reconciler.records.clone()
    }

    /// Whether an autoscaler exists; none before all autoscalers were listed.
    pub fn exists(&self, key: &AutoscalerKey) -> Option<bool> {
        self.synced().then(|| {
            let store = self.reconciler.observer.store();
            store.get(key).is_some() || store.unreadable().any(|(unreadable, _)| unreadable == key)
        })
    }

    /// The differences that shadow mode found.
    pub fn differences(&self, namespace: Option<&str>) -> DifferenceList {
        self.reconciler.shadow.locked().report(namespace)
    }

    /// The exported metrics as OpenMetrics.
    pub fn exposition(&self) -> String {
        self.written(MetricsWriter::open_metrics())
    }

    /// The exported metrics in the text format of Prometheus.
    pub fn prometheus_text(&self) -> String {
        self.written(MetricsWriter::default())
    }

    fn written(&self, writer: MetricsWriter) -> String {
        let reconciler = &self.reconciler;
        let process = ProcessCounts {
            records: &reconciler.records,
            metrics_apis: reconciler.observer.metrics.traffic(),
            events: reconciler.recorder.counts(),
            limiter: self.health.limiter.get().map(ConcurrencyLimiter::snapshot),
            watches: &self.health.watches,
            panics: &self.health.panics,
        };
        reconciler.metrics.text(writer, &process)
    }

    /// Exports the state of this limiter.
    pub fn measure(&self, limiter: &ConcurrencyLimiter) {
        self.health.limiter.get_or_init(|| limiter.clone());
    }

    /// Replaces the settings, except the namespaces. A profile can be fixed, but to follow the API server needs a restart.
    pub fn update(&self, mut settings: HpaSettings) {
        let mut held = self.reconciler.settings.write_locked();
        settings.namespaces.clone_from(&held.namespaces);
        if settings.kubernetes == ProfileChoice::Auto {
            settings.kubernetes = held.kubernetes;
            settings = settings.at_release(held.config.kubernetes);
        }
        self.reconciler.metrics.set_profile(settings.config.kubernetes);
        *held = Arc::new(settings);
        drop(held);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Whether every watch has been listed once.
    pub fn synced(&self) -> bool {
        self.health.liveness.synced()
    }

    /// Whether all watches are current; else which are not, and why.
    pub fn watches_current(&self) -> Result<(), runtime::CheckFailure> {
        self.health.watches.check()
    }

    /// Whether the loop was alive within `limit`.
    pub fn is_alive(&self, limit: Duration) -> bool {
        self.health.liveness.is_alive(limit)
    }

    /// Faults that tests inject.
    pub fn faults(&self) -> FaultInjector {
        self.health.faults.clone()
    }
}
