//! Counters that only exported metrics read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use api::meta::ObjectMeta;
use scalers::web::RequestLog;

use super::id::{EventSubject, ResourceId, ResourceKind};
use crate::metrics::exported_metrics::MetricsWriter;

/// Upper bounds of the histogram's buckets, in seconds.
const DURATION_BUCKETS_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Build failures are counted for at most this many objects, since users choose their names.
const MAX_COUNTED_OBJECTS: usize = 100_000;

/// Polls, and scalers that could not be built.
#[derive(Debug, Default)]
pub(crate) struct OperatorCounters {
    polls: AtomicU64,
    /// Failed builds by kind, namespace and name of the object.
    build_failures: Mutex<BTreeMap<(bool, String, String), u64>>,
}

impl OperatorCounters {
    pub(crate) fn count_poll(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Counts a scaler of an object that could not be built.
    pub(crate) fn count_build_failure(&self, metadata: &ObjectMeta, subject: EventSubject) {
        let mut failures = self.build_failures.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (subject == EventSubject::Job, metadata.namespace.clone(), metadata.name.clone());
        if failures.len() < MAX_COUNTED_OBJECTS || failures.contains_key(&key) {
            *failures.entry(key).or_default() += 1;
        }
    }

    pub(crate) fn build_failures(&self, id: &ResourceId) -> u64 {
        let failures = self.build_failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(&key_of(id)).copied().unwrap_or(0)
    }

    /// Removes the counter of a deleted object.
    pub(crate) fn forget(&self, id: &ResourceId) {
        self.build_failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&key_of(id));
    }
}

fn key_of(id: &ResourceId) -> (bool, String, String) {
    (id.kind == ResourceKind::Job, id.namespace.to_string(), id.name.to_string())
}

/// Durations of the HTTP requests of scalers, by trigger type and status code (none if there was no response).
#[derive(Debug, Default)]
pub(crate) struct HttpRequestDurations(Mutex<BTreeMap<(String, Option<u16>), DurationHistogram>>);

#[derive(Debug, Default)]
struct DurationHistogram {
    within: [u64; DURATION_BUCKETS_SECONDS.len()],
    count: u64,
    seconds: f64,
}

impl HttpRequestDurations {
    pub(crate) fn observe(&self, type_: &str, account: &RequestLog) {
        if account.sent.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for sent in &account.sent {
            // The number of types and codes is small, so that the map needs no bound.
            let histogram = all.entry((type_.to_owned(), sent.code)).or_default();
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
        for ((type_, code), taken) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let within = DURATION_BUCKETS_SECONDS.into_iter().zip(taken.within);
            let within = within.chain([(f64::INFINITY, taken.count)]);
            page.histogram(&[("scaler", type_), ("status_code", &code_label(*code))], within, taken.seconds);
        }
    }
}

/// The label of a status code; `error` if there was no response.
pub(crate) fn code_label(code: Option<u16>) -> String {
    code.map_or_else(|| "error".to_owned(), |code| code.to_string())
}
