//! Reads a scenario: manifests and the `Scenario` document are read, checked and connected.

mod autoscaler;
mod connect;
mod contents;
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
use std::io;
use std::path::Path;
use std::sync::Arc;

use api::yaml::{Diagnostic, Document, SourceFile};
use engine::{ControllerConfig, KubernetesVersion, Spec};
use jiff::Timestamp;

pub use autoscaler::AutoscalerObject;
use connect::{Parts, connect};
pub use contents::Variation;
use contents::{Contents, read, the_scenario};
use document::{DescribedObject, MetricKind, ScenarioDocument, ScenarioSpec, Target};
use faults::{Faults, meant};
use manifest::Manifest;
use settings::Settings;
use shapes::Setting;
use values::TimeOfDay;

use crate::inputs::{MetricInput, SeriesValue};
use crate::random::Seed;
use crate::time::Millis;
use crate::workload::{ContainerUsageModel, ModelTiming, WorkloadModel};

/// Group and version of Plimsoll's own kinds.
pub const API_VERSION: &str = "plimsoll.dev/v1alpha1";

/// A complete, validated scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// When virtual time begins.
    pub start: Timestamp,
    /// Duration.
    pub duration: Millis,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Time between two decisions, unless an autoscaler has its own; also between two samples.
    pub sync_period: Millis,
    /// Settings of the controller.
    pub config: Arc<ControllerConfig>,
    /// Timing of the model.
    pub cadence: ModelTiming,
    /// Workloads in the order of the `Scenario` document.
    pub workloads: Vec<WorkloadPlan>,
    /// Autoscalers in the order of the files.
    pub autoscalers: Vec<AutoscalerPlan>,
}

/// A workload and its model.
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
    /// Its model.
    pub plan: WorkloadModel,
    /// Resource usage of its containers.
    pub containers: Vec<ContainerUsageModel>,
    /// Its custom and external metrics.
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
    /// Source of the values.
    pub value: SeriesValue,
    /// Factor for the values.
    pub scale: f64,
    /// Time from a sample until it can be read.
    pub delay: Millis,
}

/// An autoscaler, its target and its metrics.
#[derive(Clone, Debug)]
pub struct AutoscalerPlan {
    /// The object as it was written, with defaults.
    pub object: AutoscalerObject,
    /// The engine's spec of it.
    pub spec: Arc<Spec>,
    /// Index of its target among the workloads.
    pub workload: usize,
    /// Indexes of the workloads whose pods the selector of its target selects; usually only the target.
    pub selected_workloads: Vec<usize>,
    /// Source of each metric, in the order of the spec.
    pub inputs: Vec<MetricInput>,
    /// Time between two decisions.
    pub period: Millis,
    /// Whether it is in dry-run mode.
    pub dry_run: bool,
}

/// Reads the files that a scenario refers to. The simulator itself opens no files.
pub trait Files {
    /// Reads a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

impl<F: Fn(&Path) -> io::Result<Vec<u8>>> Files for F {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self(path)
    }
}

impl Scenario {
    /// Reads a scenario from one or several files.
    pub fn load(sources: &[SourceFile], files: &dyn Files) -> Result<Self, Vec<Diagnostic>> {
        Self::load_varied(sources, Variation::default(), files)
    }

    /// Reads a scenario and changes it.
    pub fn load_varied(
        sources: &[SourceFile],
        variation: Variation<'_>,
        files: &dyn Files,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let leaves_out = variation.leaves_out_event_driven;
        let mut contents = read(sources, leaves_out, &mut problems);
        contents.vary(read(variation.sources, leaves_out, &mut problems));
        if let (Some(seed), Some((_, scenario))) = (variation.seed, contents.scenarios.first_mut()) {
            scenario.spec.seed = seed;
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (document, scenario) = the_scenario(sources, &contents.scenarios)?;
        let built = build(document, scenario, &contents, variation.kubernetes, files, &mut problems);
        if problems.is_empty() { Ok(built) } else { Err(problems) }
    }

    /// Parses a time: a duration from the start (`12m30s`), a time of day (`09:12:30`) or a full time (RFC 3339).
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

fn build(
    document: &Document,
    scenario: &ScenarioDocument,
    contents: &Contents,
    kubernetes: KubernetesVersion,
    files: &dyn Files,
    problems: &mut Vec<Diagnostic>,
) -> Scenario {
    let spec = &scenario.spec;
    let mut faults = Faults::new(document, problems);
    let common = settings::read(&mut faults, spec, kubernetes);
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
        cadence: ModelTiming { oldest: common.cadence.oldest.max(oldest), ..common.cadence },
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
