//! Whole runs: cadence, several autoscalers at once, outages, dry runs, and the same input giving the same output.

mod common;

use common::{Web, changes, hpa, workload};
use engine::{Decision, KubernetesVersion, Observation, PodSelection, ScaleOutcome};
use sim::{DecisionCapture, DueDecision, Millis, Observer, Simulation};

/// Keeps a line per decision.
#[derive(Default)]
struct Log {
    steps: Vec<(i64, usize, ScaleOutcome, PodSelection)>,
    detailed: bool,
}

impl Observer for Log {
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        let seconds = due.elapsed.0 / 1000;
        self.steps.push((seconds, due.autoscaler, decision.outcome.clone(), seen.selection.clone()));
    }

    fn needs_pod_detail(&self, _: &DueDecision) -> bool {
        self.detailed
    }
}

#[test]
fn the_first_decision_is_one_period_late() {
    let mut web = Web::new(&format!("duration: 1m\n{}", workload("- constant: 2", "")));
    web.autoscalers = vec![hpa("web", 5, 10, "")];
    let (summary, recording) = web.run();
    assert_eq!(changes(&recording, 0), [(15.0, 2, 5)]);
    assert_eq!(recording.changes[0].reason, "Current number of replicas below Spec.MinReplicas");
    assert_eq!(summary.autoscalers[0].decisions, 4);
    let scenario = web.scenario();
    assert_eq!(scenario.autoscalers[0].object.short_name(), "hpa/web");
}

#[test]
fn the_first_decision_is_immediate_since_kubernetes_1_37() {
    let mut web = Web::new(&format!("duration: 1m\n{}", workload("- constant: 2", "")));
    web.autoscalers = vec![hpa("web", 5, 10, "")];
    let first = |version| changes(&common::run(&web.at_release(version).unwrap()).1, 0);
    assert_eq!(first(KubernetesVersion::V1_36), [(15.0, 2, 5)]);
    assert_eq!(first(KubernetesVersion::V1_37), [(0.0, 2, 5)]);
}

#[test]
fn gates_of_a_scenario_are_those_of_the_release() {
    let gated = |gate: &str| {
        let controller = format!("controller: {{featureGates: {{{gate}}}}}");
        Web::new(&format!("duration: 1m\n{controller}\n{}", workload("- constant: 2", "")))
    };
    let config = |gate: &str, version| gated(gate).at_release(version).unwrap().config;
    assert!(config("HPAScaleToZero: true", KubernetesVersion::V1_36).gates.scale_to_zero);
    let new = config("HPAGeneration: false", KubernetesVersion::V1_37);
    assert!(new.gates.scale_to_zero && !new.gates.generation);
    let locked = gated("HPAConfigurableTolerance: false").at_release(KubernetesVersion::V1_37);
    let problems = locked.unwrap_err();
    let text = problems[0].render(false);
    assert!(text.contains("feature is locked to true"), "{text}");
}

#[test]
fn a_constant_load_converges() {
    // 40 units × 25m = 1000m; half of 200m is 100m: ten pods.
    let web = Web::new(&format!("duration: 10m\n{}", workload("- constant: 40", "")));
    let (summary, recording) = web.run();
    assert_eq!(changes(&recording, 0), [(15.0, 2, 4), (30.0, 4, 8), (45.0, 8, 10)]);
    assert_eq!(summary.workloads[0].max_replicas, 10);
    let track = &recording.autoscalers[0];
    assert_eq!(track.metrics[0].target, Some(50.0));
    assert_eq!(track.table.column("cpu").unwrap().last(), Some(&50.0));
    assert_eq!(track.table.column("desired").unwrap().last(), Some(&10.0));
}

#[test]
fn two_autoscalers_on_one_target_are_ambiguous() {
    let mut web = Web::new(&format!("duration: 2m\n{}", workload("- constant: 40", "")));
    web.autoscalers = vec![hpa("a", 1, 10, ""), hpa("b", 1, 10, "")];
    let mut log = Log::default();
    Simulation::new(&web.scenario()).run(&mut log);
    let shared = PodSelection::Shared(vec!["default/a".into(), "default/b".into()]);
    // The first autoscaler decides once, since the selector of the other one is not yet known (T33).
    assert_eq!(log.steps[0], (15, 0, ScaleOutcome::Scaled, PodSelection::Ours));
    assert_eq!(log.steps[1], (15, 1, ScaleOutcome::Failed, shared.clone()));
    assert!(log.steps[2..].iter().all(|s| s.2 == ScaleOutcome::Failed && s.3 == shared), "{:?}", log.steps);
    let (_, recording) = web.run();
    let problem = &recording.problems[0];
    assert_eq!((problem.reason.as_str(), problem.count), ("AmbiguousSelector", 8));
    let text = "pods by selector app=web are controlled by multiple HPAs: [default/a default/b]";
    assert_eq!(problem.message, text);
}

#[test]
fn dry_run_neither_scales_nor_makes_selectors_ambiguous() {
    let mut web = Web::new(&format!("duration: 5m\n{}", workload("- constant: 40", "")));
    let (alone, _) = web.run();
    let looking = hpa("looking", 1, 20, "dryRun: true\nsyncPeriodSeconds: 20")
        .replace("autoscaling/v2", "plimsoll.dev/v1alpha1")
        .replace("HorizontalPodAutoscaler", "Autoscaler");
    web.autoscalers.push(looking);
    let (beside, recording) = web.run();
    assert_eq!(beside.workloads, alone.workloads);
    assert_eq!(beside.autoscalers[0], alone.autoscalers[0]);
    assert_eq!((beside.autoscalers[1].decisions, beside.autoscalers[1].failures), (15, 0));
    assert!(recording.changes.iter().any(|c| c.autoscaler == 1 && c.dry_run));
    web.autoscalers.remove(0);
    let (only, _) = web.run();
    assert_eq!(only.workloads[0].max_replicas, 2);
}

#[test]
fn no_scale_down_while_metrics_fail() {
    let spec = format!(
        "duration: 30m\n{}\noutages: [{{from: 5m, to: 20m}}]",
        workload("- step: {from: 40, to: 4, at: 5m}", "")
    );
    let (_, recording) = Web::new(&spec).run();
    let shrunk: Vec<_> = changes(&recording, 0).into_iter().filter(|(_, from, to)| to < from).collect();
    // Back at 20m, and the window does not hold any longer: its recommendations are older than five minutes.
    assert_eq!(shrunk, [(1200.0, 10, 1)]);
    assert_eq!(recording.problems[0].count, 60);
}

#[test]
fn cpu_of_a_starting_pod_is_not_load() {
    // Each pod burns two cores until it is ready; decisions ignore it as long as it is not.
    let starting = "pods: {startDelay: 5s, readyDelay: 50s}";
    let spec = format!("duration: 10m\n{}", workload("- step: {from: 8, to: 16, at: 1m}", starting))
        .replace("cpu: {perUnit: 25m}", "cpu: {perUnit: 25m, starting: 2}");
    let (_, recording) = Web::new(&spec).run();
    assert_eq!(changes(&recording, 0), [(90.0, 2, 4)]);
}

#[test]
fn a_capture_has_every_pod_and_ends_the_run() {
    let scenario = Web::new(&format!("duration: 10m\n{}", workload("- constant: 40", ""))).scenario();
    let mut capture = DecisionCapture::new(Millis::from_secs(37), scenario.autoscalers.len());
    let summary = Simulation::new(&scenario).run(&mut capture);
    assert_eq!(summary.autoscalers[0].decisions, 3, "it stopped soon after");
    let (seen, decision) = capture.found[0].as_ref().unwrap();
    assert_eq!(decision.at, Millis::from_secs(30).after(scenario.start));
    assert_eq!((seen.pods.len(), decision.desired.get()), (4, 8));
    let json = serde_json::to_string(&decision.evaluations).unwrap();
    assert!(seen.pods.iter().all(|pod| json.contains(&*pod.name)), "{json}");
    // A recorded observation replays to the same decision.
    let mut early = DecisionCapture::new(Millis::ZERO, scenario.autoscalers.len());
    Simulation::new(&scenario).run(&mut early);
    assert!(early.found[0].is_none());
}

#[test]
fn pods_of_other_workloads_with_matching_labels_count() {
    // A second Deployment whose pods the selector of the first selects: Kubernetes counts them (docs/spec/hpa.md 5.3).
    let mut web = Web::new("");
    web.spec = format!("duration: 5m\n{}", workload("- constant: 8", ""))
        + "- target: {name: canary}\n  containers: [{name: app, cpu: {perUnit: 25m}}]\n  load: [{constant: 40}]";
    let scenario = web.text().replacen(
        "---\n",
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: canary}\nspec:\n  replicas: 1\n  selector: {matchLabels: \
         {track: canary}}\n  template:\n    metadata: {labels: {app: web, track: canary}}\n    spec: {containers: [{name: \
         app, resources: {requests: {cpu: 200m}}}]}\n---\n",
        1,
    );
    let scenario = common::load("web.yaml", scenario.as_bytes());
    assert_eq!(scenario.autoscalers[0].selected_workloads, [0, 1]);
    let mut capture = DecisionCapture::new(Millis::from_secs(15), 1);
    Simulation::new(&scenario).run(&mut capture);
    let (seen, decision) = capture.found[0].as_ref().unwrap();
    // (2 × 100m + 1000m) ÷ 600m = 200 %.
    assert_eq!((seen.pods.len(), decision.recommendation.as_ref().unwrap().replicas.get()), (3, 12));
}

#[test]
fn same_input_same_output_bit_for_bit() {
    let noisy = |seed| {
        let load = "- wave: {low: 5, high: 40, period: 9m}\n- noise: {amplitude: 20%, period: 10s}";
        let more = "pods: {failing: 0.2}\nserves: {perPod: 6, queue: true}";
        let spec = format!("duration: 1h\nseed: {seed}\n{}", workload(load, more));
        let mut web = Web::new(&spec);
        web.autoscalers
            .push(hpa("other", 1, 4, "").replace("name: web", "name: nobody").replace("nobody}", "web}"));
        let mut log = Log { detailed: true, ..Log::default() };
        let scenario = web.scenario();
        let logged = Simulation::new(&scenario).run(&mut log);
        let (summary, recording) = common::run(&scenario);
        assert_eq!(logged, summary, "who watches makes no difference");
        (serde_json::to_string(&summary).unwrap(), serde_json::to_string(&recording).unwrap())
    };
    assert_eq!(noisy(1), noisy(1));
    assert_ne!(noisy(1), noisy(2));
}

#[test]
fn samples_that_are_too_old_follow_the_failure_policy() {
    // The pipeline scrapes every 15 s and delivers 60 s later, so samples are 60 s to 75 s old.
    let metrics = "metrics:\n- {name: queue, as: External, value: Offered, delay: 60s, labels: {zone: a}}\n- {name: queue, as: \
                   External, value: Offered, delay: 0s, scale: 3, labels: {zone: b}}";
    let run = |more: &str| {
        let mut web = Web::new(&format!("duration: 5m\n{}", workload("- constant: 10", metrics)));
        let metric = format!(
            "{{type: External, external: {{metric: {{name: queue}}, target: {{type: AverageValue, averageValue: 10}}}}{more}}}"
        );
        web.autoscalers = vec![format!(
            "apiVersion: plimsoll.dev/v1alpha1\nkind: Autoscaler\nmetadata: {{name: web}}\nspec:\n  scaleTargetRef: {{apiVersion: \
             apps/v1, kind: Deployment, name: web}}\n  maxReplicas: 10\n  metrics:\n  - {metric}"
        )];
        web.run().0.workloads[0].max_replicas
    };
    // 10 and 30 waiting, 10 per replica.
    assert_eq!(run(""), 4);
    assert_eq!(run(", seriesAggregator: max"), 3);
    assert_eq!(run(", maxAgeSeconds: 90"), 4);
    assert_eq!(run(", maxAgeSeconds: 30, onFailure: {policy: static, replicas: 7}"), 7);
    assert_eq!(run(", maxAgeSeconds: 30"), 2, "without a failure policy the count is kept");
}
