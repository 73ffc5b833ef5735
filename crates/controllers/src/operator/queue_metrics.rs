//! The families of controller-runtime: reconciles and the work queue, by controller (docs/spec/keda.md 9.2).
//!
//! In KEDA only reconciles are queued. Here polls are in the same queue, so `workqueue_*` counts both and
//! `controller_runtime_reconcile_*` only reconciles; a poll that panics counts as a failed reconcile.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use locks::MutexExt as _;
use runtime::exported_metrics::{Counter, Family, Gauge, Histogram, LabelValues, MetricsWriter};
use tokio::time::Instant;

use super::id::{EventSubject, NamespacedName, ResourceId, ResourceKind};

/// Upper bounds of `controller_runtime_reconcile_time_seconds`.
const RECONCILE_BUCKETS_SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Upper bounds of the durations of the work queue.
const QUEUE_BUCKETS_SECONDS: [f64; 12] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];

/// The controllers whose objects are in the work queue.
const QUEUED: [ResourceKind; 2] = [ResourceKind::Object, ResourceKind::Job];
/// The controllers of TriggerAuthentications, which are reconciled outside the queue.
const AUTHENTICATIONS: [&str; 2] = ["triggerauthentication", "clustertriggerauthentication"];

/// Reconciles and the work queue of each controller.
pub(crate) struct QueueMetrics {
    reconciles: Family<Counter, 2>,
    errors: Family<Counter, 1>,
    panics: Family<Counter, 1>,
    reconcile_time: Family<Histogram, 1>,
    max_concurrent: Family<Gauge, 1>,
    depth: Family<Gauge, 3>,
    adds: Family<Counter, 2>,
    queue_duration: Family<Histogram, 2>,
    work_duration: Family<Histogram, 2>,
    retries: Family<Counter, 2>,
    /// Objects that are processed, by the start of their processing.
    running: Mutex<HashMap<ResourceId, Instant>>,
}

/// The labels of the work queue of a controller.
fn queue_of(kind: ResourceKind) -> LabelValues<2> {
    [kind.label().into(), kind.label().into()]
}

/// Processing of an object that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// It is due again when its schedule says so.
    Finished,
    /// It is due again earlier.
    Retried,
    /// It panicked, and is due again after its backoff.
    Panicked,
}

impl QueueMetrics {
    /// Nothing has happened; at most `concurrency` objects are processed at a time.
    pub(crate) fn new(concurrency: usize) -> Self {
        let queue = ["name", "controller"];
        let all = Self {
            reconciles: Family::counters(
                "controller_runtime_reconcile_total",
                "Total number of reconciliations per controller",
                ["controller", "result"],
            ),
            errors: Family::counters(
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
                ["controller"],
            ),
            panics: Family::counters(
                "controller_runtime_reconcile_panics_total",
                "Total number of reconciliation panics per controller",
                ["controller"],
            ),
            reconcile_time: Family::new(
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                ["controller"],
                || Histogram::with_bounds(&RECONCILE_BUCKETS_SECONDS),
            ),
            max_concurrent: Family::gauges(
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
                ["controller"],
            ),
            depth: Family::gauges(
                "workqueue_depth",
                "Current depth of workqueue by workqueue and priority",
                ["name", "controller", "priority"],
            ),
            adds: Family::counters(
                "workqueue_adds_total",
                "Total number of adds handled by workqueue",
                queue,
            ),
            queue_duration: Family::new(
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                queue,
                || Histogram::with_bounds(&QUEUE_BUCKETS_SECONDS),
            ),
            work_duration: Family::new(
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                queue,
                || Histogram::with_bounds(&QUEUE_BUCKETS_SECONDS),
            ),
            retries: Family::counters(
                "workqueue_retries_total",
                "Total number of retries handled by workqueue",
                queue,
            ),
            running: Mutex::default(),
        };
        all.create_series(concurrency);
        all
    }

    /// Series begin at 0, so that rates see the first event.
    fn create_series(&self, concurrency: usize) {
        for controller in QUEUED.map(ResourceKind::label).into_iter().chain(AUTHENTICATIONS) {
            for result in ["success", "error", "requeue", "requeue_after"] {
                self.reconciles.create([controller.into(), result.into()]);
            }
            self.errors.create([controller.into()]);
            self.panics.create([controller.into()]);
            self.reconcile_time.create([controller.into()]);
        }
        for kind in QUEUED {
            self.max_concurrent.set([kind.label().into()], i64::try_from(concurrency).unwrap_or(i64::MAX));
            self.set_depth(kind, 0);
            self.adds.create(queue_of(kind));
            self.queue_duration.create(queue_of(kind));
            self.work_duration.create(queue_of(kind));
            self.retries.create(queue_of(kind));
        }
    }

    /// Counts a reconcile of a ScaledObject or ScaledJob.
    pub(crate) fn reconciled(&self, kind: ResourceKind, took: Duration, failed: bool) {
        self.count_reconcile(kind.label(), took, failed);
    }

    /// Counts a reconcile of a TriggerAuthentication or ClusterTriggerAuthentication.
    pub(crate) fn authentication_reconciled(&self, name: &NamespacedName, took: Duration) {
        self.count_reconcile(authentication_controller(name), took, false);
    }

    /// Counts a reconcile of a TriggerAuthentication or ClusterTriggerAuthentication that panicked.
    pub(crate) fn authentication_panicked(&self, name: &NamespacedName) {
        self.count_panic(authentication_controller(name));
    }

    fn count_reconcile(&self, controller: &'static str, took: Duration, failed: bool) {
        self.reconcile_time.observe([controller.into()], took.as_secs_f64());
        let result = if failed { "error" } else { "success" };
        self.reconciles.increment([controller.into(), result.into()]);
        if failed {
            self.errors.increment([controller.into()]);
        }
    }

    fn count_panic(&self, controller: &'static str) {
        self.panics.increment([controller.into()]);
        self.reconciles.increment([controller.into(), "error".into()]);
        self.errors.increment([controller.into()]);
    }

    /// Sets how many objects are due and wait.
    pub(crate) fn set_depth(&self, kind: ResourceKind, waiting: usize) {
        // KEDA's objects have priority 0 unless they are listed at its start.
        let labels = [kind.label().into(), kind.label().into(), "0".into()];
        self.depth.set(labels, i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// The processing of an object starts `delay` after it was due.
    pub(crate) fn started(&self, id: &ResourceId, now: Instant, delay: Duration) {
        self.adds.increment(queue_of(id.kind));
        self.queue_duration.observe(queue_of(id.kind), delay.as_secs_f64());
        self.running().insert(id.clone(), now);
    }

    /// The processing of an object has ended.
    pub(crate) fn finished(&self, id: &ResourceId, now: Instant, end: ProcessEnd) {
        let since = self.running().remove(id);
        if let Some(since) = since {
            let took = now.saturating_duration_since(since);
            self.work_duration.observe(queue_of(id.kind), took.as_secs_f64());
        }
        if end != ProcessEnd::Finished {
            self.retries.increment(queue_of(id.kind));
        }
        if end == ProcessEnd::Panicked {
            self.count_panic(id.kind.label());
        }
    }

    /// Leadership has begun or ended: nothing waits, and what was processed is dropped.
    pub(crate) fn forget_running(&self) {
        self.running().clear();
        for kind in QUEUED {
            self.set_depth(kind, 0);
        }
    }

    pub(crate) fn export(&self, writer: &mut MetricsWriter, now: Instant) {
        self.reconciles.export(writer);
        self.errors.export(writer);
        self.panics.export(writer);
        self.reconcile_time.export(writer);
        self.max_concurrent.export(writer);
        let running = QUEUED.map(|kind| (kind, self.running_since(kind, now)));
        let help = "Number of currently used workers per controller";
        writer.family("gauge", "controller_runtime_active_workers", help);
        for (kind, ages) in &running {
            writer.value(&[("controller", kind.label())], ages.len());
        }
        self.depth.export(writer);
        self.adds.export(writer);
        self.queue_duration.export(writer);
        self.work_duration.export(writer);
        let help = "How many seconds of work has been done that is in progress and hasn't been observed by work_duration. \
                    Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate \
                    at which this increases.";
        writer.family("gauge", "workqueue_unfinished_work_seconds", help);
        for (kind, ages) in &running {
            let labels = [("name", kind.label()), ("controller", kind.label())];
            writer.value(&labels, ages.iter().sum::<Duration>().as_secs_f64());
        }
        let help = "How many seconds has the longest running processor for workqueue been running.";
        writer.family("gauge", "workqueue_longest_running_processor_seconds", help);
        for (kind, ages) in &running {
            let labels = [("name", kind.label()), ("controller", kind.label())];
            writer.value(&labels, ages.iter().max().copied().unwrap_or_default().as_secs_f64());
        }
        self.retries.export(writer);
    }

    /// For how long each object of a kind has been processed.
    fn running_since(&self, kind: ResourceKind, now: Instant) -> Vec<Duration> {
        let running = self.running();
        let of_kind = running.iter().filter(|(id, _)| id.kind == kind);
        of_kind.map(|(_, since)| now.saturating_duration_since(*since)).collect()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ResourceId, Instant>> {
        self.running.locked()
    }
}

fn authentication_controller(name: &NamespacedName) -> &'static str {
    let [namespaced, of_cluster] = AUTHENTICATIONS;
    match EventSubject::authentication(name) {
        EventSubject::ClusterAuthentication => of_cluster,
        _ => namespaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(metrics: &QueueMetrics, now: Instant) -> String {
        let mut writer = MetricsWriter::default();
        metrics.export(&mut writer, now);
        writer.finish()
    }

    #[test]
    fn processing_is_counted_under_the_names_of_controller_runtime() {
        let (metrics, start) = (QueueMetrics::new(5), Instant::now());
        let (web, mail) = (ResourceId::object("shop", "web"), ResourceId::object("shop", "mail"));
        metrics.started(&web, start, Duration::from_millis(500));
        metrics.started(&mail, start + Duration::from_secs(1), Duration::ZERO);
        metrics.reconciled(ResourceKind::Object, Duration::from_millis(20), true);
        metrics.reconciled(ResourceKind::Object, Duration::from_secs(2), false);
        metrics.set_depth(ResourceKind::Object, 3);
        let text = page(&metrics, start + Duration::from_secs(4));
        let queue = r#"name="scaledobject",controller="scaledobject""#;
        for line in [
            r#"controller_runtime_reconcile_total{controller="scaledobject",result="error"} 1"#.to_owned(),
            r#"controller_runtime_reconcile_total{controller="scaledobject",result="success"} 1"#.to_owned(),
            r#"controller_runtime_reconcile_total{controller="scaledjob",result="requeue_after"} 0"#
                .to_owned(),
            r#"controller_runtime_reconcile_errors_total{controller="scaledobject"} 1"#.to_owned(),
            r#"controller_runtime_reconcile_time_seconds_bucket{controller="scaledobject",le="0.025"} 1"#
                .to_owned(),
            r#"controller_runtime_reconcile_time_seconds_count{controller="scaledobject"} 2"#.to_owned(),
            r#"controller_runtime_max_concurrent_reconciles{controller="scaledjob"} 5"#.to_owned(),
            r#"controller_runtime_active_workers{controller="scaledobject"} 2"#.to_owned(),
            format!("workqueue_depth{{{queue},priority=\"0\"}} 3"),
            format!("workqueue_adds_total{{{queue}}} 2"),
            format!("workqueue_queue_duration_seconds_bucket{{{queue},le=\"1e-08\"}} 1"),
            format!("workqueue_queue_duration_seconds_bucket{{{queue},le=\"1\"}} 2"),
            format!("workqueue_unfinished_work_seconds{{{queue}}} 7"),
            format!("workqueue_longest_running_processor_seconds{{{queue}}} 4"),
            format!("workqueue_work_duration_seconds_count{{{queue}}} 0"),
            format!("workqueue_retries_total{{{queue}}} 0"),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }

    #[test]
    fn end_of_processing_is_counted() {
        let (metrics, start) = (QueueMetrics::new(5), Instant::now());
        let (web, mail) = (ResourceId::object("shop", "web"), ResourceId::job("shop", "mail"));
        metrics.started(&web, start, Duration::ZERO);
        metrics.finished(&web, start + Duration::from_secs(2), ProcessEnd::Retried);
        metrics.started(&mail, start, Duration::ZERO);
        metrics.finished(&mail, start + Duration::from_secs(3), ProcessEnd::Panicked);
        metrics.authentication_reconciled(&NamespacedName::new("", "vault"), Duration::ZERO);
        metrics.authentication_panicked(&NamespacedName::new("shop", "vault"));
        let text = page(&metrics, start + Duration::from_secs(9));
        for line in [
            r#"workqueue_work_duration_seconds_sum{name="scaledobject",controller="scaledobject"} 2"#,
            r#"workqueue_work_duration_seconds_sum{name="scaledjob",controller="scaledjob"} 3"#,
            r#"workqueue_retries_total{name="scaledobject",controller="scaledobject"} 1"#,
            r#"workqueue_unfinished_work_seconds{name="scaledjob",controller="scaledjob"} 0"#,
            r#"controller_runtime_reconcile_panics_total{controller="scaledjob"} 1"#,
            r#"controller_runtime_reconcile_total{controller="scaledjob",result="error"} 1"#,
            r#"controller_runtime_reconcile_total{controller="clustertriggerauthentication",result="success"} 1"#,
            r#"controller_runtime_reconcile_panics_total{controller="triggerauthentication"} 1"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }

    #[test]
    fn end_of_leadership_empties_the_queue() {
        let (metrics, start) = (QueueMetrics::new(5), Instant::now());
        metrics.started(&ResourceId::object("shop", "web"), start, Duration::ZERO);
        metrics.set_depth(ResourceKind::Object, 3);
        metrics.forget_running();
        let text = page(&metrics, start + Duration::from_secs(9));
        assert!(
            text.contains("controller_runtime_active_workers{controller=\"scaledobject\"} 0\n"),
            "{text}"
        );
        let depth = "workqueue_depth{name=\"scaledobject\",controller=\"scaledobject\",priority=\"0\"} 0\n";
        assert!(text.contains(depth), "{text}");
    }
}
