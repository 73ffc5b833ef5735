//! The workloads of `plimsoll up`: those of the user's files, or examples chosen by name.

use std::path::PathBuf;

use api::autoscaling::KubernetesVersion;
use api::yaml::SourceFile;
use sim::Scenario;
use sim::scenario::{Variation, WorkloadPlan};

use crate::failure::Failure;
use crate::{files, scenario};

/// An example that `plimsoll up` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExampleName {
    /// All of them
    All,
    /// Scaled by cpu
    PhpApache,
    /// With a sidecar, scaled by the cpu of one container
    Checkout,
    /// Scaled by the requests of its pods, a custom metric
    Shop,
    /// A queue worker, scaled from zero
    OrdersWorker,
    /// Scaled at fixed times
    Report,
}

/// An example: its name and its manifests.
pub(super) struct ExampleWorkload {
    choice: ExampleName,
    pub(super) name: &'static str,
    pub(super) manifests: &'static str,
}

/// An example and its file.
macro_rules! example {
    ($choice:ident, $name:literal, $file:literal) => {
        ExampleWorkload {
            choice: ExampleName::$choice,
            name: $name,
            manifests: include_str!(concat!("../../../../../examples/", $file)),
        }
    };
}

/// Examples with a Scenario, which generates their load.
const SIMULATED: [ExampleWorkload; 3] = [
    example!(PhpApache, "php-apache", "up.yaml"),
    example!(Checkout, "checkout", "checkout.yaml"),
    example!(Shop, "shop", "shop.yaml"),
];
/// Examples that are scaled by events.
static EVENT_DRIVEN: [ExampleWorkload; 2] = [
    example!(OrdersWorker, "orders-worker", "scaledobject/orders-worker.yaml"),
    example!(Report, "report", "scaledobject/report.yaml"),
];

/// The chosen workloads.
pub(super) struct ChosenWorkloads {
    /// The settings of the controller.
    pub(super) settings: Scenario,
    /// Workloads with a load, and their autoscalers.
    pub(super) scenarios: Vec<Scenario>,
    /// The manifests of the scenarios.
    pub(super) sources: Vec<SourceFile>,
    /// Examples that are scaled by events.
    pub(super) event_driven: Vec<&'static ExampleWorkload>,
}

impl ChosenWorkloads {
    /// The workloads of the user's files, or the chosen examples if there are none.
    pub(super) fn load(
        files: &[PathBuf],
        chosen: &[ExampleName],
        kubernetes: KubernetesVersion,
    ) -> Result<Self, Failure> {
        let variation = Variation { kubernetes, ..Variation::default() };
        if !files.is_empty() {
            let sources = files::read_all(files)?;
            let settings = scenario::load(&sources, variation)?;
            return Ok(Self {
                scenarios: vec![settings.clone()],
                settings,
                sources,
                event_driven: Vec::new(),
            });
        }
        let is_chosen = |example: &&ExampleWorkload| {
            chosen.contains(&ExampleName::All) || chosen.contains(&example.choice)
        };
        let mut settings = None;
        let (mut scenarios, mut sources) = (Vec::new(), Vec::new());
        for example in &SIMULATED {
            let source =
                SourceFile::from_bytes(format!("{}.yaml", example.name), example.manifests.as_bytes())?;
            let scenario = scenario::load(std::slice::from_ref(&source), variation)?;
            settings.get_or_insert_with(|| scenario.clone());
            if is_chosen(&example) {
                scenarios.push(scenario);
                sources.push(source);
            }
        }
        let settings = settings.ok_or_else(|| Failure::input("there is no example"))?;
        Ok(Self {
            settings,
            scenarios,
            sources,
            event_driven: EVENT_DRIVEN.iter().filter(is_chosen).collect(),
        })
    }

    /// All workloads with a load.
    pub(super) fn plans(&self) -> impl Iterator<Item = &WorkloadPlan> {
        self.scenarios.iter().flat_map(|scenario| &scenario.workloads)
    }

    /// How many workloads there are.
    pub(super) fn count(&self) -> usize {
        self.plans().count() + self.event_driven.len()
    }

    /// The names of all autoscalers, as `plimsoll why` takes them.
    pub(super) fn autoscalers(&self) -> Vec<String> {
        let simulated = self.scenarios.iter().flat_map(|scenario| &scenario.autoscalers);
        let simulated = simulated.map(|plan| plan.object.short_name());
        simulated.chain(self.event_driven.iter().map(|example| format!("so/{}", example.name))).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(chosen: &[ExampleName]) -> Vec<String> {
        ChosenWorkloads::load(&[], chosen, KubernetesVersion::default()).unwrap().autoscalers()
    }

    #[test]
    fn examples_are_chosen_by_name() {
        let all = ["hpa/php-apache", "hpa/checkout", "hpa/shop", "so/orders-worker", "so/report"];
        assert_eq!(names(&[ExampleName::All]), all);
        assert_eq!(names(&[ExampleName::OrdersWorker, ExampleName::PhpApache]), [all[0], all[3]]);
        assert_eq!(names(&[ExampleName::Report]), ["so/report"]);
        let all = ChosenWorkloads::load(&[], &[ExampleName::All], KubernetesVersion::default()).unwrap();
        assert_eq!((all.count(), all.plans().count()), (5, 3));
    }
}
