//! What holds for every autoscaler that the API would accept, whatever happens to its target.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod arbitrary;
mod common;

use arbitrary::{aggregator, behavior, failure_policy, kubernetes_spec, refused, spec, ticks};
use common::{World, cpu, external, mk_spec, mk_state, pods_metric, secs};
use engine::evaluate::Arithmetic;
use engine::spec::{Aggregator, FailurePolicy, Metric, MetricTarget, Spec};
use engine::{Course, Decision, Observation, ScaleOutcome, ScaleWriteResult, State};
use proptest::prelude::*;

/// So many tries. A failing one is printed in full and belongs into a table test, not into a seed file.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A decision as one comparable value.
fn json(decision: &Decision) -> serde_json::Value {
    serde_json::to_value(decision).unwrap()
}

/// Whether some metric with such a failure policy could not be read.
fn missing(decision: &Decision, spec: &Spec, policy: impl Fn(FailurePolicy) -> bool) -> bool {
    decision.evaluations.iter().zip(&spec.metrics).any(|(e, m)| e.result.is_err() && policy(m.on_failure))
}

/// A life: the decisions of all ticks.
fn live(mut world: World, ticks: &[arbitrary::Tick]) -> Vec<Decision> {
    ticks.iter().map(|tick| world.live(tick)).collect()
}

proptest! {
    #![proptest_config(cases(400))]

    /// A write is asked for only within the bounds. What is not written may be outside: a target at zero that is
    /// paused, and a count that could not be read or computed, stay as they are.
    #[test]
    fn writes_are_within_bounds(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..12)) {
        let bounds = spec.min..=spec.max;
        let mut world = World::living(spec, start, gate);
        for tick in &ticks {
            world.pass(tick);
            let seen = world.observation();
            let mut decision = world.state.step(world.now, &seen);
            if let Some(count) = decision.write() {
                prop_assert!(bounds.contains(&count), "{count} is not in {bounds:?}");
                prop_assert_ne!(count, decision.current());
            }
            let stays = decision.outcome == ScaleOutcome::Kept && decision.course != Course::Disabled;
            prop_assert!(!stays || bounds.contains(&decision.desired));
            world.state.settle(world.now, &seen, &mut decision, tick.written.clone());
            world.follow(&decision);
        }
    }

    /// Nobody is removed while a metric is missing: partial failure blocks (docs/spec/hpa.md 3.6), and with `Hold` nobody is added
    /// either. Only the bounds still move the count.
    #[test]
    fn no_scale_down_while_a_metric_is_missing(spec in spec(), start in 1..60_i32, ticks in ticks(1..12)) {
        for decision in live(World::living(spec.clone(), start, false), &ticks) {
            if missing(&decision, &spec, |p| p == FailurePolicy::Kubernetes) {
                prop_assert!(decision.desired >= decision.current());
            }
            if missing(&decision, &spec, |p| p == FailurePolicy::Hold) {
                prop_assert_eq!(decision.desired, decision.current());
                prop_assert_eq!(&decision.outcome, &ScaleOutcome::Failed);
            }
        }
    }

    /// When no metric can be read, nothing changes (Kubernetes policy only).
    #[test]
    fn an_outage_changes_nothing(spec in kubernetes_spec(), ticks in ticks(2..8)) {
        let mut world = World::living(spec.clone(), spec.max, false);
        world.live(&ticks[0]);
        for mut tick in ticks {
            tick.down.fill(true);
            tick.manual = None;
            let before = world.scale.clone().unwrap().spec_replicas;
            let decision = world.live(&tick);
            if decision.course == Course::Metrics {
                prop_assert_eq!(&decision.outcome, &ScaleOutcome::Failed);
                prop_assert_eq!(world.scale.clone().unwrap().spec_replicas, before);
            }
        }
    }

    /// The same life twice gives the same decisions, to the letter.
    #[test]
    fn same_input_same_output(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..12)) {
        let world = World::living(spec, start, gate);
        let once: Vec<_> = live(world.clone(), &ticks).iter().map(json).collect();
        let again: Vec<_> = live(world, &ticks).iter().map(json).collect();
        prop_assert_eq!(once, again);
    }

    /// Memory that is written down and read again between any two steps changes nothing.
    #[test]
    fn state_survives_a_restart(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(2..12)) {
        let mut kept = World::living(spec, start, gate);
        let mut restarted = kept.clone();
        for tick in &ticks {
            let text = serde_json::to_string(&restarted.state).unwrap();
            restarted.state = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&restarted.state, &kept.state);
            prop_assert_eq!(json(&restarted.live(tick)), json(&kept.live(tick)));
        }
    }

    /// A recorded observation replayed gives the same decision, and a decision reads back as it was.
    #[test]
    fn records_replay(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..8)) {
        let mut world = World::living(spec, start, gate);
        for tick in &ticks {
            world.pass(tick);
            let seen = world.observation();
            let text = serde_json::to_string(&seen).unwrap();
            let read: Observation = serde_json::from_str(&text).unwrap();
            let mut state = world.state.clone();
            let decision = world.state.step(world.now, &seen);
            let replayed = state.step(world.now, &read);
            prop_assert_eq!(json(&replayed), json(&decision));
            prop_assert_eq!(&state, &world.state);
            let text = serde_json::to_string(&decision).unwrap();
            let read: Decision = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
            world.follow(&decision);
        }
    }

    /// No decision holds a number that is none.
    #[test]
    fn numbers_are_numbers(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..12)) {
        for decision in live(World::living(spec, start, gate), &ticks) {
            for evaluation in &decision.evaluations {
                let ratios = match evaluation.result.as_ref().map(|p| &p.sum) {
                    Ok(Arithmetic::PerPod(sum)) => vec![sum.ratio, sum.assumed.map_or(1.0, |a| a.ratio)],
                    Ok(Arithmetic::Total(sum)) => vec![sum.ratio],
                    Ok(Arithmetic::PerReplica(sum)) => vec![sum.ratio.unwrap_or_default()],
                    Err(_) => vec![],
                };
                prop_assert!(ratios.iter().all(|r| r.is_finite()), "{:?}", evaluation);
            }
        }
    }

    /// A write that fails, and one that is not tried, leave no change behind for rate policies; the recommendation is
    /// remembered all the same.
    #[test]
    fn only_what_was_written_counts_for_rates(spec in spec(), start in 1..60_i32, ticks in ticks(1..2), dry: bool) {
        let written = if dry { ScaleWriteResult::DryRun } else { refused() };
        let mut world = World::living(spec, start, false);
        let state = |world: &World| serde_json::to_value(&world.state).unwrap();
        world.pass(&ticks[0]);
        let before = state(&world);
        world.step(written);
        prop_assert_eq!(&state(&world)["ups"], &before["ups"]);
        prop_assert_eq!(&state(&world)["downs"], &before["downs"]);
    }
}

proptest! {
    #![proptest_config(cases(16))]

    /// Over hundreds of steps memory holds what windows and periods need, no more: slots are reused (T39).
    #[test]
    fn memory_stays_small(spec in spec(), start in 1..60_i32, ticks in ticks(200..300)) {
        let mut world = World::living(spec, start, false);
        for mut tick in ticks {
            tick.after = 15;
            world.live(&tick);
        }
        let state = serde_json::to_value(&world.state).unwrap();
        let length = |list: &str| state[list].as_array().unwrap().len();
        // The longest window here is ten minutes, the longest period half an hour.
        prop_assert!(length("recommendations") <= 600 / 15 + 2, "{}", length("recommendations"));
        prop_assert!(length("ups") <= 1800 / 15 + 2 && length("downs") <= 1800 / 15 + 2);
    }
}

/// A metric whose proposal grows with load, and a world in which every pod is ready and nothing is remembered.
#[derive(Clone, Copy, Debug)]
enum Loaded {
    Utilization(i32),
    Average(i64),
    Value(i64),
    PerReplica(i64),
}

fn loaded() -> impl Strategy<Value = Loaded> {
    prop_oneof![
        (1..200_i32).prop_map(Loaded::Utilization),
        (1..3000_i64).prop_map(Loaded::Average),
        (1..30_000_i64).prop_map(Loaded::Value),
        (1..3000_i64).prop_map(Loaded::PerReplica),
    ]
}

fn under_load(kind: Loaded, behavior: Option<engine::spec::Behavior>, load: &[i64]) -> Decision {
    let metric = match kind {
        Loaded::Utilization(percent) => cpu(percent),
        Loaded::Average(target) => pods_metric(target),
        Loaded::Value(target) => external(MetricTarget::Value(target)),
        Loaded::PerReplica(target) => external(MetricTarget::AverageValue(target)),
    };
    let count = load.len() as i32;
    let mut world = World::new(Spec { max: 100, behavior, ..mk_spec([metric]) }, count);
    world.samples = match kind {
        Loaded::Utilization(_) | Loaded::Average(_) => {
            vec![Ok(common::per_pod(load.iter().map(|l| Some(*l))))]
        }
        _ => vec![Ok(engine::MetricSamples::Totals(load.to_vec()))],
    };
    // One recommendation so old that no window reaches it, lest the first step be held where it is.
    world.remembering(mk_state(&[(count, 100_000)], &[], &[])).run()
}

proptest! {
    #![proptest_config(cases(2000))]

    /// More load never means fewer replicas: with one metric, as many ready pods as replicas, and no history.
    #[test]
    fn more_load_never_fewer_replicas(
        kind in loaded(),
        behavior in proptest::option::of(behavior()),
        load in proptest::collection::vec((0..4000_i64, 0..4000_i64), 1..30),
    ) {
        let less: Vec<_> = load.iter().map(|(base, _)| *base).collect();
        let more: Vec<_> = load.iter().map(|(base, extra)| base + extra).collect();
        let (less, more) = (under_load(kind, behavior.clone(), &less), under_load(kind, behavior, &more));
        prop_assert!(less.desired <= more.desired, "{} > {}", less.desired, more.desired);
        prop_assert!(common::proposal(&less).unwrap() <= common::proposal(&more).unwrap());
    }
}

/// What a metric answers: a count it proposes, or nothing; and what it does then.
fn answers() -> impl Strategy<Value = Vec<(Option<i32>, FailurePolicy)>> {
    proptest::collection::vec((proptest::option::weighted(0.6, 0..50_i32), failure_policy()), 1..5)
}

/// A target of ten replicas whose metrics propose exactly these counts.
fn proposing(answers: &[(Option<i32>, FailurePolicy)], aggregator: Aggregator) -> World {
    let metrics: Vec<_> = answers
        .iter()
        .map(|(_, on_failure)| Metric {
            on_failure: *on_failure,
            ..external(MetricTarget::AverageValue(1000))
        })
        .collect();
    let mut world = World::new(Spec { max: 1000, aggregator, ..mk_spec(metrics) }, 10);
    world.config.tolerance = 0.0;
    for (answer, _) in answers {
        world = match answer {
            Some(count) => world.totals(&[i64::from(*count) * 1000]),
            None => world.outage("no answer"),
        };
    }
    world
}

/// The rules of `FailurePolicy` and `Aggregator` as their documentation says them, for a metric that never had a good
/// answer: `Err` when nothing can be said.
fn expected(
    answers: &[(Option<i32>, FailurePolicy)],
    aggregator: Aggregator,
    current: i32,
) -> Result<i32, ()> {
    let failed = |policy| answers.contains(&(None, policy));
    let last_good = |(answer, policy): &(Option<i32>, FailurePolicy)| {
        answer.is_none() && matches!(policy, FailurePolicy::LastGood(_))
    };
    let blocked = failed(FailurePolicy::Kubernetes) || answers.iter().any(last_good);
    if failed(FailurePolicy::Hold) {
        return Err(());
    }
    let count = |(answer, policy): &(Option<i32>, FailurePolicy)| match policy {
        FailurePolicy::Static(count) => answer.or(Some(*count)),
        _ => *answer,
    };
    let counts: Vec<i32> = answers.iter().filter_map(count).collect();
    let combined = match aggregator {
        Aggregator::Max => counts.iter().copied().max(),
        Aggregator::Min => counts.iter().copied().min(),
        Aggregator::Average => {
            let sum: i32 = counts.iter().sum();
            (!counts.is_empty()).then(|| (f64::from(sum) / counts.len() as f64).ceil() as i32)
        }
    };
    let combined = combined.ok_or(())?;
    if blocked && combined < current { Err(()) } else { Ok(combined) }
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Failure policies and aggregators do what their documentation says.
    #[test]
    fn policies_and_aggregators(answers in answers(), aggregator in aggregator()) {
        let decision = proposing(&answers, aggregator).run();
        let found = decision.recommendation.as_ref().map(|r| r.replicas).ok_or(());
        prop_assert_eq!(found, expected(&answers, aggregator, 10));
        // Whatever stood in is on record.
        if let Some(recommendation) = &decision.recommendation {
            let silent = |(i, (answer, policy)): (usize, &(Option<i32>, FailurePolicy))| {
                let stands_in = matches!(policy, FailurePolicy::Ignore | FailurePolicy::Static(_));
                (answer.is_none() && stands_in).then_some(i)
            };
            let silent: Vec<_> = answers.iter().enumerate().filter_map(silent).collect();
            let stood_in: Vec<_> = recommendation.substitutes.iter().map(|s| s.metric).collect();
            prop_assert_eq!(stood_in, silent);
        }
    }

    /// `Ignore` is as if the metric were not listed.
    #[test]
    fn ignored_metrics_are_not_there(answers in answers(), aggregator in aggregator()) {
        let ignored = |(answer, policy): &(Option<i32>, FailurePolicy)| answer.is_none() && *policy == FailurePolicy::Ignore;
        let rest: Vec<_> = answers.iter().copied().filter(|a| !ignored(a)).collect();
        prop_assume!(!rest.is_empty());
        let (with, without) = (proposing(&answers, aggregator).run(), proposing(&rest, aggregator).run());
        prop_assert_eq!(with.desired, without.desired);
        prop_assert_eq!(with.outcome, without.outcome);
    }

    /// `LastGood` stands for its time, then the Kubernetes rule applies: nothing can be said.
    #[test]
    fn last_good_stands_for_its_time(count in 0..50_i32, keep in 0..600_i64, later in 1..1200_i64) {
        let policy = FailurePolicy::LastGood(secs(keep));
        let mut world = proposing(&[(Some(count), policy)], Aggregator::Max);
        world.step(ScaleWriteResult::DryRun);
        world.samples = vec![Err("no answer".into())];
        world.now += secs(later);
        let recommended = world.step(ScaleWriteResult::DryRun).recommendation.map(|r| r.replicas);
        prop_assert_eq!(recommended, (later <= keep).then_some(count));
    }
}

/// A fresh `State` is what an empty document loads as: older files stay readable.
#[test]
fn an_empty_document_is_a_fresh_state() {
    assert_eq!(serde_json::from_str::<State>("{}").unwrap(), State::default());
}

/// A last good proposal belongs to its metric, wherever an edit of the spec moves that.
#[test]
fn last_good_follows_its_metric() {
    let keep = FailurePolicy::LastGood(secs(600));
    let mut world = proposing(&[(Some(12), keep), (Some(30), keep)], Aggregator::Max);
    if let engine::spec::MetricSource::External(id) = &mut world.spec.metrics[1].source {
        id.name = "another".into();
    }
    world.step(ScaleWriteResult::DryRun);
    world.spec.metrics.reverse();
    world.samples = vec![Err("no answer".into()), Err("no answer".into())];
    let recommendation = world.step(ScaleWriteResult::DryRun).recommendation.unwrap();
    assert_eq!((recommendation.replicas, recommendation.winner), (30, Some(0)));
}
