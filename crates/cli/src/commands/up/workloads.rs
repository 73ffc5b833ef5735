//! The workloads of `plimsoll up`: those of the user's files, or examples chosen by name.

use std::path::PathBuf;

use api::autoscaling::KubernetesVersion;
use api::keda::KedaProfile;
use api::yaml::{self, Document, SourceFile};
use sim::Scenario;
use sim::scenario::{Variation, WorkloadPlan};

use super::event_driven::EventDrivenObject;
use crate::commands::validate::{self, ValidationRules};
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
struct ExampleWorkload {
    choice: ExampleName,
    name: &'static str,
    manifests: &'static str,
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

/// The example whose settings of the controller, which are the defaults, apply where no Scenario has others.
const PHP_APACHE: ExampleWorkload = example!(PhpApache, "php-apache", "up.yaml");
/// Examples with a Scenario, which generates their load.
const SIMULATED: [ExampleWorkload; 3] =
    [PHP_APACHE, example!(Checkout, "checkout", "checkout.yaml"), example!(Shop, "shop", "shop.yaml")];
/// Examples that are scaled by events.
const EVENT_DRIVEN: [ExampleWorkload; 2] = [
    example!(OrdersWorker, "orders-worker", "scaledobject/orders-worker.yaml"),
    example!(Report, "report", "scaledobject/report.yaml"),
];

/// The chosen workloads.
pub(super) struct ChosenWorkloads {
    /// The settings of the controller.
    pub(super) settings: Scenario,
    /// Workloads with a load, and their autoscalers.
    pub(super) scenarios: Vec<Scenario>,
    /// The ScaledObjects and ScaledJobs.
    pub(super) event_driven: Vec<EventDrivenObject>,
    /// All objects.
    pub(super) documents: Vec<Document>,
}

impl ExampleWorkload {
    fn source(&self) -> Result<SourceFile, Failure> {
        Ok(SourceFile::from_bytes(format!("{}.yaml", self.name), self.manifests.as_bytes())?)
    }
}

impl ChosenWorkloads {
    /// The workloads of the user's files, or the chosen examples if there are none. It is not called in a tokio runtime, because
    /// the validation of triggers starts one of its own.
    pub(super) fn load(
        files: &[PathBuf],
        chosen: &[ExampleName],
        kubernetes: KubernetesVersion,
        keda: KedaProfile,
    ) -> Result<Self, Failure> {
        if files.is_empty() {
            Self::of_examples(chosen, kubernetes)
        } else {
            Self::of_sources(&files::read_all(files)?, kubernetes, keda)
        }
    }

    fn of_sources(
        sources: &[SourceFile],
        kubernetes: KubernetesVersion,
        keda: KedaProfile,
    ) -> Result<Self, Failure> {
        let documents = documents_of(sources)?;
        let problems = validate::problems(&documents, ValidationRules::of_releases(kubernetes, keda));
        if !problems.is_empty() {
            return Err(problems.into());
        }
        let event_driven = EventDrivenObject::all(&documents)?;
        let mut scenarios = Vec::new();
        // Triggers need no load. Without them nothing would happen, so that a missing Scenario is an error.
        if validate::has_scenario(&documents) || event_driven.is_empty() {
            let variation = Variation { kubernetes, leaves_out_event_driven: true, ..Variation::default() };
            scenarios.push(scenario::load(sources, variation)?);
        }
        let settings = match scenarios.first() {
            Some(scenario) => scenario.clone(),
            None => default_settings(kubernetes)?,
        };
        Ok(Self { settings, scenarios, event_driven, documents })
    }

    fn of_examples(chosen: &[ExampleName], kubernetes: KubernetesVersion) -> Result<Self, Failure> {
        let is_chosen = |example: &&ExampleWorkload| {
            chosen.contains(&ExampleName::All) || chosen.contains(&example.choice)
        };
        let variation = Variation { kubernetes, ..Variation::default() };
        let (mut scenarios, mut documents) = (Vec::new(), Vec::new());
        for example in SIMULATED.iter().filter(is_chosen) {
            let source = example.source()?;
            scenarios.push(scenario::load(std::slice::from_ref(&source), variation)?);
            documents.extend(documents_of(&[source])?);
        }
        for example in EVENT_DRIVEN.iter().filter(is_chosen) {
            documents.extend(documents_of(&[example.source()?])?);
        }
        let settings = default_settings(kubernetes)?;
        Ok(Self { settings, scenarios, event_driven: EventDrivenObject::all(&documents)?, documents })
    }

    /// All workloads with a load.
    pub(super) fn plans(&self) -> impl Iterator<Item = &WorkloadPlan> {
        self.scenarios.iter().flat_map(|scenario| &scenario.workloads)
    }

    /// How many workloads there are: those with a load, and other targets of ScaledObjects and ScaledJobs.
    pub(super) fn count(&self) -> usize {
        let has_load = |object: &EventDrivenObject| self.plans().any(|plan| object.scales(plan));
        self.plans().count() + self.event_driven.iter().filter(|&object| !has_load(object)).count()
    }

    /// The names of all autoscalers, as `plimsoll why` takes them.
    pub(super) fn autoscalers(&self) -> Vec<String> {
        let simulated = self.scenarios.iter().flat_map(|scenario| &scenario.autoscalers);
        let simulated = simulated.map(|plan| named(plan.object.short_name(), &plan.spec.namespace));
        let event_driven = self.event_driven.iter();
        let event_driven = event_driven.map(|object| named(object.short_name(), &object.namespace));
        simulated.chain(event_driven).collect()
    }
}

/// The documents of all sources, with the items of lists.
fn documents_of(sources: &[SourceFile]) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for source in sources {
        documents.extend(yaml::parse(source)?.into_iter().flat_map(Document::into_items));
    }
    Ok(documents)
}

fn default_settings(kubernetes: KubernetesVersion) -> Result<Scenario, Failure> {
    let variation = Variation { kubernetes, ..Variation::default() };
    scenario::load(&[PHP_APACHE.source()?], variation)
}

/// A name with the flag for its namespace, where that is not the default.
fn named(name: String, namespace: &str) -> String {
    if namespace == "default" { name } else { format!("{name} -n {namespace}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WEBSITE: &str = include_str!("../../../../../examples/scaledobject/website.yaml");

    fn examples(chosen: &[ExampleName]) -> ChosenWorkloads {
        ChosenWorkloads::of_examples(chosen, KubernetesVersion::default()).unwrap()
    }

    fn of_release(text: &str, keda: KedaProfile) -> Result<ChosenWorkloads, String> {
        let source = SourceFile::new("f", text);
        let found = ChosenWorkloads::of_sources(&[source], KubernetesVersion::default(), keda);
        found.map_err(|failure| failure.to_string())
    }

    fn of_text(text: &str) -> Result<ChosenWorkloads, String> {
        of_release(text, KedaProfile::default())
    }

    #[test]
    fn examples_are_chosen_by_name() {
        let all = ["hpa/php-apache", "hpa/checkout", "hpa/shop", "so/orders-worker", "so/report"];
        let names = |chosen: &[ExampleName]| examples(chosen).autoscalers();
        assert_eq!(names(&[ExampleName::All]), all);
        assert_eq!(names(&[ExampleName::OrdersWorker, ExampleName::PhpApache]), [all[0], all[3]]);
        assert_eq!(names(&[ExampleName::Report]), ["so/report"]);
        let all = examples(&[ExampleName::All]);
        assert_eq!((all.count(), all.plans().count()), (5, 3));
    }

    #[test]
    fn files_with_event_driven_objects_need_no_scenario() {
        for (example, name) in EVENT_DRIVEN.iter().zip(["so/orders-worker", "so/report"]) {
            let found = of_text(example.manifests).unwrap();
            assert_eq!((found.autoscalers(), found.count()), (vec![name.to_owned()], 1));
            assert!(found.scenarios.is_empty());
            assert_eq!(found.documents.len(), 2);
        }
        let name = "metadata:\n  name: report\n";
        let namespaced = EVENT_DRIVEN[1].manifests.replace(name, &format!("{name}  namespace: a\n"));
        assert_eq!(of_text(&namespaced).unwrap().autoscalers(), ["so/report -n a"]);
        let deployment = EVENT_DRIVEN[1].manifests.split("---\n").next().unwrap();
        let missing = of_text(deployment).map(|_| ()).unwrap_err();
        assert!(missing.contains("there is no document of kind Scenario"), "{missing}");
    }

    #[test]
    fn target_of_a_scaled_object_may_have_a_load() {
        let found = of_text(WEBSITE).unwrap();
        assert_eq!((found.autoscalers(), found.count()), (vec!["so/website".to_owned()], 1));
        assert_eq!(found.plans().count(), 1);
    }

    #[test]
    fn invalid_objects_are_refused_with_their_position() {
        let with = |from: &str, to: &str| {
            assert!(WEBSITE.contains(from), "{from}");
            of_text(&WEBSITE.replacen(from, to, 1)).map(|_| ()).unwrap_err()
        };
        let line = |text: &str| WEBSITE.lines().position(|line| line.contains(text)).unwrap() + 1;
        for (from, to, expected) in [
            ("type: cron", "type: corn", "there is no trigger type"),
            ("desiredReplicas:", "desiredReplica:", "cron has no parameter"),
            ("minReplicaCount:", "minReplicasCount:", "unknown field `minReplicasCount`"),
            ("kind: ScaledObject", "kind: ScaledObjct", "keda.sh/v1alpha1 has no kind ScaledObjct"),
        ] {
            let problem = with(from, to);
            assert!(problem.contains(expected), "{problem}");
            assert!(problem.contains(&format!("f:{}:", line(from))), "{problem}");
        }
        let new = WEBSITE.replace(
            "type: cpu\n    metricType: Utilization\n    metadata:\n      value: \"50\"\n",
            "type: temporal\n    metadata: {endpoint: 'h:7233', taskQueue: q, \
             includeRunningWorkflowCount: 'true'}\n",
        );
        assert!(of_release(&new, KedaProfile::V2_21).is_ok());
        let problem = of_release(&new, KedaProfile::V2_20).map(|_| ()).unwrap_err();
        assert!(problem.contains("(`--keda-profile 2.21`)"), "{problem}");
        // Also without a Scenario.
        let report = EVENT_DRIVEN[1].manifests.replace("replicas: 0", "replicas: -1");
        let problem = of_text(&report).map(|_| ()).unwrap_err();
        assert!(problem.contains("must be greater than or equal to 0"), "{problem}");
    }
}
