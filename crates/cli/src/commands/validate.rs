//! `plimsoll validate`: the errors of the API server, with their positions.

use std::path::PathBuf;

use api::autoscaling::FeatureGates;
use api::manifest::{self, Manifest};
use api::yaml::{self, Diagnostic, Document, SourceFile};
use serde::Serialize;
use sim::scenario::Variation;

use super::gates::GatesArg;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::output::{self, Format};
use crate::scenario;

/// Check autoscalers and scenarios without a cluster
///
/// Unknown and duplicate fields, wrong types, and everything the Kubernetes 1.36 API server would refuse, in every
/// document at once, each with file, line and column. A file with a Scenario document is checked as a whole.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll validate hpa.yaml
  plimsoll validate manifests/*.yaml -o json
  plimsoll validate examples/php-apache.yaml
  helm template ./chart | plimsoll validate -
  plimsoll validate --feature-gates HPAScaleToZero=true hpa.yaml")]
pub(crate) struct ValidateArgs {
    /// Files with manifests; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    gates: GatesArg,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Print nothing if all is well.
    #[arg(short, long)]
    quiet: bool,
}

/// The result for one document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ValidationFinding {
    file: String,
    line: u32,
    kind: String,
    name: String,
    valid: bool,
    problems: Vec<Complaint>,
}

/// One problem, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Complaint {
    line: u32,
    column: u32,
    path: String,
    message: String,
}

pub(crate) fn run(args: &ValidateArgs) -> Outcome {
    let gates = args.gates.gates()?;
    let mut findings = Vec::new();
    let mut problems = Vec::new();
    for source in files::read_all(&args.files)? {
        check(&source, gates, &mut findings, &mut problems)?;
    }
    if matches!(args.output, Format::Json | Format::Yaml) {
        output::value(args.output, &findings)?;
    } else if !args.quiet {
        let line = |f: &ValidationFinding| format!("{}:{}: {}/{} is valid\n", f.file, f.line, f.kind, f.name);
        let lines = findings.iter().filter(|f| f.valid).map(line).collect::<Vec<_>>().concat();
        output::text_out(&lines)?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::Problems(problems))
}

fn check(
    source: &SourceFile,
    gates: FeatureGates,
    findings: &mut Vec<ValidationFinding>,
    problems: &mut Vec<Diagnostic>,
) -> Outcome {
    let documents: Vec<Document> = yaml::parse(source)?.into_iter().flat_map(Document::into_items).collect();
    if documents.is_empty() {
        return Err(Failure::input(format!("{} is empty", source.name)));
    }
    // A scenario's gates and workloads affect its autoscalers, so such a file is checked as a whole.
    if documents.iter().any(|d| word(d, "kind") == "Scenario") {
        let found = match scenario::load(std::slice::from_ref(source), Variation::default()) {
            Ok(_) => Vec::new(),
            Err(Failure::Problems(found)) => found,
            Err(other) => return Err(other),
        };
        for document in documents.iter().filter(|d| word(d, "kind") == "Scenario") {
            findings.push(finding(source, document, &found));
        }
        problems.extend(found);
        return Ok(());
    }
    for document in documents {
        let found = complaints(&document, gates);
        findings.push(finding(source, &document, &found));
        problems.extend(found);
    }
    Ok(())
}

/// The problems of one document.
fn complaints(document: &Document, gates: FeatureGates) -> Vec<Diagnostic> {
    let admitted = Manifest::read(document).and_then(|manifest| match manifest {
        Manifest::Hpa(hpa) => manifest::admit_hpa(document, *hpa, gates).map(drop),
        Manifest::Autoscaler(autoscaler) => manifest::admit_autoscaler(document, *autoscaler).map(drop),
        Manifest::Proposal(proposed) => manifest::admit_proposal(document, *proposed).map(drop),
        Manifest::Other { .. } => Ok(()),
    });
    admitted.err().unwrap_or_default()
}

fn finding(source: &SourceFile, document: &Document, problems: &[Diagnostic]) -> ValidationFinding {
    ValidationFinding {
        file: source.name.to_string(),
        line: document.root.span.line,
        kind: word(document, "kind"),
        name: word(document, "metadata.name"),
        valid: problems.is_empty(),
        problems: problems
            .iter()
            .map(|p| Complaint {
                line: p.span.line,
                column: p.span.column,
                path: p.path.clone(),
                message: p.message.clone(),
            })
            .collect(),
    }
}

fn word(document: &Document, path: &str) -> String {
    document.root.get(path).and_then(yaml::Node::as_str).unwrap_or_default().to_owned()
}
