#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn step_titles(seed: u64, number: u64) -> Vec<String> {
    let mut scenario = Scenario::new(seed, number, number.is_multiple_of(2));
    let facts = Facts { replicas: Some(3), now: Timestamp::UNIX_EPOCH };
    let mut lines = Vec::new();
    while !scenario.is_over() {
        let step = scenario.step(facts);
        lines.push(step.title);
        lines.extend(step.actions.iter().map(ToString::to_string));
    }
    lines
}

#[test]
fn scenario_is_determined_by_its_number() {
    assert_eq!(step_titles(1, 7), step_titles(1, 7));
    assert_ne!(step_titles(1, 7), step_titles(2, 7));
}

#[test]
fn every_action_occurs() {
    let all: String = (0..400).flat_map(|number| step_titles(1, number)).collect::<Vec<_>>().join("\n");
    let kinds = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Worker", "Blind"];
    let types = ["Resource", "ContainerResource", "Pods", "Object", "External"]
        .map(|kind| format!("\"type\":\"{kind}\""));
    let titles = [
        "new values",
        "samples of some pods are gone",
        "a metric is removed:",
        "the workload has",
        "some pods are Terminating",
        "another pod: PodLevel",
        "is gone",
        "to 0 by hand",
        "the status says",
        "the target is deleted",
        "the target comes back",
        "between None",
        "other targets",
        "other metrics",
        "other behavior",
        "names an unknown kind",
        "the reference is right again",
        "made anew",
        "the autoscaler comes back",
        "a second autoscaler",
        "the second autoscaler goes",
        "autoscaling.alpha.kubernetes.io/metrics",
        "\"Bogus\"",
        "\"minReplicas\":0",
    ];
    let wanted: BTreeSet<&str> = kinds
        .into_iter()
        .chain(types.iter().map(String::as_str))
        .chain(titles)
        .filter(|text| !all.contains(text))
        .collect();
    assert!(wanted.is_empty(), "never seen: {wanted:?}");
}

#[test]
fn step_writes_the_autoscaler_once_or_changes_its_environment() {
    for number in 0..400 {
        let mut scenario = Scenario::new(3, number, false);
        let facts = Facts { replicas: Some(3), now: Timestamp::UNIX_EPOCH };
        scenario.step(facts);
        while !scenario.is_over() {
            let step = scenario.step(facts);
            let of_autoscaler = |action: &&HpaAction| matches!(action, HpaAction::ApiRequest(ask) if ask.path.contains("horizontalpodautoscalers"));
            let edits = step.actions.iter().filter(of_autoscaler).count();
            let asks =
                step.actions.iter().filter(|action| matches!(action, HpaAction::ApiRequest(_))).count();
            let anew = step.title.contains("anew");
            assert!(
                edits == 0 || edits == asks && (edits == 1 || anew),
                "{}: {:?}",
                step.title,
                step.actions
            );
        }
    }
}

#[test]
fn deletions_are_remembered_by_name() {
    let facts = Facts { replicas: Some(3), now: Timestamp::UNIX_EPOCH };
    let mut deleted = BTreeSet::new();
    for number in 0..400 {
        let mut scenario = Scenario::new(1, number, false);
        while !scenario.is_over() {
            let before = scenario.deleted_autoscalers();
            let step = scenario.step(facts);
            let names = scenario.deleted_autoscalers();
            let deletes = step.title.contains("deleted") && step.title.contains("autoscaler")
                || step.title.contains("autoscaler goes");
            assert!(deletes || names == before, "{}", step.title);
            assert!(names.iter().all(|name| scenario.autoscalers().contains(name)), "{names:?}");
            deleted.extend(names.iter().map(|name| name.ends_with("-b")));
        }
    }
    assert_eq!(deleted, [false, true].into());
}
