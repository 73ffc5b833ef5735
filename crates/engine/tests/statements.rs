//! Statements about the future hold: "window holds N until TIME" and "lets N through after TIME".

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, default_behavior, external, mk_rules, mk_spec, secs};
use engine::normalize::StabilizationHold;
use engine::spec::{Behavior, MetricTarget, ScalingPolicyType, ScalingRules, Spec};
use engine::{Decision, MetricSamples, ScaleWriteResult};
use proptest::prelude::*;

/// A target whose metric proposes the count of each step.
fn target(behavior: Option<Behavior>) -> Fixture {
    let spec =
        Spec { max: 1000.into(), behavior, ..mk_spec([external(MetricTarget::AverageValue(1000.into()))]) };
    let mut fixture = Fixture::new(spec, 10).totals(&[1000]);
    fixture.config.tolerance = 0.0;
    fixture
}

/// One step after `seconds`, at which the metric proposes `wanted`.
fn step(fixture: &mut Fixture, seconds: i64, wanted: i32) -> Decision {
    fixture.now += secs(seconds);
    fixture.samples = vec![Ok(MetricSamples::Totals(vec![(i64::from(wanted) * 1000).into()]))];
    let decision = fixture.step(ScaleWriteResult::Done);
    if let Ok(scale) = &mut fixture.scale {
        (scale.spec_replicas, scale.status_replicas) = (decision.desired, decision.desired);
    }
    decision
}

fn windows() -> impl Strategy<Value = Option<Behavior>> {
    let rules = |window: i64| ScalingRules {
        window: Some(secs(window)),
        ..mk_rules(&[(ScalingPolicyType::Percent, 100, 15), (ScalingPolicyType::Pods, 4, 15)])
    };
    prop_oneof![
        Just(None),
        (0_i64..20, 0_i64..20)
            .prop_map(move |(up, down)| { Some(Behavior { up: rules(up * 15), down: rules(down * 15) }) }),
        Just(Some(default_behavior())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn window_holds_its_count_until_the_stated_time(
        behavior in windows(),
        steps in prop::collection::vec((5_i64..30, 1_i32..40), 2..80),
    ) {
        let mut fixture = target(behavior);
        let decisions: Vec<Decision> =
            steps.iter().map(|(seconds, wanted)| step(&mut fixture, *seconds, *wanted)).collect();
        for (place, decision) in decisions.iter().enumerate() {
            let held = &decision.normalized.as_ref().unwrap().stabilized;
            let Some(until) = held.holds_until() else {
                prop_assert_eq!(held.hold, StabilizationHold::None);
                continue;
            };
            prop_assert!(held.until.is_some_and(|through| until <= through), "{:?}", held);
            for later in decisions[place..].iter().take_while(|later| later.at < until) {
                let now = &later.normalized.as_ref().unwrap().stabilized;
                match held.hold {
                    StabilizationHold::Down => prop_assert!(now.replicas >= held.replicas, "{:?}\n{:?}", held, now),
                    StabilizationHold::Up => prop_assert!(now.replicas <= held.replicas, "{:?}\n{:?}", held, now),
                    StabilizationHold::None => {}
                }
            }
        }
    }
}
