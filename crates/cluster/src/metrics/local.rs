//! Metrics of providers in the same process, asked before the metrics APIs.

use std::sync::{Arc, OnceLock};

use api::metrics::{
    DescribedObject, ExternalMetricValue, ExternalMetricValueList, MetricValue, MetricValueList,
};
use api::provider::{
    CustomMetricQuery, CustomMetricSample, ExternalMetricQuery, ExternalMetricSample, ListFilter,
    MetricsError, ObjectSelection, ProviderFuture, Providers, SampleSource,
};
use api::selector::{FieldSelector, Selector};
use engine::spec::{Metric, MetricId, MetricSource};

use super::usage::Usage;
use super::{MetricScope, REQUEST_DEADLINE, ResponseWithSource};
use crate::request::{ApiError, ApiErrorKind};

/// What is recorded as the API of samples that come from this process.
pub(super) const IN_PROCESS: &str = "this process";

/// The providers of this process, once they have started. Clones share them.
///
/// Metrics that they do not have are requested over the API, so that another server of the same API is still used.
#[derive(Clone, Default)]
pub struct LocalMetrics(Arc<OnceLock<Providers>>);

impl LocalMetrics {
    /// Queries these providers from now on. Only the first call has an effect.
    pub fn provide(&self, providers: Providers) {
        let _ = self.0.set(providers);
    }

    /// Whether there may be custom metrics in this process.
    pub(super) fn has_custom(&self) -> bool {
        self.0.get().is_some_and(|providers| providers.custom.is_some())
    }

    /// The usage of the selected pods of a namespace; none without a provider, or if the selector is invalid.
    pub(super) async fn pods(&self, namespace: &str, selector: &str) -> Option<Result<Usage, ApiError>> {
        let provider = self.0.get()?.resource.as_ref()?;
        let labels = Selector::parse(selector).ok()?;
        let filter =
            ListFilter { namespace: Some(namespace.to_owned()), labels, fields: FieldSelector::default() };
        let listed = within_deadline(provider.pods(&filter)).await.map_err(api_error);
        Some(listed.map(|pods| {
            let mut usage = Usage::from(pods);
            usage.source = provider.source().map(Into::into);
            usage
        }))
    }

    /// The values of a custom metric; none if no provider has the metric. `resource` is that of an object metric.
    pub(super) async fn values(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        resource: &str,
    ) -> Option<Result<ResponseWithSource<MetricValueList>, ApiError>> {
        let provider = self.0.get()?.custom.as_ref()?;
        let query = custom_query(scope, metric, resource)?;
        let samples = match within_deadline(provider.values(&query)).await {
            Err(MetricsError::NoMetric(_)) => return None,
            samples => samples,
        };
        let value = |sample: CustomMetricSample| MetricValue {
            described_object: DescribedObject { name: sample.object.name },
            timestamp: sample.timestamp,
            window_seconds: sample.window,
            value: sample.value,
        };
        Some(samples.map_err(api_error).map(|samples| ResponseWithSource {
            values: Arc::new(MetricValueList { items: samples.into_iter().map(value).collect() }),
            source: query.source.stated().map(Into::into),
        }))
    }

    /// The series of an external metric; none if no provider has the metric.
    pub(super) async fn series(
        &self,
        namespace: &str,
        id: &MetricId,
    ) -> Option<Result<ResponseWithSource<ExternalMetricValueList>, ApiError>> {
        let provider = self.0.get()?.external.as_ref()?;
        let query = ExternalMetricQuery {
            namespace: namespace.to_owned(),
            // As in the URI of a request.
            metric: id.name.to_lowercase(),
            series: series(id)?,
            source: SampleSource::default(),
        };
        let samples = match within_deadline(provider.values(&query)).await {
            Err(MetricsError::NoMetric(_)) => return None,
            samples => samples,
        };
        let value = |sample: ExternalMetricSample| ExternalMetricValue {
            metric_labels: sample.labels.into_iter().flatten().collect(),
            timestamp: sample.timestamp,
            window_seconds: sample.window,
            value: sample.value,
        };
        Some(samples.map_err(api_error).map(|samples| ResponseWithSource {
            values: Arc::new(ExternalMetricValueList { items: samples.into_iter().map(value).collect() }),
            source: query.source.stated().map(Into::into),
        }))
    }
}

/// The query that the server reads from the URI of a request for this metric.
fn custom_query(scope: MetricScope<'_>, metric: &Metric, resource: &str) -> Option<CustomMetricQuery> {
    let namespace = scope.namespace.to_owned();
    let (id, resource, namespace, objects) = match &metric.source {
        MetricSource::Pods(id) => {
            let selected = ObjectSelection::All(Selector::parse(scope.selector).ok()?);
            (id, "pods", Some(namespace), selected)
        }
        MetricSource::Object { kind, metric: id, .. } if resource == "namespaces" && kind == "Namespace" => {
            (id, resource, None, ObjectSelection::One(namespace))
        }
        MetricSource::Object { name, metric: id, .. } => {
            (id, resource, Some(namespace), ObjectSelection::One(name.clone()))
        }
        _ => return None,
    };
    Some(CustomMetricQuery {
        resource: resource.to_owned(),
        namespace,
        objects,
        metric: id.name.clone(),
        series: series(id)?,
        source: SampleSource::default(),
    })
}

/// The selector of series; none if it is invalid, which the API reports in the words of Kubernetes.
fn series(id: &MetricId) -> Option<Selector> {
    Selector::parse(id.selector.as_deref().ok()?).ok()
}

async fn within_deadline<T>(response: ProviderFuture<'_, T>) -> Result<T, MetricsError> {
    let late = || MetricsError::Status {
        code: 504,
        reason: "Timeout".to_owned(),
        message: format!("no answer within {} s", REQUEST_DEADLINE.as_secs()),
    };
    tokio::time::timeout(REQUEST_DEADLINE, response).await.unwrap_or_else(|_| Err(late()))
}

/// The error that a request over the API would get.
fn api_error(error: MetricsError) -> ApiError {
    let (code, reason, message) = match error {
        MetricsError::NoMetric(message) => (404, "NotFound".to_owned(), message),
        MetricsError::BadRequest(message) => (400, "BadRequest".to_owned(), message),
        MetricsError::Internal(message) => {
            (500, "InternalError".to_owned(), format!("Internal error occurred: {message}"))
        }
        MetricsError::Plain(message) => (500, String::new(), message),
        MetricsError::Unavailable(message) => (503, "ServiceUnavailable".to_owned(), message),
        MetricsError::Status { code, reason, message }
        | MetricsError::Detailed { code, reason, message, .. } => (code, reason, message),
    };
    let kind = ApiErrorKind::Exchange;
    ApiError { kind, code: Some(code), reason, message, retry_after: None, is_status: true }
}
