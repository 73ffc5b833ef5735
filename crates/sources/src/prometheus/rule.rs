//! Compiled rules: filters, names, labels of resources, queries.

mod error;
mod labels;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::gotext::quote;
use api::provider::Compat;

pub use error::{
    InverseError, LabelError, MappingError, NoLabel, QueryTemplateError, ResourceRuleError, RuleError,
};
pub use labels::ResourceLabels;

use super::config::{
    AdapterConfig, ConfigError, ConfigSection, ResourceRule, ResourceRules, RuleConfig, SeriesFilter,
};
use super::mapper::RestMapper;
use super::names::{MetricNaming, NamingError, SeriesNameFilter};
use super::template::Template;

/// All rules of a file.
#[derive(Clone, Debug)]
pub struct Rules {
    custom: Vec<Rule>,
    external: Vec<Rule>,
    resource: Option<ResourceQueries>,
    compat: Compat,
}

/// API that a rule belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleFamily {
    /// Custom metrics.
    Custom,
    /// External metrics.
    External,
}

/// One rule of custom or external metrics.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Series selector.
    pub selector: Arc<str>,
    /// Filters on series names.
    pub filters: Vec<SeriesNameFilter>,
    /// Naming of metrics.
    pub naming: MetricNaming,
    /// Mapping of labels to resources.
    pub labels: ResourceLabels,
    /// Query template.
    pub query: Template,
    /// Whether external metrics are restricted to the namespace of the query.
    pub namespaced: bool,
}

/// Queries of CPU and memory.
#[derive(Clone, Debug)]
pub struct ResourceQueries {
    /// CPU.
    pub cpu: ResourceQuery,
    /// Memory.
    pub memory: ResourceQuery,
    /// Window of the reported values.
    pub window: Duration,
}

/// Queries of one resource.
#[derive(Clone, Debug)]
pub struct ResourceQuery {
    /// Container query.
    pub containers: Template,
    /// Node query.
    pub nodes: Template,
    /// Mapping of labels to pods, nodes and namespaces.
    pub labels: ResourceLabels,
    /// Label that names containers.
    pub container_label: String,
}

impl Rules {
    /// Compiles a configuration; the first invalid rule is the error.
    pub fn compile(config: &AdapterConfig, mapper: &RestMapper, compat: Compat) -> Result<Self, ConfigError> {
        let all = |stage: ConfigSection, rules: &[RuleConfig]| -> Result<Vec<Rule>, ConfigError> {
            let compiled = rules.iter().enumerate().map(|(index, rule)| {
                Rule::compile(rule, mapper).map_err(|error| failed(stage, Some(index), &error))
            });
            compiled.collect()
        };
        let custom = all(ConfigSection::Rules, &config.rules)?;
        let external = all(ConfigSection::ExternalRules, &config.external_rules)?;
        let resource = config.resource_rules.as_ref().map(|rules| ResourceQueries::compile(rules, mapper));
        let resource =
            resource.transpose().map_err(|error| failed(ConfigSection::ResourceRules, None, &error))?;
        Ok(Self { custom, external, resource, compat })
    }

    /// Rules of a family in file order.
    pub fn of(&self, family: RuleFamily) -> &[Rule] {
        match family {
            RuleFamily::Custom => &self.custom,
            RuleFamily::External => &self.external,
        }
    }

    /// Rule by its index.
    pub fn get(&self, family: RuleFamily, index: usize) -> Option<&Rule> {
        self.of(family).get(index)
    }

    /// Queries of CPU and memory, if configured.
    pub fn resource(&self) -> Option<&ResourceQueries> {
        self.resource.as_ref()
    }

    /// Whether prometheus-adapter is imitated exactly.
    pub fn compat(&self) -> Compat {
        self.compat
    }

    /// Distinct selectors of custom rules in file order.
    pub fn custom_selectors(&self) -> Vec<Arc<str>> {
        distinct(self.custom.iter())
    }

    /// Distinct selectors of external rules in file order.
    pub fn external_selectors(&self) -> Vec<Arc<str>> {
        distinct(self.external.iter())
    }

    /// Distinct selectors of all rules in file order.
    pub fn selectors(&self) -> Vec<Arc<str>> {
        distinct(self.custom.iter().chain(&self.external))
    }
}

fn distinct<'a>(rules: impl Iterator<Item = &'a Rule>) -> Vec<Arc<str>> {
    let mut seen = std::collections::HashSet::new();
    rules.map(|rule| &rule.selector).filter(|selector| seen.insert(&***selector)).map(Arc::clone).collect()
}

fn failed(stage: ConfigSection, rule: Option<usize>, error: &RuleError) -> ConfigError {
    ConfigError { stage, rule, message: error.to_string(), problems: Vec::new() }
}

impl Rule {
    /// Compiles a rule; errors have the text and the order of prometheus-adapter.
    pub(super) fn compile(config: &RuleConfig, mapper: &RestMapper) -> Result<Self, RuleError> {
        let labels = ResourceLabels::new(&config.resources, mapper)?;
        let series = || quote(&config.series_query);
        let query = query_template(&config.metrics_query)
            .map_err(|source| RuleError::Query { series: series(), source })?;
        let mut filters = Vec::with_capacity(config.series_filters.len() + 1);
        for filter in &config.series_filters {
            let filter = SeriesNameFilter::new(filter)
                .map_err(|source| RuleError::Filter { series: series(), source })?;
            filters.push(filter);
        }
        if !config.name.matches.is_empty() {
            let named = SeriesFilter { is: config.name.matches.clone(), is_not: String::new() };
            let filter = SeriesNameFilter::new(&named)
                .map_err(|source| RuleError::NameFilter { series: series(), source })?;
            filters.push(filter);
        }
        let expression = || quote(&config.name.matches);
        let naming = MetricNaming::new(&config.name).map_err(|error| match error {
            NamingError::Pattern(source) => {
                RuleError::NameExpression { expression: expression(), series: series(), source }
            }
            NamingError::NoLayout => RuleError::NoLayout { expression: expression(), series: series() },
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

    /// Metric name of a series; `None` if the filters reject it.
    pub fn metric(&self, series: &str) -> Option<String> {
        if self.filters.iter().all(|filter| filter.accepts(series)) { self.naming.name(series) } else { None }
    }
}

fn query_template(text: &str) -> Result<Template, QueryTemplateError> {
    Template::parse("metrics-query", text).map_err(|source| QueryTemplateError { text: quote(text), source })
}

impl ResourceQueries {
    fn compile(rules: &ResourceRules, mapper: &RestMapper) -> Result<Self, RuleError> {
        let one = |rule: &ResourceRule, what: &'static str| {
            ResourceQuery::compile(rule, mapper).map_err(|source| RuleError::Resource { what, source })
        };
        let (cpu, memory) = (one(&rules.cpu, "CPU")?, one(&rules.memory, "memory")?);
        Ok(Self { cpu, memory, window: rules.window })
    }
}

impl ResourceQuery {
    fn compile(rule: &ResourceRule, mapper: &RestMapper) -> Result<Self, ResourceRuleError> {
        let labels = ResourceLabels::new(&rule.resources, mapper).map_err(ResourceRuleError::Mapping)?;
        let containers = query_template(&rule.container_query).map_err(ResourceRuleError::Containers)?;
        let nodes = query_template(&rule.node_query).map_err(ResourceRuleError::Nodes)?;
        Ok(Self { containers, nodes, labels, container_label: rule.container_label.clone() })
    }
}
