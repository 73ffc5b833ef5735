//! Counters that only exported metrics read.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use api::meta::ObjectMeta;
use http::StatusCode;
use locks::MutexExt as _;
use scalers::web::RequestLog;

use super::id::{ResourceId, ResourceKind};
use crate::metrics::exported_metrics::MetricsWriter;

/// Upper bounds of the histogram's buckets, in seconds.
const DURATION_BUCKETS_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Build failures are counted for at most this many objects, since users choose their names.
const MAX_COUNTED_OBJECTS: usize = 100_000;

/// Status codes that are counted for one trigger, since its server chooses them.
const MAX_CODES_PER_TRIGGER: usize = 16;
/// Stands for all codes that are not counted alone; no response has it.
const OTHER_CODES: u16 = 0;

/// Polls, and scalers that could not be built.
#[derive(Debug, Default)]
pub(crate) struct OperatorCounters {
    polls: AtomicU64,
    /// Failed builds by kind, namespace and name of the object.
    build_failures: Mutex<BTreeMap<(ResourceKind, String, String), u64>>,
}

impl OperatorCounters {
    pub(crate) fn count_poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Counts a scaler of an object that could not be built.
    pub(crate) fn count_build_failure(&self, kind: ResourceKind, metadata: &ObjectMeta) {
        let mut failures = self.build_failures.locked();
        let key = (kind, metadata.namespace.clone(), metadata.name.clone());
        if failures.len() < MAX_COUNTED_OBJECTS || failures.contains_key(&key) {
            *failures.entry(key).or_default() += 1;
        }
    }

    pub(crate) fn build_failures(&self, id: &ResourceId) -> u64 {
        let failures = self.build_failures.locked();
        failures.get(&key_of(id)).copied().unwrap_or(0)
    }

    /// Removes the counter of a deleted object.
    pub(crate) fn forget(&self, id: &ResourceId) {
        self.build_failures.locked().remove(&key_of(id));
    }
}

fn key_of(id: &ResourceId) -> (ResourceKind, String, String) {
    (id.kind, id.namespace.to_string(), id.name.to_string())
}

/// Series of durations that are kept if they name objects, since users choose the names.
const MAX_DURATION_SERIES: usize = 100_000;

/// Durations of the HTTP requests of scalers.
#[derive(Debug, Default)]
pub(crate) struct HttpRequestDurations {
    /// Whether series name the object, the trigger and the metric (`--enable-high-cardinality-metrics-labels`).
    names_objects: bool,
    series: Mutex<BTreeMap<DurationLabels, DurationHistogram>>,
}

/// What requests were sent for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPurpose<'a> {
    /// The trigger type.
    pub(crate) scaler: &'a str,
    pub(crate) namespace: &'a str,
    /// The name of the ScaledObject or ScaledJob.
    pub(crate) object: &'a str,
    pub(crate) trigger_name: &'a str,
    pub(crate) metric: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DurationLabels {
    scaler: String,
    /// None if there was no response.
    code: Option<u16>,
    /// Namespace and name of the object, name of the trigger, name of the metric; none without the flag.
    object: Option<[String; 4]>,
}

#[derive(Debug, Default)]
struct DurationHistogram {
    within: [u64; DURATION_BUCKETS_SECONDS.len()],
    count: u64,
    seconds: f64,
}

impl HttpRequestDurations {
    /// `names_objects` says whether series name the object, the trigger and the metric.
    pub(crate) fn new(names_objects: bool) -> Self {
        Self { names_objects, series: Mutex::default() }
    }

    pub(crate) fn observe(&self, purpose: RequestPurpose<'_>, account: &RequestLog) {
        if account.sent.is_empty() {
            return;
        }
        let RequestPurpose { scaler, namespace, object, trigger_name, metric } = purpose;
        let object = self.names_objects.then(|| [namespace, object, trigger_name, metric].map(str::to_owned));
        let mut all = self.series.locked();
        for sent in &account.sent {
            let code = sent.code.map(registered_code);
            let labels = DurationLabels { scaler: scaler.to_owned(), code, object: object.clone() };
            // Without names of objects the number of types and codes is small.
            if self.names_objects && all.len() >= MAX_DURATION_SERIES && !all.contains_key(&labels) {
                continue;
            }
            let histogram = all.entry(labels).or_default();
            let seconds = sent.took.as_secs_f64();
            histogram.count += 1;
            histogram.seconds += seconds;
            let buckets = histogram.within.iter_mut().zip(DURATION_BUCKETS_SECONDS);
            for (count, _) in buckets.filter(|(_, bound)| seconds <= *bound) {
                *count += 1;
            }
        }
    }

    pub(crate) fn write(&self, page: &mut MetricsWriter) {
        page.family(
            "histogram",
            "keda_scaler_http_request_duration_seconds",
            "The duration of HTTP requests made by each scaler, in seconds.",
        );
        for (labels, taken) in self.series.locked().iter() {
            let within = DURATION_BUCKETS_SECONDS.into_iter().zip(taken.within);
            let within = within.chain([(f64::INFINITY, taken.count)]);
            let (scaler, code) = (("scaler", &*labels.scaler), code_label(labels.code));
            let code = ("status_code", &*code);
            match &labels.object {
                None => page.histogram(&[scaler, code], within, taken.seconds),
                Some([namespace, object, trigger, metric]) => page.histogram(
                    &[
                        ("namespace", namespace),
                        ("scaled_resource", object),
                        scaler,
                        ("trigger_name", trigger),
                        ("metric_name", metric),
                        code,
                    ],
                    within,
                    taken.seconds,
                ),
            };
        }
    }
}

/// Counts a request of a trigger by its status code.
pub(crate) fn count_code(counts: &mut Vec<(Option<u16>, u64)>, code: Option<u16>) {
    let has_room = counts.len() < MAX_CODES_PER_TRIGGER || counts.iter().any(|(own, _)| *own == code);
    // Requests without a response are counted alone in any case.
    let code = if has_room { code } else { code.and(Some(OTHER_CODES)) };
    match counts.iter_mut().find(|(own, _)| *own == code) {
        Some((_, count)) => *count += 1,
        None => {
            counts.reserve_exact(1);
            counts.push((code, 1));
        }
    }
}

/// A code that HTTP defines, or the one for all others: servers of tenants can answer with 900 codes.
fn registered_code(code: u16) -> u16 {
    let is_registered = StatusCode::from_u16(code).is_ok_and(|code| code.canonical_reason().is_some());
    if is_registered { code } else { OTHER_CODES }
}

/// The label of a status code; `error` if there was no response.
pub(crate) fn code_label(code: Option<u16>) -> String {
    match code {
        None => "error".to_owned(),
        Some(OTHER_CODES) => "other".to_owned(),
        Some(code) => code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scalers::web::SentRequest;

    use super::*;

    #[test]
    fn codes_that_servers_make_up_are_counted_together() {
        let (durations, mut counts) = (HttpRequestDurations::default(), Vec::new());
        let purpose =
            RequestPurpose { scaler: "prometheus", namespace: "", object: "", trigger_name: "", metric: "" };
        for code in 100..1000 {
            let sent = SentRequest { code: Some(code), took: Duration::ZERO };
            durations.observe(purpose, &RequestLog { sent: vec![sent], ..RequestLog::default() });
            count_code(&mut counts, Some(code));
        }
        assert_eq!(counts.len(), MAX_CODES_PER_TRIGGER + 1);
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 900);
        count_code(&mut counts, None);
        assert_eq!(counts.last(), Some(&(None, 1)), "a request without a response is no other code");
        let series = durations.series.locked().len();
        assert!(series < 100, "{series}");
        let mut page = MetricsWriter::default();
        durations.write(&mut page);
        assert!(page.finish().contains("_count{scaler=\"prometheus\",status_code=\"other\"}"));
    }

    #[test]
    fn series_name_objects_only_with_the_flag() {
        let purpose = RequestPurpose {
            scaler: "prometheus",
            namespace: "shop",
            object: "web",
            trigger_name: "",
            metric: "s0-prometheus",
        };
        let page = |names_objects| {
            let durations = HttpRequestDurations::new(names_objects);
            let sent = SentRequest { code: Some(200), took: Duration::from_millis(20) };
            durations.observe(purpose, &RequestLog { sent: vec![sent], ..RequestLog::default() });
            let mut page = MetricsWriter::default();
            durations.write(&mut page);
            page.finish()
        };
        let count = "keda_scaler_http_request_duration_seconds_count";
        assert!(page(false).contains(&format!("{count}{{scaler=\"prometheus\",status_code=\"200\"}} 1")));
        let labels = "namespace=\"shop\",scaled_resource=\"web\",scaler=\"prometheus\",trigger_name=\"\",\
                      metric_name=\"s0-prometheus\",status_code=\"200\"";
        assert!(page(true).contains(&format!("{count}{{{labels}}} 1")));
    }
}
