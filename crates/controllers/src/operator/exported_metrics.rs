//! Exported metrics: the families of KEDA (docs/spec/keda.md 9.2), written on request from the state of all objects.

use std::collections::BTreeMap;

use api::keda::{COMPOSITE_METRIC, ConditionStatus, types};
use tokio::time::Instant;

use super::context::OperatorContext;
use super::counters::code_label;
use super::external_calls;
use super::health::OperatorHealth;
use super::id::{ResourceId, ResourceKind};
use super::scaled_resource::ScaledResource;
use super::scalers_cache::display_name;
use crate::metrics::exported_metrics::MetricsWriter;

/// One series of a scaler.
struct ScalerSeries {
    id: ResourceId,
    metric: String,
    scaler: String,
    index: String,
    value: Option<f64>,
    latency: Option<f64>,
    active: Option<bool>,
    errors: u64,
}

impl ScalerSeries {
    fn labels(&self) -> [(&'static str, &str); 6] {
        [
            ("namespace", &self.id.namespace),
            ("metric", &self.metric),
            ("scaledObject", &self.id.name),
            ("scaler", &self.scaler),
            ("triggerIndex", &self.index),
            ("type", self.id.kind.label()),
        ]
    }
}

/// All families, in the text format of Prometheus.
pub(crate) fn text(context: &OperatorContext, health: &OperatorHealth) -> String {
    let mut page = MetricsWriter::default();
    page.family("gauge", "keda_build_info", "Info metric, with static information about KEDA build.").value(
        &[
            ("version", context.settings.profile.behavior().release),
            ("git_commit", ""),
            ("goversion", ""),
            ("goos", std::env::consts::OS),
            ("goarch", std::env::consts::ARCH),
        ],
        1,
    );
    let entries = context.all_entries();
    let series: Vec<ScalerSeries> = entries.iter().flat_map(|(id, _)| series(context, id)).collect();
    scalers(&mut page, &series);
    requests(context, &mut page, &entries);
    if context.settings.profile.behavior().operator.exports_external_calls {
        external_calls::write(&mut page, &scalers::external::calls(&context.builder.backends).counts());
    }
    objects(context, &mut page, &entries);
    registered(context, &mut page);
    context.events.cloud_events.export(&mut page);
    context.records.export(&mut page);
    context.queue_metrics.export(&mut page, Instant::now());
    health.watches.export(&mut page);
    health.panics.export(&mut page);
    let polls = context.counters.polls();
    page.family("counter", "plimsoll_operator_polls_total", "Polls of ScaledObjects and ScaledJobs.")
        .value(&[], polls);
    wake_streams(&mut page, &scalers::stream_permits(&context.builder.backends));
    page.finish()
}

/// Streams on which sources wake their objects.
fn wake_streams(page: &mut MetricsWriter, streams: &scalers::StreamPermits) {
    let help = "Streams on which sources wake their objects: open, or waiting because their namespace has its share.";
    page.family("gauge", "plimsoll_operator_wake_streams", help)
        .value(&[("state", "open")], streams.open())
        .value(&[("state", "waiting")], streams.waiting());
    let help = "Streams on which sources wake their objects that failed, by type of source.";
    page.family("counter", "plimsoll_operator_wake_stream_failures_total", help);
    for (type_, count) in streams.failures() {
        page.value(&[("type", type_)], count);
    }
}

fn series(context: &OperatorContext, id: &ResourceId) -> Vec<ScalerSeries> {
    let (Some(owner), Some(entry)) = (context.owner(id), context.known_entry(id)) else { return Vec::new() };
    let Some(triggers) = entry.scalers() else { return Vec::new() };
    let mut all = Vec::new();
    let is_composed = owner.has_formula();
    for scaler_entry in triggers.scalers() {
        let trigger = scaler_entry.trigger();
        let scaler = if trigger.name.is_empty() {
            display_name(&trigger.type_).to_owned()
        } else {
            trigger.name.clone()
        };
        let one = |metric: &str| ScalerSeries {
            id: id.clone(),
            metric: metric.to_owned(),
            scaler: scaler.clone(),
            index: scaler_entry.index().to_string(),
            value: None,
            latency: None,
            active: None,
            errors: 0,
        };
        if trigger.is_resource() {
            if !is_composed {
                all.push(ScalerSeries { active: Some(true), ..one(&trigger.type_) });
            }
            continue;
        }
        let (samples, errors) = scaler_entry.samples();
        for (metric, kept) in samples {
            let reading = kept.reading.as_ref().ok();
            all.push(ScalerSeries {
                value: reading.map(|reading| reading.values.iter().map(|value| value.value.as_f64()).sum()),
                latency: Some(kept.latency.as_secs_f64()),
                active: reading.map(|reading| reading.active).filter(|_| !is_composed),
                errors,
                ..one(&metric)
            });
        }
    }
    // In a block, so that the lock is released before the next statement.
    let (composite, yielded) = {
        let state = entry.state();
        (state.formula_active, state.formula_value)
    };
    if let Some(active) = composite {
        all.push(ScalerSeries {
            id: id.clone(),
            metric: COMPOSITE_METRIC.to_owned(),
            scaler: COMPOSITE_METRIC.to_owned(),
            index: "0".to_owned(),
            value: yielded,
            latency: None,
            active: Some(active),
            errors: 0,
        });
    }
    all
}

fn scalers(page: &mut MetricsWriter, series: &[ScalerSeries]) {
    page.family("gauge", "keda_scaler_metrics_value", "The current value for each scaler's metric.");
    for one in series {
        if let Some(value) = one.value {
            page.value(&one.labels(), value);
        }
    }
    let help = "The latency of retrieving current metric from each scaler, in seconds.";
    page.family("gauge", "keda_scaler_metrics_latency_seconds", help);
    for one in series {
        if let Some(latency) = one.latency {
            page.value(&one.labels(), latency);
        }
    }
    page.family("gauge", "keda_scaler_active", "Indicates whether a scaler is active (1), or not (0).");
    for one in series {
        if let Some(active) = one.active {
            page.value(&one.labels(), u8::from(active));
        }
    }
    page.family(
        "counter",
        "keda_scaler_detail_errors_total",
        "The total number of errors encountered for each scaler.",
    );
    for one in series.iter().filter(|one| one.latency.is_some()) {
        page.value(&one.labels(), one.errors);
    }
}

/// HTTP requests of scalers.
fn requests(
    context: &OperatorContext,
    page: &mut MetricsWriter,
    entries: &[(ResourceId, std::sync::Arc<super::object_state::ObjectEntry>)],
) {
    let mut empty = Vec::new();
    page.family(
        "counter",
        "keda_scaler_http_requests_total",
        "The total number of HTTP requests made by each scaler.",
    );
    for (id, entry) in entries {
        let Some(triggers) = entry.scalers() else { continue };
        for scaler_entry in triggers.scalers() {
            let ((sent, lacking), trigger) = (scaler_entry.sent(), scaler_entry.trigger());
            if sent.is_empty() {
                continue;
            }
            // A scaler that uses HTTP has one metric.
            let metric = scaler_entry.samples().0.into_keys().next().unwrap_or_default();
            for (code, count) in sent {
                let labels = [
                    ("namespace", &*id.namespace),
                    ("scaled_resource", &*id.name),
                    ("scaler", &trigger.type_),
                    ("trigger_name", &trigger.name),
                    ("metric_name", &metric),
                    ("status_code", &code_label(code)),
                ];
                page.value(&labels, count);
            }
            if trigger.type_ == "prometheus" {
                let ignored = scaler_entry.ignores_null_values().to_string();
                empty.push((id, trigger.name.clone(), metric, ignored, lacking));
            }
        }
    }
    context.builder.durations.write(page);
    page.family(
        "counter",
        "keda_scaler_empty_upstream_responses_total",
        "The total number of empty responses that scalers got from where they ask.",
    );
    for (id, name, metric, ignored, count) in &empty {
        let labels = [
            ("namespace", &*id.namespace),
            ("scaledResource", &*id.name),
            ("triggerName", name),
            ("metricName", metric),
            ("resourceType", id.kind.label()),
            ("ignoreNullValues", ignored),
        ];
        page.value(&labels, count);
    }
}

fn objects(
    context: &OperatorContext,
    page: &mut MetricsWriter,
    entries: &[(ResourceId, std::sync::Arc<super::object_state::ObjectEntry>)],
) {
    let errors = |page: &mut MetricsWriter, kind: ResourceKind, label: &'static str| {
        for (id, entry) in entries.iter().filter(|(id, _)| id.kind == kind) {
            if let Some(errors) = entry.state().errors {
                let labels = [("namespace", &*id.namespace), (label, &*id.name)];
                page.value(&labels, errors + context.counters.build_failures(id));
            }
        }
    };
    page.family(
        "counter",
        "keda_scaled_object_errors_total",
        "The number of errors that have occurred for each ScaledObject.",
    );
    errors(page, ResourceKind::Object, "scaledObject");
    page.family(
        "counter",
        "keda_scaled_job_errors_total",
        "The number of errors that have occurred for each ScaledJob.",
    );
    errors(page, ResourceKind::Job, "scaledJob");
    page.family(
        "gauge",
        "keda_scaled_object_paused",
        "Indicates whether a ScaledObject is paused (1), or not (0).",
    );
    for (id, _) in entries.iter().filter(|(id, _)| id.kind == ResourceKind::Object) {
        if let Some(ScaledResource::Object(object)) = context.owner(id) {
            let paused = object.status.conditions.state(types::PAUSED) == ConditionStatus::True;
            let labels = [("namespace", &*id.namespace), ("scaledObject", &*id.name)];
            page.value(&labels, u8::from(paused));
        }
    }
    let help = "Total deviation (in seconds) between the expected execution time and the actual execution time for the scaling loop.";
    page.family("gauge", "keda_internal_scale_loop_latency_seconds", help);
    for (id, entry) in entries {
        if let Some(late) = entry.state().poll_delay {
            let labels = [("namespace", &*id.namespace), ("type", id.kind.label()), ("resource", &*id.name)];
            page.value(&labels, late.as_secs_f64());
        }
    }
}

fn registered(context: &OperatorContext, page: &mut MetricsWriter) {
    let (mut triggers, mut resources) =
        (BTreeMap::<String, u64>::new(), BTreeMap::<(&'static str, String), u64>::new());
    {
        let store = context.store();
        let mut count = |type_: &'static str, namespace: &str| {
            let namespace = if namespace.is_empty() { "default" } else { namespace };
            *resources.entry((type_, namespace.to_owned())).or_default() += 1;
        };
        for (name, object) in store.objects.iter() {
            count("scaled_object", &name.namespace);
            for trigger in &object.spec.triggers {
                *triggers.entry(trigger.type_.clone()).or_default() += 1;
            }
        }
        for (name, job) in store.scaled_jobs.iter() {
            count("scaled_job", &name.namespace);
            for trigger in &job.spec.triggers {
                *triggers.entry(trigger.type_.clone()).or_default() += 1;
            }
        }
        for name in store.authentication_names() {
            let type_ = if name.namespace.is_empty() {
                "cluster_trigger_authentication"
            } else {
                "trigger_authentication"
            };
            count(type_, &name.namespace);
        }
        for (name, _) in store.destinations.iter().chain(store.cluster_destinations.iter()) {
            count("cloudevent_source", &name.namespace);
        }
    }
    page.family("gauge", "keda_trigger_registered_total", "Total number of triggers per trigger type.");
    for (type_, count) in &triggers {
        page.value(&[("type", type_)], count);
    }
    let help =
        "Total number of KEDA custom resources per namespace for each custom resource type (CRD) registered.";
    page.family("gauge", "keda_resource_registered_total", help);
    for ((type_, namespace), count) in &resources {
        page.value(&[("type", type_), ("namespace", namespace)], count);
    }
}
