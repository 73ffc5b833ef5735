//! Every example runs and gives the results that its comments describe.

// Clippy takes helpers of tests for code that ships.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::path::{Path, PathBuf};

use common::{MAX_ROWS, changes, run};
use sim::{Recording, Scenario, Summary};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn load(name: &str) -> Scenario {
    let path = folder().join(name);
    common::load(&path.display().to_string(), &std::fs::read(&path).unwrap())
}

fn example(name: &str) -> (Summary, Recording) {
    run(&load(name))
}

fn replicas_at(recording: &Recording, workload: usize, seconds: f64) -> f64 {
    let table = &recording.workloads[workload];
    let row = table.seconds.iter().position(|at| *at >= seconds).unwrap();
    table.column("replicas").unwrap()[row]
}

#[test]
fn every_example_is_deterministic() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let names = scenarios.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name != "month.yaml").collect();
    names.sort();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let scenario = load(&name);
        let text = |(summary, recording): (Summary, Recording)| {
            serde_json::to_string(&(summary, recording)).unwrap()
        };
        assert_eq!(text(run(&scenario)), text(run(&scenario)), "{name}");
        assert!(scenario.name.len() > 2, "{name}");
    }
}

#[test]
fn php_apache() {
    let (summary, recording) = example("php-apache.yaml");
    assert_eq!(changes(&recording, 0), [(150.0, 1, 4), (165.0, 4, 5), (195.0, 5, 8), (810.0, 8, 1)]);
    assert_eq!(recording.changes[0].recommended, Some(5));
    assert!(summary.workloads[0].unserved_share > 0.0);
    assert_eq!(summary.autoscalers[0].failures, 0);
}

#[test]
fn container_resource_sidecar() {
    let (summary, recording) = example("container-resource-sidecar.yaml");
    assert_eq!(changes(&recording, 0), []);
    assert!(summary.workloads[0].unserved_share > 0.3 && summary.workloads[0].short_at_end);
    assert!(summary.workloads[1].max_replicas > 10 && summary.workloads[1].unserved_share == 0.0);
}

#[test]
fn queue_external() {
    let (summary, recording) = example("queue-external.yaml");
    let workload = &summary.workloads[0];
    assert!(workload.max_backlog > 100.0 && workload.unserved == 0.0 && workload.mean_wait_seconds > 1.0);
    assert_eq!(replicas_at(&recording, 0, 2400.0), 1.0);
    // All of the backlog is worked off although the metric recommends the minimum in between.
    assert_eq!(recording.workloads[0].column("backlog").unwrap().last(), Some(&0.0));
    assert!(summary.autoscalers[0].reversals >= 1);
}

#[test]
fn multi_metric_outage() {
    let (_, recording) = example("multi-metric-outage.yaml");
    let within = |from: f64, to: f64| {
        changes(&recording, 0).into_iter().filter(|(at, ..)| (from..to).contains(at)).collect::<Vec<_>>()
    };
    assert!(within(600.0, 1200.0).iter().all(|(_, from, to)| to > from), "one metric is missing");
    assert_eq!(within(1680.0, 1920.0), [], "all are missing");
    assert!(!within(1920.0, 1950.0).is_empty(), "it catches up at once");
    let reasons: Vec<&str> = recording.problems.iter().map(|t| t.reason.as_str()).collect();
    assert!(
        reasons.contains(&"FailedGetPodsMetric") && reasons.contains(&"FailedGetObjectMetric"),
        "{reasons:?}"
    );
}

#[test]
fn behavior_tuning() {
    let (a, _) = example("behavior-tuning.yaml");
    let (b, _) = example("behavior-tuning-b.yaml");
    assert_eq!(a.workloads[0].offered, b.workloads[0].offered, "the same load");
    assert!(b.workloads[0].unserved < a.workloads[0].unserved);
    assert!(b.autoscalers[0].downs < a.autoscalers[0].downs);
    assert!(b.workloads[0].pod_hours > a.workloads[0].pod_hours);
}

#[test]
fn scale_to_zero() {
    let (summary, recording) = example("scale-to-zero.yaml");
    assert_eq!(summary.workloads[0].min_replicas, 0);
    assert_eq!(replicas_at(&recording, 0, 1200.0), 0.0);
    assert!(changes(&recording, 0).contains(&(405.0, 2, 0)), "{:?}", changes(&recording, 0));
    assert_eq!(replicas_at(&recording, 0, 2400.0), 0.0);
    let workload = &summary.workloads[0];
    assert!((workload.served - workload.offered).abs() < 1e-6, "every mail is sent");
}

#[test]
fn aggregators_combine_proposals() {
    let (summary, recording) = example("aggregators.yaml");
    let [max, average, min] = [0, 1, 2].map(|workload| replicas_at(&recording, workload, 1140.0));
    assert_eq!((max, min), (15.0, 8.0));
    assert!(min < average && average < max, "{average}");
    assert_eq!(replicas_at(&recording, 2, 1440.0), 8.0, "the last good proposal stands");
    assert_eq!(replicas_at(&recording, 2, 1600.0), 15.0, "then growing goes on without it");
    assert!(recording.changes.iter().any(|c| c.autoscaler == 3 && c.dry_run));
    assert_eq!(summary.autoscalers[3].decisions, 60);
}

#[test]
fn month_has_every_decision_and_bounded_rows() {
    let (summary, recording) = example("month.yaml");
    assert_eq!(summary.autoscalers[0].decisions, 172_800);
    assert_eq!((summary.workloads[0].min_replicas, summary.workloads[0].max_replicas), (5, 50));
    assert!(summary.workloads[0].unserved_share < 0.01, "{}", summary.workloads[0].unserved_share);
    assert!(recording.workloads[0].seconds.len() < MAX_ROWS);
}

#[test]
fn trace_of_load_is_repeated() {
    let (summary, recording) = example("trace.yaml");
    let workload = &summary.workloads[0];
    assert!(workload.unserved_share > 0.0 && workload.worst_reaction_seconds > 90.0);
    let highest = recording.workloads[0].column("offered").unwrap().iter().copied().fold(0.0, f64::max);
    assert!((1.5 * 170.0..=1.5 * 174.0).contains(&highest), "{highest}");
    assert!(workload.max_replicas >= 12, "{}", workload.max_replicas);
}
