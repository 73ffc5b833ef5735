//! `plimsoll validate`: the errors of the API server, with their positions.

pub(super) mod keda_objects;
mod kinds;
#[cfg(test)]
mod tests;
mod workload;

use std::path::PathBuf;

use api::autoscaling::FeatureGates;
use api::keda::KedaProfile;
use api::yaml::{self, Diagnostic, Document, SourceFile};
use keda::admission::AdmissionKind;
use serde::Serialize;
use sim::scenario::Variation;

use self::kinds::Checked;
use super::gates::GatesArg;
use super::profile::KubernetesProfileArg;
use crate::failure::{CommandResult, Failure};
use crate::files;
use crate::output::{self, Format};
use crate::scenario;

/// Check autoscalers, KEDA's objects and scenarios without a cluster
///
/// Unknown and duplicate fields, wrong types, and everything the Kubernetes API server or KEDA's webhook would refuse, in
/// every document at once, each with file, line and column: HorizontalPodAutoscalers of all versions, Autoscalers,
/// ScaledObjects, ScaledJobs, (Cluster)TriggerAuthentications and CloudEventSources with the parameters of their triggers; of
/// Deployments, StatefulSets and ReplicaSets what scaling depends on. Other kinds are not checked, which the output says. A
/// file with a Scenario document is checked as a whole. `plimsoll lint` compares autoscalers with their targets.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll validate hpa.yaml
  plimsoll validate manifests/*.yaml -o json
  plimsoll validate examples/php-apache.yaml
  plimsoll validate scaledobject.yaml
  helm template ./chart | plimsoll validate -
  plimsoll validate --strict rendered.yaml
  plimsoll validate --feature-gates HPAScaleToZero=true hpa.yaml
  plimsoll validate --kubernetes-profile 1.37 hpa.yaml
  plimsoll validate --keda-profile 2.21 scaledobject.yaml

Exit codes: 0 nothing is wrong, 1 something outside failed, 2 a file cannot be read or a document is
invalid; with --strict also if a document was not checked.")]
pub(crate) struct ValidateArgs {
    /// Files with manifests; - is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    gates: GatesArg,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    /// Release of KEDA whose trigger parameters are read, where releases differ: 2.20 or 2.21.
    #[arg(long, value_name = "RELEASE", default_value_t)]
    keda_profile: KedaProfile,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Fail if there is a document of a kind that is not checked.
    #[arg(long)]
    strict: bool,
    /// Print nothing if all is well.
    #[arg(short, long)]
    quiet: bool,
}

/// The releases by whose rules documents are checked.
#[derive(Clone, Copy, Default)]
pub(super) struct ValidationRules {
    /// Kubernetes: its release and feature gates.
    gates: FeatureGates,
    keda: KedaProfile,
}

impl ValidationRules {
    /// Those of a release of KEDA.
    pub(super) fn of_keda(keda: KedaProfile) -> Self {
        Self { keda, ..Self::default() }
    }

    /// Those of a release of Kubernetes, with its default feature gates, and of a release of KEDA.
    #[cfg(feature = "desk")]
    pub(super) fn of_releases(kubernetes: api::autoscaling::KubernetesVersion, keda: KedaProfile) -> Self {
        Self { gates: FeatureGates::of(kubernetes), keda }
    }
}

/// The result for one document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ValidationFinding {
    file: String,
    line: u32,
    kind: String,
    name: String,
    /// Whether it was checked and has no problem.
    valid: bool,
    /// `all`, `part` or `no`.
    checked: &'static str,
    /// What was checked, where it is a part.
    #[serde(skip_serializing_if = "str::is_empty")]
    checked_part: &'static str,
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

pub(crate) fn run(args: &ValidateArgs) -> CommandResult {
    let rules =
        ValidationRules { gates: args.gates.gates(args.kubernetes.version())?, keda: args.keda_profile };
    let mut findings = Vec::new();
    let mut problems = Vec::new();
    for source in files::read_all(&args.files)? {
        check(&source, rules, &mut findings, &mut problems)?;
    }
    if matches!(args.output, Format::Json | Format::Yaml) {
        output::value(args.output, &findings)?;
    } else if !args.quiet {
        output::text_out(&findings.iter().filter_map(ValidationFinding::line).collect::<String>())?;
    }
    if args.strict
        && problems.is_empty()
        && let Some(unknown) = findings.iter().find(|finding| finding.checked == "no")
    {
        let ValidationFinding { file, line, kind, .. } = unknown;
        return Err(Failure::input(format!(
            "{file}:{line}: {kind} is not a kind that can be checked (--strict)"
        )));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::Problems(problems))
}

fn check(
    source: &SourceFile,
    rules: ValidationRules,
    findings: &mut Vec<ValidationFinding>,
    problems: &mut Vec<Diagnostic>,
) -> CommandResult {
    let documents: Vec<Document> = yaml::parse(source)?.into_iter().flat_map(Document::into_items).collect();
    if documents.is_empty() {
        return Err(Failure::input(format!("{} is empty", source.name)));
    }
    // A scenario's gates and workloads affect its autoscalers, so such a file is checked as a whole.
    if has_scenario(&documents) {
        let kubernetes = rules.gates.kubernetes;
        let variation = Variation { kubernetes, leaves_out_event_driven: true, ..Variation::default() };
        let found = match scenario::load(std::slice::from_ref(source), variation) {
            Ok(_) => Vec::new(),
            Err(Failure::Problems(found)) => found,
            Err(other) => return Err(other),
        };
        let checked = Checked::All(found);
        for document in documents.iter().filter(|d| word(d, "kind") == "Scenario") {
            findings.push(finding(source, document, &checked));
        }
        problems.extend(checked.problems().iter().cloned());
    }
    for document in beside_scenario(&documents) {
        let checked = kinds::check(document, rules);
        findings.push(finding(source, document, &checked));
        problems.extend(checked.problems().iter().cloned());
    }
    Ok(())
}

/// The problems of documents that loading their Scenario does not find; without a Scenario, all their problems.
#[cfg(feature = "desk")]
pub(super) fn problems(documents: &[Document], rules: ValidationRules) -> Vec<Diagnostic> {
    let found = beside_scenario(documents).map(|document| kinds::check(document, rules));
    found.flat_map(|checked| checked.problems().to_vec()).collect()
}

/// Whether there is a document of the kind `Scenario`.
pub(super) fn has_scenario(documents: &[Document]) -> bool {
    documents.iter().any(|document| word(document, "kind") == "Scenario")
}

/// The documents that are checked one by one: those that a Scenario does not read.
fn beside_scenario(documents: &[Document]) -> impl Iterator<Item = &Document> {
    let has_scenario = has_scenario(documents);
    documents.iter().filter(move |document| !has_scenario || is_of_keda(document))
}

fn is_of_keda(document: &Document) -> bool {
    let api_version = word(document, "apiVersion");
    let is_group = ["keda.sh/", "eventing.keda.sh/"].iter().any(|group| api_version.starts_with(group));
    is_group || AdmissionKind::parse(&word(document, "kind")).is_some()
}

impl ValidationFinding {
    /// What is printed about a document without problems.
    fn line(&self) -> Option<String> {
        let Self { file, line, kind, name, checked_part, .. } = self;
        match self.checked {
            "no" => {
                Some(format!("{file}:{line}: {kind}/{name} is not checked: its kind is not known here\n"))
            }
            _ if !self.valid => None,
            "part" => Some(format!("{file}:{line}: {kind}/{name} is valid ({checked_part} checked)\n")),
            _ => Some(format!("{file}:{line}: {kind}/{name} is valid\n")),
        }
    }
}

fn finding(source: &SourceFile, document: &Document, result: &Checked) -> ValidationFinding {
    let problems = result.problems();
    let (checked, checked_part) = match result {
        Checked::All(_) => ("all", ""),
        Checked::InPart(_, part) => ("part", *part),
        Checked::Nothing => ("no", ""),
    };
    ValidationFinding {
        file: source.name.to_string(),
        line: document.root.span.line,
        kind: word(document, "kind"),
        name: word(document, "metadata.name"),
        valid: problems.is_empty() && checked != "no",
        checked,
        checked_part,
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
