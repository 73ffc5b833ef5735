//! `plimsoll metrics lint`: errors and likely mistakes in a file of rules.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use api::provider::Compat;
use api::yaml::SourceFile;
use engine::explain::plural;
use jiff::Timestamp;
use serde_json::{Value, json};
use sources::prometheus::client::PrometheusClient;
use sources::prometheus::config::{AdapterConfig, ConfigSection};
use sources::prometheus::lint::{Finding, FindingLocation, Severity, lint};
use sources::prometheus::mapper::RestMapper;
use sources::prometheus::registry::Registry;
use sources::prometheus::rule::{RuleFamily, Rules};

use super::query_targets::QueryTargets;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::live::page::{Page, Paint};
use crate::output::{self, Format};

/// How far back series discovery looks.
const SERIES_LOOKBACK: Duration = Duration::from_mins(10);
/// Columns of a line that are shown.
const MAX_LINE_WIDTH: usize = 120;

/// Report errors in a file of rules, with their positions
///
/// Reads the configuration of prometheus-adapter (rules, resourceRules, externalRules) as the server does, and finds what
/// is likely a mistake: names that become empty, labels that match no kind, queries without results. With a Prometheus, it
/// also finds rules that match no series.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll metrics lint rules.yaml
  plimsoll metrics lint rules.yaml --prometheus-url http://localhost:9090 \\
    --kubeconfig ~/.kube/config
  kubectl -n plimsoll-system get configmap plimsoll-metrics-rules \\
    -o jsonpath='{.data.rules\\.yaml}' | plimsoll metrics lint -

Exit codes: 0 nothing is wrong, 1 something is, 2 the file cannot be read.")]
pub(super) struct LintArgs {
    /// The file; - is standard input.
    config: PathBuf,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    targets: QueryTargets,
}

pub(super) fn run(args: &LintArgs) -> CommandResult {
    let source = files::read(&args.config)?;
    crate::live::run(async move {
        let mapper = args.targets.mapper().await?;
        let mut findings = lint(&source.text, mapper.as_ref());
        if let Some(prometheus) = args.targets.prometheus()?
            && let Ok(config) = AdapterConfig::read(&source)
        {
            let mapper = args.targets.some_mapper(&config).await?;
            findings.extend(unmatched(&source, &config, &mapper, &prometheus).await?);
            findings.sort_by_key(|finding| (finding.location.line, finding.severity));
        }
        match args.output {
            Format::Json | Format::Yaml => {
                let all: Vec<Value> = findings.iter().map(|finding| value(&source, finding)).collect();
                output::value(args.output, &all)?;
            }
            Format::Table | Format::Wide => output::text_out(&page(&source, &findings, Page::stdout()))?,
        }
        let wrong = findings.iter().any(|finding| finding.severity == Severity::Error);
        if wrong { Err(Failure::Printed(1)) } else { Ok(()) }
    })
}

/// Rules that match no series, or whose series become no metric.
async fn unmatched(
    source: &SourceFile,
    config: &AdapterConfig,
    mapper: &RestMapper,
    prometheus: &PrometheusClient,
) -> Result<Vec<Finding>, Failure> {
    // Rules that do not compile are reported already.
    let Ok(rules) = Rules::compile(config, mapper, Compat::Better) else { return Ok(Vec::new()) };
    let now = Timestamp::now();
    let mut found = Vec::new();
    for selector in rules.selectors() {
        let listed = prometheus.series(&selector, now - SERIES_LOOKBACK, now).await;
        found.push((selector, listed));
    }
    if let Some((_, Err(error))) = found.first()
        && found.iter().all(|(_, listed)| listed.is_err())
    {
        return Err(Failure::Outside(format!(
            "failed to ask Prometheus: {error}\n  remedy: {}",
            error.remedy()
        )));
    }
    let series: Vec<_> = found
        .iter()
        .filter_map(|(selector, listed)| Some((selector.clone(), listed.as_ref().ok()?.shapes.clone())))
        .collect();
    let registry = Registry::build(&rules, mapper, &series);
    let documents = api::yaml::parse(source).unwrap_or_default();
    let mut findings = Vec::new();
    for (family, section) in
        [(RuleFamily::Custom, ConfigSection::Rules), (RuleFamily::External, ConfigSection::ExternalRules)]
    {
        for (index, rule) in rules.of(family).iter().enumerate() {
            let listed =
                found.iter().find(|(selector, _)| *selector == rule.selector).map(|(_, listed)| listed);
            let (severity, message, remedy) = match listed {
                Some(Err(error)) => {
                    (Severity::Error, format!("Prometheus refuses it: {error}"), error.remedy().to_owned())
                }
                Some(Ok(listed)) if listed.series == 0 => (
                    Severity::Warning,
                    "no series of the last ten minutes match".to_owned(),
                    "compare it with the series that Prometheus has".to_owned(),
                ),
                Some(Ok(listed)) if registry.count(family, index) == 0 => (
                    Severity::Warning,
                    format!("{} series match, and no metric comes of them", listed.series),
                    format!(
                        "plimsoll metrics explain --rule '{section}[{index}]' shows what leaves them out"
                    ),
                ),
                _ => continue,
            };
            let key = format!("{section}[{index}].seriesQuery");
            let span = documents.first().map(|document| document.locate(&key)).unwrap_or_default();
            let location = FindingLocation {
                section,
                rule: Some(index),
                key,
                line: span.line.max(1),
                column: span.column.max(1),
            };
            findings.push(Finding { severity, location, message, remedy });
        }
    }
    Ok(findings)
}

/// Findings as a compiler prints them.
fn page(source: &SourceFile, findings: &[Finding], page: Page) -> String {
    let mut text = String::new();
    let lines: Vec<&str> = source.text.lines().collect();
    for Finding { severity, location, message, remedy } in findings {
        let paint = match severity {
            Severity::Error => Paint::Red,
            Severity::Warning => Paint::Yellow,
            Severity::Note => Paint::Dim,
        };
        let within = if location.key.is_empty() { String::new() } else { format!(" in {}", location.key) };
        let label = page.paint(paint, severity.name());
        let _ = writeln!(
            text,
            "{label}: {}:{}:{}: {message}{within}",
            source.name, location.line, location.column
        );
        let number = location.line.to_string();
        let margin = " ".repeat(number.len());
        let at = usize::try_from(location.line).unwrap_or_default().saturating_sub(1);
        if let Some(line) =
            lines.get(at).filter(|line| line.chars().count() <= MAX_LINE_WIDTH && !line.contains('\t'))
        {
            let column = usize::try_from(location.column).unwrap_or_default().saturating_sub(1);
            let _ = writeln!(text, "{margin} |\n{number} | {line}\n{margin} | {}^", " ".repeat(column));
        }
        if !remedy.is_empty() {
            let _ = writeln!(text, "{margin} = remedy: {remedy}");
        }
        text.push('\n');
    }
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let _ = writeln!(text, "{}: {}, {}", source.name, plural(errors, "error"), plural(warnings, "warning"));
    text
}

fn value(source: &SourceFile, finding: &Finding) -> Value {
    let Finding { severity, location, message, remedy } = finding;
    json!({"severity": severity.name(), "file": &*source.name, "line": location.line, "column": location.column,
        "key": location.key, "message": message, "remedy": remedy})
}
