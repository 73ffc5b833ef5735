//! `external.metrics.k8s.io`: metrics that do not belong to an object in the cluster.

use std::sync::Arc;

use api::provider::{ExternalMetricQuery, ExternalMetricsProvider, SampleSource};
use http::Response;
use serde_json::json;

use super::list_options::{self, ListOptions};
use super::values::ExternalList;
use super::{MetricsApiSettings, below, metric_listing, only_get, route, sent, sent_many, status};
use crate::access::RequestTarget;
use crate::api_group::{ApiGroupVersion, ApiResource, DiscoveryVisibility};
use crate::encode::{Choice, Form, Forms, MetaVersion, Object, choose, presentable, protobuf};
use crate::request::AuthorizedRequest;
use crate::response::Body;
use crate::status::{Status, StatusDetails};

const GROUP: &str = "external.metrics.k8s.io";
const VERSION: &str = "v1beta1";
const KIND: &str = "ExternalMetricValueList";

/// The group versions of the API.
pub fn external(
    source: Arc<dyn ExternalMetricsProvider>,
    settings: &MetricsApiSettings,
) -> Vec<ApiGroupVersion> {
    let (known_by, strict) = (Arc::clone(&source), settings.compat.is_strict());
    let listing = metric_listing::listing(
        format!("{GROUP}/{VERSION}"),
        move || known_by.known(),
        move |names: &[String]| {
            if names.is_empty() && !strict {
                return vec![placeholder()];
            }
            names.iter().map(|name| metric_listing::metric(name.clone(), true, KIND)).collect()
        },
    );
    let api = Arc::new(ExternalMetricsApi { source, settings: settings.clone() });
    let route = route(move |call: AuthorizedRequest| {
        let api = Arc::clone(&api);
        async move { api.answer(&call).await }
    });
    let known = DiscoveryVisibility { listed: true, aggregated: !strict };
    vec![ApiGroupVersion {
        listing: Some(listing),
        known,
        ..ApiGroupVersion::new(GROUP, VERSION, vec![placeholder()], route)
    }]
}

/// A placeholder for all metrics: clients reject an empty list.
fn placeholder() -> ApiResource {
    let text = |description: &str| json!({"type": "string", "description": description});
    ApiResource {
        description: "ExternalMetricValueList holds values of a metric, one for each series.".to_owned(),
        properties: json!({
            "items": {"type": "array", "description": "The values.", "items": {"type": "object", "properties": {
                "metricName": text("Name of the metric."),
                "metricLabels": {"type": "object", "additionalProperties": {"type": "string"}},
                "timestamp": text("When it was measured."),
                "value": text("The value."),
            }}},
        }),
        ..metric_listing::metric("externalmetrics".to_owned(), true, KIND)
    }
}

struct ExternalMetricsApi {
    source: Arc<dyn ExternalMetricsProvider>,
    settings: MetricsApiSettings,
}

impl ExternalMetricsApi {
    async fn answer(&self, call: &AuthorizedRequest) -> Result<Response<Body>, Status> {
        let ["namespaces", _, _] = below(call)[..] else { return Err(Status::no_path()) };
        only_get(call)?;
        presentable(&call.headers, true)?;
        let choice = choose(&call.headers, &call.query, Forms { table: false, partial: true })?;
        let query = query(call)?;
        let values = self.source.values(&query).await.map_err(status)?;
        let now = self.settings.clock.now();
        self.settings.freshness.note(now, values.iter().map(|value| value.timestamp));
        match choice.form {
            None => {
                let count = values.len();
                let response = sent_many(ExternalList(values), count, choice).await?;
                Ok(self.settings.with_source(response, query.source.stated().as_deref()))
            }
            Some(form) => converted(values.is_empty(), form, choice),
        }
    }
}

/// An empty `PartialObjectMetadataList`.
struct EmptyPartialList(MetaVersion);

impl Object for EmptyPartialList {
    fn kind(&self) -> (String, String) {
        (self.0.api_version().to_owned(), "PartialObjectMetadataList".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let (version, kind) = self.kind();
        let list = json!({"kind": kind, "apiVersion": version, "metadata": {}, "items": null});
        out.extend_from_slice(list.to_string().as_bytes());
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
    }
}

/// Values have no metadata. prometheus-adapter refuses only if there are values.
fn converted(empty: bool, form: Form, choice: Choice) -> Result<Response<Body>, Status> {
    match form {
        Form::PartialList(version) if empty => Ok(sent(&EmptyPartialList(version), choice)),
        Form::PartialList(_) => {
            Err(Status::new(500, "", "object does not implement the Object interfaces", None))
        }
        Form::Partial(_) | Form::Table(_) => Err(Status::not_convertible(format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*external_metrics.{KIND})"
        ))),
    }
}

fn query(call: &AuthorizedRequest) -> Result<ExternalMetricQuery, Status> {
    let read = ListOptions::read(&call.query)?;
    list_options::consistent(&call.query)?;
    // The query uses the authorized attributes. A metric called `status` is not reachable: Kubernetes reads the path as
    // a subresource of the namespace.
    let RequestTarget::Resource(of) = &call.wanted.target else { return Err(Status::no_path()) };
    let ListOptions { labels, watch, .. } = read.with_known_fields()?.agreeing_with(&of.name)?;
    if watch {
        return Err(Status::no_watch(StatusDetails::new(GROUP, "*", "")));
    }
    Ok(ExternalMetricQuery {
        namespace: of.namespace.clone(),
        metric: of.resource.clone(),
        series: labels,
        source: SampleSource::default(),
    })
}
