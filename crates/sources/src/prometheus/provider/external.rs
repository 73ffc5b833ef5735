//! External metrics.

use std::sync::Arc;

use api::provider::{
    ExternalMetricQuery, ExternalMetricSample, ExternalMetricsProvider, MetricsError, ProviderFuture,
};

use super::{PrometheusProvider, ProviderInner};
use crate::prometheus::convert;
use crate::prometheus::query::{self, QueryError};

impl ExternalMetricsProvider for PrometheusProvider {
    fn values<'a>(
        &'a self,
        request: &'a ExternalMetricQuery,
    ) -> ProviderFuture<'a, Vec<ExternalMetricSample>> {
        Box::pin(values(&self.0, request))
    }

    fn known(&self) -> Arc<Vec<String>> {
        self.0.state().registry.external_metrics()
    }
}

async fn values(
    inner: &ProviderInner,
    request: &ExternalMetricQuery,
) -> Result<Vec<ExternalMetricSample>, MetricsError> {
    let ExternalMetricQuery { namespace, metric, series, source } = request;
    let state = inner.state();
    let unable = |why: &dyn std::fmt::Display| inner.unable("unable to fetch metrics", why);
    let query = query::external(&state.rules, &state.registry, &state.mapper, namespace, metric, series);
    let query = query.map_err(|why| match why {
        // As recorded from prometheus-adapter, only the default namespace has a resource in this text.
        QueryError::NoMetric => {
            MetricsError::no_metric(metric, if namespace == "default" { "namespaces" } else { "" })
        }
        why => unable(&why),
    })?;
    let reply = inner.prometheus.query(&query, inner.now(), inner.settings.query_timeout).await;
    let reply = reply.map_err(|why| unable(&why))?;
    let read = convert::external(&reply, metric, inner.compat())?;
    inner.warnings_log.note(&query, &reply, read.duplicates, read.without_value);
    source.state(format!("Prometheus: {query}"));
    Ok(read.found)
}
