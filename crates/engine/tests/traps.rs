//! Cases of docs/spec/hpa.md 10 in which a plausible implementation differs from Kubernetes: tolerance, limits, windows,
//! bounds and writes. Test names have the numbers of the spec. `traps_metrics.rs` has the cases of samples, requests and
//! metric failures.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{
    Fixture, cpu, default_behavior, events, external, mins, mk_pod, mk_rules, mk_spec, mk_state, never_ready,
    noon, object, proposal, readings, secs, shown,
};
use engine::act::{ScaleWrite, ScaleWriteAction, ScaleWriteError};
use engine::report::condition;
use engine::spec::{Behavior, MetricTarget, ScalingPolicyType, ScalingRules, SelectPolicy, Spec};
use engine::{MetricSamples, Pod, ScaleOutcome, ScaleWriteResult};

/// `count` pods, all at this much cpu of the 1000m they request.
fn all_at(count: i32, milli: i64, target: i32) -> Fixture {
    Fixture::new(Spec { max: 1000.into(), ..mk_spec([cpu(target)]) }, count).each(milli)
}

/// A count that a metric proposes exactly.
fn proposing(current: i32, wanted: i32) -> Fixture {
    let spec = Spec { max: 1000.into(), ..mk_spec([external(MetricTarget::AverageValue(1000.into()))]) };
    Fixture::new(spec, current).totals(&[i64::from(wanted) * 1000])
}

#[test]
fn t1_tolerance_is_inclusive() {
    assert_eq!(proposal(&all_at(4, 550, 50).run()), Ok(4));
    assert_eq!(proposal(&all_at(4, 450, 50).run()), Ok(4));
    assert_eq!(proposal(&all_at(4, 560, 50).run()), Ok(5));
}

#[test]
fn t3_ceil_overshoots_an_exact_integer() {
    assert_eq!(proposal(&all_at(25, 560, 50).run()), Ok(29));
}

#[test]
fn t4_within_tolerance_the_current_count_is_proposed_not_the_ready_one() {
    let mut fixture = all_at(5, 500, 50);
    fixture.scale.as_mut().unwrap().spec_replicas = 4.into();
    assert_eq!(proposal(&fixture.run()), Ok(4));
}

#[test]
fn t5_percent_policies_carry_representation_error() {
    let behavior = |up, down| Behavior {
        up: mk_rules(&[(ScalingPolicyType::Percent, up, 60)]),
        down: mk_rules(&[(ScalingPolicyType::Percent, down, 60)]),
    };
    for (from, to) in [(100, 111), (50, 56), (90, 100), (110, 122), (10, 11), (70, 77), (5, 6)] {
        let mut fixture = proposing(from, 900);
        fixture.spec.behavior = Some(behavior(10, 10));
        assert_eq!(fixture.run().desired, to, "up 10 % from {from}");
    }
    for (percent, from, to) in [(30, 90, 62), (10, 5, 4)] {
        let mut fixture = proposing(from, 1);
        fixture.spec.behavior = Some(behavior(10, percent));
        assert_eq!(fixture.run().desired, to, "down {percent} % from {from}");
    }
}

#[test]
fn t6_defaults_with_and_without_behavior_differ() {
    for (current, without, with) in [(1, 4, 5), (3, 6, 7)] {
        let mut fixture = proposing(current, 100);
        assert_eq!(fixture.clone().run().desired, without);
        fixture.spec.behavior = Some(default_behavior());
        assert_eq!(fixture.run().desired, with);
    }
}

#[test]
fn t7_the_limit_without_behavior_ignores_earlier_changes() {
    let grow = |behavior: Option<Behavior>| {
        let mut fixture = proposing(4, 500);
        fixture.spec.behavior = behavior;
        let mut counts = Vec::new();
        for _ in 0..3 {
            let decision = fixture.step(ScaleWriteResult::Done);
            counts.push(decision.desired.get());
            fixture.scale.as_mut().unwrap().spec_replicas = decision.desired;
            fixture.now += secs(5);
        }
        counts
    };
    assert_eq!(grow(None), [8, 16, 32]);
    assert_eq!(grow(Some(default_behavior())), [8, 8, 8]);
}

#[test]
fn t8_old_recommendations_raise_the_count_without_behavior() {
    let earlier = || mk_state(&[(10, 60)], &[], &[]);
    let lower = proposing(6, 4).with_state(earlier()).run();
    assert_eq!(events(&lower), ["SuccessfulRescale: New size: 10; reason: All metrics below target"]);
    let equal = proposing(6, 6).with_state(earlier()).run();
    assert_eq!(events(&equal), ["SuccessfulRescale: New size: 10; reason: "]);
    let mut held = proposing(6, 4).with_state(earlier());
    held.spec.behavior = Some(default_behavior());
    let held = held.run();
    assert_eq!((held.desired.get(), shown(&held, "AbleToScale")), (6, "True ScaleDownStabilized".to_owned()));
}

#[test]
fn t9_per_replica_targets_divide_by_the_replicas_that_exist() {
    let fixture = Fixture::new(mk_spec([external(MetricTarget::AverageValue(10_000.into()))]), 4)
        .totals(&[44_000])
        .existing(5);
    let decision = fixture.run();
    assert_eq!((proposal(&decision), readings(&decision)), (Ok(5), vec![Some("8800m".to_owned())]));
    assert_eq!(decision.reason, "external metric qlen(nil) above target");
}

#[test]
fn t10_value_targets_count_pods_being_deleted() {
    let leaving = Pod { deleting: true, ..mk_pod("leaving") };
    let pods = || vec![mk_pod("a"), mk_pod("b"), leaving.clone()];
    let mut fixture =
        Fixture::new(mk_spec([external(MetricTarget::Value(10_000.into()))]), 2).totals(&[20_000]);
    fixture.pods = pods();
    assert_eq!(proposal(&fixture.run()), Ok(6));
    let per_pod = pods().into_iter().map(|pod| (pod, Some(1000))).collect();
    assert_eq!(proposal(&Fixture::new(mk_spec([cpu(50)]), 2).pods(per_pod).run()), Ok(4));
}

#[test]
fn t11_value_targets_without_a_ready_pod_propose_zero() {
    let mut fixture =
        Fixture::new(mk_spec([external(MetricTarget::Value(10_000.into()))]), 2).totals(&[20_000]);
    fixture.pods = vec![never_ready("a")];
    fixture.state = mk_state(&[(1, 10)], &[], &[]);
    let decision = fixture.clone().run();
    assert_eq!((proposal(&decision), decision.desired.get()), (Ok(0), 1));
    assert_eq!(decision.reason, "All metrics below target");
    fixture.pods.clear();
    let text = "unable to calculate ready pods: no pods returned by selector while calculating replica count";
    assert_eq!(proposal(&fixture.run()), Err(text));
}

#[test]
fn t28_bounds_bypass_everything() {
    let mut fixture = all_at(10, 500, 50);
    fixture.spec.max = 5.into();
    let down = ScalingRules {
        select: SelectPolicy::Disabled,
        window: Some(secs(3600)),
        ..mk_rules(&[(ScalingPolicyType::Pods, 1, 60)])
    };
    fixture.spec.behavior = Some(Behavior { down, ..default_behavior() });
    fixture.status.set(noon(), condition::SCALING_LIMITED, true, "Stale", "");
    let decision = fixture.run();
    assert_eq!((decision.desired.get(), &decision.status.metrics), (5, &None));
    assert_eq!(decision.reason, "Current number of replicas above Spec.MaxReplicas");
    assert_eq!(shown(&decision, "ScalingLimited"), "True Stale");
}

#[test]
fn t29_zero_with_cpu_only_is_stuck() {
    let mut fixture = Fixture::new(Spec { min: 2.into(), ..mk_spec([cpu(50)]) }, 0).each(0);
    fixture.config.gates.scale_to_zero = true;
    fixture.status.set(noon(), condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
    let decision = fixture.run();
    assert_eq!(decision.outcome, ScaleOutcome::Failed);
    assert_eq!(
        proposal(&decision),
        Err("failed to get cpu utilization: no pods returned by selector while calculating replica count")
    );
}

#[test]
fn t31_negative_sums() {
    let propose = |target, series: &[i64]| Fixture::of_three([external(target)]).totals(series).run();
    for series in [&[-5000_i64][..], &[-5000, 9000]] {
        let decision = propose(MetricTarget::AverageValue(1000.into()), series);
        assert_eq!((proposal(&decision), decision.desired.get()), (Ok(i32::MAX), 6), "limited to double");
    }
    let mut value = Fixture::of_three([external(MetricTarget::Value(1000.into()))]).totals(&[-5000]);
    value.state = mk_state(&[(0, 10)], &[], &[]);
    let decision = value.run();
    assert_eq!((proposal(&decision), decision.desired.get()), (Ok(-15), 1));
}

#[test]
fn t32_huge_policies_wrap_and_block() {
    let grow = |kind, from| {
        let mut fixture = proposing(from, 900);
        fixture.spec.behavior =
            Some(Behavior { up: mk_rules(&[(kind, i32::MAX, 60)]), ..default_behavior() });
        fixture.run().desired.get()
    };
    assert_eq!(grow(ScalingPolicyType::Pods, 10), 10);
    assert_eq!(grow(ScalingPolicyType::Percent, 100), 100);
    assert_eq!(grow(ScalingPolicyType::Percent, 10), 900);
}

#[test]
fn t37_a_fresh_start_is_held_at_the_current_count() {
    let mut fixture = proposing(8, 2);
    assert_eq!(fixture.step(ScaleWriteResult::Done).desired, 8);
    fixture.now += mins(5);
    assert_eq!(fixture.step(ScaleWriteResult::Done).desired, 8, "the seed is exactly as old as the window");
    fixture.now += secs(1);
    assert_eq!(fixture.step(ScaleWriteResult::Done).desired, 2);

    let mut fixture = proposing(8, 20);
    let up = ScalingRules { window: Some(secs(120)), ..mk_rules(&[(ScalingPolicyType::Pods, 100, 60)]) };
    fixture.spec.behavior = Some(Behavior { up, ..default_behavior() });
    assert_eq!(fixture.step(ScaleWriteResult::Done).desired, 8);
    fixture.now += secs(120);
    assert_eq!(fixture.step(ScaleWriteResult::Done).desired, 20);
}

#[test]
fn t38_raw_recommendations_are_recorded() {
    let mut fixture = proposing(10, 500);
    fixture.spec.max = 10.into();
    fixture.step(ScaleWriteResult::Done);
    fixture.samples = vec![Ok(MetricSamples::Totals(vec![3000.into()]))];
    fixture.now += secs(15);
    let decision = fixture.step(ScaleWriteResult::Done);
    let normalized = decision.normalized.clone().unwrap();
    assert_eq!((normalized.stabilized.replicas.get(), decision.desired.get()), (500, 10));
    assert_eq!(shown(&decision, "ScalingLimited"), "True TooManyReplicas");
}

#[test]
fn t39_one_old_slot_is_reused_and_the_others_stay() {
    let mut fixture = proposing(5, 5).with_state(mk_state(&[(9, 400), (8, 350), (7, 100)], &[], &[]));
    fixture.step(ScaleWriteResult::Done);
    let values = |fixture: &Fixture| {
        let state = serde_json::to_value(&fixture.state).unwrap();
        let list = state["recommendations"].as_array().unwrap().clone();
        list.iter().map(|r| r["value"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(values(&fixture), [9, 5, 7], "the last of the old ones is overwritten");
    fixture.config.downscale_stabilization = secs(500);
    assert_eq!(fixture.step(ScaleWriteResult::Done).desired, 9, "a longer window brings the other one back");
}

/// The `outdated` mark of changes survives until its slot is overwritten (docs/spec/hpa.md 6.5).
#[test]
fn changes_reuse_old_slots() {
    let mut fixture = proposing(5, 6).with_state(mk_state(&[], &[(1, 100), (2, 90), (3, 5)], &[]));
    fixture.spec.behavior =
        Some(Behavior { up: mk_rules(&[(ScalingPolicyType::Pods, 9, 60)]), ..default_behavior() });
    fixture.step(ScaleWriteResult::Done);
    let state = serde_json::to_value(&fixture.state).unwrap();
    let by: Vec<_> = state["ups"].as_array().unwrap().iter().map(|c| c["by"].as_i64().unwrap()).collect();
    let outdated: Vec<_> =
        state["ups"].as_array().unwrap().iter().map(|c| c["outdated"].as_bool().unwrap()).collect();
    assert_eq!((by, outdated), (vec![1, 1, 3], vec![true, false, false]));
}

#[test]
fn t41_disabled_reports_a_limit() {
    let rules =
        ScalingRules { select: SelectPolicy::Disabled, ..mk_rules(&[(ScalingPolicyType::Pods, 1, 60)]) };
    let disabled = |window| {
        let mut fixture = proposing(100, 3);
        let down = ScalingRules { window: Some(secs(window)), ..rules.clone() };
        fixture.spec.behavior = Some(Behavior { down, ..default_behavior() });
        fixture.run()
    };
    let free = disabled(0);
    assert_eq!(free.desired, 100);
    assert_eq!(shown(&free, "ScalingLimited"), "True ScaleDownLimit");
    assert_eq!(shown(&free, "AbleToScale"), "True ReadyForNewScale");
    let held = disabled(300);
    assert_eq!(held.desired, 100);
    assert_eq!(shown(&held, "ScalingLimited"), "False DesiredWithinRange");
    assert_eq!(shown(&held, "AbleToScale"), "True ScaleDownStabilized");
}

#[test]
fn t42_the_last_of_equal_zeros_wins_and_the_first_of_other_equals() {
    let named = |first: i64, second: i64| {
        let metrics = [
            external(MetricTarget::AverageValue(1000.into())),
            object(MetricTarget::AverageValue(1000.into())),
        ];
        Fixture::of_three(metrics).totals(&[first]).totals(&[second]).run().recommendation.unwrap().metric
    };
    assert_eq!(named(0, 0), "external metric rps(nil)");
    assert_eq!(named(5000, 5000), "external metric qlen(nil)");
    assert_eq!(named(5000, 6000), "external metric rps(nil)");
}

#[test]
fn t43_conflicts_are_tried_five_times_other_failures_once() {
    let error = |conflict| ScaleWriteError { text: "no".into(), conflict };
    let count_puts = |conflict| {
        let (mut write, mut next) = ScaleWrite::start();
        let (mut puts, mut reads) = (0, 0);
        loop {
            next = match next {
                ScaleWriteAction::Put => {
                    puts += 1;
                    write.put(Err(error(conflict)))
                }
                ScaleWriteAction::Refetch => {
                    reads += 1;
                    write.refetched()
                }
                ScaleWriteAction::Wait(_) => write.waited(),
                ScaleWriteAction::Done(result) => return (puts, reads, result),
            };
        }
    };
    // The read before the first put is the step's own.
    assert_eq!(count_puts(true), (5, 5, Err(error(true))));
    assert_eq!(count_puts(false), (1, 1, Err(error(false))));
    let (mut write, _) = ScaleWrite::start();
    assert_eq!(write.put(Ok(())), ScaleWriteAction::Done(Ok(())));
}

#[test]
fn t45_a_failed_status_write_is_the_error_of_the_step() {
    let mut fixture = all_at(3, 900, 50);
    let seen = fixture.observation();
    let mut decision = fixture.state.step(fixture.now, &seen);
    fixture.state.settle(fixture.now, &seen, &mut decision, ScaleWriteResult::Done);
    decision.status_written("h", Err("conflict".into()));
    assert_eq!(decision.outcome, ScaleOutcome::Scaled, "the scale was written all the same");
    assert_eq!(events(&decision)[1], "FailedUpdateStatus: conflict");
    assert_eq!(decision.error.unwrap().text, "failed to update status for h: conflict");
}
