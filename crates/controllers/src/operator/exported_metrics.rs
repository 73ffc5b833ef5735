//! What Prometheus sees: the families of KEDA (docs/spec/keda.md 9.2), made when they are asked for of what is remembered anyway.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use api::keda::{COMPOSITE_METRIC, ConditionStatus, types};
use api::meta::ObjectMeta;

use scalers::web::RequestLog;

use super::context::OperatorContext;
use super::event_recorder::EventSubject;
use super::id::{Id, Kind};
use super::scalers_cache::{ScaledResource, display};
use crate::metrics::exported_metrics::MetricsWriter;

/// What is counted and not remembered elsewhere.
#[derive(Debug, Default)]
pub(crate) struct OperatorCounters {
    polls: AtomicU64,
    /// Builds that failed, by what they were for.
    failures: Mutex<BTreeMap<(bool, String, String), u64>>,
}

/// SampleQuery long requests of scalers over HTTP took, by type of trigger and code of the answer.
#[derive(Debug, Default)]
pub(crate) struct HttpRequestDurations(Mutex<BTreeMap<(String, u16), Taken>>);

#[derive(Debug, Default)]
struct Taken {
    within: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

/// Seconds.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

impl HttpRequestDurations {
    pub(crate) fn count(&self, type_: &str, account: &RequestLog) {
        if account.sent.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for sent in &account.sent {
            // Types and codes are few.
            let taken = all.entry((type_.to_owned(), sent.code.unwrap_or(0))).or_default();
            let seconds = sent.took.as_secs_f64();
            taken.count += 1;
            taken.seconds += seconds;
            for (count, _) in taken.within.iter_mut().zip(BOUNDS).filter(|(_, bound)| seconds <= *bound) {
                *count += 1;
            }
        }
    }

    fn write(&self, page: &mut MetricsWriter) {
        page.family(
            "histogram",
            "keda_scaler_http_request_duration_seconds",
            "The duration of HTTP requests made by each scaler, in seconds.",
        );
        for ((type_, code), taken) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let within = BOUNDS.into_iter().zip(taken.within).chain([(f64::INFINITY, taken.count)]);
            page.histogram(&[("scaler", type_), ("status_code", &code_of(*code))], within, taken.seconds);
        }
    }
}

/// That there was no answer is told by a word.
fn code_of(code: u16) -> String {
    if code == 0 { "error".to_owned() } else { code.to_string() }
}

/// No more objects are counted; those are names that users choose.
const MOST: usize = 100_000;

impl OperatorCounters {
    pub(crate) fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// A scaler could not be built.
    pub(crate) fn failed(&self, metadata: &ObjectMeta, subject: EventSubject) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (subject == EventSubject::Job, metadata.namespace.clone(), metadata.name.clone());
        if failures.len() < MOST || failures.contains_key(&key) {
            *failures.entry(key).or_default() += 1;
        }
    }

    fn of(&self, id: &Id) -> u64 {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (id.kind == Kind::Job, id.namespace.to_string(), id.name.to_string());
        failures.get(&key).copied().unwrap_or(0)
    }

    /// An object is gone.
    pub(crate) fn forget(&self, id: &Id) {
        let key = (id.kind == Kind::Job, id.namespace.to_string(), id.name.to_string());
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

/// One series of a scaler.
struct Series {
    id: Id,
    metric: String,
    scaler: String,
    index: String,
    value: Option<f64>,
    latency: Option<f64>,
    active: Option<bool>,
    errors: u64,
}

impl Series {
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

/// The page.
pub(crate) fn text(context: &OperatorContext) -> String {
    let mut page = MetricsWriter::default();
    page.family("gauge", "keda_build_info", "Info metric, with static information about KEDA build.").value(
        &[
            ("version", api::keda::VERSION),
            ("git_commit", ""),
            ("goversion", ""),
            ("goos", std::env::consts::OS),
            ("goarch", std::env::consts::ARCH),
        ],
        1,
    );
    let entries = context.all_entries();
    let series: Vec<Series> = entries.iter().flat_map(|(id, _)| series(context, id)).collect();
    scalers(&mut page, &series);
    requests(context, &mut page, &entries);
    objects(context, &mut page, &entries);
    registered(context, &mut page);
    context.events.cloud_events.figures(&mut page);
    let polls = context.counters.polls.load(Ordering::Relaxed);
    page.family("counter", "plimsoll_operator_polls_total", "Rounds over the triggers of an object.")
        .value(&[], polls);
    page.finish()
}

fn series(context: &OperatorContext, id: &Id) -> Vec<Series> {
    let (Some(owner), Some(entry)) = (context.owner(id), context.known_entry(id)) else { return Vec::new() };
    let Some(triggers) = entry.triggers() else { return Vec::new() };
    let mut all = Vec::new();
    let is_composed = owner.has_formula();
    for slot in triggers.slots() {
        let trigger = slot.trigger();
        let scaler =
            if trigger.name.is_empty() { display(&trigger.type_).to_owned() } else { trigger.name.clone() };
        let one = |metric: &str| Series {
            id: id.clone(),
            metric: metric.to_owned(),
            scaler: scaler.clone(),
            index: slot.index().to_string(),
            value: None,
            latency: None,
            active: None,
            errors: 0,
        };
        if trigger.is_resource() {
            if !is_composed {
                all.push(Series { active: Some(true), ..one(&trigger.type_) });
            }
            continue;
        }
        let (samples, errors) = slot.samples();
        for (metric, kept) in samples {
            let reading = kept.reading.as_ref().ok();
            all.push(Series {
                value: reading.map(|reading| reading.values.iter().map(|value| value.value.as_f64()).sum()),
                latency: Some(kept.latency.as_secs_f64()),
                active: reading.map(|reading| reading.active).filter(|_| !is_composed),
                errors,
                ..one(&metric)
            });
        }
    }
    // Apart: a guard would live as long as what follows it.
    let (composite, yielded) = {
        let object_state = entry.state();
        (object_state.composite, object_state.yielded)
    };
    if let Some(active) = composite {
        all.push(Series {
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

fn scalers(page: &mut MetricsWriter, series: &[Series]) {
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

/// What scalers have sent over HTTP.
fn requests(
    context: &OperatorContext,
    page: &mut MetricsWriter,
    entries: &[(Id, std::sync::Arc<super::context::ObjectEntry>)],
) {
    let mut empty = Vec::new();
    page.family(
        "counter",
        "keda_scaler_http_requests_total",
        "The total number of HTTP requests made by each scaler.",
    );
    for (id, entry) in entries {
        let Some(triggers) = entry.triggers() else { continue };
        for slot in triggers.slots() {
            let ((sent, lacking), trigger) = (slot.sent(), slot.trigger());
            if sent.is_empty() {
                continue;
            }
            // Whoever asks over HTTP has one metric.
            let metric = slot.samples().0.into_keys().next().unwrap_or_default();
            for (code, count) in sent {
                let labels = [
                    ("namespace", &*id.namespace),
                    ("scaled_resource", &*id.name),
                    ("scaler", &trigger.type_),
                    ("trigger_name", &trigger.name),
                    ("metric_name", &metric),
                    ("status_code", &code_of(code)),
                ];
                page.value(&labels, count);
            }
            if trigger.type_ == "prometheus" {
                let ignored = trigger.metadata.get("ignoreNullValues").map_or("true", String::as_str);
                empty.push((id, trigger.name.clone(), metric, ignored.to_owned(), lacking));
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
    entries: &[(Id, std::sync::Arc<super::context::ObjectEntry>)],
) {
    let errors = |page: &mut MetricsWriter, kind: Kind, label: &'static str| {
        for (id, entry) in entries.iter().filter(|(id, _)| id.kind == kind) {
            if let Some(errors) = entry.state().errors {
                let labels = [("namespace", &*id.namespace), (label, &*id.name)];
                page.value(&labels, errors + context.counters.of(id));
            }
        }
    };
    page.family(
        "counter",
        "keda_scaled_object_errors_total",
        "The number of errors that have occurred for each ScaledObject.",
    );
    errors(page, Kind::Object, "scaledObject");
    page.family(
        "counter",
        "keda_scaled_job_errors_total",
        "The number of errors that have occurred for each ScaledJob.",
    );
    errors(page, Kind::Job, "scaledJob");
    page.family(
        "gauge",
        "keda_scaled_object_paused",
        "Indicates whether a ScaledObject is paused (1), or not (0).",
    );
    for (id, _) in entries.iter().filter(|(id, _)| id.kind == Kind::Object) {
        if let Some(ScaledResource::Object(object)) = context.owner(id) {
            let paused = object.status.conditions.state(types::PAUSED) == ConditionStatus::True;
            let labels = [("namespace", &*id.namespace), ("scaledObject", &*id.name)];
            page.value(&labels, u8::from(paused));
        }
    }
    let help = "Total deviation (in seconds) between the expected execution time and the actual execution time for the scaling loop.";
    page.family("gauge", "keda_internal_scale_loop_latency_seconds", help);
    for (id, entry) in entries {
        if let Some(late) = entry.state().late {
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
        for (name, _) in store.all_authentications() {
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
