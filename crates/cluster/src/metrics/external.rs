//! `external.metrics.k8s.io`.

use std::sync::Arc;

use api::metrics::{ExternalMetricValueList, Query, external_totals};
use engine::MetricSamples;
use engine::spec::{Metric, MetricId};
use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;

use super::{MAX_JOIN_AGE, MetricScope, QueryMeter, REQUEST_DEADLINE, SampleError, uri, wire};
use crate::request::{ApiError, Request, decode, exchange};

type ExternalValuesResult = Result<Arc<ExternalMetricValueList>, ApiError>;

/// The client of external metrics.
#[derive(Clone)]
pub(super) struct ExternalMetricsClient {
    pub(super) meter: Arc<QueryMeter>,
    client: Client,
    flights: Arc<SingleFlight<String, ExternalValuesResult>>,
}

impl ExternalMetricsClient {
    pub(super) fn new(client: Client) -> Self {
        Self { meter: Arc::default(), client, flights: Arc::default() }
    }

    pub(super) async fn samples(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        id: &MetricId,
    ) -> Result<MetricSamples, SampleError> {
        let Some(query) = Query::of(scope.namespace, scope.selector, metric, "") else {
            return Ok(MetricSamples::NotQueried);
        };
        // The URI has the name in lower case, messages do not.
        let request =
            Request::get(uri(&query), format!("{}.external.metrics.k8s.io", id.name), REQUEST_DEADLINE);
        let client = self.client.clone();
        let key = request.uri.clone();
        let ask = || {
            async move {
                let answer = exchange(&client, &request).await?;
                let series: wire::WireSeriesList = decode(&answer, &wire::SERIES)?;
                series.complete().map(Arc::new).map_err(|error| ApiError::unanswered(error.to_string()))
            }
            .boxed()
        };
        let (answer, role) = self.flights.run_within(&key, MAX_JOIN_AGE, ask).await;
        self.meter.note(role, &answer);
        let totals =
            external_totals(answer.as_ref().map(Arc::as_ref).map_err(|error| error.message.as_str()));
        totals.map_err(|error| SampleError { text: error.to_string(), source: answer.err() })
    }
}
