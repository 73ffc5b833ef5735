//! Builds an operator, and the handle by which others see and query it while it runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::provider::ExternalMetricsProvider;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::{AutoscalerKey, AutoscalerKind, Clock};
use keda::activity::MetricValue;
use kube::Client;
use runtime::FaultInjector;
use runtime::reconcile_loop::PanicCounter;
use scalers::backends::{Backends, OperatorIdentity};
use scalers::secret_managers::SecretManagers;
use scalers::tenant_files::TenantFiles;
use tokio::sync::mpsc;

use super::auth::{AuthResolver, AuthRules};
use super::cloud_events::{CloudEvents, TopicCredentials};
use super::cluster_reader::ClusterReader;
use super::context::OperatorContext;
use super::counters::{HttpRequestDurations, OperatorCounters};
use super::credential_reader::CredentialReader;
use super::decision_clock::DecisionClock;
use super::event_recorder::OperatorEventRecorder;
use super::exported_metrics;
use super::external_metrics::{MetricError, ScaledObjectMetrics};
use super::health::OperatorHealth;
use super::id::{ResourceId, ResourceKind};
use super::leader_client::LeaderClient;
use super::operator_identity::IdentityUsers;
use super::queue_metrics::QueueMetrics;
use super::raw_metrics::{RawMetricsSubscriber, RawMetricsSubscribers};
use super::run::Operator;
use super::scalers_cache::{BuildScaler, PushSender, ScalerBuilder};
use super::secret_access::SecretAccess;
use super::settings::OperatorSettings;
use super::store::Store;
use super::watches::OperatorReflectors;
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
    health: OperatorHealth,
}

/// A metric was requested that has no values. The text is KEDA's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error when getting metric values {0}")]
pub struct MetricRequestError(#[from] MetricError);

impl Operator {
    /// Builds an operator and its handle.
    pub fn new(parts: OperatorParts) -> (Self, OperatorHandle) {
        let store = Arc::new(Mutex::new(Store::default()));
        let settings = Arc::new(parts.settings);
        let (events, store_events) = mpsc::unbounded_channel();
        let (push, pushes) = mpsc::unbounded_channel();
        let (faults, panics) = (FaultInjector::default(), PanicCounter::default());
        let client = LeaderClient::new(parts.client.clone(), parts.discovery, parts.leadership);
        let secrets = SecretAccess::from(&*settings);
        let reader = ClusterReader::new(client.clone(), store.clone(), settings.compat, secrets.clone());
        let credentials = CredentialReader::new(client.clone(), store.clone(), secrets);
        let mut rules = parts.auth.unwrap_or_else(|| AuthRules::from(&*settings));
        let (dialer, proxies) = (parts.web.dialer.clone(), parts.web.proxies.clone());
        (rules.vault.dialer, rules.vault.proxies) = (dialer.clone(), proxies.clone());
        let backends = Backends::new(Arc::new(reader.clone()), parts.web, settings.compat)
            .with_files(TenantFiles::of(settings.tenant_files.clone()))
            .with_operator_identity(match settings.identity.users {
                IdentityUsers::Any => OperatorIdentity::Tenants,
                IdentityUsers::ClusterOnly => OperatorIdentity::Administrators,
            });
        let builder = ScalerBuilder {
            build: parts.build.unwrap_or_else(|| Arc::new(scalers::table::build)),
            auth: AuthResolver::new(Arc::new(credentials.clone()), rules)
                .with_secret_managers(SecretManagers::of(&backends))
                .with_clock(parts.clock.clone()),
            backends,
            credentials,
            client: client.clone(),
            http_timeout: settings.http_timeout,
            profile: settings.profile,
            durations: HttpRequestDurations::new(settings.high_cardinality_labels),
        };
        let topics = TopicCredentials {
            auth: builder.auth.clone(),
            identities: builder.backends.state(),
            web: Arc::clone(&builder.backends.web),
        };
        let (clock, counter) = (parts.clock.clone(), panics.clone());
        let cloud_events =
            CloudEvents::start(client.clone(), &settings, dialer, proxies, clock, counter, topics);
        let reflectors =
            OperatorReflectors::new(parts.client, store.clone(), settings.clone(), events, faults.clone());
        let health =
            OperatorHealth { watches: reflectors.watches(), panics, faults, ..OperatorHealth::default() };
        let context = Arc::new(OperatorContext {
            store,
            settings: settings.clone(),
            clock: DecisionClock::new(parts.clock),
            client,
            reader,
            builder,
            samples: parts.samples,
            events: OperatorEventRecorder::new(&parts.recorder, cloud_events, settings.compat),
            push: PushSender::new(push, health.panics.clone()),
            raw_metrics: RawMetricsSubscribers::default(),
            counters: OperatorCounters::default(),
            queue_metrics: QueueMetrics::new(settings.concurrency),
            records: parts.records,
            entries: Mutex::default(),
        });
        let provider = ScaledObjectMetrics::new(context.clone());
        let handle = OperatorHandle { context: context.clone(), provider, health: health.clone() };
        (Self { context, store_events, pushes, reflectors, health, jobs_listed: false }, handle)
    }
}

impl OperatorHandle {
    /// What the operator shares with its parts.
    pub(crate) fn context(&self) -> Arc<OperatorContext> {
        Arc::clone(&self.context)
    }

    /// The provider of `external.metrics.k8s.io`.
    pub fn external_metrics(&self) -> Arc<dyn ExternalMetricsProvider> {
        Arc::new(self.provider.clone())
    }

    /// The values of a metric of a ScaledObject, for the gRPC metrics service.
    pub async fn metric(
        &self,
        namespace: &str,
        name: &str,
        metric: &str,
    ) -> Result<Vec<MetricValue>, MetricRequestError> {
        Ok(self.provider.metric(namespace, name, metric).await?)
    }

    /// Sets the subscriber of raw metrics.
    pub fn subscribe_raw_metrics(&self, subscriber: Arc<dyn RawMetricsSubscriber>) {
        self.context.raw_metrics.subscribe(subscriber);
    }

    /// Exported metrics, in the text format of Prometheus.
    pub fn exported_metrics(&self) -> String {
        exported_metrics::text(&self.context, &self.health)
    }

    /// Whether all watched resources were listed at least once.
    pub fn synced(&self) -> bool {
        self.health.liveness.synced()
    }

    /// Whether the stores of all watches are current; else which are not, and why.
    pub fn watches_current(&self) -> Result<(), runtime::CheckFailure> {
        self.health.watches.check()
    }

    /// Faults that tests inject.
    pub fn faults(&self) -> FaultInjector {
        self.health.faults.clone()
    }

    /// Whether the loop had a heartbeat within `limit`.
    pub fn is_alive(&self, limit: Duration) -> bool {
        self.health.liveness.is_alive(limit)
    }

    /// Whether a ScaledObject or ScaledJob exists; none before all were listed.
    pub fn exists(&self, key: &AutoscalerKey) -> Option<bool> {
        let AutoscalerKey { kind, namespace, name } = key.clone();
        let kind = match kind {
            AutoscalerKind::ScaledJob => ResourceKind::Job,
            _ => ResourceKind::Object,
        };
        let id = ResourceId { kind, namespace, name };
        self.synced().then(|| self.context.owner(&id).is_some())
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
