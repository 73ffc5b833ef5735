//! Builds PromQL from metric queries.

mod matchers;
#[cfg(test)]
mod tests;

use api::selector::Selector;

pub use matchers::ObjectFilter;

use super::mapper::{GroupResource, KnownResource, ResourceNotFound, RestMapper};
use super::registry::Registry;
use super::rule::{LabelError, ResourceQuery, Rule, RuleFamily, Rules};
use super::template::{QueryArgs, Template, TemplateError};
use matchers::LabelMatchers;

/// A query, and the label that maps its samples to objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromQuery {
    /// PromQL.
    pub text: String,
    /// Label that names the object.
    pub label: String,
}

/// A query of a custom metric.
#[derive(Clone, Copy, Debug)]
pub struct CustomQueryArgs<'a> {
    /// `resource.group` as the client wrote it.
    pub resource: &'a str,
    /// Namespace; `None` for a metric of a cluster-scoped object.
    pub namespace: Option<&'a str>,
    /// Selected objects.
    pub objects: ObjectFilter<'a>,
    /// Name of the metric.
    pub metric: &'a str,
    /// Series selector.
    pub series: &'a Selector,
}

/// Why a metric query has no PromQL query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Unknown resource.
    #[error("unable to normalize group resource while producing a query: {0}")]
    NoResource(#[source] ResourceNotFound),
    /// Unknown metric.
    #[error("no such metric was discovered")]
    NoMetric,
    /// No object name is given.
    #[error("no resource names requested while producing a query")]
    NoObjects,
    /// The rule cannot produce a query.
    #[error(transparent)]
    Build(QueryBuildError),
}

/// Why a rule cannot produce a query; the texts are those of prometheus-adapter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryBuildError {
    /// PromQL has no such operator.
    #[error("operator not supported by prometheus")]
    UnsupportedOperator,
    /// No label names a resource.
    #[error(transparent)]
    Label(#[from] Box<LabelError>),
    /// The template fails.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The template prints nothing.
    #[error("empty query produced by metrics query template")]
    Empty,
}

/// Query of a custom metric, and its resource.
pub fn custom<'m>(
    rules: &Rules,
    registry: &Registry,
    mapper: &'m RestMapper,
    query_args: &CustomQueryArgs<'_>,
) -> Result<(PromQuery, &'m KnownResource), QueryError> {
    let GroupResource { group, resource } = GroupResource::parse(query_args.resource);
    let known = mapper.resolve(&group, &resource).map_err(QueryError::NoResource)?;
    let resource = known.group_resource();
    if query_args.objects.is_empty() {
        return Err(QueryError::NoObjects);
    }
    let origin = registry
        .custom(&resource, query_args.namespace.is_some(), query_args.metric)
        .ok_or(QueryError::NoMetric)?;
    let rule = rules.get(RuleFamily::Custom, origin.rule).ok_or(QueryError::NoMetric)?;
    let query =
        rule.custom_query(mapper, &origin.series, &resource, query_args).map_err(QueryError::Build)?;
    Ok((query, known))
}

/// Query of an external metric.
pub fn external(
    rules: &Rules,
    registry: &Registry,
    mapper: &RestMapper,
    namespace: &str,
    metric: &str,
    series: &Selector,
) -> Result<String, QueryError> {
    let origin = registry.external(metric).ok_or(QueryError::NoMetric)?;
    let rule = rules.get(RuleFamily::External, origin.rule).ok_or(QueryError::NoMetric)?;
    rule.external_query(mapper, &origin.series, namespace, series).map_err(QueryError::Build)
}

impl Rule {
    /// Query of a custom metric.
    pub fn custom_query(
        &self,
        mapper: &RestMapper,
        series: &str,
        resource: &GroupResource,
        query_args: &CustomQueryArgs<'_>,
    ) -> Result<PromQuery, QueryBuildError> {
        let mut matchers = LabelMatchers::of(query_args.series)?;
        if let Some(namespace) = query_args.namespace {
            matchers.namespace(&self.labels, mapper, namespace)?;
        }
        let label = self.labels.label_of(resource, mapper)?;
        matchers.objects(&label, &query_args.objects);
        let text = filled(&self.query, matchers, series, vec![label.clone()])?;
        Ok(PromQuery { text, label })
    }

    /// Query of an external metric.
    pub fn external_query(
        &self,
        mapper: &RestMapper,
        series: &str,
        namespace: &str,
        selector: &Selector,
    ) -> Result<String, QueryBuildError> {
        let mut matchers = LabelMatchers::of(selector)?;
        if self.namespaced && !namespace.is_empty() {
            matchers.namespace(&self.labels, mapper, namespace)?;
        }
        filled(&self.query, matchers, series, Vec::new())
    }
}

impl ResourceQuery {
    /// Query of the containers of pods of a namespace.
    pub fn containers_query(
        &self,
        mapper: &RestMapper,
        namespace: &str,
        pods: &ObjectFilter<'_>,
    ) -> Result<PromQuery, QueryBuildError> {
        let mut matchers = LabelMatchers::default();
        matchers.namespace(&self.labels, mapper, namespace)?;
        let label = self.labels.label_of(&core("pods"), mapper)?;
        matchers.objects(&label, pods);
        let groups = vec![label.clone(), self.container_label.clone()];
        Ok(PromQuery { text: filled(&self.containers, matchers, "", groups)?, label })
    }

    /// Query of nodes.
    pub fn nodes_query(
        &self,
        mapper: &RestMapper,
        nodes: &ObjectFilter<'_>,
    ) -> Result<PromQuery, QueryBuildError> {
        let mut matchers = LabelMatchers::default();
        let label = self.labels.label_of(&core("nodes"), mapper)?;
        matchers.objects(&label, nodes);
        Ok(PromQuery { text: filled(&self.nodes, matchers, "", vec![label.clone()])?, label })
    }
}

/// A resource of the core group.
fn core(resource: &str) -> GroupResource {
    GroupResource { group: String::new(), resource: resource.to_owned() }
}

fn filled(
    template: &Template,
    matchers: LabelMatchers,
    series: &str,
    groups: Vec<String>,
) -> Result<String, QueryBuildError> {
    let args = QueryArgs {
        series: series.to_owned(),
        label_matchers: matchers.texts.join(","),
        label_values_by_name: matchers.values,
        group_by: groups.join(","),
        group_by_slice: groups,
    };
    let text = template.query(&args)?;
    if text.is_empty() { Err(QueryBuildError::Empty) } else { Ok(text) }
}
