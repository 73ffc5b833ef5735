//! Files become a scenario that can run: manifests and the `Scenario` document are read, checked and wired together.

mod autoscaler;
pub mod document;
mod faults;
mod limits;
mod manifest;
mod settings;
mod shapes;
#[cfg(test)]
mod tests;
pub mod values;
mod wiring;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use api::selector::Selector;
use api::text::{self, Document, Problem, Source};
use engine::{Config, Spec};
use jiff::Timestamp;

pub use autoscaler::AutoscalerObject;
use autoscaler::Declared;
use document::{DescribedObject, MetricKind, ScenarioDocument, ScenarioSpec, Target};
use faults::{Faults, meant};
use manifest::Manifest;
use settings::Settings;
use shapes::Setting;
use values::TimeOfDay;
use wiring::Wiring;

use crate::inputs::{Input, Value};
use crate::random::Seed;
use crate::time::Millis;
use crate::workload::{Cadence, ContainerUsage, Plan};

/// Group and version of our own kinds.
pub const API_VERSION: &str = "plimsoll.dev/v1alpha1";

/// A scenario, complete and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// When virtual time begins.
    pub start: Timestamp,
    /// How long it runs.
    pub duration: Millis,
    /// Chooses the random numbers.
    pub seed: u64,
    /// Time between two decisions, unless an autoscaler has its own; also between two samples.
    pub sync_period: Millis,
    /// Settings of the controller.
    pub config: Arc<Config>,
    /// How the model is looked at.
    pub cadence: Cadence,
    /// Workloads in the order of the `Scenario` document.
    pub workloads: Vec<WorkloadPlan>,
    /// Autoscalers in the order of the files.
    pub autoscalers: Vec<AutoscalerPlan>,
}

/// A workload and how it behaves.
#[derive(Clone, Debug)]
pub struct WorkloadPlan {
    /// Kind of its manifest.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// Selector of its scale, as text.
    pub selector: String,
    /// How it behaves.
    pub plan: Plan,
    /// What its containers use.
    pub containers: Vec<ContainerUsage>,
    /// Metrics that tell of it.
    pub metrics: Vec<MetricPlan>,
}

/// A custom or external metric.
#[derive(Clone, Debug)]
pub struct MetricPlan {
    /// Name.
    pub name: String,
    /// Which API serves it.
    pub kind: MetricKind,
    /// The object it describes.
    pub object: Option<DescribedObject>,
    /// Labels that a metric selector can match.
    pub labels: BTreeMap<String, String>,
    /// What it tells.
    pub value: Value,
    /// What that is multiplied with.
    pub scale: f64,
    /// From a measurement until it can be read.
    pub delay: Millis,
}

/// An autoscaler and what it acts on.
#[derive(Clone, Debug)]
pub struct AutoscalerPlan {
    /// The object as it was written, with defaults.
    pub object: AutoscalerObject,
    /// What the engine makes of it.
    pub spec: Arc<Spec>,
    /// Its target, by its place among the workloads.
    pub workload: usize,
    /// Workloads whose pods its target's selector selects, by their place; usually just the target.
    pub looked_at: Vec<usize>,
    /// Where each metric comes from, in the order of the spec.
    pub inputs: Vec<Input>,
    /// Time between two decisions.
    pub period: Millis,
    /// Whether it only looks.
    pub dry_run: bool,
}

/// Reads the files a scenario refers to; the simulator itself opens none.
pub trait Files {
    /// The bytes of a file, or why it cannot be read.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;
}

impl<F: Fn(&Path) -> Result<Vec<u8>, String>> Files for F {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        self(path)
    }
}

/// What the files hold.
#[derive(Default)]
struct Contents {
    scenarios: Vec<(Document, ScenarioDocument)>,
    manifests: Vec<Manifest>,
    autoscalers: Vec<Document>,
}

/// What differs from the scenario as it is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variation<'a> {
    /// Files whose autoscalers take the place of all others, and whose workloads take that of those of the same name.
    /// The load stays: a `Scenario` document in them is not looked at.
    pub sources: &'a [Source],
    /// Other random numbers.
    pub seed: Option<u64>,
}

impl Contents {
    fn vary(&mut self, other: Self) {
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

impl Scenario {
    /// Reads a scenario from one file or several that belong together.
    pub fn load(sources: &[Source], files: &dyn Files) -> Result<Self, Vec<Problem>> {
        Self::load_varied(sources, Variation::default(), files)
    }

    /// Reads a scenario and changes it.
    pub fn load_varied(
        sources: &[Source],
        variation: Variation<'_>,
        files: &dyn Files,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut contents = read(sources, &mut problems);
        contents.vary(read(variation.sources, &mut problems));
        if let (Some(seed), Some((_, scenario))) = (variation.seed, contents.scenarios.first_mut()) {
            scenario.spec.seed = seed;
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (document, scenario) = the_scenario(sources, &contents.scenarios)?;
        let built = build(document, scenario, &contents, files, &mut problems);
        if problems.is_empty() { Ok(built) } else { Err(problems) }
    }

    /// Reads a moment: a length from the start (`12m30s`), a time of the day (`09:12:30`) or a full one (RFC 3339).
    pub fn moment(&self, text: &str) -> Option<Millis> {
        let at = if let Ok(TimeOfDay(time)) = text.parse() {
            let ahead = (time - TimeOfDay::of(self.start).0).0.rem_euclid(values::DAY.0);
            Millis(ahead)
        } else if let Ok(at) = text.parse::<Timestamp>() {
            Millis(at.as_millisecond() - self.start.as_millisecond())
        } else {
            text.parse().ok()?
        };
        (Millis::ZERO..=self.duration).contains(&at).then_some(at)
    }
}

/// Sorts the documents of all files by kind.
fn read(sources: &[Source], problems: &mut Vec<Problem>) -> Contents {
    let mut contents = Contents::default();
    for source in sources {
        let documents = match text::parse(source) {
            Ok(documents) => documents,
            Err(found) => {
                problems.push(found);
                continue;
            }
        };
        for document in documents.into_iter().flat_map(Document::into_items) {
            if let Err(found) = sort(document, &mut contents) {
                problems.extend(found);
            }
        }
    }
    contents
}

fn sort(document: Document, contents: &mut Contents) -> Result<(), Vec<Problem>> {
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
        "ScaledObject" | "ScaledJob" => {
            return Err(vec![document.problem("kind", format!("{kind} cannot be simulated yet"))]);
        }
        // Services, ConfigMaps and the like make no difference here; a slip of the pen does.
        other => {
            if let Some(near) = text::nearest(other, OURS) {
                let problem = document.problem("kind", format!("unknown kind `{other}`"));
                return Err(vec![problem.with_hint(format!("did you mean `{near}`?"))]);
            }
        }
    }
    Ok(())
}

/// The one `Scenario` document.
fn the_scenario<'a>(
    sources: &[Source],
    found: &'a [(Document, ScenarioDocument)],
) -> Result<(&'a Document, &'a ScenarioDocument), Vec<Problem>> {
    match found {
        [(document, scenario)] => Ok((document, scenario)),
        [] => {
            let nowhere = Source::new("<input>", "");
            let source = sources.first().unwrap_or(&nowhere);
            let problem = Problem::at(source, source.span(0, 0), "there is no document of kind Scenario");
            let hint = "it says how long to simulate and what load workloads get";
            Err(vec![problem.with_hint(hint)])
        }
        [_, (second, _), ..] => {
            Err(vec![second.problem("kind", "there is already a document of kind Scenario; one run has one")])
        }
    }
}

/// What autoscalers are connected with.
struct Parts<'a> {
    scenario: &'a ScenarioSpec,
    common: &'a Settings,
    manifests: &'a [Manifest],
    workloads: &'a [WorkloadPlan],
}

fn build(
    document: &Document,
    scenario: &ScenarioDocument,
    contents: &Contents,
    files: &dyn Files,
    problems: &mut Vec<Problem>,
) -> Scenario {
    let spec = &scenario.spec;
    let mut faults = Faults::new(document, problems);
    let common = settings::read(&mut faults, spec);
    let workloads = workloads(&mut faults, spec, &common, &contents.manifests, files);
    wiring::check_outages(&mut faults, &spec.outages, &workloads);

    let parts =
        Parts { scenario: spec, common: &common, manifests: &contents.manifests, workloads: &workloads };
    let mut autoscalers: Vec<AutoscalerPlan> = Vec::new();
    for written in &contents.autoscalers {
        match autoscaler::read(written, &common.config) {
            Ok(declared) => {
                let mut faults = Faults::new(written, problems);
                if autoscalers.iter().any(|a| a.spec.key() == declared.spec.key()) {
                    let message = format!("an autoscaler `{}` is already declared", declared.spec.name);
                    faults.add("metadata.name", message);
                }
                autoscalers.extend(connect(&mut faults, declared, &parts));
            }
            Err(found) => problems.extend(found),
        }
    }
    let mut faults = Faults::new(document, problems);
    limits::check(&mut faults, common.duration, &common.cadence, &workloads, &autoscalers);
    let oldest = workloads.iter().flat_map(|w| &w.metrics).map(|m| m.delay).max().unwrap_or_default();
    Scenario {
        name: scenario.metadata.name.clone(),
        start: common.cadence.start,
        duration: common.duration,
        seed: spec.seed,
        sync_period: common.sync_period,
        cadence: Cadence { oldest: common.cadence.oldest.max(oldest), ..common.cadence },
        config: common.config,
        workloads,
        autoscalers,
    }
}

fn workloads(
    faults: &mut Faults<'_>,
    spec: &ScenarioSpec,
    common: &Settings,
    manifests: &[Manifest],
    files: &dyn Files,
) -> Vec<WorkloadPlan> {
    let setting = Setting { files, start: common.cadence.start, duration: common.duration };
    let mut workloads: Vec<WorkloadPlan> = Vec::new();
    for (index, settings) in spec.workloads.iter().enumerate() {
        let path = format!("spec.workloads[{index}]");
        let Target { kind, name, namespace } = &settings.target;
        let same = |k: &str, ns: &str, n: &str| k == kind && ns == namespace && n == name;
        let Some(manifest) = manifests.iter().find(|m| same(&m.kind, &m.namespace, &m.name)) else {
            let message = format!("no manifest declares {kind} `{name}` in {namespace}");
            let known = manifests.iter().map(|m| m.name.as_str());
            faults.add_with_hint(&format!("{path}.target.name"), message, meant(name, known));
            continue;
        };
        if workloads.iter().any(|w| same(&w.kind, &w.namespace, &w.name)) {
            faults.add(&format!("{path}.target.name"), format!("{kind} `{name}` is listed twice"));
            continue;
        }
        let seed = Seed::new(spec.seed).part(index as u64);
        workloads.push(workload::plan(faults, &setting, &path, settings, manifest, seed, common.delay));
    }
    if spec.workloads.is_empty() {
        faults.add("spec.workloads", "there is no workload to simulate");
    }
    workloads
}

/// Finds the target of an autoscaler and the answers to its metrics.
fn connect(faults: &mut Faults<'_>, declared: Declared, parts: &Parts<'_>) -> Option<AutoscalerPlan> {
    let Declared { object, spec, period, dry_run } = declared;
    let workload = target(faults, &spec, parts)?;
    if usize::try_from(spec.max).is_ok_and(|max| max > limits::MOST_PODS) {
        let message =
            format!("the simulator has at most {} pods per workload, found {}", limits::MOST_PODS, spec.max);
        faults.add("spec.maxReplicas", message);
    }
    let looked_at = looked_at(parts.workloads, workload);
    let wiring = Wiring {
        workloads: parts.workloads,
        looked_at: &looked_at,
        outages: &parts.scenario.outages,
        delay: parts.common.delay,
        seed: Seed::new(parts.scenario.seed).part(u64::MAX),
    };
    let metrics = spec.metrics.iter().enumerate();
    let inputs =
        metrics.map(|(index, metric)| wiring.input(faults, &format!("spec.metrics[{index}]"), metric));
    let inputs = inputs.collect();
    let period = period.unwrap_or(parts.common.sync_period);
    Some(AutoscalerPlan { object, spec: Arc::new(spec), workload, looked_at, inputs, period, dry_run })
}

/// The workload an autoscaler acts on.
fn target(faults: &mut Faults<'_>, spec: &Spec, parts: &Parts<'_>) -> Option<usize> {
    let path = "spec.scaleTargetRef";
    // The kind may be written in lower case (T27).
    let meant_kind = |kind: &str| kind == spec.target.kind || kind.to_lowercase() == spec.target.kind;
    let is_target = |kind: &str, namespace: &str, name: &str| {
        meant_kind(kind) && namespace == spec.namespace && name == spec.target.name
    };
    let found = parts.workloads.iter().position(|w| is_target(&w.kind, &w.namespace, &w.name));
    if found.is_some() {
        return found;
    }
    let (kind, name) = (&spec.target.kind, &spec.target.name);
    if parts.workloads.len() < parts.scenario.workloads.len() {
        // A workload is known to be wrong; most likely this one.
    } else if parts.manifests.iter().any(|m| is_target(&m.kind, &m.namespace, &m.name)) {
        let hint = Some("list it under `workloads` of the Scenario".to_owned());
        faults.add_with_hint(
            &format!("{path}.name"),
            format!("nothing says what load {kind} `{name}` gets"),
            hint,
        );
    } else if !manifest::KINDS.iter().any(|known| meant_kind(known)) {
        let message = format!("the simulator has no workloads of kind `{kind}`");
        faults.add_with_hint(&format!("{path}.kind"), message, meant(kind, manifest::KINDS));
    } else {
        let message = format!("no manifest declares {kind} `{name}` in {}", spec.namespace);
        let known = parts.manifests.iter().map(|m| m.name.as_str());
        faults.add_with_hint(&format!("{path}.name"), message, meant(name, known));
    }
    None
}

/// The workloads whose pods the selector of `workload` selects: Kubernetes does not ask who owns a pod (spec 5.3).
fn looked_at(workloads: &[WorkloadPlan], workload: usize) -> Vec<usize> {
    let Some(target) = workloads.get(workload) else { return Vec::new() };
    let selector = Selector::parse(&target.selector).unwrap_or_else(|_| Selector::nothing());
    let selected = |w: &WorkloadPlan| w.namespace == target.namespace && selector.matches_map(&w.labels);
    (0..workloads.len()).filter(|place| workloads.get(*place).is_some_and(selected)).collect()
}
