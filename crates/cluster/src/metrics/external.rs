//! `external.metrics.k8s.io`.

use std::sync::Arc;

use api::metrics::{ExternalMetricValueList, Query, external_totals};
use engine::MetricSamples;
use engine::spec::{Metric, MetricId};
use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;

use super::{DEADLINE, Meter, MetricScope, TOGETHER, uri, wire};
use crate::request::{ApiError, Request, decode, exchange};

type Answered = Result<Arc<ExternalMetricValueList>, ApiError>;

/// Series from outside the cluster.
#[derive(Clone)]
pub(super) struct Series {
    pub(super) meter: Arc<Meter>,
    client: Client,
    flights: Arc<SingleFlight<String, Answered>>,
}

impl Series {
    pub(super) fn new(client: Client) -> Self {
        Self { meter: Arc::default(), client, flights: Arc::default() }
    }

    pub(super) async fn samples(
        &self,
        asker: MetricScope<'_>,
        metric: &Metric,
        id: &MetricId,
    ) -> Result<MetricSamples, String> {
        let Some(query) = Query::of(asker.namespace, asker.selector, metric, "") else {
            return Ok(MetricSamples::NotAsked);
        };
        // Lower case in the address, but not in messages.
        let request = Request::get(uri(&query), format!("{}.external.metrics.k8s.io", id.name), DEADLINE);
        let client = self.client.clone();
        let key = request.uri.clone();
        let ask = || {
            async move {
                let answer = exchange(&client, &request).await?;
                let series: wire::Series = decode(&answer, &wire::SERIES)?;
                series.complete().map(Arc::new).map_err(ApiError::unanswered)
            }
            .boxed()
        };
        let (answer, role) = self.flights.run_within(&key, TOGETHER, ask).await;
        self.meter.note(role, &answer);
        external_totals(answer.as_ref().map(Arc::as_ref).map_err(|error| error.message.as_str()))
    }
}
