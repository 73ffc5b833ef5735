//! How often Prometheus was asked, how long it took, how many questions failed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::Error;

/// Upper bounds of the buckets of latencies in seconds; the last, without a bound, is not listed.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    Query,
    Series,
}

/// Counters of one Prometheus.
#[derive(Debug, Default)]
pub(super) struct Counts {
    sent: AtomicU64,
    shared: AtomicU64,
    failed: AtomicU64,
    in_flight: AtomicUsize,
    query: Histogram,
    series: Histogram,
    health: Mutex<Health>,
}

/// How the last question went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// When it last answered well.
    pub last_good: Option<Timestamp>,
    /// What went wrong last, and what to do about it; none if it answered well since.
    pub error: Option<(String, &'static str)>,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// How often one Prometheus was asked, and how that went.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendReport {
    /// Base URL.
    pub server: String,
    /// Queries that were sent.
    pub sent: u64,
    /// Questions that were answered without sending a query.
    pub shared: u64,
    /// Queries and requests for series that failed.
    pub failed: u64,
    /// Queries on their way.
    pub in_flight: usize,
    /// Answers that are remembered.
    pub remembered: usize,
    /// How the last question went.
    pub health: Health,
    /// How long answers took, by path.
    pub latency: [Latency; 2],
}

/// How long answers took.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Path of the API.
    pub path: &'static str,
    /// Upper bounds in seconds, and how many answers took at most so long.
    pub buckets: Vec<(f64, u64)>,
    /// How many answers there were.
    pub count: u64,
    /// All of them together.
    pub sum: Duration,
}

impl Latency {
    /// The mean, if there was any answer.
    pub fn mean(&self) -> Option<Duration> {
        let count = u32::try_from(self.count).ok()?;
        self.sum.checked_div(count)
    }
}

impl BackendReport {
    /// The latencies as prometheus-adapter exposes them, in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        let name = "prometheus_adapter_prometheus_client_request_duration_seconds";
        let server = api::gotext::quote(&self.server);
        let mut out = format!(
            "# HELP {name} Prometheus client query latency in seconds.  Broken down by target prometheus endpoint and \
             target server\n# TYPE {name} histogram\n"
        );
        for Latency { path, buckets, count, sum } in self.latency.iter().filter(|latency| latency.count > 0) {
            for (bound, up_to) in buckets {
                out.push_str(&format!(
                    "{name}_bucket{{path=\"{path}\",server={server},le=\"{bound}\"}} {up_to}\n"
                ));
            }
            out.push_str(&format!("{name}_bucket{{path=\"{path}\",server={server},le=\"+Inf\"}} {count}\n"));
            out.push_str(&format!("{name}_sum{{path=\"{path}\",server={server}}} {}\n", sum.as_secs_f64()));
            out.push_str(&format!("{name}_count{{path=\"{path}\",server={server}}} {count}\n"));
        }
        out
    }
}

/// Counts a query as being on its way while it is kept.
pub(super) struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Counts {
    pub(super) fn sent(&self) -> InFlight<'_> {
        self.sent.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(&self.in_flight)
    }

    pub(super) fn shared(&self) {
        self.shared.fetch_add(1, Relaxed);
    }

    /// Notes how a question went that was asked at this time. A query that Prometheus does not like says nothing about
    /// Prometheus itself.
    pub(super) fn judged(&self, error: Option<&Error>, server: &str, now: Timestamp) {
        if error.is_some() {
            self.failed.fetch_add(1, Relaxed);
        }
        let ill = error.filter(|error| !error.is_about_the_question());
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let was_ill = health.error.is_some();
        match ill {
            None => *health = Health { last_good: Some(now), error: None },
            Some(error) => health.error = Some((error.to_string(), error.remedy())),
        }
        drop(health);
        // Once per change, not once per query.
        match (was_ill, ill) {
            (false, Some(error)) => {
                tracing::warn!(server, %error, remedy = error.remedy(), "Prometheus does not answer");
            }
            (true, None) => tracing::info!(server, "Prometheus answers again"),
            _ => {}
        }
    }

    pub(super) fn answered(&self, path: Path, took: Duration) {
        match path {
            Path::Query => self.query.observe(took),
            Path::Series => self.series.observe(took),
        }
    }

    pub(super) fn report(&self, server: String, remembered: usize) -> BackendReport {
        BackendReport {
            server,
            sent: self.sent.load(Relaxed),
            shared: self.shared.load(Relaxed),
            failed: self.failed.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            remembered,
            health: self.health.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            latency: [self.query.latency("/api/v1/query"), self.series.latency("/api/v1/series")],
        }
    }
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let place = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Relaxed);
        }
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn latency(&self, path: &'static str) -> Latency {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(BOUNDS.len());
        for (place, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Relaxed);
            if let Some(bound) = BOUNDS.get(place) {
                buckets.push((*bound, count));
            }
        }
        Latency { path, buckets, count, sum: Duration::from_nanos(self.nanoseconds.load(Relaxed)) }
    }
}
