//! For all histories of a ScaledObject: values and failures of sources, pauses, edits of the count by others, time that passes.
//! What is known of the past is only what stands in the status.

use api::autoscaling::v2::MetricTarget;
use api::keda::{Fallback, ScaledObject, annotations};
use api::provider::Compat;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use quantity::Quantity;
use serde_json::json;

use crate::activity::{
    self, ActivityState, MetricSample, MetricValue, PollRound, Reading, TriggerMetric, TriggerResult,
};
use crate::executor::{ExecutorInput, ScaleChange, ScaleReason, ScaleResult, decide};
use crate::fallback::TargetFacts;
use crate::modifiers::CompiledFormula;
use crate::status::merge;

/// What happens in one round.
#[derive(Clone, Debug)]
struct Moment {
    /// How long after the last one.
    after: i64,
    /// What each source returns: a value, an error, or not even its metrics.
    readings: [ScriptedReading; 2],
    /// The pause that is set, if any.
    pause: Option<&'static str>,
    /// The count that another client writes before it.
    others: Option<i32>,
    /// Whether our own write fails.
    fails: bool,
    /// Whether a push source reports activity.
    pushes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ScriptedReading {
    Value(u8),
    Failure,
    Nothing,
}

fn any_reading() -> impl Strategy<Value = ScriptedReading> {
    prop_oneof![
        3 => Just(ScriptedReading::Value(0)),
        2 => (1..30_u8).prop_map(ScriptedReading::Value),
        2 => Just(ScriptedReading::Failure),
        1 => Just(ScriptedReading::Nothing),
    ]
}

fn any_moment() -> impl Strategy<Value = Moment> {
    let pauses = vec![annotations::PAUSED, annotations::PAUSED_SCALE_IN, annotations::PAUSED_SCALE_OUT];
    let pause = prop::option::weighted(0.2, prop::sample::select(pauses));
    let others = prop::option::weighted(0.2, 0..12_i32);
    let readings = [any_reading(), any_reading()];
    let odd = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (1..400_i64, readings, pause, others, odd).prop_map(
        |(after, readings, pause, others, (fails, pushes))| Moment {
            after,
            readings,
            pause,
            others,
            fails,
            pushes,
        },
    )
}

fn any_object() -> impl Strategy<Value = ScaledObject> {
    let behaviors = vec!["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"];
    let fallback = (0..3_i32, 0..6_i32, prop::sample::select(behaviors)).prop_map(
        |(failure_threshold, replicas, behavior)| Fallback {
            failure_threshold,
            replicas,
            behavior: behavior.into(),
        },
    );
    let bounds = (prop::option::of(0..4_i32), prop::option::of(0..3_i32));
    let cooldowns = (prop::option::of(0..600_i32), prop::option::of(0..600_i32));
    (bounds, cooldowns, prop::option::of(fallback), any::<bool>()).prop_map(
        |((min, idle), (cooldown, initial), fallback, formula)| {
            let triggers = [0, 1]
                .map(|index| json!({"type": "prometheus", "name": format!("t{index}"), "metadata": {}}));
            let mut object: ScaledObject = serde_json::from_value(json!({
                "metadata": {"name": "so", "namespace": "ns"},
                "spec": {"scaleTargetRef": {"name": "web"}, "triggers": triggers},
                "status": {"externalMetricNames": ["s0-m", "s1-m"], "scaleTargetKind": "apps/v1.Deployment"},
            }))
            .unwrap();
            if formula {
                object.spec.advanced = serde_json::from_value(
                    json!({"scalingModifiers": {"formula": "max(t0, t1)", "target": "5"}}),
                )
                .unwrap();
            }
            object.metadata.creation_timestamp = Some(Timestamp::UNIX_EPOCH);
            (object.spec.min_replica_count, object.spec.idle_replica_count) =
                (min, idle.filter(|idle| *idle < min.unwrap_or(0)));
            (object.spec.cooldown_period, object.spec.initial_cooldown_period) = (cooldown, initial);
            object.spec.fallback = fallback;
            object
        },
    )
}

fn results(readings: [ScriptedReading; 2]) -> Vec<TriggerResult> {
    let one = |(trigger, scripted): (usize, &ScriptedReading)| {
        let name = format!("s{trigger}-m");
        let reading = match scripted {
            ScriptedReading::Value(value) => {
                let value =
                    MetricValue { name: name.clone(), value: Quantity::parse(&value.to_string()).unwrap() };
                let active = value.value.as_f64() > 0.0;
                Ok(Reading { values: vec![value], active })
            }
            ScriptedReading::Failure => Err("down".into()),
            ScriptedReading::Nothing => {
                return TriggerResult { trigger, metrics: Err("got empty metric spec".into()) };
            }
        };
        let average_value = Some(Quantity::parse("10").unwrap());
        let target =
            MetricTarget { type_: "AverageValue".to_owned(), average_value, ..MetricTarget::default() };
        TriggerResult {
            trigger,
            metrics: Ok(vec![TriggerMetric::External(MetricSample {
                name,
                target,
                reading,
                is_remembered: false,
                is_ignored: false,
            })]),
        }
    };
    readings.iter().enumerate().map(one).collect()
}

fn state(object: &ScaledObject, now: Timestamp, results: &[TriggerResult], current: i32) -> ActivityState {
    let formula = object.modifiers().map(|_| CompiledFormula::new(object, Compat::Better).unwrap());
    let facts = TargetFacts { current: Ok(current), ready_pods: Ok(1) };
    activity::activity_state(
        &PollRound { now, object, formula: formula.as_ref().map(Ok) },
        results,
        &facts,
        Compat::Better,
    )
}

fn set_pause(object: &mut ScaledObject, pause: Option<&str>) {
    object.metadata.annotations.clear();
    if let Some(pause) = pause {
        object.metadata.annotations.insert(pause.to_owned(), "true".to_owned());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Replicas decrease only by deactivation: all sources were read and are inactive (or a fallback to zero replicas is in
    /// effect), no annotation forbids it, and nothing was active during the cooldown. An inactive object that becomes active is
    /// activated at once.
    #[test]
    fn replicas_decrease_only_on_deactivation(mut object in any_object(), moments in prop::collection::vec(any_moment(), 1..40)) {
        let (mut now, mut current) = (Timestamp::UNIX_EPOCH, 0);
        let mut last_active: Option<Timestamp> = None;
        for moment in &moments {
            now = now.checked_add(SignedDuration::from_secs(moment.after)).unwrap();
            current = moment.others.unwrap_or(current);
            set_pause(&mut object, moment.pause);
            let state = state(&object, now, &results(moment.readings), current);
            let metric = ["s0-m".to_owned()];
            let input = if moment.pushes { ExecutorInput::of_push(now, &object, &metric) } else { ExecutorInput::of_round(now, &object, &state) };
            let (active, error) = (input.active, input.error.is_some());
            let decision = decide(&input.with(Ok(current), None), Compat::Better);
            let (min, idle) = (object.spec.min_replica_count.unwrap_or(0), object.spec.idle_replica_count);
            let (in_paused, out_paused) = (object.is_scale_in_paused(), object.is_scale_out_paused());

            if let Some(ScaleChange { to, why }) = decision.scale {
                prop_assert!(!object.is_paused());
                prop_assert!((0..=object.hpa_max()).contains(&to));
                if to < current {
                    prop_assert_eq!(why, ScaleReason::Deactivate);
                    prop_assert!(!active && !error && !in_paused, "{:?}", moment);
                    let falls_to_none = state.is_falling_back;
                    let all_read = moment.readings.iter().all(|reading| matches!(reading, ScriptedReading::Value(_)));
                    prop_assert!(all_read || falls_to_none, "{:?}", moment);
                    let (since, period) = match last_active {
                        Some(time) => (time, object.spec.cooldown_period.unwrap_or(300)),
                        None => (Timestamp::UNIX_EPOCH, object.spec.initial_cooldown_period.unwrap_or(0)),
                    };
                    let rested = now.duration_since(since).as_secs();
                    prop_assert!(rested > i64::from(period), "{rested} of {period} s");
                    prop_assert_eq!(to, idle.unwrap_or(min));
                }
                if to > current {
                    prop_assert!(!out_paused);
                }
            }
            let rests = current == 0 || (idle.is_some() && current < min);
            if active && rests && !object.is_paused() && !out_paused {
                prop_assert_eq!(decision.scale, Some(ScaleChange { to: min.max(1), why: ScaleReason::Activate }));
            }

            // As the operator carries it out.
            let scaled = decision.scale.map(|change| {
                if moment.fails {
                    return ScaleResult::NotWritten { from: current, error: "conflict".to_owned() };
                }
                ScaleResult::Written { from: std::mem::replace(&mut current, change.to) }
            });
            let is_lost = matches!(&scaled, Some(ScaleResult::NotWritten { .. }));
            let is_held = object.is_paused() || is_lost || rests && out_paused;
            if active && !is_held {
                last_active = Some(now);
            }
            let changes = state.changes.then(decision.finish(scaled.as_ref()).changes);
            merge(&mut object.status, &changes);
        }
    }
}
