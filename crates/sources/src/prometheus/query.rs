//! Questions become PromQL.

mod matchers;
#[cfg(test)]
mod tests;

use std::fmt;

use api::selector::Selector;

pub use matchers::Objects;

use super::mapper::{GroupResource, KnownResource, Mapper, NoResource};
use super::registry::Registry;
use super::rule::{Family, ResourceQuery, Rule, Rules};
use super::template::{QueryArgs, Template};
use matchers::Matchers;

/// A query, and the label by which values in its answer belong to objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// PromQL.
    pub text: String,
    /// Label that names the object.
    pub label: String,
}

/// A question about a custom metric.
#[derive(Clone, Copy, Debug)]
pub struct CustomAsk<'a> {
    /// `resource.group` as the client wrote it.
    pub resource: &'a str,
    /// Namespace; none for a metric of an object without one.
    pub namespace: Option<&'a str>,
    /// Of which objects.
    pub objects: Objects<'a>,
    /// Name of the metric.
    pub metric: &'a str,
    /// Which series count.
    pub series: &'a Selector,
}

/// Why there is no query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// There is no such resource.
    NoResource(NoResource),
    /// Nobody knows such a metric.
    NoMetric,
    /// No object was named.
    NoObjects,
    /// The rule cannot answer this question.
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

/// The query for a custom metric, and the resource it is about.
pub fn custom<'m>(
    rules: &Rules,
    registry: &Registry,
    mapper: &'m Mapper,
    ask: &CustomAsk<'_>,
) -> Result<(Query, &'m KnownResource), QueryError> {
    let GroupResource { group, resource } = GroupResource::parse(ask.resource);
    let known = mapper.resolve(&group, &resource).map_err(QueryError::NoResource)?;
    let resource = known.group_resource();
    if ask.objects.is_empty() {
        return Err(QueryError::NoObjects);
    }
    let origin =
        registry.custom(&resource, ask.namespace.is_some(), ask.metric).ok_or(QueryError::NoMetric)?;
    let rule = rules.get(Family::Custom, origin.rule).ok_or(QueryError::NoMetric)?;
    let query = rule.custom_query(mapper, &origin.series, &resource, ask).map_err(QueryError::Rule)?;
    Ok((query, known))
}

/// The query for an external metric.
pub fn external(
    rules: &Rules,
    registry: &Registry,
    mapper: &Mapper,
    namespace: &str,
    metric: &str,
    series: &Selector,
) -> Result<String, QueryError> {
    let origin = registry.external(metric).ok_or(QueryError::NoMetric)?;
    let rule = rules.get(Family::External, origin.rule).ok_or(QueryError::NoMetric)?;
    rule.external_query(mapper, &origin.series, namespace, series).map_err(QueryError::Rule)
}

impl Rule {
    /// The query for a metric of objects.
    pub fn custom_query(
        &self,
        mapper: &Mapper,
        series: &str,
        resource: &GroupResource,
        ask: &CustomAsk<'_>,
    ) -> Result<Query, String> {
        let mut matchers = Matchers::of(ask.series)?;
        if let Some(namespace) = ask.namespace {
            matchers.namespace(&self.labels, mapper, namespace)?;
        }
        let label = self.labels.label_of(resource, mapper)?;
        matchers.objects(&label, &ask.objects);
        let text = filled(&self.query, matchers, series, vec![label.clone()])?;
        Ok(Query { text, label })
    }

    /// The query for an external metric.
    pub fn external_query(
        &self,
        mapper: &Mapper,
        series: &str,
        namespace: &str,
        selector: &Selector,
    ) -> Result<String, String> {
        let mut matchers = Matchers::of(selector)?;
        if self.namespaced && !namespace.is_empty() {
            matchers.namespace(&self.labels, mapper, namespace)?;
        }
        filled(&self.query, matchers, series, Vec::new())
    }
}

impl ResourceQuery {
    /// The query for the containers of pods of a namespace.
    pub fn containers_query(
        &self,
        mapper: &Mapper,
        namespace: &str,
        pods: &Objects<'_>,
    ) -> Result<Query, String> {
        let mut matchers = Matchers::default();
        matchers.namespace(&self.labels, mapper, namespace)?;
        let label = self.labels.label_of(&core("pods"), mapper)?;
        matchers.objects(&label, pods);
        let groups = vec![label.clone(), self.container_label.clone()];
        Ok(Query { text: filled(&self.containers, matchers, "", groups)?, label })
    }

    /// The query for nodes.
    pub fn nodes_query(&self, mapper: &Mapper, nodes: &Objects<'_>) -> Result<Query, String> {
        let mut matchers = Matchers::default();
        let label = self.labels.label_of(&core("nodes"), mapper)?;
        matchers.objects(&label, nodes);
        Ok(Query { text: filled(&self.nodes, matchers, "", vec![label.clone()])?, label })
    }
}

/// A resource of the core group.
fn core(resource: &str) -> GroupResource {
    GroupResource { group: String::new(), resource: resource.to_owned() }
}

fn filled(
    template: &Template,
    matchers: Matchers,
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
