//! Spec section 10: where a plausible implementation goes wrong. Those that concern the engine and are not a row of
//! another table; the number of each test is the spec's.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{
    World, cpu, default_behavior, events, external, metric, metric_id, mins, mk_amounts, mk_container,
    mk_pod, mk_resources, mk_rules, mk_shape, mk_spec, mk_state, never_ready, noon, object, pending, per_pod,
    pods_metric, proposal, readings, resource, sample, secs, shown,
};
use engine::act::{ScaleWrite, ScaleWriteAction, ScaleWriteError};
use engine::pod::{ConditionStatus, ReadyCondition};
use engine::report::condition;
use engine::spec::{
    Behavior, MetricSource, MetricTarget, ScalingPolicyType, ScalingRules, SelectPolicy, Spec,
    UtilizationBase,
};
use engine::{MetricSamples, Pod, PodPhase, PodSamples, PodTemplate, ScaleOutcome, ScaleWriteResult};

/// `count` pods, all at this much cpu of the 1000m they request.
fn all_at(count: i32, milli: i64, target: i32) -> World {
    World::new(Spec { max: 1000, ..mk_spec([cpu(target)]) }, count).each(milli)
}

/// A count that a metric wants exactly.
fn wanting(current: i32, wanted: i32) -> World {
    let spec = Spec { max: 1000, ..mk_spec([external(MetricTarget::AverageValue(1000))]) };
    World::new(spec, current).totals(&[i64::from(wanted) * 1000])
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
    let mut world = all_at(5, 500, 50);
    world.scale.as_mut().unwrap().spec_replicas = 4;
    assert_eq!(proposal(&world.run()), Ok(4));
}

#[test]
fn t5_percent_policies_carry_representation_error() {
    let behavior = |up, down| Behavior {
        up: mk_rules(&[(ScalingPolicyType::Percent, up, 60)]),
        down: mk_rules(&[(ScalingPolicyType::Percent, down, 60)]),
    };
    for (from, to) in [(100, 111), (50, 56), (90, 100), (110, 122), (10, 11), (70, 77), (5, 6)] {
        let mut world = wanting(from, 900);
        world.spec.behavior = Some(behavior(10, 10));
        assert_eq!(world.run().desired, to, "up 10 % from {from}");
    }
    for (percent, from, to) in [(30, 90, 62), (10, 5, 4)] {
        let mut world = wanting(from, 1);
        world.spec.behavior = Some(behavior(10, percent));
        assert_eq!(world.run().desired, to, "down {percent} % from {from}");
    }
}

#[test]
fn t6_defaults_with_and_without_behavior_differ() {
    for (current, without, with) in [(1, 4, 5), (3, 6, 7)] {
        let mut world = wanting(current, 100);
        assert_eq!(world.clone().run().desired, without);
        world.spec.behavior = Some(default_behavior());
        assert_eq!(world.run().desired, with);
    }
}

#[test]
fn t7_the_classic_limit_has_no_memory() {
    let grow = |behavior: Option<Behavior>| {
        let mut world = wanting(4, 500);
        world.spec.behavior = behavior;
        let mut counts = Vec::new();
        for _ in 0..3 {
            let decision = world.step(ScaleWriteResult::Done);
            counts.push(decision.desired);
            world.scale.as_mut().unwrap().spec_replicas = decision.desired;
            world.now += secs(5);
        }
        counts
    };
    assert_eq!(grow(None), [8, 16, 32]);
    assert_eq!(grow(Some(default_behavior())), [8, 8, 8]);
}

#[test]
fn t8_old_recommendations_raise_the_count_without_behavior() {
    let earlier = || mk_state(&[(10, 60)], &[], &[]);
    let lower = wanting(6, 4).remembering(earlier()).run();
    assert_eq!(events(&lower), ["SuccessfulRescale: New size: 10; reason: All metrics below target"]);
    let equal = wanting(6, 6).remembering(earlier()).run();
    assert_eq!(events(&equal), ["SuccessfulRescale: New size: 10; reason: "]);
    let mut held = wanting(6, 4).remembering(earlier());
    held.spec.behavior = Some(default_behavior());
    let held = held.run();
    assert_eq!((held.desired, shown(&held, "AbleToScale")), (6, "True ScaleDownStabilized".to_owned()));
}

#[test]
fn t9_per_replica_targets_divide_by_the_replicas_that_exist() {
    let world =
        World::new(mk_spec([external(MetricTarget::AverageValue(10_000))]), 4).totals(&[44_000]).existing(5);
    let decision = world.run();
    assert_eq!((proposal(&decision), readings(&decision)), (Ok(5), vec![Some("8800m".to_owned())]));
    assert_eq!(decision.reason, "external metric qlen(nil) above target");
}

#[test]
fn t10_value_targets_count_pods_being_deleted() {
    let leaving = Pod { deleting: true, ..mk_pod("leaving") };
    let pods = || vec![mk_pod("a"), mk_pod("b"), leaving.clone()];
    let mut world = World::new(mk_spec([external(MetricTarget::Value(10_000))]), 2).totals(&[20_000]);
    world.pods = pods();
    assert_eq!(proposal(&world.run()), Ok(6));
    let per_pod = pods().into_iter().map(|pod| (pod, Some(1000))).collect();
    assert_eq!(proposal(&World::new(mk_spec([cpu(50)]), 2).pods(per_pod).run()), Ok(4));
}

#[test]
fn t11_value_targets_without_a_ready_pod_propose_zero() {
    let mut world = World::new(mk_spec([external(MetricTarget::Value(10_000))]), 2).totals(&[20_000]);
    world.pods = vec![never_ready("a")];
    world.state = mk_state(&[(1, 10)], &[], &[]);
    let decision = world.clone().run();
    assert_eq!((proposal(&decision), decision.desired), (Ok(0), 1));
    assert_eq!(decision.reason, "All metrics below target");
    world.pods.clear();
    let text = "unable to calculate ready pods: no pods returned by selector while calculating replica count";
    assert_eq!(proposal(&world.run()), Err(text));
}

#[test]
fn t13_samples_without_a_pod_inflate_the_second_look() {
    let mut samples = per_pod([Some(900), Some(900), None]);
    if let MetricSamples::PerPod(samples) = &mut samples {
        samples.stray = vec![sample(5), sample(7)];
    }
    let mut world = World::of_three([cpu(50)]);
    world.samples = vec![Ok(samples.clone())];
    assert_eq!(proposal(&world.run()), Ok(6));
    // Plain averages include them: 1812 / 4 = 453 against 500 is inside 0.9 … 1.1.
    let mut world = World::of_three([pods_metric(500)]);
    world.samples = vec![Ok(samples)];
    assert_eq!(readings(&world.run()), [Some("453m".to_owned())]);
}

#[test]
fn t14_requests_of_dead_pods_matter() {
    let bare = Arc::new(mk_shape(&[]));
    let dead = [
        Pod { deleting: true, shape: bare.clone(), ..mk_pod("x") },
        Pod { phase: PodPhase::Failed, shape: bare.clone(), ..mk_pod("x") },
        Pod { shape: bare, ..pending("x") },
    ];
    for pod in dead {
        let decision = World::of_three([cpu(50)]).pods(vec![(mk_pod("a"), Some(900)), (pod, None)]).run();
        let text = "failed to get cpu utilization: missing request for cpu in container c of Pod x";
        assert_eq!(proposal(&decision), Err(text));
    }
}

/// What a pod of this shape requests of cpu.
fn requested(shape: &PodTemplate) -> Result<i64, String> {
    shape.request("cpu", None, UtilizationBase::Requests, true).map_err(|e| format!("{e:?}"))
}

#[test]
fn t15_sidecars_count_and_plain_init_containers_do_not() {
    let init = mk_container("init", &[("cpu", "500m")]);
    let overhead = mk_amounts(&[("cpu", "30m")]);
    let plain = PodTemplate { init_containers: vec![init.clone()], overhead, ..mk_shape(&[("cpu", "100m")]) };
    assert_eq!(requested(&plain), Ok(100));
    let sidecar = |requests| engine::pod::Container { restarts: true, ..mk_container("side", requests) };
    let with = |side| PodTemplate { init_containers: vec![init.clone(), side], ..plain.clone() };
    assert_eq!(requested(&with(sidecar(&[("cpu", "50m")]))), Ok(150));
    assert_eq!(requested(&with(sidecar(&[]))), Err("Container(\"side\")".to_owned()));
}

#[test]
fn t16_any_request_of_the_pod_itself_switches_the_formula() {
    let containers = vec![mk_container("a", &[("cpu", "100m")]), mk_container("b", &[])];
    let shape = PodTemplate { containers, pod: mk_resources(&[("memory", "1Gi")]), ..PodTemplate::default() };
    let init = vec![mk_container("init", &[("cpu", "500m")])];
    assert_eq!(requested(&PodTemplate { init_containers: init, ..shape.clone() }), Ok(500));
    let overhead = mk_amounts(&[("cpu", "30m")]);
    assert_eq!(requested(&PodTemplate { overhead: overhead.clone(), ..shape.clone() }), Ok(130));
    let own = PodTemplate { pod: mk_resources(&[("cpu", "800m")]), overhead, ..shape.clone() };
    assert_eq!(requested(&own), Ok(830));
    assert_eq!(
        own.request("cpu", Some("a"), UtilizationBase::Requests, true),
        Ok(100),
        "a named container ignores all this"
    );
    let nowhere = PodTemplate { containers: vec![mk_container("a", &[])], ..shape };
    let pod = Pod { shape: Arc::new(nowhere), ..mk_pod("p") };
    let decision = World::of_three([cpu(50)]).pods(vec![(pod, Some(900))]).run();
    let text = "failed to get cpu utilization: missing pod-level request for cpu in Pod p";
    assert_eq!(proposal(&decision), Err(text));
}

#[test]
fn t17_zero_requests_are_a_failure() {
    let pod = Pod { shape: Arc::new(mk_shape(&[("cpu", "0")])), ..mk_pod("p") };
    let decision = World::of_three([cpu(50)]).pods(vec![(pod, Some(900))]).run();
    assert_eq!(
        proposal(&decision),
        Err("failed to get cpu utilization: no metrics returned matched known pods")
    );
}

#[test]
fn t18_cpu_readiness() {
    let unready = |age: i64, ready: Option<ReadyCondition>, sample_age: i64| {
        let pod = Pod { started: Some(noon() - secs(age)), ready, ..mk_pod("p") };
        let mut world = World::new(mk_spec([cpu(50)]), 1).pods(vec![(pod, Some(900))]);
        if let Ok(MetricSamples::PerPod(samples)) = &mut world.samples[0] {
            samples.by_pod[0].as_mut().unwrap().at = noon() - secs(sample_age);
        }
        proposal(&world.run()).is_err()
    };
    let since = |status, ago| Some(ReadyCondition { status, since: noon() - secs(ago) });
    let (yes, no, unknown) = (ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown);
    assert!(!unready(120, since(yes, 60), 10));
    assert!(unready(120, since(yes, 60), 40));
    assert!(!unready(120, since(yes, 60), 30), "a sample that begins with readiness counts");
    assert!(!unready(120, since(unknown, 60), 10));
    assert!(unready(120, since(no, 60), 10));
    assert!(unready(600, since(no, 590), 10), "never was ready");
    assert!(!unready(600, since(no, 570), 10));
    assert!(!unready(600, since(no, 60), 10), "was ready once");
    assert!(unready(600, None, 10));
    assert!(!unready(300, since(no, 60), 10), "exactly at the end of initialization");
    assert!(unready(299, since(no, 60), 10));
}

#[test]
fn t19_memory_ignores_readiness() {
    let pods = |milli| vec![(mk_pod("a"), Some(milli)), (never_ready("b"), Some(milli))];
    let gib = 1 << 30;
    let memory = World::new(mk_spec([resource("memory", MetricTarget::Utilization(50))]), 2);
    assert_eq!(proposal(&memory.pods(pods(gib * 900)).run()), Ok(4));
    assert_eq!(proposal(&World::new(mk_spec([cpu(50)]), 2).pods(pods(900)).run()), Ok(2));
}

#[test]
fn t21_partial_failure_compares_with_the_count_asked_for() {
    let two = || [external(MetricTarget::AverageValue(1000)), cpu(50)];
    let equal = World::of_three(two()).totals(&[3000]).outage("down").run();
    assert_eq!(shown(&equal, "ScalingActive"), "True ValidMetricFound");
    assert_eq!((equal.events.len(), equal.error_class()), (1, "internal"));
    let lower = World::of_three(two()).totals(&[2000]).outage("down").run();
    assert_eq!(shown(&lower, "ScalingActive"), "False FailedGetResourceMetric");
    assert_eq!(lower.outcome, ScaleOutcome::Failed);
    let mut from_zero = World::new(mk_spec(two()), 0).totals(&[0]).outage("down");
    from_zero.spec.min = 0;
    from_zero.config.gates.scale_to_zero = true;
    from_zero.status.set(noon(), condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
    assert_eq!(shown(&from_zero.run(), "ScalingActive"), "True ValidMetricFound");
}

#[test]
fn t22_error_text_of_objects() {
    let error = "unable to fetch metrics from custom metrics API: boom";
    let decision = World::of_three([object(MetricTarget::Value(1))]).outage(error).run();
    let text =
        "unable to get metric rps: Ingress on ns main/unable to fetch metrics from custom metrics API: boom";
    assert_eq!(proposal(&decision), Err(text));
}

#[test]
fn t23_object_averages_call_themselves_external() {
    let decision = World::of_three([object(MetricTarget::AverageValue(1000))]).totals(&[5000]).run();
    assert_eq!(decision.reason, "external metric rps(nil) above target");
}

#[test]
fn t24_object_without_a_usable_target() {
    let decision = World::of_three([object(MetricTarget::Missing)]).totals(&[5000]).run();
    let text = "invalid object metric source: neither a value target nor an average value target was set";
    assert_eq!(proposal(&decision), Err(text));
}

#[test]
fn t28_bounds_bypass_everything() {
    let mut world = all_at(10, 500, 50);
    world.spec.max = 5;
    let down = ScalingRules {
        select: SelectPolicy::Disabled,
        window: Some(secs(3600)),
        ..mk_rules(&[(ScalingPolicyType::Pods, 1, 60)])
    };
    world.spec.behavior = Some(Behavior { down, ..default_behavior() });
    world.status.set(noon(), condition::SCALING_LIMITED, true, "Stale", "");
    let decision = world.run();
    assert_eq!((decision.desired, &decision.status.metrics), (5, &None));
    assert_eq!(decision.reason, "Current number of replicas above Spec.MaxReplicas");
    assert_eq!(shown(&decision, "ScalingLimited"), "True Stale");
}

#[test]
fn t29_zero_with_cpu_only_is_stuck() {
    let mut world = World::new(Spec { min: 2, ..mk_spec([cpu(50)]) }, 0).each(0);
    world.config.gates.scale_to_zero = true;
    world.status.set(noon(), condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
    let decision = world.run();
    assert_eq!(decision.outcome, ScaleOutcome::Failed);
    assert_eq!(
        proposal(&decision),
        Err("failed to get cpu utilization: no pods returned by selector while calculating replica count")
    );
}

#[test]
fn t31_negative_sums() {
    let propose = |goal, series: &[i64]| World::of_three([external(goal)]).totals(series).run();
    for series in [&[-5000_i64][..], &[-5000, 9000]] {
        let decision = propose(MetricTarget::AverageValue(1000), series);
        assert_eq!((proposal(&decision), decision.desired), (Ok(i32::MAX), 6), "limited to double");
    }
    let mut value = World::of_three([external(MetricTarget::Value(1000))]).totals(&[-5000]);
    value.state = mk_state(&[(0, 10)], &[], &[]);
    let decision = value.run();
    assert_eq!((proposal(&decision), decision.desired), (Ok(-15), 1));
}

#[test]
fn t32_huge_policies_wrap_and_block() {
    let grow = |kind, from| {
        let mut world = wanting(from, 900);
        world.spec.behavior = Some(Behavior { up: mk_rules(&[(kind, i32::MAX, 60)]), ..default_behavior() });
        world.run().desired
    };
    assert_eq!(grow(ScalingPolicyType::Pods, 10), 10);
    assert_eq!(grow(ScalingPolicyType::Percent, 100), 100);
    assert_eq!(grow(ScalingPolicyType::Percent, 10), 900);
}

#[test]
fn t37_a_fresh_start_is_held_at_the_current_count() {
    let mut world = wanting(8, 2);
    assert_eq!(world.step(ScaleWriteResult::Done).desired, 8);
    world.now += mins(5);
    assert_eq!(world.step(ScaleWriteResult::Done).desired, 8, "the seed is exactly as old as the window");
    world.now += secs(1);
    assert_eq!(world.step(ScaleWriteResult::Done).desired, 2);

    let mut world = wanting(8, 20);
    let up = ScalingRules { window: Some(secs(120)), ..mk_rules(&[(ScalingPolicyType::Pods, 100, 60)]) };
    world.spec.behavior = Some(Behavior { up, ..default_behavior() });
    assert_eq!(world.step(ScaleWriteResult::Done).desired, 8);
    world.now += secs(120);
    assert_eq!(world.step(ScaleWriteResult::Done).desired, 20);
}

#[test]
fn t38_raw_recommendations_are_remembered() {
    let mut world = wanting(10, 500);
    world.spec.max = 10;
    world.step(ScaleWriteResult::Done);
    world.samples = vec![Ok(MetricSamples::Totals(vec![3000]))];
    world.now += secs(15);
    let decision = world.step(ScaleWriteResult::Done);
    let normalized = decision.normalized.clone().unwrap();
    assert_eq!((normalized.stabilized.replicas, decision.desired), (500, 10));
    assert_eq!(shown(&decision, "ScalingLimited"), "True TooManyReplicas");
}

#[test]
fn t39_one_old_slot_is_reused_and_the_others_stay() {
    let mut world = wanting(5, 5).remembering(mk_state(&[(9, 400), (8, 350), (7, 100)], &[], &[]));
    world.step(ScaleWriteResult::Done);
    let values = |world: &World| {
        let state = serde_json::to_value(&world.state).unwrap();
        let list = state["recommendations"].as_array().unwrap().clone();
        list.iter().map(|r| r["value"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(values(&world), [9, 5, 7], "the last of the old ones is overwritten");
    world.config.downscale_stabilization = secs(500);
    assert_eq!(world.step(ScaleWriteResult::Done).desired, 9, "a longer window brings the other one back");
}

/// The `outdated` mark of changes survives until its slot is overwritten (docs/spec/hpa.md 6.5).
#[test]
fn changes_reuse_old_slots() {
    let mut world = wanting(5, 6).remembering(mk_state(&[], &[(1, 100), (2, 90), (3, 5)], &[]));
    world.spec.behavior =
        Some(Behavior { up: mk_rules(&[(ScalingPolicyType::Pods, 9, 60)]), ..default_behavior() });
    world.step(ScaleWriteResult::Done);
    let state = serde_json::to_value(&world.state).unwrap();
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
        let mut world = wanting(100, 3);
        let down = ScalingRules { window: Some(secs(window)), ..rules.clone() };
        world.spec.behavior = Some(Behavior { down, ..default_behavior() });
        world.run()
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
fn t42_of_zeros_the_last_is_named_of_others_the_first() {
    let named = |first: i64, second: i64| {
        let metrics = [external(MetricTarget::AverageValue(1000)), object(MetricTarget::AverageValue(1000))];
        World::of_three(metrics).totals(&[first]).totals(&[second]).run().recommendation.unwrap().metric
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
    let mut world = all_at(3, 900, 50);
    let seen = world.observation();
    let mut decision = world.state.step(world.now, &seen);
    world.state.settle(world.now, &seen, &mut decision, ScaleWriteResult::Done);
    decision.status_written("h", Err("conflict".into()));
    assert_eq!(decision.outcome, ScaleOutcome::Scaled, "the scale was written all the same");
    assert_eq!(events(&decision)[1], "FailedUpdateStatus: conflict");
    assert_eq!(decision.error.unwrap().text, "failed to update status for h: conflict");
}

#[test]
fn t46_averages_as_the_status_shows_them() {
    let shown = |name: &str, milli| {
        let world = World::new(mk_spec([resource(name, MetricTarget::AverageValue(1000))]), 1).each(milli);
        readings(&world.run())[0].clone().unwrap()
    };
    let cases = [
        ("memory", 104_857_600_000, "100Mi"),
        ("memory", 105_207_125_333, "105207125333m"),
        ("memory", 1_000_000, "1k"),
        ("memory", 1_024_000, "1Ki"),
        ("cpu", 104_857_600_000, "104857600"),
    ];
    for (name, milli, text) in cases {
        assert_eq!(shown(name, milli), text, "{milli} of {name}");
    }
}

/// Samples come by name: the last of a name counts, and those of unknown pods are kept apart (docs/spec/hpa.md 5.1).
#[test]
fn samples_are_laid_beside_pods_by_name() {
    let named = |name: &str, milli| (Arc::from(name), sample(milli));
    let pods = [mk_pod("a"), mk_pod("b"), mk_pod("c")];
    let samples = vec![named("c", 1), named("a", 2), named("gone", 3), named("a", 4)];
    let joined = PodSamples::join(&pods, samples);
    assert_eq!(joined.by_pod, [Some(sample(4)), None, Some(sample(1))]);
    assert_eq!(joined.stray, [sample(3)]);
}

/// A type that only an object stored without validation can have (docs/spec/hpa.md 4.6).
#[test]
fn unknown_metric_types_are_the_fault_of_the_object() {
    let decision =
        World::of_three([metric(MetricSource::Unknown("Cheese".into()), MetricTarget::Missing)]).run();
    assert_eq!(proposal(&decision), Err("unknown metric source type \"Cheese\""));
    assert_eq!(shown(&decision, "ScalingActive"), "False InvalidMetricSourceType");
    let before = engine::Status::default();
    assert_eq!(decision.metric_labels(&before).collect::<Vec<_>>(), [("Cheese", "none", "spec")]);
    assert_eq!(decision.error_class(), "internal");
}

/// A selector that cannot be converted fails its metric only (docs/spec/hpa.md 4.3).
#[test]
fn bad_metric_selectors_fail_the_metric() {
    let mut id = metric_id("rps");
    id.selector = Err("\"Bogus\" is not a valid label selector operator".into());
    let decision =
        World::of_three([metric(MetricSource::Pods(id), MetricTarget::AverageValue(1))]).each(1).run();
    assert_eq!(proposal(&decision), Err("\"Bogus\" is not a valid label selector operator"));
}
