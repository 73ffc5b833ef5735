//! `external.metrics.k8s.io`.

use std::sync::Arc;

use api::metrics::{ExternalMetricValueList, Query, external_totals, record_series};
use engine::spec::{Metric, MetricId};
use engine::{MetricSamples, Provenance};
use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;
use runtime::single_flight::FlightRole;

use super::local::{IN_PROCESS, LocalMetrics};
use super::{
    MAX_JOIN_AGE, MetricScope, QueryMeter, REQUEST_DEADLINE, ResponseWithSource, SampleError, sharing, uri,
    wire,
};
use crate::request::{ApiError, Request, decode, exchange};

const API_VERSION: &str = "external.metrics.k8s.io/v1beta1";

type ExternalValuesResult = Result<ResponseWithSource<ExternalMetricValueList>, ApiError>;

/// The client of external metrics.
#[derive(Clone)]
pub(super) struct ExternalMetricsClient {
    pub(super) meter: Arc<QueryMeter>,
    client: Client,
    local: LocalMetrics,
    flights: Arc<SingleFlight<String, ExternalValuesResult>>,
}

impl ExternalMetricsClient {
    pub(super) fn new(client: Client, local: LocalMetrics) -> Self {
        Self { meter: Arc::default(), client, local, flights: Arc::default() }
    }

    pub(super) async fn samples(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        id: &MetricId,
        from: &mut Provenance,
    ) -> Result<MetricSamples, SampleError> {
        let Some(query) = Query::of(scope.namespace, scope.selector, metric, "") else {
            return Ok(MetricSamples::NotQueried);
        };
        let answer = match self.local.series(scope.namespace, id).await {
            Some(answer) => {
                from.api = IN_PROCESS.into();
                self.meter.note_local(FlightRole::Started, &answer);
                answer
            }
            None => self.request(&query, id, from).await,
        };
        if let Ok(ResponseWithSource { values, source }) = &answer {
            from.source.clone_from(source);
            record_series(from, values);
        }
        let list = answer.as_ref().map(|answer| &*answer.values).map_err(|error| error.message.as_str());
        let totals = external_totals(list);
        totals.map_err(|error| SampleError::of_response(&error, answer.err()))
    }

    /// The response of the API.
    async fn request(&self, query: &Query, id: &MetricId, from: &mut Provenance) -> ExternalValuesResult {
        from.api = API_VERSION.into();
        // The URI has the name in lower case, messages do not.
        let request =
            Request::get(uri(query), format!("{}.external.metrics.k8s.io", id.name), REQUEST_DEADLINE);
        let client = self.client.clone();
        let key = request.uri.clone();
        let fetch = || {
            async move {
                let answer = exchange(&client, &request).await?;
                let series: wire::WireSeriesList = decode(&answer, &wire::SERIES)?;
                let series = series.complete().map_err(|error| ApiError::unanswered(error.to_string()))?;
                Ok(ResponseWithSource { values: Arc::new(series), source: answer.source.map(Into::into) })
            }
            .boxed()
        };
        let (answer, role) = self.flights.run_within(&key, MAX_JOIN_AGE, fetch).await;
        self.meter.note(role, &answer);
        from.response = sharing(role);
        answer
    }
}
