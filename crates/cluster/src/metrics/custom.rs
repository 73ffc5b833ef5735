//! `custom.metrics.k8s.io`: its version, and the values of pods and objects.

use std::sync::Arc;
use std::time::Duration;

use api::metrics::{
    MetricValueList, Query, Versions, join_samples, object_total, pods_samples, record_values,
};
use api::scale::group_of;
use engine::spec::{Metric, MetricSource};
use engine::{MetricSamples, Provenance, RequestFailure};
use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;
use runtime::single_flight::FlightRole;

use super::local::{IN_PROCESS, LocalMetrics};
use super::{
    MAX_JOIN_AGE, MetricScope, QueryMeter, REQUEST_DEADLINE, ResponseWithSource, SampleError, sharing, uri,
    wire,
};
use crate::discovery::{Discovery, MappingError};
use crate::request::{ApiError, Request, decode, exchange};

const GROUP: &str = "custom.metrics.k8s.io";

/// Versions that can be decoded; both have the same fields.
const KNOWN_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

type MetricValuesResult = Result<ResponseWithSource<MetricValueList>, ApiError>;

/// The client of custom metrics.
#[derive(Clone)]
pub(super) struct CustomMetricsClient {
    pub(super) meter: Arc<QueryMeter>,
    client: Client,
    discovery: Discovery,
    /// How long the discovered version is used.
    freshness: Duration,
    local: LocalMetrics,
    flights: Arc<SingleFlight<String, MetricValuesResult>>,
}

impl CustomMetricsClient {
    pub(super) fn new(
        client: Client,
        discovery: Discovery,
        freshness: Duration,
        local: LocalMetrics,
    ) -> Self {
        Self { meter: Arc::default(), client, discovery, freshness, local, flights: Arc::default() }
    }

    pub(super) async fn samples(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        from: &mut Provenance,
    ) -> Result<MetricSamples, SampleError> {
        from.api = GROUP.into();
        let fetched = self.values(scope, metric, from).await;
        let values = fetched.as_ref().map(Arc::as_ref).map_err(|error| error.text.as_str());
        let samples = match &metric.source {
            MetricSource::Pods(_) => pods_samples(values).map(|samples| join_samples(scope.pods, samples)),
            _ => object_total(values)
                .inspect(|_| values.into_iter().for_each(|list| record_values(from, list))),
        };
        samples.map_err(|error| match fetched.err() {
            Some(SampleError { source, failure, .. }) => {
                SampleError { text: error.to_string(), source, failure }
            }
            None => SampleError::of_response(&error, None),
        })
    }

    async fn values(
        &self,
        scope: MetricScope<'_>,
        metric: &Metric,
        from: &mut Provenance,
    ) -> Result<Arc<MetricValueList>, SampleError> {
        if let Some(answer) = self.local_values(scope, metric).await {
            from.api = IN_PROCESS.into();
            self.meter.note_local(FlightRole::Started, &answer);
            let ResponseWithSource { values, source } = answer.map_err(SampleError::request)?;
            from.source = source;
            return Ok(values);
        }
        let version = self.version().await?;
        from.api = format!("{GROUP}/{version}").into();
        let resource = self.described(metric).await?;
        let versions = Versions { custom: &version, ..Versions::default() };
        let query = Query::in_versions(versions, scope.namespace, scope.selector, metric, &resource);
        let Some(query) = query else { return Err(SampleError::new("the metric cannot be asked for")) };
        let request = named(Request::get(uri(&query), "", REQUEST_DEADLINE), metric, &resource);
        let client = self.client.clone();
        let key = request.uri.clone();
        let fetch = || {
            async move {
                let answer = exchange(&client, &request).await?;
                let values: wire::WireValueList = decode(&answer, &wire::VALUES)?;
                let values = values.complete().map_err(|error| ApiError::unanswered(error.to_string()))?;
                Ok(ResponseWithSource { values: Arc::new(values), source: answer.source.map(Into::into) })
            }
            .boxed()
        };
        let (answer, role) = self.flights.run_within(&key, MAX_JOIN_AGE, fetch).await;
        self.meter.note(role, &answer);
        from.response = sharing(role);
        let ResponseWithSource { values, source } = answer.map_err(SampleError::request)?;
        from.source = source;
        Ok(values)
    }

    /// The values of a provider in this process; none if it does not have the metric.
    async fn local_values(&self, scope: MetricScope<'_>, metric: &Metric) -> Option<MetricValuesResult> {
        if !self.local.has_custom() {
            return None;
        }
        // A kind that cannot be mapped is reported by the request.
        let resource = self.described(metric).await.ok()?;
        self.local.values(scope, metric, &resource).await
    }

    /// The preferred version if it can be decoded, else the first that can (docs/spec/hpa.md Appendix C.3).
    async fn version(&self) -> Result<String, SampleError> {
        let served = self.discovery.versions_within(GROUP, self.freshness).await;
        let served = served.map_err(SampleError::request)?;
        if served.is_empty() {
            let text = format!("no custom metrics API ({GROUP}) registered");
            return Err(SampleError::with(text, RequestFailure::NotServed));
        }
        let known = served.into_iter().find(|version| KNOWN_VERSIONS.contains(&version.as_str()));
        let none =
            || SampleError::with("no known available metric versions found", RequestFailure::NotServed);
        known.ok_or_else(none)
    }

    /// The resource that an object metric describes; empty for pods.
    async fn described(&self, metric: &Metric) -> Result<String, SampleError> {
        let MetricSource::Object { kind, api_version, .. } = &metric.source else { return Ok(String::new()) };
        let group = api_version.as_deref().map_or("", |version| group_of(version).unwrap_or_default());
        let found = self.discovery.mappings(group, kind).await.map_err(|error| {
            let dot = if group.is_empty() { "" } else { "." };
            let text = format!("unable to map kind {kind}{dot}{group} to resource: {error}");
            match error {
                MappingError::Discovery(error) => SampleError { text, ..SampleError::request(error) },
                MappingError::NoMatch { .. } => SampleError::with(text, RequestFailure::UnknownKind),
            }
        })?;
        Ok(found.first().map(crate::discovery::Resource::group_resource).unwrap_or_default())
    }
}

/// The request with resource and name as messages have them.
fn named(request: Request, metric: &Metric, resource: &str) -> Request {
    let (resource, name) = match &metric.source {
        MetricSource::Object { kind, metric: id, .. } if resource == "namespaces" && kind == "Namespace" => {
            ("metrics", id.name.as_str())
        }
        MetricSource::Object { name, .. } => (resource, name.as_str()),
        _ => ("pods", "*"),
    };
    Request { resource: format!("{resource}.{GROUP}"), ..request.named(name) }
}
