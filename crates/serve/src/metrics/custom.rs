//! `custom.metrics.k8s.io`: metrics of Kubernetes objects.

use std::sync::Arc;

use api::provider::{CustomMetric, CustomMetricQuery, CustomMetricsProvider, ObjectSelection, SampleSource};
use api::selector::Selector;
use http::Response;
use serde_json::json;

use super::list_options::ListOptions;
use super::values::{CustomList, Version};
use super::{MetricsApiSettings, below, metric_listing, only_get, route, sent_many, status};
use crate::access::RequestTarget;
use crate::api_group::{ApiGroupVersion, ApiResource, DiscoveryVisibility};
use crate::encode::{Forms, choose, presentable};
use crate::request::AuthorizedRequest;
use crate::response::Body;
use crate::status::Status;

const GROUP: &str = "custom.metrics.k8s.io";
const KIND: &str = "MetricValueList";

/// The group versions of the API. `v1beta2` comes first and so is preferred where it is registered; as in
/// prometheus-adapter, only its APIService shows that it exists.
#[allow(clippy::needless_pass_by_value, reason = "callers pass an Arc of their own type")]
pub fn custom(source: Arc<dyn CustomMetricsProvider>, settings: &MetricsApiSettings) -> Vec<ApiGroupVersion> {
    let group = |version: Version| {
        let api =
            Arc::new(CustomMetricsApi { source: Arc::clone(&source), settings: settings.clone(), version });
        let route = route(move |call: AuthorizedRequest| {
            let api = Arc::clone(&api);
            async move { api.answer(&call).await }
        });
        let (known_by, strict) = (Arc::clone(&source), settings.compat.is_strict());
        let listing = metric_listing::listing(
            format!("{GROUP}/{}", version.name()),
            move || known_by.known(),
            move |metrics| listed(metrics, strict),
        );
        let known = DiscoveryVisibility { listed: version == Version::V1beta1, aggregated: !strict };
        ApiGroupVersion {
            listing: Some(listing),
            known,
            ..ApiGroupVersion::new(GROUP, version.name(), vec![placeholder()], route)
        }
    };
    [Version::V1beta2, Version::V1beta1].into_iter().map(group).collect()
}

fn listed(metrics: &[CustomMetric], strict: bool) -> Vec<ApiResource> {
    if metrics.is_empty() && !strict {
        return vec![placeholder()];
    }
    let each = metrics
        .iter()
        .map(|of| metric_listing::metric(format!("{}/{}", of.resource, of.metric), of.namespaced, KIND));
    each.collect()
}

/// A placeholder for all metrics: clients reject an empty list.
fn placeholder() -> ApiResource {
    let text = |description: &str| json!({"type": "string", "description": description});
    ApiResource {
        description: "MetricValueList holds values of a metric, one for each object.".to_owned(),
        properties: json!({
            "items": {"type": "array", "description": "The values.", "items": {"type": "object", "properties": {
                "describedObject": {"type": "object", "description": "Whose value it is."},
                "timestamp": text("When it was measured."),
                "value": text("The value."),
            }}},
        }),
        ..metric_listing::metric("/custommetrics".to_owned(), false, KIND)
    }
}

struct CustomMetricsApi {
    source: Arc<dyn CustomMetricsProvider>,
    settings: MetricsApiSettings,
    version: Version,
}

/// The metric that a path names.
struct MetricPath<'a> {
    resource: &'a str,
    namespace: &'a str,
    object: &'a str,
    metric: &'a str,
    /// The name that a field selector must agree with; empty if the path has none.
    name: &'a str,
}

impl<'a> MetricPath<'a> {
    /// Whether paths of this shape exist.
    fn exists(path: &[&str]) -> bool {
        matches!(path, [_, _, _] | ["namespaces", _, "metrics", _] | ["namespaces", _, _, _, _])
    }

    /// Read from the authorized attributes; none if they are not valid.
    fn of(call: &'a AuthorizedRequest) -> Option<Self> {
        let RequestTarget::Resource(of) = &call.wanted.target else { return None };
        let (namespace, name) = (of.namespace.as_str(), of.name.as_str());
        if of.resource == "metrics" && !namespace.is_empty() {
            // A metric of the namespace itself, which is the object.
            let object = namespace;
            let wanted = Self { resource: "namespaces", namespace: "", object, metric: name, name: object };
            // A name that comes from a field selector is not a metric.
            return (!name.is_empty() && below(call).len() > 3).then_some(wanted);
        }
        let wanted = Self { resource: &of.resource, namespace, object: name, metric: &of.subresource, name };
        (!of.subresource.is_empty()).then_some(wanted)
    }
}

impl CustomMetricsApi {
    async fn answer(&self, call: &AuthorizedRequest) -> Result<Response<Body>, Status> {
        if !MetricPath::exists(&below(call)) {
            return Err(Status::no_path());
        }
        only_get(call)?;
        presentable(&call.headers, true)?;
        let wanted = MetricPath::of(call).ok_or_else(|| Status::bad_request("invalid request path"))?;
        let query = self.query(call, &wanted)?;
        let values = self.source.values(&query).await.map_err(status)?;
        let choice = choose(&call.headers, &call.query, Forms::default())?;
        let now = self.settings.clock.now();
        self.settings.freshness.note(now, values.iter().map(|value| value.timestamp));
        let count = values.len();
        let response = sent_many(CustomList { version: self.version, values }, count, choice).await?;
        Ok(self.settings.with_source(response, query.source.stated().as_deref()))
    }

    fn query(&self, call: &AuthorizedRequest, wanted: &MetricPath<'_>) -> Result<CustomMetricQuery, Status> {
        let read = ListOptions::read(&call.query)?;
        let ListOptions { labels, .. } = read.with_known_fields()?.agreeing_with(wanted.name)?;
        let series = Selector::parse(call.query.get("metricLabelSelector").unwrap_or_default());
        let series = series.map_err(|error| {
            if self.settings.compat.is_strict() {
                // prometheus-adapter answers 500, although the request is wrong.
                Status::new(500, "", error.to_string(), None)
            } else {
                Status::bad_request(error.to_string())
            }
        })?;
        let objects = match wanted.object {
            "*" | "" => ObjectSelection::All(labels),
            name => ObjectSelection::One(name.to_owned()),
        };
        Ok(CustomMetricQuery {
            resource: wanted.resource.to_owned(),
            namespace: (!wanted.namespace.is_empty()).then(|| wanted.namespace.to_owned()),
            objects,
            metric: wanted.metric.to_owned(),
            series,
            source: SampleSource::default(),
        })
    }
}
