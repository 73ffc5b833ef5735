//! The configuration file of prometheus-adapter, read strictly.

mod duration;
mod read;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use api::text::{Problem, Source};

use super::mapper::GroupResource;

/// The whole file. A section that is missing means that its API is not served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Rules of custom metrics.
    pub rules: Vec<RuleConfig>,
    /// Rules of external metrics.
    pub external_rules: Vec<RuleConfig>,
    /// Rules of resource metrics.
    pub resource_rules: Option<ResourceRules>,
}

/// One rule, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleConfig {
    /// Which series are looked at, as a selector of Prometheus.
    pub series_query: String,
    /// Which of them count, by name.
    pub series_filters: Vec<SeriesFilter>,
    /// Which labels name objects.
    pub resources: ResourceMapping,
    /// How metrics are named.
    pub name: NameMapping,
    /// Template of the query.
    pub metrics_query: String,
}

/// A condition on the name of a series; exactly one of the two may be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesFilter {
    /// Expression that must match.
    pub is: String,
    /// Expression that must not match.
    pub is_not: String,
}

/// Which labels name objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceMapping {
    /// Template of label names.
    pub template: String,
    /// Labels and what they name, in the order of the file.
    pub overrides: Vec<(String, GroupResource)>,
    /// Whether external metrics are restricted to the namespace of the question.
    pub namespaced: Option<bool>,
}

/// How metrics are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMapping {
    /// Expression on the name of the series.
    pub matches: String,
    /// What becomes of it.
    pub as_: String,
}

/// Rules of resource metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRules {
    /// CPU.
    pub cpu: ResourceRule,
    /// Memory.
    pub memory: ResourceRule,
    /// Over which time values are reported.
    pub window: Duration,
}

/// How one resource is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    /// Template of the query for containers.
    pub container_query: String,
    /// Template of the query for nodes.
    pub node_query: String,
    /// Which labels name pods, nodes and namespaces.
    pub resources: ResourceMapping,
    /// Which label names containers.
    pub container_label: String,
}

/// What was being read when a configuration turned out to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The file.
    Parse,
    /// `rules`.
    Rules,
    /// `externalRules`.
    ExternalRules,
    /// `resourceRules`.
    ResourceRules,
}

impl Stage {
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

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What was being read.
    pub stage: Stage,
    /// Which rule of the section, counted from 0.
    pub rule: Option<usize>,
    /// What is wrong, in the adapter's words where it has any.
    pub message: String,
    /// The places in the file, if it could not be read.
    pub problems: Vec<Problem>,
}

impl Config {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::read(&Source::new("config", text))
    }

    /// Reads a file whose name is shown in complaints.
    ///
    /// As the adapter does, only the first document is read; an empty one is a configuration without rules.
    pub fn read(source: &Source) -> Result<Self, ConfigError> {
        let documents = api::text::parse(source).map_err(|problem| refused(vec![problem]))?;
        let Some(document) = documents.first() else { return Ok(Self::default()) };
        let mut reader = read::Reader::new(&document.source);
        let config = reader.config(&document.root);
        let problems = reader.finish();
        if problems.is_empty() { Ok(config) } else { Err(refused(problems)) }
    }
}

fn refused(problems: Vec<Problem>) -> ConfigError {
    let mut message = "unable to parse metrics discovery config: ".to_owned();
    for (index, problem) in problems.iter().enumerate() {
        let separator = if index > 0 { "; " } else { "" };
        let (line, column) = (problem.span.line, problem.span.column);
        message.push_str(&format!("{separator}line {line}, column {column}: {}", problem.message));
        if let Some(hint) = &problem.hint {
            message.push_str(&format!(" ({hint})"));
        }
    }
    ConfigError { stage: Stage::Parse, rule: None, message, problems }
}
