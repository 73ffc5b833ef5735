#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn places() -> Places {
    Places { scaler: "127.0.0.1:6000".into(), http: "127.0.0.1:6001".into() }
}

fn planned(seed: u64, number: u64) -> Vec<String> {
    let mut scenario = KedaScenario::new(seed, number, places());
    while !scenario.is_over() {
        scenario.step();
    }
    scenario.done.iter().flat_map(|step| step.actions.iter().map(KedaAction::to_string)).collect()
}

#[test]
fn scenario_is_determined_by_seed_and_number() {
    assert_eq!(planned(1, 3), planned(1, 3));
    assert_ne!(planned(1, 3), planned(2, 3));
}

#[test]
fn every_change_kind_occurs() {
    for (change_kinds, job) in [(ChangeKind::objects(), false), (ChangeKind::jobs(), true)] {
        let numbers = (0..60).filter(|number| (number % JOBS == JOBS - 1) == job);
        let drawn: Vec<ChangeKind> =
            numbers.flat_map(|number| KedaScenario::new(1, number, places()).changes).collect();
        for change in change_kinds {
            assert!(drawn.contains(&change), "{change:?}");
        }
    }
}

#[test]
fn breakage_is_repaired_soon() {
    for number in 0..60 {
        let mut scenario = KedaScenario::new(1, number, places());
        let mut broken = 0;
        while !scenario.is_over() {
            scenario.step();
            broken = if scenario.broken.is_some() { broken + 1 } else { 0 };
            assert!(broken <= 2, "{:?}", scenario.done.last());
        }
        assert!(scenario.done.len() > CHANGES_PER_SCENARIO);
    }
}

/// The titles of as many steps as a whole run has.
fn whole(seed: u64) -> Vec<String> {
    let scenarios = (0..).flat_map(|number| {
        let mut scenario = KedaScenario::new(seed, number, places());
        while !scenario.is_over() {
            scenario.step();
        }
        scenario.done
    });
    scenarios.take(200).map(|step| step.title).collect()
}

#[test]
fn whole_run_covers_every_action() {
    let wanted = [
        "a source becomes active",
        "a source becomes idle",
        "all sources become idle",
        "another value",
        "bounds:",
        "all thresholds:",
        "autoscaling.keda.sh/paused: ",
        "autoscaling.keda.sh/paused-replicas: ",
        "autoscaling.keda.sh/paused-scale-in: ",
        "autoscaling.keda.sh/paused-scale-out: ",
        "a source fails: Metrics",
        "a source fails: Active",
        "a source fails: Specs",
        "the address of the scaler refuses connections",
        "the source answers again",
        "\"behavior\":null",
        "\"behavior\":\"static\"",
        "\"behavior\":\"currentReplicas\"",
        "\"behavior\":\"currentReplicasIfHigher\"",
        "\"behavior\":\"currentReplicasIfLower\"",
        "\"behavior\":\"scalingModifiers\"",
        "\"replicas\":0",
        "the TriggerAuthentication is deleted",
        "an edit without the TriggerAuthentication",
        "the TriggerAuthentication is there again",
        "the Secret is deleted",
        "the Secret is there again",
        "a trigger with a ClusterTriggerAuthentication",
        "the target is deleted",
        "deleted (Delete)",
        "deleted (DeleteWithRestore)",
        "deleted (DeletePaused)",
        "created again",
        "a ScaledJob with",
    ];
    for seed in 1..=3 {
        let titles = whole(seed);
        for wanted in wanted {
            assert!(titles.iter().any(|title| title.contains(wanted)), "seed {seed}: {wanted}");
        }
    }
}

#[test]
fn specs_have_no_nulls() {
    for number in 0..60 {
        let text = planned(1, number).join("\n");
        let specs = text.lines().filter(|line| line.contains("\"/spec\""));
        specs.for_each(|line| assert!(!line.contains(":null"), "{line}"));
    }
}
