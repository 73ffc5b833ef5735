//! Custom metrics.

use std::sync::Arc;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomMetricSample, CustomMetricsProvider, MetricsError,
    ObjectReference, ObjectSelection, ProviderFuture,
};
use api::selector::{LabelSelector, Operator, Requirement, Selector};

use super::{PrometheusProvider, ProviderInner, ProviderState};
use crate::prometheus::convert::{self, MeasuredValue};
use crate::prometheus::mapper::{GroupResource, KnownResource};
use crate::prometheus::query::{self, CustomQueryArgs, QueryError};

impl CustomMetricsProvider for PrometheusProvider {
    fn values<'a>(&'a self, request: &'a CustomMetricQuery) -> ProviderFuture<'a, Vec<CustomMetricSample>> {
        Box::pin(values(&self.0, request))
    }

    fn known(&self) -> Arc<Vec<CustomMetric>> {
        self.0.state().registry.custom_metrics()
    }
}

async fn values(
    inner: &ProviderInner,
    request: &CustomMetricQuery,
) -> Result<Vec<CustomMetricSample>, MetricsError> {
    let state = inner.state();
    match &request.objects {
        ObjectSelection::One(name) => {
            let (resource, mut found) = measured(inner, &state, request, &[name]).await?;
            match found.pop().flatten() {
                Some(measured) => Ok(vec![value(inner, request, resource, name, measured)?]),
                None => Err(MetricsError::no_value(&request.metric, &request.resource, name)),
            }
        }
        ObjectSelection::All(selector) => {
            let unable = |why: &dyn std::fmt::Display| inner.unable("unable to list matching resources", why);
            let GroupResource { group, resource } = GroupResource::parse(&request.resource);
            let resource = state.mapper.resolve(&group, &resource).map_err(|why| unable(&why))?;
            let names = inner.cluster.names(resource, request.namespace.as_deref(), selector).await;
            let names = names.map_err(|why| unable(&why))?;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (resource, found) = measured(inner, &state, request, &names).await?;
            let known = names.iter().zip(found).filter_map(|(name, found)| Some((name, found?)));
            known.map(|(name, measured)| value(inner, request, resource, name, measured)).collect()
        }
    }
}

/// Values of objects in the order of their names.
async fn measured<'s>(
    inner: &ProviderInner,
    state: &'s ProviderState,
    request: &CustomMetricQuery,
    names: &[&str],
) -> Result<(&'s KnownResource, Vec<Option<MeasuredValue>>), MetricsError> {
    // Hundreds of names make a long query that no other request shares.
    let many = !inner.compat().is_strict() && names.len() > inner.settings.max_names_per_query;
    let objects = if many && is_separable(state, request) {
        query::ObjectFilter::Any
    } else {
        query::ObjectFilter::Named(names)
    };
    let args = CustomQueryArgs {
        resource: &request.resource,
        namespace: request.namespace.as_deref(),
        objects,
        metric: &request.metric,
        series: &request.series,
    };
    let query = query::custom(&state.rules, &state.registry, &state.mapper, &args);
    let (query, resource) = query.map_err(|why| {
        if let QueryError::Build(why) = &why {
            tracing::warn!(
                metric = request.metric,
                resource = request.resource,
                %why,
                "the rule produced no query"
            );
        }
        MetricsError::no_metric(&request.metric, &request.resource)
    })?;
    let unable = |why: &dyn std::fmt::Display| inner.unable("unable to fetch metrics", why);
    let reply = inner.prometheus.query(&query.text, inner.now(), inner.settings.query_timeout).await;
    let reply = reply.map_err(|why| unable(&why))?;
    let read =
        convert::of_objects(&reply, &query.label, names, inner.compat()).map_err(|why| unable(&why))?;
    inner.warnings_log.note(&query.text, &reply, read.duplicates, read.without_value);
    request.source.state(format!("Prometheus: {}", query.text));
    Ok((resource, read.found))
}

/// Whether one query can select all objects of a metric.
fn is_separable(state: &ProviderState, request: &CustomMetricQuery) -> bool {
    let resource = state.mapper.find_text(&request.resource).map(KnownResource::group_resource);
    let namespaced = request.namespace.is_some();
    let origin = resource.and_then(|resource| state.registry.custom(&resource, namespaced, &request.metric));
    origin.and_then(|origin| state.separable.get(origin.rule)).is_some_and(|separable| *separable)
}

fn value(
    inner: &ProviderInner,
    request: &CustomMetricQuery,
    resource: &KnownResource,
    name: &str,
    measured: MeasuredValue,
) -> Result<CustomMetricSample, MetricsError> {
    let KnownResource { group, version, kind, .. } = resource;
    // Strict mode reports the time of the response, as prometheus-adapter does.
    let timestamp = if inner.compat().is_strict() { Some(inner.now()) } else { measured.time };
    Ok(CustomMetricSample {
        object: ObjectReference {
            kind: kind.clone(),
            namespace: request.namespace.clone().unwrap_or_default(),
            name: name.to_owned(),
            api_version: format!("{group}/{version}"),
        },
        metric: request.metric.clone(),
        series: echo(&request.series, inner.compat().is_strict())?,
        timestamp,
        window: None,
        value: measured.value,
    })
}

/// The selector of the query as an object. `!=` has no such form, which is an error in strict mode; otherwise it
/// becomes `NotIn`.
fn echo(selector: &Selector, strict: bool) -> Result<Option<LabelSelector>, MetricsError> {
    if selector.is_everything() {
        return Ok(None);
    }
    let object = if strict {
        selector.to_label_selector()
    } else {
        let same = |requirement: &Requirement| {
            let values = requirement.values().into_iter().map(str::to_owned).collect();
            match requirement.operator() {
                Operator::NotEquals => Requirement::new(requirement.key(), Operator::NotIn, values).ok(),
                _ => None,
            }
        };
        let all = selector.requirements().iter();
        let all = all.map(|requirement| same(requirement).unwrap_or_else(|| requirement.clone())).collect();
        Selector::all_of(all).to_label_selector()
    };
    object.map(Some).map_err(|why| MetricsError::Plain(why.to_string()))
}
