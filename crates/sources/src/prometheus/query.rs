//! Builds PromQL from metric queries.

mod matchers;
#[cfg(test)]
mod tests;

use std::fmt;

use api::selector::Selector;

pub use matchers::ObjectFilter;

use super::mapper::{GroupResource, KnownResource, ResourceNotFound, RestMapper};
use super::registry::Registry;
use super::rule::{ResourceQuery, Rule, RuleFamily, Rules};
use super::template::{QueryArgs, Template};
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

/// Why no query can be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// Unknown resource.
    NoResource(ResourceNotFound),
    /// Unknown metric.
    NoMetric,
    /// No object name is given.
    NoObjects,
    /// The rule cannot produce a query.
    Rule(String),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResource(why) => {
                write!(f, "unable to normalize group resource while producing a query: {why}")
            }
            Self::NoMetric => f.write_str("no such metric was discovered"),
            Self::NoObjects => f.write_str("no resource names requested while producing a query"),
            Self::Rule(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for QueryError {}

/// Query of a custom metric, and its resource.
pub fn custom<'m>(
    rules: &Rules,
    registry: &Registry,
    mapper: &'m RestMapper,
    ask: &CustomQueryArgs<'_>,
) -> Result<(PromQuery, &'m KnownResource), QueryError> {
    let GroupResource { group, resource } = GroupResource::parse(ask.resource);
    let known = mapper.resolve(&group, &resource).map_err(QueryError::NoResource)?;
    let resource = known.group_resource();
    if ask.objects.is_empty() {
        return Err(QueryError::NoObjects);
    }
    let origin =
        registry.custom(&resource, ask.namespace.is_some(), ask.metric).ok_or(QueryError::NoMetric)?;
    let rule = rules.get(RuleFamily::Custom, origin.rule).ok_or(QueryError::NoMetric)?;
    let query = rule.custom_query(mapper, &origin.series, &resource, ask).map_err(QueryError::Rule)?;
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
    rule.external_query(mapper, &origin.series, namespace, series).map_err(QueryError::Rule)
}

impl Rule {
    /// Query of a custom metric.
    pub fn custom_query(
        &self,
        mapper: &RestMapper,
        series: &str,
        resource: &GroupResource,
        ask: &CustomQueryArgs<'_>,
    ) -> Result<PromQuery, String> {
        let mut matchers = LabelMatchers::of(ask.series)?;
        if let Some(namespace) = ask.namespace {
            matchers.namespace(&self.labels, mapper, namespace)?;
        }
        let label = self.labels.label_of(resource, mapper)?;
        matchers.objects(&label, &ask.objects);
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
    ) -> Result<String, String> {
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
    ) -> Result<PromQuery, String> {
        let mut matchers = LabelMatchers::default();
        matchers.namespace(&self.labels, mapper, namespace)?;
        let label = self.labels.label_of(&core("pods"), mapper)?;
        matchers.objects(&label, pods);
        let groups = vec![label.clone(), self.container_label.clone()];
        Ok(PromQuery { text: filled(&self.containers, matchers, "", groups)?, label })
    }

    /// Query of nodes.
    pub fn nodes_query(&self, mapper: &RestMapper, nodes: &ObjectFilter<'_>) -> Result<PromQuery, String> {
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
) -> Result<String, String> {
    let args = QueryArgs {
        series: series.to_owned(),
        label_matchers: matchers.texts.join(","),
        label_values_by_name: matchers.values,
        group_by: groups.join(","),
        group_by_slice: groups,
    };
    let text = template.query(&args).map_err(|why| why.to_string())?;
    if text.is_empty() { Err("empty query produced by metrics query template".to_owned()) } else { Ok(text) }
}
