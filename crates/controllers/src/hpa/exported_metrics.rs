//! The exported metrics of the HPA controller: those of Kubernetes (docs/spec/hpa.md 8) and those of Plimsoll.
//!
//! A metric is declared in [`HpaMetrics::default`] and exported in [`HpaMetrics::text`], in the order of docs/controller.md.

use std::time::Duration;

use api::diagnosis::{Described as _, DiagnosisFacts, TargetCause, cause_ids};
use cluster::connect::LimiterSnapshot;
use cluster::events::EventCounts;
use cluster::metrics::MetricsApiCounts;
use engine::{Decision, KubernetesVersion, Status};
use runtime::WatchSet;
use runtime::exported_metrics::{Counter, Family, Gauge, Histogram, MetricsWriter};
use runtime::reconcile_loop::PanicCounter;

use super::records::Records;

/// The content type of [`super::HpaControllerHandle::exposition`].
pub use runtime::exported_metrics::OPEN_METRICS_CONTENT_TYPE as CONTENT_TYPE;

/// The metrics that the controller updates as it reconciles.
pub(crate) struct HpaMetrics {
    reconciliations: Family<Counter, 2>,
    reconciliation_duration: Family<Histogram, 2>,
    computations: Family<Counter, 3>,
    computation_duration: Family<Histogram, 3>,
    autoscalers: Family<Gauge, 0>,
    desired: Family<Gauge, 2>,
    stale_skips: Family<Counter, 2>,
    profile: Family<Gauge, 1>,
    overdue: Family<Gauge, 0>,
    delay: Family<Histogram, 0>,
    causes: Family<Counter, 1>,
    writes: Family<Counter, 2>,
    differences: Family<Counter, 1>,
    timing: Family<Counter, 1>,
    differing: Family<Gauge, 0>,
    leader: Family<Gauge, 0>,
    unreadable: Family<Counter, 0>,
    pods: Family<Gauge, 0>,
}

/// What other parts of the process count; read when the metrics are exported.
pub(crate) struct ProcessCounts<'a> {
    pub(crate) records: &'a Records,
    pub(crate) metrics_apis: MetricsApiCounts,
    pub(crate) events: EventCounts,
    pub(crate) limiter: Option<LimiterSnapshot>,
    pub(crate) watches: &'a WatchSet,
    pub(crate) panics: &'a PanicCounter,
}

/// 0.001 × 2^k for k = 0..14, as in Kubernetes.
fn buckets() -> Histogram {
    Histogram::doubling(0.001, 15)
}

/// The name of a metric of Kubernetes' HPA controller.
macro_rules! kubernetes {
    ($name:literal) => {
        concat!("horizontal_pod_autoscaler_controller_", $name)
    };
}

impl Default for HpaMetrics {
    fn default() -> Self {
        Self {
            reconciliations: Family::counters(
                kubernetes!("reconciliations_total"),
                "[BETA] Number of reconciliations of HPA controller. The label 'action' should be either 'scale_down', 'scale_up', or 'none'. Also, the label 'error' should be either 'spec', 'internal', or 'none'. Note that if both spec and internal errors happen during a reconciliation, the first one to occur is reported in `error` label.",
                ["action", "error"],
            ),
            reconciliation_duration: Family::new(
                kubernetes!("reconciliation_duration_seconds"),
                "[BETA] The time(seconds) that the HPA controller takes to reconcile once.",
                ["action", "error"],
                buckets,
            ),
            computations: Family::counters(
                kubernetes!("metric_computation_total"),
                "[BETA] Number of metric computations.",
                ["action", "error", "metric_type"],
            ),
            computation_duration: Family::new(
                kubernetes!("metric_computation_duration_seconds"),
                "[BETA] The time(seconds) that the HPA controller takes to calculate one metric.",
                ["action", "error", "metric_type"],
                buckets,
            ),
            autoscalers: Family::gauges(
                kubernetes!("num_horizontal_pod_autoscalers"),
                "[ALPHA] Current number of controlled HPA objects.",
                [],
            ),
            desired: Family::gauges(
                kubernetes!("desired_replicas"),
                "[ALPHA] Current desired replica count for HPA objects.",
                ["namespace", "hpa_name"],
            ),
            stale_skips: Family::counters(
                kubernetes!("stale_sync_skips_total"),
                "[ALPHA] Total number of HPA syncs skipped due to a stale watch cache.",
                ["group", "resource"],
            ),
            profile: Family::gauges(
                "plimsoll_kubernetes_profile",
                "1 for the release of Kubernetes whose behavior is reproduced.",
                ["version"],
            ),
            overdue: Family::gauges(
                "plimsoll_passes_late",
                "Reconciles that are due and wait for others to end.",
                [],
            ),
            delay: Family::new(
                "plimsoll_pass_delay_seconds",
                "Delay between the due time of a reconcile and its start.",
                [],
                buckets,
            ),
            causes: Family::counters(
                "plimsoll_reconcile_causes_total",
                "Reconciles by the causes that `plimsoll why` names (docs/diagnosis.md); one reconcile can have several.",
                ["cause"],
            ),
            writes: Family::counters(
                "plimsoll_writes_total",
                "Writes to the API server, by object and result.",
                ["what", "result"],
            ),
            differences: Family::counters(
                "plimsoll_shadow_differences_total",
                "Differences between decisions in shadow mode and those of the active controller, by field.",
                ["field"],
            ),
            timing: Family::counters(
                "plimsoll_shadow_timing_differences_total",
                "Differences that are gone when we decide with the readings of the controller that acts.",
                ["field"],
            ),
            differing: Family::gauges(
                "plimsoll_shadow_differing_autoscalers",
                "Autoscalers whose decision in shadow mode differs from that of the active controller.",
                [],
            ),
            leader: Family::gauges("plimsoll_leader", "1 if this replica is the leader.", []),
            unreadable: Family::counters(
                "plimsoll_unreadable_objects_total",
                "Autoscalers that could not be decoded.",
                [],
            ),
            pods: Family::gauges("plimsoll_pods", "Pods that are watched.", []),
        }
    }
}

impl HpaMetrics {
    /// All metrics as text, in the format of the writer.
    pub(crate) fn text(&self, mut writer: MetricsWriter, process: &ProcessCounts<'_>) -> String {
        self.reconciliations.export(&mut writer);
        self.reconciliation_duration.export(&mut writer);
        self.computations.export(&mut writer);
        self.computation_duration.export(&mut writer);
        self.autoscalers.export(&mut writer);
        self.desired.export(&mut writer);
        self.stale_skips.export(&mut writer);
        self.profile.export(&mut writer);
        self.overdue.export(&mut writer);
        self.delay.export(&mut writer);
        self.causes.export(&mut writer);
        self.writes.export(&mut writer);
        self.differences.export(&mut writer);
        self.timing.export(&mut writer);
        self.differing.export(&mut writer);
        self.leader.export(&mut writer);
        self.unreadable.export(&mut writer);
        self.pods.export(&mut writer);
        process.export(&mut writer);
        writer.finish()
    }

    /// Counts a reconcile. `computed` is how long each metric of the decision took to fetch and evaluate.
    pub(crate) fn reconciled(
        &self,
        decision: &Decision,
        before: &Status,
        took: Duration,
        delay: Duration,
        computed: &[Duration],
    ) {
        let labels = [decision.action().into(), decision.error_class().into()];
        self.reconciliations.increment(labels.clone());
        self.reconciliation_duration.observe(labels, took.as_secs_f64());
        self.delay.observe([], delay.as_secs_f64());
        let metrics = decision.metric_labels(before).zip(computed);
        for ((metric_type, action, error), took) in metrics {
            let labels = [action.into(), error.into(), metric_type.to_owned().into()];
            self.computations.increment(labels.clone());
            self.computation_duration.observe(labels, took.as_secs_f64());
        }
    }

    /// Counts each cause of a decision once.
    pub(crate) fn count_causes(&self, facts: &DiagnosisFacts<'_>) {
        for cause in cause_ids(facts) {
            self.causes.increment([cause.into()]);
        }
    }

    /// Counts a reconcile of an autoscaler that is off, about which nothing is decided.
    pub(crate) fn count_off(&self) {
        self.causes.increment([TargetCause::Off.id().into()]);
    }

    /// Sets `num_horizontal_pod_autoscalers`, which are those that this process controls.
    pub(crate) fn set_autoscalers(&self, count: usize) {
        self.autoscalers.set([], count as i64);
    }

    /// Sets the number of watched pods.
    pub(crate) fn set_pods(&self, count: usize) {
        self.pods.set([], count as i64);
    }

    /// Sets how many reconciles wait although they are due.
    pub(crate) fn set_overdue(&self, count: usize) {
        self.overdue.set([], count as i64);
    }

    /// Sets the desired replica count of an autoscaler.
    pub(crate) fn set_desired(&self, namespace: &str, name: &str, replicas: i32) {
        self.desired.set([namespace.to_owned().into(), name.to_owned().into()], i64::from(replicas));
    }

    /// Removes the series of an autoscaler that is deleted or off. Kubernetes keeps them until it restarts (T49).
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        self.desired.remove(&[namespace.to_owned().into(), name.to_owned().into()]);
    }

    /// Counts a reconcile that was skipped because of a stale watch cache. `group_resource` is that of the autoscaler, such as
    /// `horizontalpodautoscalers.autoscaling`.
    pub(crate) fn count_stale_skip(&self, group_resource: &'static str) {
        let (resource, group) = group_resource.split_once('.').unwrap_or((group_resource, ""));
        self.stale_skips.increment([group.into(), resource.into()]);
    }

    /// Sets the release whose behavior is reproduced.
    pub(crate) fn set_profile(&self, version: KubernetesVersion) {
        for other in KubernetesVersion::ALL {
            self.profile.remove(&[other.as_str().into()]);
        }
        self.profile.set([version.as_str().into()], 1);
    }

    /// Counts a write to the API server.
    pub(crate) fn count_write(&self, what: &'static str, succeeded: bool) {
        self.writes.increment([what.into(), if succeeded { "ok" } else { "failed" }.into()]);
    }

    /// Counts a difference that shadow mode found.
    pub(crate) fn count_difference(&self, field: &str) {
        self.differences.increment([field.to_owned().into()]);
    }

    /// Counts a difference of timing that shadow mode found.
    pub(crate) fn count_timing(&self, field: &str) {
        self.timing.increment([field.to_owned().into()]);
    }

    /// Sets for how many autoscalers shadow mode currently finds a difference.
    pub(crate) fn set_differing(&self, autoscalers: usize) {
        self.differing.set([], autoscalers as i64);
    }

    /// This process is the leader.
    pub(crate) fn begin_term(&self) {
        self.leader.set([], 1);
    }

    /// This process is not the leader. Gauges of what a leader does end: a sum over replicas would count those of the next one twice,
    /// and nothing would change them any more. Kubernetes' controller exits instead.
    pub(crate) fn end_term(&self) {
        self.desired.clear();
        for gauge in [&self.autoscalers, &self.overdue, &self.differing, &self.leader] {
            gauge.set([], 0);
        }
    }

    /// Counts an autoscaler that could not be decoded.
    pub(crate) fn count_unreadable(&self) {
        self.unreadable.increment([]);
    }
}

impl ProcessCounts<'_> {
    fn export(&self, writer: &mut MetricsWriter) {
        self.records.export(writer);
        writer.family(
            "counter",
            "plimsoll_metrics_api_questions_total",
            "Queries to metrics APIs: sent, failed, or saved because an identical query was under way or cached.",
        );
        let apis = &self.metrics_apis;
        for (api, count) in
            [("resource", apis.resource), ("custom", apis.custom), ("external", apis.external)]
        {
            for (result, value) in [("sent", count.sent), ("failed", count.failed), ("saved", count.saved)] {
                writer.value(&[("api", api), ("result", result)], value);
            }
        }
        let EventCounts { created, patched, overflowed, held_back, refused, given_up } = self.events;
        let events = [
            ("created", created),
            ("counted", patched),
            ("overflowed", overflowed),
            ("held_back", held_back),
            ("refused", refused),
            ("given_up", given_up),
        ];
        writer.family("counter", "plimsoll_events_total", "Events, by result.");
        for (result, value) in events {
            writer.value(&[("result", result)], value);
        }
        let limiter = self.limiter.unwrap_or_default();
        if self.limiter.is_some() {
            let requests = [
                ("admitted", limiter.admitted),
                ("overloaded", limiter.overloaded),
                ("timed_out", limiter.timed_out),
                ("retried", limiter.retried),
            ];
            writer.family("counter", "plimsoll_api_requests_total", "Requests to the API server, by result.");
            for (result, value) in requests {
                writer.value(&[("result", result)], value);
            }
        }
        writer
            .family("gauge", "plimsoll_api_requests_in_flight", "Requests to the API server in flight.")
            .value(&[], limiter.in_flight);
        writer
            .family(
                "gauge",
                "plimsoll_api_requests_in_flight_limit",
                "Limit of requests in flight, adapted to the API server.",
            )
            .value(&[], limiter.limit);
        self.watches.export(writer);
        self.panics.export(writer);
        runtime::exported_metrics::process(writer);
    }
}
