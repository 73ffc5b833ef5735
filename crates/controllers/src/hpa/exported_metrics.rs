//! What Prometheus sees: the names of Kubernetes (docs/spec/hpa.md 8), and our own.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use cluster::connect::LimiterSnapshot;
use cluster::events::EventCounts;
use cluster::metrics::MetricsApiCounts;
use engine::{Decision, Status};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use runtime::WatchSet;

/// The content type of [`super::HpaControllerHandle::exposition`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All figures of the controller.
pub(crate) struct HpaMetrics {
    registry: Registry,
    reconciliations: Family<Pass, Counter>,
    reconciliation_duration: Family<Pass, Histogram, fn() -> Histogram>,
    computations: Family<Computation, Counter>,
    computation_duration: Family<Computation, Histogram, fn() -> Histogram>,
    /// `num_horizontal_pod_autoscalers`.
    pub(crate) autoscalers: Gauge,
    desired: Family<Object, Gauge>,
    /// Passes that wait although they are due.
    pub(crate) late: Gauge,
    delay: Histogram,
    writes: Family<Write, Counter>,
    differences: Family<Field, Counter>,
    differing: Gauge,
    leading: Gauge,
    unreadable: Counter,
    pods: Gauge,
    record_bytes: Gauge,
    questions: Family<Question, Counter>,
    events: Family<Told, Counter>,
    requests: Family<Told, Counter>,
    in_flight: Gauge,
    in_flight_limit: Gauge,
    watch_current: Family<WatchedResource, Gauge>,
    watch_restarts: Family<WatchedResource, Counter>,
    reconcile_panics: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pass {
    action: &'static str,
    error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Computation {
    action: &'static str,
    error: &'static str,
    metric_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Object {
    namespace: String,
    hpa_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    what: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Field {
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Question {
    api: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Told {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchedResource {
    resource: String,
}

/// 0.001 × 2^k for k = 0..14, as Kubernetes has them.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Default for HpaMetrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            reconciliations: Family::default(),
            reconciliation_duration: Family::new_with_constructor(buckets),
            computations: Family::default(),
            computation_duration: Family::new_with_constructor(buckets),
            autoscalers: Gauge::default(),
            desired: Family::default(),
            late: Gauge::default(),
            delay: buckets(),
            writes: Family::default(),
            differences: Family::default(),
            differing: Gauge::default(),
            leading: Gauge::default(),
            unreadable: Counter::default(),
            pods: Gauge::default(),
            record_bytes: Gauge::default(),
            questions: Family::default(),
            events: Family::default(),
            requests: Family::default(),
            in_flight: Gauge::default(),
            in_flight_limit: Gauge::default(),
            watch_current: Family::default(),
            watch_restarts: Family::default(),
            reconcile_panics: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl HpaMetrics {
    fn register(&mut self) {
        let theirs = self.registry.sub_registry_with_prefix("horizontal_pod_autoscaler_controller");
        theirs.register(
            "reconciliations",
            "[BETA] Number of reconciliations of HPA controller. The label 'action' should be either 'scale_down', 'scale_up', or 'none'. Also, the label 'error' should be either 'spec', 'internal', or 'none'. Note that if both spec and internal errors happen during a reconciliation, the first one to occur is reported in `error` label",
            self.reconciliations.clone(),
        );
        theirs.register_with_unit(
            "reconciliation_duration",
            "[BETA] The time(seconds) that the HPA controller takes to reconcile once",
            Unit::Seconds,
            self.reconciliation_duration.clone(),
        );
        theirs.register(
            "metric_computation",
            "[BETA] Number of metric computations",
            self.computations.clone(),
        );
        theirs.register_with_unit(
            "metric_computation_duration",
            "[BETA] The time(seconds) that the HPA controller takes to calculate one metric",
            Unit::Seconds,
            self.computation_duration.clone(),
        );
        theirs.register(
            "num_horizontal_pod_autoscalers",
            "[ALPHA] Current number of controlled HPA objects",
            self.autoscalers.clone(),
        );
        theirs.register(
            "desired_replicas",
            "[ALPHA] Current desired replica count for HPA objects",
            self.desired.clone(),
        );
        let ours = self.registry.sub_registry_with_prefix("plimsoll");
        ours.register("passes_late", "Passes that are due and wait for others to end", self.late.clone());
        ours.register_with_unit(
            "pass_delay",
            "How long after they were due passes begin",
            Unit::Seconds,
            self.delay.clone(),
        );
        ours.register(
            "writes",
            "Writes to the API server by what was written and how it went",
            self.writes.clone(),
        );
        ours.register(
            "shadow_differences",
            "Differences between our decisions and those of the controller that acts",
            self.differences.clone(),
        );
        ours.register(
            "shadow_differing_autoscalers",
            "Autoscalers for which we would decide otherwise at this moment",
            self.differing.clone(),
        );
        ours.register("leader", "1 if this instance leads", self.leading.clone());
        ours.register("unreadable_objects", "Objects that could not be read", self.unreadable.clone());
        ours.register("pods", "Pods that are watched", self.pods.clone());
        ours.register("record_bytes", "Memory used for decisions that are kept", self.record_bytes.clone());
        ours.register(
            "metrics_api_questions",
            "Questions to metrics APIs: sent, failed, or saved because somebody else asked the same",
            self.questions.clone(),
        );
        ours.register("events", "Events by what became of them", self.events.clone());
        ours.register("api_requests", "Requests to the API server by how they went", self.requests.clone());
        ours.register("api_requests_in_flight", "Requests in flight", self.in_flight.clone());
        ours.register(
            "api_requests_in_flight_limit",
            "Requests that may be in flight: as many as the API server bears",
            self.in_flight_limit.clone(),
        );
        ours.register(
            "watch_current",
            "1 if the store of a watched resource is current, 0 after its watch task died and until it is listed again",
            self.watch_current.clone(),
        );
        ours.register(
            "watch_restarts",
            "Restarts of watch tasks that ended or panicked",
            self.watch_restarts.clone(),
        );
        ours.register(
            "reconcile_panics",
            "Reconciles that panicked; each is retried with backoff",
            self.reconcile_panics.clone(),
        );
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// A pass is over.
    pub(crate) fn pass(&self, decision: &Decision, before: &Status, took: Duration, late: Duration) {
        let labels = Pass { action: decision.action(), error: decision.error_class() };
        self.reconciliations.get_or_create(&labels).inc();
        self.reconciliation_duration.get_or_create(&labels).observe(took.as_secs_f64());
        self.delay.observe(late.as_secs_f64());
        let evaluations = decision.evaluations.len().max(1);
        let each = took.as_secs_f64() / evaluations as f64;
        for (kind, action, error) in decision.metric_labels(before) {
            let labels = Computation { action, error, metric_type: kind.to_owned() };
            self.computations.get_or_create(&labels).inc();
            self.computation_duration.get_or_create(&labels).observe(each);
        }
    }

    /// The count an autoscaler has arrived at.
    pub(crate) fn desired(&self, namespace: &str, name: &str, replicas: i32) {
        let labels = Object { namespace: namespace.to_owned(), hpa_name: name.to_owned() };
        self.desired.get_or_create(&labels).set(i64::from(replicas));
    }

    /// An autoscaler is gone. Kubernetes keeps its series until it restarts (T49); we do not.
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        self.desired.remove(&Object { namespace: namespace.to_owned(), hpa_name: name.to_owned() });
    }

    /// Something was written, or not.
    pub(crate) fn wrote(&self, what: &'static str, went_well: bool) {
        let result = if went_well { "ok" } else { "failed" };
        self.writes.get_or_create(&Write { what, result }).inc();
    }

    /// A difference was found.
    pub(crate) fn difference(&self, field: &str) {
        self.differences.get_or_create(&Field { field: field.to_owned() }).inc();
    }

    pub(crate) fn differing(&self, autoscalers: i64) {
        self.differing.set(autoscalers);
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leading.set(i64::from(leads));
    }

    pub(crate) fn unreadable(&self) {
        self.unreadable.inc();
    }

    pub(crate) fn pods(&self, pods: usize) {
        self.pods.set(pods as i64);
    }

    /// Takes over the condition of watches and the number of reconciles that panicked.
    pub(crate) fn take_over_watches(&self, watches: &WatchSet, panics: u64) {
        for (resource, (is_current, restarts)) in watches.by_resource() {
            let labels = WatchedResource { resource };
            self.watch_current.get_or_create(&labels).set(i64::from(is_current));
            self.watch_restarts.get_or_create(&labels).inner().store(restarts, Relaxed);
        }
        self.reconcile_panics.inner().store(panics, Relaxed);
    }

    /// Takes over what others count.
    pub(crate) fn take_over(
        &self,
        record_bytes: usize,
        traffic: MetricsApiCounts,
        events: EventCounts,
        limiter: Option<&LimiterSnapshot>,
    ) {
        self.record_bytes.set(record_bytes as i64);
        for (api, count) in
            [("resource", traffic.resource), ("custom", traffic.custom), ("external", traffic.external)]
        {
            for (result, value) in [("sent", count.sent), ("failed", count.failed), ("saved", count.saved)] {
                self.questions.get_or_create(&Question { api, result }).inner().store(value, Relaxed);
            }
        }
        let told = |family: &Family<Told, Counter>, figures: &[(&'static str, u64)]| {
            for (result, value) in figures {
                family.get_or_create(&Told { result }).inner().store(*value, Relaxed);
            }
        };
        let EventCounts { created, patched, overflowed, held_back, refused, given_up } = events;
        let figures = [
            ("created", created),
            ("counted", patched),
            ("overflowed", overflowed),
            ("held_back", held_back),
            ("refused", refused),
            ("given_up", given_up),
        ];
        told(&self.events, &figures);
        if let Some(limiter) = limiter {
            let figures = [
                ("admitted", limiter.admitted),
                ("overloaded", limiter.overloaded),
                ("timed_out", limiter.timed_out),
                ("retried", limiter.retried),
            ];
            told(&self.requests, &figures);
            self.in_flight.set(limiter.in_flight as i64);
            self.in_flight_limit.set(limiter.limit as i64);
        }
    }
}
