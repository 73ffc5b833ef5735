//! The vectors of docs/spec/hpa.md 6.6: stabilization windows, rates and bounds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, default_behavior, external, mk_rules, mk_spec, mk_state, secs, shown};
use engine::spec::{
    Behavior, MetricTarget,
    ScalingPolicyType::{Percent, Pods},
    ScalingRules, SelectPolicy, Spec,
};
use engine::{Decision, State};

/// A target with bounds 1 and 1000 and `current` replicas, for which a metric proposes exactly `wanted`.
fn proposing(current: i32, wanted: i32, behavior: Option<Behavior>) -> Fixture {
    let spec =
        Spec { max: 1000.into(), behavior, ..mk_spec([external(MetricTarget::AverageValue(1000.into()))]) };
    let mut fixture = Fixture::new(spec, current).totals(&[i64::from(wanted) * 1000]);
    fixture.config.tolerance = 0.0;
    fixture
}

fn up(policies: &[(engine::spec::ScalingPolicyType, i32, i64)]) -> Behavior {
    Behavior { up: mk_rules(policies), ..default_behavior() }
}

fn down(policies: &[(engine::spec::ScalingPolicyType, i32, i64)]) -> Behavior {
    Behavior { down: mk_rules(policies), ..default_behavior() }
}

/// The count and its reason.
fn limited(decision: &Decision) -> (i32, String) {
    let reason = decision.status.condition("ScalingLimited").unwrap().reason.clone().into_owned();
    (decision.desired.get(), reason)
}

/// A vector: current and proposed replicas, scaling rules, earlier changes and the expected result.
struct Row {
    name: &'static str,
    counts: (i32, i32),
    behavior: Behavior,
    state: State,
    gives: (i32, &'static str),
}

/// Changes up and down: by how many, how many seconds ago.
type Changes = (&'static [(i32, i64)], &'static [(i32, i64)]);

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let row = |name, counts, behavior, (ups, downs): Changes, gives| {
        Row { name, counts, behavior, state: mk_state(&[], ups, downs), gives }
    };
    let select_min = |rules: ScalingRules| ScalingRules { select: SelectPolicy::Min, ..rules };
    let none: Changes = (&[], &[]);
    let both = &[(Pods, 2, 60), (Percent, 50, 60)];
    vec![
        row("N1", (10, 50), default_behavior(), none, (20, "ScaleUpLimit")),
        row("N2", (3, 1000), up(&[(Percent, 1, 60)]), none, (4, "ScaleUpLimit")),
        row("N3", (10, 500), up(&[(Pods, 100, 60), (Percent, 100, 60)]), none, (110, "ScaleUpLimit")),
        row("N4", (100, 500), up(&[(Pods, 5, 120)]), (&[(15, 60)], &[]), (100, "ScaleUpLimit")),
        row("N5", (100, 500), up(&[(Pods, 150, 120)]), (&[(15, 60)], &[]), (235, "ScaleUpLimit")),
        row("N6", (100, 500), up(&[(Percent, 200, 120)]), (&[(15, 60)], &[]), (255, "ScaleUpLimit")),
        row("N7", (6, 24), up(&[(Percent, 300, 300)]), (&[(4, 60)], &[(2, 30)]), (16, "ScaleUpLimit")),
        row("N9", (100, 2), down(&[(Pods, 20, 60), (Percent, 1, 60)]), none, (80, "ScaleDownLimit")),
        row("N10", (10, 5), down(&[(Percent, 50, 60)]), none, (5, "DesiredWithinRange")),
        row("N11", (100, 0), down(&[(Percent, 50, 120)]), (&[], &[(12, 60)]), (56, "ScaleDownLimit")),
        row("N12", (10, 1), down(&[(Percent, 50, 180)]), (&[(2, 60)], &[(4, 30)]), (6, "ScaleDownLimit")),
        row("N13", (100, 0), down(&[(Percent, 10, 120)]), (&[], &[(30, 60)]), (100, "ScaleDownLimit")),
        row("N14", (10, 5), down(&[(Percent, 1000, 120)]), (&[], &[(30, 60)]), (5, "DesiredWithinRange")),
        row("N15", (10, 0), down(&[(Pods, 100, 60)]), none, (1, "TooFewReplicas")),
        row("N16", (1, 100), Behavior { up: select_min(mk_rules(both)), ..default_behavior() }, none,
            (2, "ScaleUpLimit")),
        row("N17", (5, 1), Behavior { down: select_min(mk_rules(both)), ..default_behavior() }, none,
            (3, "ScaleDownLimit")),
        row("N18", (100, 3),
            Behavior { down: ScalingRules { select: SelectPolicy::Disabled, ..mk_rules(both) }, ..default_behavior() },
            none, (100, "ScaleDownLimit")),
    ]
}

#[test]
fn policies_limit_changes_within_their_period() {
    for Row { name, counts: (current, wanted), behavior, state, gives: (n, reason) } in rows() {
        let decision = proposing(current, wanted, Some(behavior)).with_state(state).run();
        assert_eq!(limited(&decision), (n, reason.to_owned()), "{name}");
    }
}

#[test]
fn n8_the_bound_is_named_when_it_is_nearer_than_the_rate() {
    let mut fixture =
        proposing(100, 500, Some(up(&[(Pods, 300, 60)]))).with_state(mk_state(&[], &[(15, 30)], &[]));
    fixture.spec.max = 200.into();
    assert_eq!(limited(&fixture.run()), (200, "TooManyReplicas".to_owned()));
}

/// Windows only: the rates do not limit.
fn windows(up: i64, down: i64) -> Behavior {
    let wide = |window| ScalingRules { window: Some(secs(window)), ..mk_rules(&[(Pods, 1000, 60)]) };
    Behavior { up: wide(up), down: wide(down) }
}

fn stabilized(
    history: &[(i32, i64)],
    current: i32,
    wanted: i32,
    behavior: Option<Behavior>,
) -> (i32, String) {
    let decision = proposing(current, wanted, behavior).with_state(mk_state(history, &[], &[])).run();
    let normalized = decision.normalized.clone().unwrap();
    let able = decision.status.condition("AbleToScale").unwrap().reason.clone().into_owned();
    (normalized.stabilized.replicas.get(), able)
}

#[test]
fn windows_with_behavior() {
    let history = &[(4, 120), (5, 60)];
    assert_eq!(stabilized(history, 100, 3, Some(windows(0, 180))).0, 5);
    assert_eq!(stabilized(history, 1, 7, Some(windows(300, 300))).0, 4);
    let held_down = (2, "ScaleDownStabilized".to_owned());
    assert_eq!(stabilized(&[(3, 180)], 2, 1, Some(windows(300, 300))), held_down);
    let held_up = (2, "ScaleUpStabilized".to_owned());
    assert_eq!(stabilized(&[(1, 180)], 2, 3, Some(windows(300, 300))), held_up);
    assert_eq!(stabilized(&[(8, 5)], 5, 3, Some(windows(300, 300))).0, 5);
}

#[test]
fn window_without_behavior_may_raise_the_count() {
    assert_eq!(stabilized(&[(8, 5)], 5, 3, None).0, 8);
}

/// Without `behavior` the edge of the window is inside, with `behavior` it is outside (docs/spec/hpa.md 6.2, 6.3).
#[test]
fn window_edges_are_inclusive_or_exclusive_as_in_kubernetes() {
    assert_eq!(stabilized(&[(8, 300)], 5, 3, None).0, 8);
    assert_eq!(stabilized(&[(8, 301)], 5, 3, None).0, 3);
    assert_eq!(stabilized(&[(4, 300)], 5, 3, Some(windows(0, 300))).0, 3);
    assert_eq!(stabilized(&[(4, 299)], 5, 3, Some(windows(0, 300))).0, 4);
}

/// A period begins after its edge: a change exactly one period old no longer counts (docs/spec/hpa.md 6.4).
#[test]
fn period_edges_are_as_in_kubernetes() {
    let grown = |ago| {
        let fixture =
            proposing(10, 100, Some(up(&[(Pods, 10, 60)]))).with_state(mk_state(&[], &[(4, ago)], &[]));
        fixture.run().desired.get()
    };
    assert_eq!((grown(60), grown(59)), (20, 16));
}

/// Limits without `behavior`: the double count or 4, and the lower bound (docs/spec/hpa.md 6.2).
#[test]
fn classic_limits() {
    let grow = |current, wanted| limited(&proposing(current, wanted, None).run());
    assert_eq!(grow(1, 100), (4, "ScaleUpLimit".to_owned()));
    assert_eq!(grow(3, 100), (6, "ScaleUpLimit".to_owned()));
    let mut bounded = proposing(3, 100, None);
    bounded.spec.max = 5.into();
    assert_eq!(limited(&bounded.run()), (5, "TooManyReplicas".to_owned()));
    let shrunk = proposing(3, 0, None).with_state(mk_state(&[(0, 10)], &[], &[])).run();
    assert_eq!(limited(&shrunk), (1, "TooFewReplicas".to_owned()));
    assert_eq!(shown(&shrunk, "ScalingLimited"), "True TooFewReplicas");
}
