//! Properties of all autoscalers that the API would accept, with random changes of their targets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod arbitrary;
mod common;

use arbitrary::{aggregator, behavior, failure_policy, kubernetes_spec, refused, spec, ticks};
use common::{Fixture, cpu, external, mk_spec, mk_state, pods_metric, secs};
use engine::evaluate::Arithmetic;
use engine::spec::{Aggregator, FailurePolicy, Metric, MetricSource, MetricTarget, Spec};
use engine::{Course, Decision, Observation, ScaleOutcome, ScaleWriteResult, State};
use proptest::prelude::*;

/// The number of cases. A failing case is printed in full and belongs into a table test, not into a seed file.
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

/// The decisions of all ticks.
fn live(mut fixture: Fixture, ticks: &[arbitrary::Tick]) -> Vec<Decision> {
    ticks.iter().map(|tick| fixture.live(tick)).collect()
}

proptest! {
    #![proptest_config(cases(400))]

    /// A write is requested only within the bounds. What is not written may be outside: a target at zero that is
    /// paused, and a count that could not be read or computed, stay as they are.
    #[test]
    fn writes_are_within_bounds(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..12)) {
        let bounds = spec.min..=spec.max;
        let mut fixture = Fixture::living(spec, start, gate);
        for tick in &ticks {
            fixture.pass(tick);
            let seen = fixture.observation();
            let mut decision = fixture.state.step(fixture.now, &seen);
            if let Some(count) = decision.write() {
                prop_assert!(bounds.contains(&count), "{count} is not in {bounds:?}");
                prop_assert_ne!(count, decision.current());
            }
            let stays = decision.outcome == ScaleOutcome::Kept && decision.course != Course::Disabled;
            prop_assert!(!stays || bounds.contains(&decision.desired));
            fixture.state.settle(fixture.now, &seen, &mut decision, tick.written.clone());
            fixture.follow(&decision);
        }
    }

    /// A missing metric blocks scale-down (docs/spec/hpa.md 3.6), and with `Hold` also scale-up. Only the bounds still change
    /// the count.
    #[test]
    fn no_scale_down_while_a_metric_is_missing(spec in spec(), start in 1..60_i32, ticks in ticks(1..12)) {
        for decision in live(Fixture::living(spec.clone(), start, false), &ticks) {
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
        let mut fixture = Fixture::living(spec.clone(), spec.max.get(), false);
        fixture.live(&ticks[0]);
        for mut tick in ticks {
            tick.down.fill(true);
            tick.manual = None;
            let before = fixture.scale.clone().unwrap().spec_replicas;
            let decision = fixture.live(&tick);
            if decision.course == Course::Metrics {
                prop_assert_eq!(&decision.outcome, &ScaleOutcome::Failed);
                prop_assert_eq!(fixture.scale.clone().unwrap().spec_replicas, before);
            }
        }
    }

    /// The same input gives the same decisions.
    #[test]
    fn same_input_same_output(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..12)) {
        let fixture = Fixture::living(spec, start, gate);
        let once: Vec<_> = live(fixture.clone(), &ticks).iter().map(json).collect();
        let again: Vec<_> = live(fixture, &ticks).iter().map(json).collect();
        prop_assert_eq!(once, again);
    }

    /// Saving and loading the state between two steps changes nothing.
    #[test]
    fn state_survives_a_restart(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(2..12)) {
        let mut kept = Fixture::living(spec, start, gate);
        let mut restarted = kept.clone();
        for tick in &ticks {
            let text = serde_json::to_string(&restarted.state).unwrap();
            restarted.state = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&restarted.state, &kept.state);
            prop_assert_eq!(json(&restarted.live(tick)), json(&kept.live(tick)));
        }
    }

    /// Replaying a recorded observation gives the same decision, and a decision survives serialization.
    #[test]
    fn records_replay(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..8)) {
        let mut fixture = Fixture::living(spec, start, gate);
        for tick in &ticks {
            fixture.pass(tick);
            let seen = fixture.observation();
            let text = serde_json::to_string(&seen).unwrap();
            let read: Observation = serde_json::from_str(&text).unwrap();
            let mut state = fixture.state.clone();
            let decision = fixture.state.step(fixture.now, &seen);
            let replayed = state.step(fixture.now, &read);
            prop_assert_eq!(json(&replayed), json(&decision));
            prop_assert_eq!(&state, &fixture.state);
            let text = serde_json::to_string(&decision).unwrap();
            let read: Decision = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
            fixture.follow(&decision);
        }
    }

    /// All ratios of a decision are finite numbers.
    #[test]
    fn ratios_are_finite(spec in spec(), start in 0..60_i32, gate: bool, ticks in ticks(1..12)) {
        for decision in live(Fixture::living(spec, start, gate), &ticks) {
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

    /// A write that fails, and one that is not tried, leave no change for rate policies; the recommendation is
    /// recorded all the same.
    #[test]
    fn only_written_changes_count_for_rates(spec in spec(), start in 1..60_i32, ticks in ticks(1..2), dry: bool) {
        let written = if dry { ScaleWriteResult::DryRun } else { refused() };
        let mut fixture = Fixture::living(spec, start, false);
        let state = |fixture: &Fixture| serde_json::to_value(&fixture.state).unwrap();
        fixture.pass(&ticks[0]);
        let before = state(&fixture);
        fixture.step(written);
        prop_assert_eq!(&state(&fixture)["ups"], &before["ups"]);
        prop_assert_eq!(&state(&fixture)["downs"], &before["downs"]);
    }
}

proptest! {
    #![proptest_config(cases(16))]

    /// Over hundreds of steps the state keeps only entries of the windows and periods, since slots are reused (T39).
    #[test]
    fn state_stays_small(spec in spec(), start in 1..60_i32, ticks in ticks(200..300)) {
        let mut fixture = Fixture::living(spec, start, false);
        for mut tick in ticks {
            tick.after = 15;
            fixture.live(&tick);
        }
        let state = serde_json::to_value(&fixture.state).unwrap();
        let length = |list: &str| state[list].as_array().unwrap().len();
        // The longest window here is ten minutes, the longest period half an hour.
        prop_assert!(length("recommendations") <= 600 / 15 + 2, "{}", length("recommendations"));
        prop_assert!(length("ups") <= 1800 / 15 + 2 && length("downs") <= 1800 / 15 + 2);
    }
}

/// A metric whose proposal grows with load, and a fixture in which every pod is ready and the state is empty.
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
        Loaded::Value(target) => external(MetricTarget::Value(target.into())),
        Loaded::PerReplica(target) => external(MetricTarget::AverageValue(target.into())),
    };
    let count = load.len() as i32;
    let mut fixture = Fixture::new(Spec { max: 100.into(), behavior, ..mk_spec([metric]) }, count);
    fixture.samples = match kind {
        Loaded::Utilization(_) | Loaded::Average(_) => {
            vec![Ok(common::per_pod(load.iter().map(|l| Some(*l))))]
        }
        _ => vec![Ok(engine::MetricSamples::Totals(load.iter().map(|l| (*l).into()).collect()))],
    };
    // One recommendation that is older than all windows; an empty state would be seeded with the current count.
    fixture.with_state(mk_state(&[(count, 100_000)], &[], &[])).run()
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
fn proposing(answers: &[(Option<i32>, FailurePolicy)], aggregator: Aggregator) -> Fixture {
    let metrics: Vec<_> = answers
        .iter()
        .map(|(_, on_failure)| Metric {
            on_failure: *on_failure,
            ..external(MetricTarget::AverageValue(1000.into()))
        })
        .collect();
    let mut fixture = Fixture::new(Spec { max: 1000.into(), aggregator, ..mk_spec(metrics) }, 10);
    fixture.config.tolerance = 0.0;
    for (answer, _) in answers {
        fixture = match answer {
            Some(count) => fixture.totals(&[i64::from(*count) * 1000]),
            None => fixture.outage("no answer"),
        };
    }
    fixture
}

/// The rules of `FailurePolicy` and `Aggregator` as documented, for a metric that never had a good
/// sample; `Err` if there is no recommendation.
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
        FailurePolicy::Static(count) => answer.or(Some(count.get())),
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

    /// Failure policies and aggregators work as documented.
    #[test]
    fn policies_and_aggregators(answers in answers(), aggregator in aggregator()) {
        let decision = proposing(&answers, aggregator).run();
        let found = decision.recommendation.as_ref().map(|r| r.replicas.get()).ok_or(());
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
    fn ignored_metrics_have_no_effect(answers in answers(), aggregator in aggregator()) {
        let ignored = |(answer, policy): &(Option<i32>, FailurePolicy)| answer.is_none() && *policy == FailurePolicy::Ignore;
        let rest: Vec<_> = answers.iter().copied().filter(|a| !ignored(a)).collect();
        prop_assume!(!rest.is_empty());
        let (with, without) = (proposing(&answers, aggregator).run(), proposing(&rest, aggregator).run());
        prop_assert_eq!(with.desired, without.desired);
        prop_assert_eq!(with.outcome, without.outcome);
    }

    /// `LastGood` applies for its time. Then the Kubernetes rule applies, which gives no recommendation.
    #[test]
    fn last_good_applies_for_its_time(count in 0..50_i32, keep in 0..600_i64, later in 1..1200_i64) {
        let policy = FailurePolicy::LastGood(secs(keep));
        let mut fixture = proposing(&[(Some(count), policy)], Aggregator::Max);
        fixture.step(ScaleWriteResult::DryRun);
        fixture.samples = vec![Err("no answer".into())];
        fixture.now += secs(later);
        let recommended = fixture.step(ScaleWriteResult::DryRun).recommendation.map(|r| r.replicas.get());
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
    let mut fixture = proposing(&[(Some(12), keep), (Some(30), keep)], Aggregator::Max);
    if let MetricSource::External(id) = &mut fixture.spec.metrics[1].source {
        id.name = "another".into();
    }
    fixture.step(ScaleWriteResult::DryRun);
    fixture.spec.metrics.reverse();
    fixture.samples = vec![Err("no answer".into()), Err("no answer".into())];
    let recommendation = fixture.step(ScaleWriteResult::DryRun).recommendation.unwrap();
    assert_eq!((recommendation.replicas.get(), recommendation.winner), (30, Some(0)));
}

/// Metrics of two objects have the same name in messages.
#[test]
fn last_good_proposals_of_two_objects_are_kept_apart() {
    let keep = FailurePolicy::LastGood(secs(600));
    let mut fixture = proposing(&[(Some(30), keep), (Some(12), keep)], Aggregator::Max);
    for (metric, ingress) in fixture.spec.metrics.iter_mut().zip(["shop", "bank"]) {
        let MetricSource::External(id) = &metric.source else { panic!("{metric:?}") };
        metric.source = MetricSource::Object {
            kind: "Ingress".into(),
            name: ingress.into(),
            api_version: None,
            metric: id.clone(),
        };
    }
    fixture.step(ScaleWriteResult::DryRun);
    fixture.samples = vec![Err("no answer".into()), Err("no answer".into())];
    let recommendation = fixture.step(ScaleWriteResult::DryRun).recommendation.unwrap();
    let substitutes: Vec<i32> =
        recommendation.substitutes.iter().filter_map(|s| Some(s.replicas?.get())).collect();
    assert_eq!(substitutes, [30, 12]);
}
