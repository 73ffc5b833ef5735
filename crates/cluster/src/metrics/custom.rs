//! `custom.metrics.k8s.io`: its version, and the values of pods and objects.

use std::sync::Arc;
use std::time::Duration;

use api::metrics::{MetricValueList, Query, Versions, beside, object_total, pods_samples};
use api::scale::group_of;
use engine::MetricSamples;
use engine::spec::{Metric, MetricSource};
use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;

use super::{DEADLINE, Meter, MetricScope, TOGETHER, uri, wire};
use crate::discovery::Discovery;
use crate::request::{ApiError, Request, decode, exchange};

const GROUP: &str = "custom.metrics.k8s.io";

/// Versions that can be read; both carry the same.
const KNOWN: [&str; 2] = ["v1beta2", "v1beta1"];

type Answered = Result<Arc<MetricValueList>, ApiError>;

/// Values of pods and objects.
#[derive(Clone)]
pub(super) struct Values {
    pub(super) meter: Arc<Meter>,
    client: Client,
    discovery: Discovery,
    /// How long the version is believed.
    freshness: Duration,
    flights: Arc<SingleFlight<String, Answered>>,
}

impl Values {
    pub(super) fn new(client: Client, discovery: Discovery, freshness: Duration) -> Self {
        Self { meter: Arc::default(), client, discovery, freshness, flights: Arc::default() }
    }

    pub(super) async fn samples(
        &self,
        asker: MetricScope<'_>,
        metric: &Metric,
    ) -> Result<MetricSamples, String> {
        let answer = self.values(asker, metric).await;
        let answer = answer.as_ref().map(Arc::as_ref).map_err(String::as_str);
        match &metric.source {
            MetricSource::Pods(_) => Ok(beside(asker.pods, pods_samples(answer)?)),
            _ => object_total(answer),
        }
    }

    async fn values(&self, asker: MetricScope<'_>, metric: &Metric) -> Result<Arc<MetricValueList>, String> {
        let version = self.version().await?;
        let resource = self.described(metric).await?;
        let versions = Versions { custom: &version, ..Versions::default() };
        let query = Query::in_versions(versions, asker.namespace, asker.selector, metric, &resource);
        let Some(query) = query else { return Err("the metric cannot be asked for".to_owned()) };
        let request = named(Request::get(uri(&query), "", DEADLINE), metric, &resource);
        let client = self.client.clone();
        let key = request.uri.clone();
        let ask = || {
            async move {
                let answer = exchange(&client, &request).await?;
                let values: wire::Values = decode(&answer, &wire::VALUES)?;
                values.complete().map(Arc::new).map_err(ApiError::unanswered)
            }
            .boxed()
        };
        let (answer, role) = self.flights.run_within(&key, TOGETHER, ask).await;
        self.meter.note(role, &answer);
        answer.map_err(|e| e.message)
    }

    /// The preferred version, if it is known; else the first that is (docs/spec/hpa.md Appendix C.3).
    async fn version(&self) -> Result<String, String> {
        let served = self.discovery.versions_within(GROUP, self.freshness).await.map_err(|e| e.message)?;
        if served.is_empty() {
            return Err(format!("no custom metrics API ({GROUP}) registered"));
        }
        let known = served.into_iter().find(|version| KNOWN.contains(&version.as_str()));
        known.ok_or_else(|| "no known available metric versions found".to_owned())
    }

    /// The resource that an object metric describes; empty for pods.
    async fn described(&self, metric: &Metric) -> Result<String, String> {
        let MetricSource::Object { kind, api_version, .. } = &metric.source else { return Ok(String::new()) };
        let group = api_version.as_deref().map_or("", |version| group_of(version).unwrap_or_default());
        let found = self.discovery.mappings(group, kind).await.map_err(|error| {
            let dot = if group.is_empty() { "" } else { "." };
            format!("unable to map kind {kind}{dot}{group} to resource: {error}")
        })?;
        Ok(found.first().map(crate::discovery::Resource::group_resource).unwrap_or_default())
    }
}

/// What the request is about, in the words of messages.
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
