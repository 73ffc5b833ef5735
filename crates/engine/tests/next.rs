//! Statements about the future hold: when the count changes next, and until when a window holds it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, default_behavior, external, mk_rules, mk_spec, mk_state, secs};
use engine::normalize::StabilizationHold;
use engine::spec::{
    Behavior, MetricTarget, ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy, Spec,
};
use engine::{Decision, MetricSamples, ScaleWriteResult};
use proptest::collection::vec;
use proptest::prelude::*;

/// Time between two decisions of a continuation.
const STEP_SECONDS: i64 = 10;
/// Number of decisions of a continuation: longer than every window and period.
const STEPS: i64 = 45;

/// A target whose only metric proposes exactly the count of [`propose`].
fn target(spec: Spec, replicas: i32) -> Fixture {
    let mut fixture = Fixture::new(spec, replicas);
    fixture.config.tolerance = 0.0;
    fixture
}

/// Rules whose windows and periods end within a continuation.
fn rules() -> impl Strategy<Value = ScalingRules> {
    let select = prop_oneof![
        3 => Just(SelectPolicy::Max),
        1 => Just(SelectPolicy::Min),
        1 => Just(SelectPolicy::Disabled),
    ];
    let kind = prop_oneof![Just(ScalingPolicyType::Pods), Just(ScalingPolicyType::Percent)];
    let policy = (kind, 1..120_i32, 1..=200_i64).prop_map(|(kind, value, period)| ScalingPolicy {
        kind,
        value,
        period: secs(period),
    });
    (proptest::option::of(0..=400_i64), select, vec(policy, 1..=3)).prop_map(|(window, select, policies)| {
        ScalingRules { window: window.map(secs), select, policies, tolerance: None }
    })
}

/// One decision `after` seconds, with a metric that proposes `count`.
fn propose(fixture: &mut Fixture, after: i64, count: i32) -> Decision {
    fixture.now += secs(after);
    fixture.samples = vec![Ok(MetricSamples::Totals(vec![(i64::from(count) * 1000).into()]))];
    let decision = fixture.step(ScaleWriteResult::Done);
    fixture.status = decision.status.clone();
    let scale = fixture.scale.as_mut().unwrap();
    scale.spec_replicas = decision.desired;
    scale.status_replicas = decision.desired;
    decision
}

/// Checks the prediction of `decision`, by continuing with the same proposal.
fn check(fixture: &Fixture, decision: &Decision, count: i32) -> Result<(), TestCaseError> {
    let Some(normalized) = &decision.normalized else { return Ok(()) };
    let (stabilized, next) = (&normalized.stabilized, normalized.next);
    if let Some(next) = next {
        let mut then = fixture.clone();
        then.now = next.at;
        prop_assert_eq!(propose(&mut then, 0, count).desired, next.replicas, "the change at {}", next.at);
    }
    let mut later = fixture.clone();
    for _ in 0..STEPS {
        let then = propose(&mut later, STEP_SECONDS, count);
        if let (Some(until), Some(held)) = (stabilized.until, then.normalized.as_ref()) {
            let held = held.stabilized.replicas;
            if then.at < until {
                match stabilized.hold {
                    StabilizationHold::Down => prop_assert!(held >= stabilized.replicas, "{then:?}"),
                    StabilizationHold::Up => prop_assert!(held <= stabilized.replicas, "{then:?}"),
                    StabilizationHold::None => {}
                }
            } else if then.at > until && stabilized.hold != StabilizationHold::None {
                prop_assert_ne!(held, stabilized.replicas, "the window holds no longer than {}", until);
            }
        }
        if next.is_none_or(|next| then.at < next.at) {
            prop_assert_eq!(then.desired, decision.desired, "{:?} at {}", next, then.at);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn next_change_and_end_of_the_window_hold_in_the_continuation(
        behavior in proptest::option::of((rules(), rules()).prop_map(|(up, down)| Behavior { up, down })),
        start in 1..20_i32,
        proposals in vec((1..60_i64, 1..40_i32), 1..8),
    ) {
        let metric = external(MetricTarget::AverageValue(1000.into()));
        let spec = Spec { max: 30.into(), behavior, ..mk_spec([metric]) };
        let mut fixture = target(spec, start);
        for (after, count) in proposals {
            let decision = propose(&mut fixture, after, count);
            check(&fixture, &decision, count)?;
        }
    }
}

/// The held count falls with the highest recommendation that is left, not when the current one passes.
#[test]
fn window_holds_until_the_highest_recommendation_leaves_it() {
    let metric = external(MetricTarget::AverageValue(1000.into()));
    let history = mk_state(&[(8, 290), (7, 260), (5, 60)], &[], &[]);
    let mut fixture = target(mk_spec([metric]), 8).with_state(history);
    let decision = propose(&mut fixture, 0, 3);
    let normalized = decision.normalized.unwrap();
    assert_eq!(normalized.stabilized.until, Some(fixture.now + secs(10)));
    let next = normalized.next.unwrap();
    assert_eq!(next.replicas, 7);
    assert!(next.at > fixture.now + secs(10) && next.at < fixture.now + secs(11), "{next:?}");
}

/// A search through thousands of policies would take minutes, and with it every other decision.
#[test]
fn next_change_is_unknown_with_thousands_of_policies() {
    let with_policies = |count: i64| {
        let policy = |period| (ScalingPolicyType::Pods, 1, 1 + period % 1800);
        let up = mk_rules(&(0..count).map(policy).collect::<Vec<_>>());
        let behavior = Some(Behavior { up, ..default_behavior() });
        let metric = external(MetricTarget::AverageValue(1000.into()));
        let ups: Vec<_> = (1..=100).map(|ago| (1, ago * 15)).collect();
        let spec = Spec { max: 1000.into(), behavior, ..mk_spec([metric]) };
        let decision = propose(&mut target(spec, 500).with_state(mk_state(&[], &ups, &[])), 0, 900);
        assert_eq!(decision.desired.get(), 501, "with {count} policies");
        decision.normalized.unwrap()
    };
    let few = with_policies(2);
    assert!(few.next.is_some() && !few.next_unknown);
    let many = with_policies(20_000);
    assert_eq!((many.next, many.next_unknown), (None, true));
}
