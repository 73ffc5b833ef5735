//! Rules, ready to be used: filters, names, labels of resources, queries.

mod labels;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::gotext::quote;
use api::provider::Compat;

pub use labels::ResourceLabels;

use super::config::{Config, ConfigError, ResourceRule, ResourceRules, RuleConfig, SeriesFilter, Stage};
use super::mapper::Mapper;
use super::names::{Filter, Naming, NamingError};
use super::template::Template;

/// All rules of a file.
#[derive(Clone, Debug)]
pub struct Rules {
    custom: Vec<Rule>,
    external: Vec<Rule>,
    resource: Option<ResourceQueries>,
    compat: Compat,
}

/// Which metrics a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Metrics of objects.
    Custom,
    /// Metrics of anything else.
    External,
}

/// One rule of custom or external metrics.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Which series are looked at.
    pub selector: Arc<str>,
    /// Which of them count, by name.
    pub filters: Vec<Filter>,
    /// How metrics are named.
    pub naming: Naming,
    /// Which labels name objects.
    pub labels: ResourceLabels,
    /// The query.
    pub query: Template,
    /// Whether external metrics are restricted to the namespace of the question.
    pub namespaced: bool,
}

/// How CPU and memory are asked for.
#[derive(Clone, Debug)]
pub struct ResourceQueries {
    /// CPU.
    pub cpu: ResourceQuery,
    /// Memory.
    pub memory: ResourceQuery,
    /// Over which time values are reported.
    pub window: Duration,
}

/// How one resource is asked for.
#[derive(Clone, Debug)]
pub struct ResourceQuery {
    /// The query for containers.
    pub containers: Template,
    /// The query for nodes.
    pub nodes: Template,
    /// Which labels name pods, nodes and namespaces.
    pub labels: ResourceLabels,
    /// Which label names containers.
    pub container_label: String,
}

impl Rules {
    /// Makes rules of a configuration; the first that cannot be used is the error.
    pub fn compile(config: &Config, mapper: &Mapper, compat: Compat) -> Result<Self, ConfigError> {
        let all = |stage: Stage, rules: &[RuleConfig]| -> Result<Vec<Rule>, ConfigError> {
            let compiled = rules.iter().enumerate().map(|(index, rule)| {
                Rule::compile(rule, mapper).map_err(|message| failed(stage, Some(index), message))
            });
            compiled.collect()
        };
        let custom = all(Stage::Rules, &config.rules)?;
        let external = all(Stage::ExternalRules, &config.external_rules)?;
        let resource = config.resource_rules.as_ref().map(|rules| ResourceQueries::compile(rules, mapper));
        let resource = resource.transpose().map_err(|message| failed(Stage::ResourceRules, None, message))?;
        Ok(Self { custom, external, resource, compat })
    }

    /// Rules of a family, in the order of the file.
    pub fn of(&self, family: Family) -> &[Rule] {
        match family {
            Family::Custom => &self.custom,
            Family::External => &self.external,
        }
    }

    /// The rule with this place in the file.
    pub fn get(&self, family: Family, index: usize) -> Option<&Rule> {
        self.of(family).get(index)
    }

    /// How CPU and memory are asked for; nothing if that is not served.
    pub fn resource(&self) -> Option<&ResourceQueries> {
        self.resource.as_ref()
    }

    /// How exactly the adapter is imitated.
    pub fn compat(&self) -> Compat {
        self.compat
    }

    /// Distinct selectors of the rules of custom metrics, in the order of the file.
    pub fn custom_selectors(&self) -> Vec<Arc<str>> {
        distinct(self.custom.iter())
    }

    /// Distinct selectors of the rules of external metrics, in the order of the file.
    pub fn external_selectors(&self) -> Vec<Arc<str>> {
        distinct(self.external.iter())
    }

    /// Distinct selectors of all rules, in the order of the file.
    pub fn selectors(&self) -> Vec<Arc<str>> {
        distinct(self.custom.iter().chain(&self.external))
    }
}

fn distinct<'a>(rules: impl Iterator<Item = &'a Rule>) -> Vec<Arc<str>> {
    let mut seen = std::collections::HashSet::new();
    rules.map(|rule| &rule.selector).filter(|selector| seen.insert(&***selector)).map(Arc::clone).collect()
}

fn failed(stage: Stage, rule: Option<usize>, message: String) -> ConfigError {
    ConfigError { stage, rule, message, problems: Vec::new() }
}

impl Rule {
    /// Makes a rule of what is written, complaining in the adapter's words and order.
    pub(super) fn compile(config: &RuleConfig, mapper: &Mapper) -> Result<Self, String> {
        let labels = ResourceLabels::new(&config.resources, mapper)?;
        let series = quote(&config.series_query);
        let query = query_template(&config.metrics_query).map_err(|why| {
            format!("unable to construct metrics query associated with series query {series}: {why}")
        })?;
        let mut filters = Vec::with_capacity(config.series_filters.len() + 1);
        for filter in &config.series_filters {
            let filter = Filter::new(filter).map_err(|why| {
                format!("unable to generate series name filter associated with series query {series}: {why}")
            })?;
            filters.push(filter);
        }
        if !config.name.matches.is_empty() {
            let named = SeriesFilter { is: config.name.matches.clone(), is_not: String::new() };
            let filter = Filter::new(&named).map_err(|why| {
                format!(
                    "unable to generate series name filter from name rules associated with series query {series}: {why}"
                )
            })?;
            filters.push(filter);
        }
        let naming = Naming::new(&config.name).map_err(|error| match error {
            NamingError::Pattern(why) => format!(
                "unable to compile series name match expression {} associated with series query {series}: {why}",
                quote(&config.name.matches)
            ),
            NamingError::NoLayout => format!(
                "must specify an 'as' value for name matcher {} associated with series query {series}",
                quote(&config.name.matches)
            ),
        })?;
        Ok(Self {
            selector: config.series_query.as_str().into(),
            filters,
            naming,
            labels,
            query,
            namespaced: config.resources.namespaced.unwrap_or(true),
        })
    }

    /// The name of the metric that a series of this name becomes; nothing if the rule does not want it.
    pub fn metric(&self, series: &str) -> Option<String> {
        if self.filters.iter().all(|filter| filter.accepts(series)) { self.naming.name(series) } else { None }
    }
}

fn query_template(text: &str) -> Result<Template, String> {
    Template::parse("metrics-query", text)
        .map_err(|why| format!("unable to parse metrics query template {}: {why}", quote(text)))
}

impl ResourceQueries {
    fn compile(rules: &ResourceRules, mapper: &Mapper) -> Result<Self, String> {
        let one = |rule: &ResourceRule, what: &str| {
            ResourceQuery::compile(rule, mapper)
                .map_err(|why| format!("unable to construct querier for {what} metrics: {why}"))
        };
        let (cpu, memory) = (one(&rules.cpu, "CPU")?, one(&rules.memory, "memory")?);
        Ok(Self { cpu, memory, window: rules.window })
    }
}

impl ResourceQuery {
    fn compile(rule: &ResourceRule, mapper: &Mapper) -> Result<Self, String> {
        let labels = ResourceLabels::new(&rule.resources, mapper)
            .map_err(|why| format!("unable to construct label-resource converter: {why}"))?;
        let containers = query_template(&rule.container_query)
            .map_err(|why| format!("unable to construct container metrics query: {why}"))?;
        let nodes = query_template(&rule.node_query)
            .map_err(|why| format!("unable to construct node metrics query: {why}"))?;
        Ok(Self { containers, nodes, labels, container_label: rule.container_label.clone() })
    }
}
