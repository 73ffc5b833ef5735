//! The gRPC service between KEDA's metrics adapter and the operator (docs/spec/keda.md 4.2).

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tonic::{Code, Request, Response, Status};

use crate::metrics_service::metrics_service_server::{MetricsService, MetricsServiceServer};
use crate::metrics_service::{
    ExternalMetricValue, ExternalMetricValueList, ListMeta, Quantity, ScaledObjectRef, Time,
};

/// The timeout of a source; the client has given up by then.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(55);
/// The maximum size of a request: three names.
const MAX_REQUEST_BYTES: usize = 64 << 10;

/// Provides the values.
pub trait MetricsSource: Send + Sync + 'static {
    /// Why a metric has no values; the client receives its text.
    type Error: std::error::Error + Send;

    /// The values of a metric of a ScaledObject, or why there are none.
    fn values(
        &self,
        namespace: &str,
        object: &str,
        metric: &str,
    ) -> impl Future<Output = Result<Vec<SourceValue>, Self::Error>> + Send;
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceValue {
    /// The metric's name.
    pub metric: String,
    /// The value, as Kubernetes writes quantities.
    pub quantity: String,
    /// The time, in seconds since 1970.
    pub seconds: i64,
}

/// Metrics of the calls.
#[derive(Debug, Default)]
pub struct CallMetrics {
    started: AtomicU64,
    sent: AtomicU64,
    times: Mutex<CallTimes>,
}

#[derive(Debug, Default)]
struct CallTimes {
    handled: BTreeMap<&'static str, u64>,
    within: [u64; DURATION_BUCKETS_SECONDS.len()],
    seconds: f64,
}

/// The bounds of [`CallCounts::within`], in seconds.
pub const DURATION_BUCKETS_SECONDS: [f64; 14] =
    [0.001, 0.01, 0.1, 0.3, 0.6, 1.0, 3.0, 6.0, 9.0, 20.0, 30.0, 60.0, 90.0, 120.0];

/// A snapshot of [`CallMetrics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallCounts {
    /// Started calls.
    pub started: u64,
    /// Responses with values.
    pub sent: u64,
    /// Completed calls by status code (`OK`, `Unknown`, …).
    pub handled: BTreeMap<&'static str, u64>,
    /// The cumulative counts of the buckets [`DURATION_BUCKETS_SECONDS`].
    pub within: [u64; DURATION_BUCKETS_SECONDS.len()],
    /// The sum of all durations, in seconds.
    pub seconds: f64,
}

impl CallMetrics {
    /// The current counts.
    pub fn counts(&self) -> CallCounts {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        CallCounts {
            started: self.started.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            handled: times.handled.clone(),
            within: times.within,
            seconds: times.seconds,
        }
    }

    fn answered(&self, code: &'static str, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times.handled.entry(code).or_default() += 1;
        times.seconds += seconds;
        for (count, _) in
            times.within.iter_mut().zip(DURATION_BUCKETS_SECONDS).filter(|(_, bound)| seconds <= *bound)
        {
            *count += 1;
        }
    }
}

/// The gRPC service.
pub fn service<S: MetricsSource>(
    source: S,
    calls: Arc<CallMetrics>,
) -> MetricsServiceServer<MetricsServiceAdapter<S>> {
    MetricsServiceServer::new(MetricsServiceAdapter { source, calls })
        .max_decoding_message_size(MAX_REQUEST_BYTES)
}

/// Adapts a source to the protocol.
pub struct MetricsServiceAdapter<S> {
    source: S,
    calls: Arc<CallMetrics>,
}

#[tonic::async_trait]
impl<S: MetricsSource> MetricsService for MetricsServiceAdapter<S> {
    async fn get_metrics(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<ExternalMetricValueList>, Status> {
        let begin = tokio::time::Instant::now();
        self.calls.started.fetch_add(1, Ordering::Relaxed);
        let ScaledObjectRef { name, namespace, metric_name } = request.get_ref();
        let answer = match tokio::time::timeout(
            SOURCE_TIMEOUT,
            self.source.values(namespace, name, metric_name),
        )
        .await
        {
            Ok(answer) => answer.map_err(|error| Status::unknown(error.to_string())),
            Err(_) => {
                Err(Status::deadline_exceeded(format!("{metric_name} took longer than {SOURCE_TIMEOUT:?}")))
            }
        };
        let code = match answer.as_ref().map_err(Status::code) {
            Ok(_) => "OK",
            Err(Code::DeadlineExceeded) => "DeadlineExceeded",
            Err(_) => "Unknown",
        };
        self.calls.answered(code, begin.elapsed());
        let values = answer?;
        self.calls.sent.fetch_add(1, Ordering::Relaxed);
        let item = |value: SourceValue| ExternalMetricValue {
            metric_name: value.metric,
            metric_labels: BTreeMap::new(),
            timestamp: Some(Time { seconds: value.seconds, nanos: 0 }),
            window: None,
            value: Some(Quantity { string: value.quantity }),
        };
        let items = values.into_iter().map(item).collect();
        Ok(Response::new(ExternalMetricValueList { metadata: Some(ListMeta::default()), items }))
    }
}
