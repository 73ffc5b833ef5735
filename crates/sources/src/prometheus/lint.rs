//! Checks a rule file, and explains what a rule does.

mod assumed;
mod explain;
pub mod promql;
mod resources;
mod rules;
#[cfg(test)]
mod tests;

use api::yaml::{Document, SourceFile};

pub use assumed::assumed_mapper;
pub use explain::{
    ExampleQuery, ExplainedMetric, ExplainedResource, Explanation, RuleSelection, explain, parse_series,
};

use super::config::{AdapterConfig, ConfigSection};
use super::mapper::RestMapper;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The rule does not work.
    Error,
    /// The rule does not do what it seems to do.
    Warning,
    /// Information.
    Note,
}

impl Severity {
    /// Name of the severity.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Location in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingLocation {
    /// Section of the file.
    pub section: ConfigSection,
    /// Index of the rule in its section.
    pub rule: Option<usize>,
    /// Path of the key, such as `rules[0].name.as`; empty for the whole file.
    pub key: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column, counted from 1.
    pub column: u32,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Location.
    pub location: FindingLocation,
    /// Message.
    pub message: String,
    /// Remedy.
    pub remedy: String,
}

/// Checks a rule file. Without a mapper, resources are assumed to exist; see [`assumed_mapper`].
///
/// Findings are in file order.
pub fn lint(text: &str, mapper: Option<&RestMapper>) -> Vec<Finding> {
    let source = SourceFile::new("config", text);
    let config = match AdapterConfig::read(&source) {
        Ok(config) => config,
        Err(error) => {
            let findings = error.problems.into_iter().map(|problem| Finding {
                severity: Severity::Error,
                location: FindingLocation {
                    section: ConfigSection::Parse,
                    rule: None,
                    key: problem.path,
                    line: problem.span.line,
                    column: problem.span.column,
                },
                message: problem.message,
                remedy: problem.hint.unwrap_or_else(|| "correct the file".to_owned()),
            });
            return findings.collect();
        }
    };
    let documents = api::yaml::parse(&source).unwrap_or_default();
    let guessed;
    let mapper = match mapper {
        Some(mapper) => mapper,
        None => {
            guessed = assumed_mapper(&config);
            &guessed
        }
    };
    let mut report = FindingCollector { document: documents.first(), findings: Vec::new() };
    if let Some(second) = documents.get(1) {
        let line = second.root.locate("").line;
        report
            .add(
                Severity::Warning,
                ConfigSection::Parse,
                None,
                "",
                "only the first document of a file is read",
            )
            .remedy("move the rules into the first document");
        if let Some(finding) = report.findings.last_mut() {
            finding.location.line = line;
        }
    }
    if config == AdapterConfig::default() {
        report
            .add(
                Severity::Warning,
                ConfigSection::Parse,
                None,
                "",
                "the file has no rules, so nothing is served",
            )
            .remedy("add rules, externalRules or resourceRules");
    }
    rules::check(&config, mapper, &mut report);
    if let Some(resources) = &config.resource_rules {
        resources::check(resources, mapper, &mut report);
    }
    let mut findings = report.findings;
    findings.sort_by_key(|finding| (finding.location.line, finding.severity));
    findings
}

/// Collects findings with their locations.
struct FindingCollector<'a> {
    document: Option<&'a Document>,
    findings: Vec<Finding>,
}

impl FindingCollector<'_> {
    fn add(
        &mut self,
        severity: Severity,
        section: ConfigSection,
        rule: Option<usize>,
        key: &str,
        message: impl Into<String>,
    ) -> FindingBuilder<'_> {
        let path = match (section, rule, key) {
            (ConfigSection::Parse, ..) => String::new(),
            (section, None, "") => section.name().to_owned(),
            (section, None, key) => format!("{section}.{key}"),
            (section, Some(rule), "") => format!("{section}[{rule}]"),
            (section, Some(rule), key) => format!("{section}[{rule}].{key}"),
        };
        let span = self.document.map(|document| document.locate(&path)).unwrap_or_default();
        let location =
            FindingLocation { section, rule, key: path, line: span.line.max(1), column: span.column.max(1) };
        self.findings.push(Finding { severity, location, message: message.into(), remedy: String::new() });
        FindingBuilder(self.findings.last_mut())
    }
}

/// A finding without a remedy.
struct FindingBuilder<'a>(Option<&'a mut Finding>);

impl FindingBuilder<'_> {
    fn remedy(self, text: impl Into<String>) {
        if let Some(finding) = self.0 {
            finding.remedy = text.into();
        }
    }
}
