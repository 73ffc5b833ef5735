//! The documents of a scenario, sorted by kind.

use api::yaml::{self, Diagnostic, Document, SourceFile};
use engine::KubernetesVersion;

use super::API_VERSION;
use super::document::ScenarioDocument;
use super::manifest::{self, Manifest};

/// The documents of all files.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) scenarios: Vec<(Document, ScenarioDocument)>,
    pub(super) manifests: Vec<Manifest>,
    pub(super) autoscalers: Vec<Document>,
}

/// Changes to a scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variation<'a> {
    /// Files whose autoscalers replace all others, and whose workloads replace those with the same name. The load stays: a
    /// `Scenario` document in them is ignored.
    pub sources: &'a [SourceFile],
    /// Another seed.
    pub seed: Option<u64>,
    /// The release of Kubernetes whose behavior is simulated.
    pub kubernetes: KubernetesVersion,
    /// Whether ScaledObjects and ScaledJobs are left out, because an operator acts on them. Otherwise each of them is a problem,
    /// because it cannot be simulated.
    pub leaves_out_event_driven: bool,
}

impl Contents {
    /// Replaces parts by those of `other`.
    pub(super) fn vary(&mut self, other: Self) {
        if !other.autoscalers.is_empty() {
            self.autoscalers = other.autoscalers;
        }
        for manifest in other.manifests {
            self.manifests.retain(|m| !m.is_same(&manifest));
            self.manifests.push(manifest);
        }
        if self.scenarios.is_empty() {
            self.scenarios = other.scenarios;
        }
    }
}

/// Sorts the documents of all files by kind.
pub(super) fn read(
    sources: &[SourceFile],
    leaves_out_event_driven: bool,
    problems: &mut Vec<Diagnostic>,
) -> Contents {
    let mut contents = Contents::default();
    for source in sources {
        let documents = match yaml::parse(source) {
            Ok(documents) => documents,
            Err(found) => {
                problems.push(found);
                continue;
            }
        };
        for document in documents.into_iter().flat_map(Document::into_items) {
            if let Err(found) = sort(document, leaves_out_event_driven, &mut contents) {
                problems.extend(found);
            }
        }
    }
    contents
}

fn sort(
    document: Document,
    leaves_out_event_driven: bool,
    contents: &mut Contents,
) -> Result<(), Vec<Diagnostic>> {
    const OURS: [&str; 6] =
        ["Scenario", "Deployment", "StatefulSet", "ReplicaSet", "HorizontalPodAutoscaler", "Autoscaler"];
    let kind = document.root.get("kind").and_then(|node| node.as_str()).unwrap_or_default().to_owned();
    match kind.as_str() {
        "Scenario" => {
            let scenario: ScenarioDocument = document.decode()?;
            if scenario.api_version != API_VERSION {
                let message =
                    format!("expected apiVersion `{API_VERSION}`, found `{}`", scenario.api_version);
                return Err(vec![document.problem("apiVersion", message)]);
            }
            contents.scenarios.push((document, scenario));
        }
        kind if manifest::KINDS.contains(&kind) => {
            let manifest = manifest::read(&document)?;
            if let Some(first) = contents.manifests.iter().find(|m| m.is_same(&manifest)) {
                let place = first.document.locate("metadata.name");
                let message = format!(
                    "{kind} `{}` is already declared at {}:{}",
                    manifest.name, first.document.source.name, place.line
                );
                return Err(vec![document.problem("metadata.name", message)]);
            }
            contents.manifests.push(manifest);
        }
        "HorizontalPodAutoscaler" | "Autoscaler" => contents.autoscalers.push(document),
        "" => return Err(vec![document.problem("", "this document has no `kind`")]),
        "ScaledObject" | "ScaledJob" if leaves_out_event_driven => {}
        "ScaledObject" | "ScaledJob" => {
            let problem = document.problem("kind", format!("{kind} cannot be simulated yet"));
            return Err(vec![problem.with_hint("`plimsoll up FILE` runs it, in real time or faster")]);
        }
        // Other kinds, such as Services and ConfigMaps, are ignored, but a misspelt kind is a problem.
        other => {
            if let Some(near) = yaml::nearest(other, OURS) {
                let problem = document.problem("kind", format!("unknown kind `{other}`"));
                return Err(vec![problem.with_hint(format!("did you mean `{near}`?"))]);
            }
        }
    }
    Ok(())
}

/// The one `Scenario` document.
pub(super) fn the_scenario<'a>(
    sources: &[SourceFile],
    found: &'a [(Document, ScenarioDocument)],
) -> Result<(&'a Document, &'a ScenarioDocument), Vec<Diagnostic>> {
    match found {
        [(document, scenario)] => Ok((document, scenario)),
        [] => {
            let nowhere = SourceFile::new("<input>", "");
            let source = sources.first().unwrap_or(&nowhere);
            let problem = Diagnostic::at(source, source.span(0, 0), "there is no document of kind Scenario");
            let hint = "it says how long to simulate and what load workloads get";
            Err(vec![problem.with_hint(hint)])
        }
        [_, (second, _), ..] => {
            Err(vec![second.problem("kind", "there is already a document of kind Scenario; one run has one")])
        }
    }
}
