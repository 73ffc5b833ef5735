//! What is wrong, or will be, with a rule file; and what a rule does, step by step.

mod assumed;
mod explain;
pub mod promql;
mod resources;
mod rules;
#[cfg(test)]
mod tests;

use api::text::{Document, Source};

pub use assumed::assumed;
pub use explain::{Choice, ExplainedMetric, ExplainedResource, Explanation, Question, explain, sample};

use super::config::{Config, Stage};
use super::mapper::Mapper;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It does not work.
    Error,
    /// It does something else than it seems to.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Where something is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Section of the file.
    pub section: Stage,
    /// Rule of the section, counted from 0.
    pub rule: Option<usize>,
    /// Path of the key, such as `rules[0].name.as`; empty for the whole file.
    pub key: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column, counted from 1.
    pub column: u32,
}

/// One thing to know about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// Looks through a rule file. Without a mapper, resources are taken to exist; see [`assumed`].
///
/// Findings come in the order of the file.
pub fn lint(text: &str, mapper: Option<&Mapper>) -> Vec<Finding> {
    let source = Source::new("config", text);
    let config = match Config::read(&source) {
        Ok(config) => config,
        Err(error) => {
            let findings = error.problems.into_iter().map(|problem| Finding {
                severity: Severity::Error,
                place: Place {
                    section: Stage::Parse,
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
    let documents = api::text::parse(&source).unwrap_or_default();
    let guessed;
    let mapper = match mapper {
        Some(mapper) => mapper,
        None => {
            guessed = assumed(&config);
            &guessed
        }
    };
    let mut report = Report { document: documents.first(), findings: Vec::new() };
    if let Some(second) = documents.get(1) {
        let line = second.root.locate("").line;
        report
            .add(Severity::Warning, Stage::Parse, None, "", "only the first document of a file is read")
            .remedy("move the rules into the first document");
        if let Some(finding) = report.findings.last_mut() {
            finding.place.line = line;
        }
    }
    if config == Config::default() {
        report
            .add(Severity::Warning, Stage::Parse, None, "", "the file has no rules, so nothing is served")
            .remedy("add rules, externalRules or resourceRules");
    }
    rules::check(&config, mapper, &mut report);
    if let Some(resources) = &config.resource_rules {
        resources::check(resources, mapper, &mut report);
    }
    let mut findings = report.findings;
    findings.sort_by_key(|finding| (finding.place.line, finding.severity));
    findings
}

/// Collects findings and knows where things are.
struct Report<'a> {
    document: Option<&'a Document>,
    findings: Vec<Finding>,
}

impl Report<'_> {
    fn add(
        &mut self,
        severity: Severity,
        section: Stage,
        rule: Option<usize>,
        key: &str,
        message: impl Into<String>,
    ) -> Unremedied<'_> {
        let path = match (section, rule, key) {
            (Stage::Parse, ..) => String::new(),
            (section, None, "") => section.name().to_owned(),
            (section, None, key) => format!("{section}.{key}"),
            (section, Some(rule), "") => format!("{section}[{rule}]"),
            (section, Some(rule), key) => format!("{section}[{rule}].{key}"),
        };
        let span = self.document.map(|document| document.locate(&path)).unwrap_or_default();
        let place = Place { section, rule, key: path, line: span.line.max(1), column: span.column.max(1) };
        self.findings.push(Finding { severity, place, message: message.into(), remedy: String::new() });
        Unremedied(self.findings.last_mut())
    }
}

/// A finding that does not say yet what to do.
struct Unremedied<'a>(Option<&'a mut Finding>);

impl Unremedied<'_> {
    fn remedy(self, text: impl Into<String>) {
        if let Some(finding) = self.0 {
            finding.remedy = text.into();
        }
    }
}
