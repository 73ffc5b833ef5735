//! Helpers of the integration tests.
// Clippy takes helpers of tests for code that ships.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use api::yaml::{Diagnostic, SourceFile};
use engine::KubernetesVersion;
use sim::recording::ReplicaChange;
use sim::scenario::Variation;
use sim::{Recording, Scenario, Simulation, Summary};

/// Maximum number of rows per table of a recording.
pub(crate) const MAX_ROWS: usize = 2000;

/// Reads a scenario, or panics with its problems.
pub(crate) fn load(name: &str, text: &[u8]) -> Scenario {
    let source = SourceFile::from_bytes(name, text).unwrap();
    let files = |path: &Path| std::fs::read(path);
    Scenario::load(&[source], &files).unwrap_or_else(|problems| {
        let text: Vec<String> = problems.iter().map(|p| p.render(false)).collect();
        panic!("{}", text.join("\n"))
    })
}

/// Runs a scenario to its end.
pub(crate) fn run(scenario: &Scenario) -> (Summary, Recording) {
    let mut recording = Recording::new(scenario, MAX_ROWS);
    let summary = Simulation::new(scenario).run(&mut recording);
    (summary, recording)
}

/// The changes of one autoscaler: seconds, replicas before and after.
pub(crate) fn changes(recording: &Recording, autoscaler: usize) -> Vec<(f64, i32, i32)> {
    let own = |change: &&ReplicaChange| change.autoscaler == autoscaler;
    recording.changes.iter().filter(own).map(|c| (c.seconds, c.from, c.to)).collect()
}

/// A Deployment `web` with a cpu request of 200m and any number of autoscalers.
pub(crate) struct Web {
    pub(crate) replicas: usize,
    pub(crate) spec: String,
    pub(crate) autoscalers: Vec<String>,
}

impl Web {
    pub(crate) fn new(spec: &str) -> Self {
        Self { replicas: 2, spec: spec.to_owned(), autoscalers: vec![hpa("web", 1, 10, "")] }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {}\n  selector: {{matchLabels: \
             {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, \
             resources: {{requests: {{cpu: 200m}}}}}}]}}\n",
            self.replicas
        );
        for autoscaler in &self.autoscalers {
            text += &format!("---\n{autoscaler}\n");
        }
        text + &format!(
            "---\napiVersion: plimsoll.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: web}}\nspec:\n{}\n",
            indent(&self.spec, 2)
        )
    }

    pub(crate) fn scenario(&self) -> Scenario {
        load("web.yaml", self.text().as_bytes())
    }

    pub(crate) fn run(&self) -> (Summary, Recording) {
        run(&self.scenario())
    }

    /// The scenario with the behavior of a release of Kubernetes, or its problems.
    pub(crate) fn at_release(&self, kubernetes: KubernetesVersion) -> Result<Scenario, Vec<Diagnostic>> {
        let source = SourceFile::from_bytes("web.yaml", self.text().as_bytes()).unwrap();
        let variation = Variation { kubernetes, ..Variation::default() };
        Scenario::load_varied(&[source], variation, &|path: &Path| std::fs::read(path))
    }
}

/// An HPA on `web` with a target of 50 % of the requested cpu; `more` is added to its spec.
pub(crate) fn hpa(name: &str, min: i32, max: i32, more: &str) -> String {
    format!(
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  scaleTargetRef: \
         {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  minReplicas: {min}\n  maxReplicas: {max}\n  metrics:\n  - \
         {{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: 50}}}}}}\n{}",
        indent(more, 2)
    )
}

/// The `workloads` of a scenario: `web` with 25m of cpu per unit of work and the given load.
pub(crate) fn workload(load: &str, more: &str) -> String {
    format!(
        "workloads:\n- target: {{name: web}}\n  containers: [{{name: app, cpu: {{perUnit: 25m}}}}]\n{}\n  load:\n{}",
        indent(more, 2),
        indent(load, 2)
    )
}

fn indent(text: &str, by: usize) -> String {
    let margin = " ".repeat(by);
    text.lines().flat_map(|line| [&margin, line, "\n"]).collect()
}
