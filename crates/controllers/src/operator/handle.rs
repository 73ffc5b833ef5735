//! Builds an operator, and the handle by which others see and query it while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use api::provider::ExternalMetricsProvider;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use keda::activity::MetricValue;
use kube::Client;
use scalers::backends::Backends;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::auth::{AuthResolver, AuthRules};
use super::cloud_events::CloudEvents;
use super::cluster_reader::ClusterReader;
use super::context::OperatorContext;
use super::counters::{HttpRequestDurations, OperatorCounters};
use super::credential_reader::CredentialReader;
use super::decision_clock::DecisionClock;
use super::event_recorder::OperatorEventRecorder;
use super::exported_metrics;
use super::external_metrics::ScaledObjectMetrics;
use super::leader_client::LeaderClient;
use super::raw_metrics::{RawMetricsSubscriber, RawMetricsSubscribers};
use super::run::Operator;
use super::scalers_cache::{BuildScaler, PushSender, ScalerBuilder};
use super::settings::OperatorSettings;
use super::store::Store;
use super::watches::Watches;
use crate::hpa::Records;

/// The parts of an operator.
pub struct OperatorParts {
    /// Client of the API server.
    pub client: Client,
    /// Discovery of the API server.
    pub discovery: Discovery,
    /// Whether this replica leads.
    pub leadership: Leadership,
    /// Records events.
    pub recorder: EventRecorder,
    /// The machine's clock.
    pub clock: Clock,
    /// Flags and environment variables.
    pub settings: OperatorSettings,
    /// HTTP settings of scalers.
    pub web: scalers::web::HttpSettings,
    /// How credentials are read; by default as the settings say.
    pub auth: Option<AuthRules>,
    /// Source of pod metrics (`cpu`, `memory`) for scaling mode `direct`.
    pub samples: Option<cluster::metrics::MetricsClient>,
    /// Builds scalers; by default those of the table.
    pub build: Option<BuildScaler>,
    /// Decision records.
    pub records: Records,
}

/// Sees and queries a running operator. Cheap to clone.
#[derive(Clone)]
pub struct OperatorHandle {
    context: Arc<OperatorContext>,
    provider: ScaledObjectMetrics,
    health: Arc<LoopHealth>,
}

/// Whether the loop is alive.
#[derive(Default)]
pub(super) struct LoopHealth {
    /// Seconds from the start to the last heartbeat.
    last_beat: AtomicU64,
    synced: AtomicBool,
    started: OnceLock<Instant>,
}

impl LoopHealth {
    pub(super) fn start(&self) {
        self.started.get_or_init(Instant::now);
    }

    pub(super) fn set_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    pub(super) fn beat(&self) {
        let since = self.started.get().map_or(0, |started| started.elapsed().as_secs());
        self.last_beat.store(since, Ordering::Relaxed);
    }
}

impl Operator {
    /// Builds an operator and its handle.
    pub fn new(parts: OperatorParts) -> (Self, OperatorHandle) {
        let store = Arc::new(Mutex::new(Store::default()));
        let settings = Arc::new(parts.settings);
        let (events, store_events) = mpsc::unbounded_channel();
        let (push, pushes) = mpsc::unbounded_channel();
        let client = LeaderClient::new(parts.client.clone(), parts.discovery, parts.leadership);
        let reader = ClusterReader::new(client.clone(), store.clone(), settings.compat);
        let credentials = CredentialReader::new(client.clone(), store.clone());
        let rules = parts.auth.unwrap_or_else(|| AuthRules::from(&*settings));
        let cloud_events = CloudEvents::start(client.clone(), &settings, parts.clock.clone());
        let builder = ScalerBuilder {
            build: parts.build.unwrap_or_else(|| Arc::new(scalers::table::build)),
            backends: Backends::new(Arc::new(reader.clone()), parts.web, settings.compat),
            auth: AuthResolver::new(Arc::new(credentials.clone()), rules),
            credentials,
            client: client.clone(),
            http_timeout: settings.http_timeout,
            durations: HttpRequestDurations::default(),
        };
        let watches = Watches::new(parts.client, store.clone(), settings.clone(), events);
        let context = Arc::new(OperatorContext {
            store,
            settings: settings.clone(),
            clock: DecisionClock::new(parts.clock),
            client,
            reader,
            builder,
            samples: parts.samples,
            events: OperatorEventRecorder::new(&parts.recorder, cloud_events, settings.compat),
            push: PushSender(push),
            raw_metrics: RawMetricsSubscribers::default(),
            counters: OperatorCounters::default(),
            records: parts.records,
            entries: Mutex::default(),
        });
        let health = Arc::new(LoopHealth::default());
        let provider = ScaledObjectMetrics::new(context.clone());
        let handle = OperatorHandle { context: context.clone(), provider, health: health.clone() };
        (Self { context, store_events, pushes, watches, health, jobs_listed: false }, handle)
    }
}

impl OperatorHandle {
    /// The provider of `external.metrics.k8s.io`.
    pub fn external_metrics(&self) -> Arc<dyn ExternalMetricsProvider> {
        Arc::new(self.provider.clone())
    }

    /// The values of a metric of a ScaledObject, for the gRPC metrics service. The error is the message of KEDA.
    pub async fn metric(
        &self,
        namespace: &str,
        name: &str,
        metric: &str,
    ) -> Result<Vec<MetricValue>, String> {
        let values = self.provider.metric(namespace, name, metric).await;
        values.map_err(|error| format!("error when getting metric values {error}"))
    }

    /// Sets the subscriber of raw metrics.
    pub fn subscribe_raw_metrics(&self, subscriber: Arc<dyn RawMetricsSubscriber>) {
        self.context.raw_metrics.subscribe(subscriber);
    }

    /// Exported metrics, in the text format of Prometheus.
    pub fn exported_metrics(&self) -> String {
        exported_metrics::text(&self.context)
    }

    /// Whether all watched resources were listed at least once.
    pub fn synced(&self) -> bool {
        self.health.synced.load(Ordering::Relaxed)
    }

    /// Whether the loop had a heartbeat within `limit`.
    pub fn is_alive(&self, limit: Duration) -> bool {
        let Some(started) = self.health.started.get().filter(|_| self.synced()) else { return true };
        let last = self.health.last_beat.load(Ordering::Relaxed);
        started.elapsed().as_secs().saturating_sub(last) <= limit.as_secs()
    }

    /// The decision records of all objects.
    pub fn records(&self) -> Records {
        self.context.records.clone()
    }

    /// The number of ScaledObjects and ScaledJobs.
    pub fn objects(&self) -> (usize, usize) {
        let store = self.context.store();
        (store.objects.len(), store.scaled_jobs.len())
    }
}
