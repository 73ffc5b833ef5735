//! Request counters, latencies and health of a Prometheus server.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use jiff::Timestamp;
use locks::MutexExt as _;

use super::PrometheusError;

/// Upper bounds of latency buckets in seconds, without the infinite one.
const LATENCY_BOUNDS_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// API path.
#[derive(Clone, Copy, Debug)]
pub(super) enum ApiPath {
    Query,
    Series,
}

/// Counters of one server.
#[derive(Debug, Default)]
pub(super) struct RequestStats {
    sent: AtomicU64,
    shared: AtomicU64,
    failed: AtomicU64,
    in_flight: AtomicUsize,
    query: LatencyHistogram,
    series: LatencyHistogram,
    health: Mutex<BackendHealth>,
}

/// Health by the last request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendHealth {
    /// Time of the last success.
    pub last_good: Option<Timestamp>,
    /// Last error and its remedy; `None` after a success.
    pub error: Option<(String, &'static str)>,
}

#[derive(Debug, Default)]
struct LatencyHistogram {
    buckets: [AtomicU64; LATENCY_BOUNDS_SECONDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// Snapshot of the counters of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct PrometheusReport {
    /// Base URL.
    pub server: String,
    /// Number of queries sent.
    pub sent: u64,
    /// Number of queries answered from the cache or by a query in flight.
    pub shared: u64,
    /// Number of failed requests.
    pub failed: u64,
    /// Number of queries in flight.
    pub in_flight: usize,
    /// Number of cached responses.
    pub remembered: usize,
    /// Health by the last request.
    pub health: BackendHealth,
    /// Latencies by path.
    pub latency: [LatencyReport; 2],
}

/// Latencies of one path.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyReport {
    /// API path.
    pub path: &'static str,
    /// Upper bounds in seconds with cumulative counts.
    pub buckets: Vec<(f64, u64)>,
    /// Number of responses.
    pub count: u64,
    /// Sum of latencies.
    pub sum: Duration,
}

impl LatencyReport {
    /// Mean latency, if there is any response.
    pub fn mean(&self) -> Option<Duration> {
        let count = u32::try_from(self.count).ok()?;
        self.sum.checked_div(count)
    }
}

impl PrometheusReport {
    /// Latencies as prometheus-adapter exposes them, in the Prometheus text format.
    pub fn exposition(&self) -> String {
        let name = "prometheus_adapter_prometheus_client_request_duration_seconds";
        let server = api::gotext::quote(&self.server);
        let mut out = format!(
            "# HELP {name} Prometheus client query latency in seconds.  Broken down by target prometheus endpoint and \
             target server\n# TYPE {name} histogram\n"
        );
        for LatencyReport { path, buckets, count, sum } in
            self.latency.iter().filter(|latency| latency.count > 0)
        {
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

/// Guard that counts a query as in flight.
pub(super) struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl RequestStats {
    pub(super) fn sent(&self) -> InFlight<'_> {
        self.sent.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(&self.in_flight)
    }

    pub(super) fn shared(&self) {
        self.shared.fetch_add(1, Relaxed);
    }

    /// Records the outcome of a request. An error about the query itself does not affect health.
    pub(super) fn record_outcome(&self, error: Option<&PrometheusError>, server: &str, now: Timestamp) {
        if error.is_some() {
            self.failed.fetch_add(1, Relaxed);
        }
        let failure = error.filter(|error| !error.concerns_query());
        let mut health = self.health.locked();
        let was_failing = health.error.is_some();
        match failure {
            None => *health = BackendHealth { last_good: Some(now), error: None },
            Some(error) => health.error = Some((error.to_string(), error.remedy())),
        }
        drop(health);
        // Logged once per change, not per query.
        match (was_failing, failure) {
            (false, Some(error)) => {
                tracing::warn!(server, %error, remedy = error.remedy(), "requests to Prometheus fail");
            }
            (true, None) => tracing::info!(server, "requests to Prometheus succeed again"),
            _ => {}
        }
    }

    pub(super) fn record_latency(&self, path: ApiPath, took: Duration) {
        match path {
            ApiPath::Query => self.query.observe(took),
            ApiPath::Series => self.series.observe(took),
        }
    }

    pub(super) fn report(&self, server: String, remembered: usize) -> PrometheusReport {
        PrometheusReport {
            server,
            sent: self.sent.load(Relaxed),
            shared: self.shared.load(Relaxed),
            failed: self.failed.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            remembered,
            health: self.health.locked().clone(),
            latency: [self.query.latency("/api/v1/query"), self.series.latency("/api/v1/series")],
        }
    }
}

impl LatencyHistogram {
    fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let index = LATENCY_BOUNDS_SECONDS
            .iter()
            .position(|bound| seconds <= *bound)
            .unwrap_or(LATENCY_BOUNDS_SECONDS.len());
        if let Some(bucket) = self.buckets.get(index) {
            bucket.fetch_add(1, Relaxed);
        }
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn latency(&self, path: &'static str) -> LatencyReport {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(LATENCY_BOUNDS_SECONDS.len());
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Relaxed);
            if let Some(bound) = LATENCY_BOUNDS_SECONDS.get(index) {
                buckets.push((*bound, count));
            }
        }
        LatencyReport { path, buckets, count, sum: Duration::from_nanos(self.nanoseconds.load(Relaxed)) }
    }
}
