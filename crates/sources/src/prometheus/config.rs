//! The configuration file of prometheus-adapter, read strictly.

mod duration;
mod read;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use api::yaml::{Diagnostic, SourceFile};

use super::mapper::GroupResource;

/// The configuration. A missing section means that its API is not served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Rules of custom metrics.
    pub rules: Vec<RuleConfig>,
    /// Rules of external metrics.
    pub external_rules: Vec<RuleConfig>,
    /// Rules of resource metrics.
    pub resource_rules: Option<ResourceRules>,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleConfig {
    /// Series selector.
    pub series_query: String,
    /// Filters on series names.
    pub series_filters: Vec<SeriesFilter>,
    /// Mapping of labels to resources.
    pub resources: ResourceMapping,
    /// Naming of metrics.
    pub name: NameMapping,
    /// Template of the query.
    pub metrics_query: String,
}

/// Filter on series names; exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesFilter {
    /// Regular expression that must match.
    pub is: String,
    /// Regular expression that must not match.
    pub is_not: String,
}

/// Mapping of labels to resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceMapping {
    /// Template of label names.
    pub template: String,
    /// Labels and their resources, in file order.
    pub overrides: Vec<(String, GroupResource)>,
    /// Whether external metrics are restricted to the namespace of the query.
    pub namespaced: Option<bool>,
}

/// Naming of metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMapping {
    /// Regular expression on the series name.
    pub matches: String,
    /// Expansion of the match.
    pub as_: String,
}

/// Rules of resource metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRules {
    /// CPU.
    pub cpu: ResourceRule,
    /// Memory.
    pub memory: ResourceRule,
    /// Window of the reported values.
    pub window: Duration,
}

/// Queries of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// Template of the container query.
    pub container_query: String,
    /// Template of the node query.
    pub node_query: String,
    /// Mapping of labels to pods, nodes and namespaces.
    pub resources: ResourceMapping,
    /// Label that names containers.
    pub container_label: String,
}

/// Section in which an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigSection {
    /// The file.
    Parse,
    /// `rules`.
    Rules,
    /// `externalRules`.
    ExternalRules,
    /// `resourceRules`.
    ResourceRules,
}

impl ConfigSection {
    /// The key of the file, or `parse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Rules => "rules",
            Self::ExternalRules => "externalRules",
            Self::ResourceRules => "resourceRules",
        }
    }
}

impl fmt::Display for ConfigSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// Section in which an error occurred.
    pub stage: ConfigSection,
    /// Index of the rule in its section.
    pub rule: Option<usize>,
    /// Error text; identical to that of prometheus-adapter where it has one.
    pub message: String,
    /// Syntax problems with their positions.
    pub problems: Vec<Diagnostic>,
}

impl AdapterConfig {
    /// Parses a file.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::read(&SourceFile::new("config", text))
    }

    /// Parses a file; its name is shown in errors.
    ///
    /// As in prometheus-adapter, only the first document is read; an empty one has no rules.
    pub fn read(source: &SourceFile) -> Result<Self, ConfigError> {
        let documents = api::yaml::parse(source).map_err(|problem| refused(vec![problem]))?;
        let Some(document) = documents.first() else { return Ok(Self::default()) };
        let mut reader = read::ConfigReader::new(&document.source);
        let config = reader.config(&document.root);
        let problems = reader.finish();
        if problems.is_empty() { Ok(config) } else { Err(refused(problems)) }
    }
}

fn refused(problems: Vec<Diagnostic>) -> ConfigError {
    let mut message = "unable to parse metrics discovery config: ".to_owned();
    for (index, problem) in problems.iter().enumerate() {
        let separator = if index > 0 { "; " } else { "" };
        let (line, column) = (problem.span.line, problem.span.column);
        message.push_str(&format!("{separator}line {line}, column {column}: {}", problem.message));
        if let Some(hint) = &problem.hint {
            message.push_str(&format!(" ({hint})"));
        }
    }
    ConfigError { stage: ConfigSection::Parse, rule: None, message, problems }
}
