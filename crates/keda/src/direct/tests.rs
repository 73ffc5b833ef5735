//! Worked examples: the matrix of docs/spec/keda.md 3.6, and what metrics add to it.

mod cooldowns;
mod plans;

use std::sync::Arc;

use api::autoscaling::v2::{
    self, ExternalMetricSource, HPAScalingRules, HorizontalPodAutoscalerBehavior, MetricIdentifier,
    MetricSpec, MetricTarget, ResourceMetricSource,
};
use api::keda::{
    AdvancedConfig, Fallback, GroupVersionKindResource, HorizontalPodAutoscalerConfig, ScaledObject,
    ScalingModifiers, annotations,
};
use api::provider::Compat;
use engine::act::ScaleWriteError;
use engine::explain::sentence;
use engine::spec::{MetricSource, MetricTarget as EngineTarget, SelectPolicy};
use engine::{
    ControllerConfig, Course, DecisionDetail, MetricSamples, Observation, Pod, PodPhase, PodSelection,
    PodTemplate, Scale, ScaleOutcome, ScaleReadError, ScaleWriteResult, State, Status,
};
use jiff::{SignedDuration, Timestamp};

use super::{DirectStep, external_samples, needs_pods, plan, step};
use crate::executor::ExecutorInput;

const NOW: Timestamp = Timestamp::constant(1_000_000, 0);
const METRIC: &str = "s0-redis-jobs";

fn redis() -> MetricSpec {
    let target = MetricTarget {
        type_: v2::AVERAGE_VALUE.into(),
        average_value: Some("10".parse().unwrap()),
        ..MetricTarget::default()
    };
    let metric = MetricIdentifier { name: METRIC.into(), selector: None };
    MetricSpec {
        type_: v2::EXTERNAL.into(),
        external: Some(ExternalMetricSource { metric, target }),
        ..MetricSpec::default()
    }
}

fn cpu() -> MetricSpec {
    let target = MetricTarget {
        type_: v2::UTILIZATION.into(),
        average_utilization: Some(70),
        ..MetricTarget::default()
    };
    MetricSpec {
        type_: v2::RESOURCE.into(),
        resource: Some(ResourceMetricSource { name: "cpu".into(), target }),
        ..MetricSpec::default()
    }
}

/// A ScaledObject whose last activity was an hour ago, so that no cooldown holds.
fn object(min: i32, idle: Option<i32>) -> ScaledObject {
    let mut object = ScaledObject::default();
    object.metadata.name = "worker".into();
    object.metadata.namespace = "shop".into();
    object.spec.scale_target_ref.name = "worker".into();
    object.spec.min_replica_count = Some(min);
    object.spec.idle_replica_count = idle;
    object.spec.max_replica_count = Some(20);
    object.status.scale_target_kind = "apps/v1.Deployment".into();
    object.status.scale_target_gvkr = Some(GroupVersionKindResource {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Deployment".into(),
        resource: "deployments".into(),
    });
    object.status.external_metric_names = vec![METRIC.into()];
    object.status.last_active_time = Some(NOW - SignedDuration::from_hours(1));
    object
}

/// What is seen of a target with so many replicas, and so much to do, if that is known.
fn seen(object: &ScaledObject, replicas: i32, work: Result<i64, &str>) -> Observation {
    let spec = plan(object, &[vec![redis()]], Compat::Better).unwrap().spec;
    let ready = engine::pod::ReadyCondition {
        status: engine::pod::ConditionStatus::True,
        since: NOW - SignedDuration::from_hours(1),
    };
    let pod = |index: i32| Pod {
        name: format!("worker-{index}").into(),
        phase: PodPhase::Running,
        deleting: false,
        started: Some(NOW - SignedDuration::from_hours(1)),
        ready: Some(ready),
        shape: Arc::new(PodTemplate::default()),
    };
    Observation {
        config: Arc::new(ControllerConfig::default()),
        spec: Arc::new(spec),
        status: Status::default(),
        scale: Ok(Scale {
            spec_replicas: replicas.into(),
            status_replicas: replicas.into(),
            selector: "app=worker".into(),
        }),
        selection: PodSelection::Ours,
        pods: (0..replicas).map(pod).collect(),
        samples: vec![work.map(|work| MetricSamples::Totals(vec![(work * 1000).into()])).map_err(Into::into)],
    }
}

fn input<'a>(object: &'a ScaledObject, by: &'a [String], error: Option<&'a str>) -> ExecutorInput<'a> {
    ExecutorInput {
        now: NOW,
        object,
        active: !by.is_empty(),
        error,
        active_triggers: by,
        active_metrics: by,
        push_metric: None,
        current: Err("".into()),
        hpa: None,
    }
}

fn active() -> Vec<String> {
    vec![METRIC.to_owned()]
}

/// One step of an object whose metrics are just right as they are.
fn stepped(object: &ScaledObject, replicas: i32, is_active: bool, error: Option<&str>) -> DirectStep {
    let by = if is_active { active() } else { Vec::new() };
    let work = error.map_or(Ok(i64::from(replicas) * 10), Err);
    let seen = seen(object, replicas, work);
    step(&mut State::default(), &seen, &input(object, &by, error), Compat::Better, DecisionDetail::Counts)
}

fn why(object: &ScaledObject, step: &DirectStep) -> String {
    sentence(&plan(object, &[vec![redis()]], Compat::Better).unwrap().spec, &step.decision)
}

fn explained(object: &ScaledObject, step: &DirectStep) -> String {
    let spec = plan(object, &[vec![redis()]], Compat::Better).unwrap().spec;
    engine::explain::explain("scaledobject", &spec, &step.decision, SignedDuration::from_secs(30)).to_string()
}

#[test]
fn record_contains_activation_and_metrics() {
    let mut object = object(0, None);
    let rests = explained(&object, &stepped(&object, 7, false, None));
    let row = "nothing is active, and nothing was since 12:46:40: 7 goes to 0  ← this decided";
    assert!(rests.contains(row), "{rests}");
    assert!(rests.contains("stays until something is active"), "{rests}");
    let resting = explained(&object, &stepped(&object, 0, false, None));
    assert!(resting.contains("nothing is active: 0 stays"), "{resting}");
    object.status.last_active_time = Some(NOW - SignedDuration::from_secs(100));
    let cooling = explained(&object, &stepped(&object, 7, false, None));
    assert!(cooling.contains("nothing is active; cooldown until 13:50:00, then 0"), "{cooling}");
    assert!(cooling.contains("replicas stay at 7"), "{cooling}");
    let wakes = explained(&object, &stepped(&object, 0, true, None));
    assert!(wakes.contains("s0-redis-jobs is active: 0 is left  ← this decided"), "{wakes}");
    let json = serde_json::to_value(&stepped(&object, 0, true, None).decision).unwrap();
    assert_eq!(json["activation"]["verdict"], "wakes");
    assert_eq!(json["course"], "activity");
}

/// Spec 3.6; where the HPA acts there, the engine does here.
#[test]
fn activation_matrix() {
    let fallback = |replicas| Some(Fallback { failure_threshold: 3, replicas, behavior: String::new() });
    let broken = Some("connection refused");
    #[rustfmt::skip]
    let rows = [
        // min, idle, replicas, active, error, fallback, written, why
        (0, None, 0, true, None, None, Some(1), "0 → 1: activated by s0-redis-jobs"),
        (0, None, 0, true, broken, None, Some(1), "0 → 1: activated by s0-redis-jobs"),
        (3, None, 0, true, None, None, Some(3), "0 → 3: activated by s0-redis-jobs"),
        (3, Some(0), 1, true, None, None, Some(3), "1 → 3: activated by s0-redis-jobs"),
        (3, None, 1, true, None, None, Some(3), "below min 3"),
        (0, None, 7, true, broken, None, None, "held: s0-redis-jobs cannot be read"),
        (0, None, 7, true, None, None, None, "s0-redis-jobs 70 for 7 replicas, target 10 each: close enough"),
        (0, None, 7, false, None, None, Some(0), "7 → 0: nothing active since 12:46:40"),
        (0, None, 7, false, broken, None, None, "held: s0-redis-jobs cannot be read"),
        (0, None, 7, false, broken, fallback(5), None, "held: s0-redis-jobs cannot be read"),
        (3, Some(1), 7, false, None, None, Some(1), "7 → 1: nothing active since 12:46:40"),
        (3, Some(1), 1, false, None, None, None, "at rest: nothing active"),
        (3, None, 1, false, None, None, Some(3), "1 → 3: below the lower bound"),
        (3, None, 7, false, None, None, None, "s0-redis-jobs 70 for 7 replicas, target 10 each: close enough"),
        (2, Some(0), 0, false, None, None, None, "at rest: nothing active"),
        (0, None, 0, false, None, None, None, "at rest: nothing active"),
    ];
    for (min, idle, replicas, is_active, error, fallback, written, sentence) in rows {
        let mut object = object(min, idle);
        object.spec.fallback = fallback;
        let step = stepped(&object, replicas, is_active, error);
        let row = format!("{min} {idle:?} {replicas} {is_active} {error:?}");
        assert_eq!(step.write(), written, "{row}");
        assert_eq!(why(&object, &step), sentence, "{row}");
    }
}

#[test]
fn activation_scales_directly_to_the_metrics_recommendation() {
    let object = object(0, None);
    let by = active();
    let seen = seen(&object, 0, Ok(33));
    let step = step(
        &mut State::default(),
        &seen,
        &input(&object, &by, None),
        Compat::Better,
        DecisionDetail::Counts,
    );
    assert_eq!(step.write(), Some(4));
    assert_eq!(
        why(&object, &step),
        "0 → 4: activated by s0-redis-jobs; s0-redis-jobs 33 for 0 replicas, target 10 each"
    );
    let mut state = State::default();
    let settled = step.settle(&mut state, NOW, &seen, Some(ScaleWriteResult::Done));
    assert_eq!(settled.decision.outcome, ScaleOutcome::Scaled);
    let note = "Scaled apps/v1.Deployment shop/worker from 0 to 4, triggered by s0-redis-jobs";
    assert_eq!(settled.outcome.events.first().map(|event| event.note.as_str()), Some(note));
    assert_eq!(settled.outcome.changes.last_active_time, Some(NOW));
}

#[test]
fn activation_respects_scale_up_behavior() {
    let object = object(0, None);
    let by = active();
    let seen = seen(&object, 0, Ok(1000));
    let step = step(
        &mut State::default(),
        &seen,
        &input(&object, &by, None),
        Compat::Better,
        DecisionDetail::Counts,
    );
    assert_eq!(step.write(), Some(4), "max(2 × 0, 4)");
}

#[test]
fn metrics_decide_during_cooldown() {
    let mut object = object(0, None);
    object.status.last_active_time = Some(NOW - SignedDuration::from_secs(100));
    let kept = stepped(&object, 7, false, None);
    assert_eq!(kept.write(), None);
    assert_eq!(why(&object, &kept), "held: cooldown until 13:50:00");
    let seen = seen(&object, 7, Ok(0));
    let mut state = State::default();
    let down = step(&mut state, &seen, &input(&object, &[], None), Compat::Better, DecisionDetail::Counts);
    // The window of the behavior holds: seven was recommended just now.
    assert_eq!(down.write(), None);
    assert_eq!(down.decision.recommendation.as_ref().map(|r| r.replicas.get()), Some(0));
    let settled = down.settle(&mut state, NOW, &seen, None);
    let cooling = settled.outcome.changes.conditions.iter().any(|c| c.reason == "ScalerCooldown");
    assert!(cooling, "{:?}", settled.outcome.changes.conditions);
}

#[test]
fn last_instant_of_cooldown_still_cools_down() {
    let mut object = object(0, None);
    object.spec.cooldown_period = Some(60);
    for (ago, written) in [(59, None), (60, None), (61, Some(0))] {
        object.status.last_active_time = Some(NOW - SignedDuration::from_secs(ago));
        assert_eq!(stepped(&object, 7, false, None).write(), written, "{ago}");
    }
    object.status.last_active_time = None;
    object.spec.initial_cooldown_period = Some(60);
    for (ago, written) in [(60, None), (61, Some(0))] {
        object.metadata.creation_timestamp = Some(NOW - SignedDuration::from_secs(ago));
        assert_eq!(stepped(&object, 7, false, None).write(), written, "{ago}");
    }
}

#[test]
fn deactivation_clears_recommendation_history() {
    let object = object(0, None);
    let mut state = State::default();
    let by = active();
    let busy = seen(&object, 15, Ok(150));
    step(&mut state, &busy, &input(&object, &by, None), Compat::Better, DecisionDetail::Counts);
    assert_ne!(state, State::default());
    let quiet = seen(&object, 15, Ok(0));
    let rests = step(&mut state, &quiet, &input(&object, &[], None), Compat::Better, DecisionDetail::Counts);
    assert_eq!(rests.write(), Some(0));
    let settled = rests.settle(&mut state, NOW, &quiet, Some(ScaleWriteResult::Done));
    assert_eq!(state, State::default());
    let note = "Deactivated apps/v1.Deployment shop/worker from 15 to 0";
    assert_eq!(settled.outcome.events.first().map(|event| event.note.as_str()), Some(note));
    let woken = seen(&object, 0, Ok(5));
    let wakes = step(&mut state, &woken, &input(&object, &by, None), Compat::Better, DecisionDetail::Counts);
    assert_eq!(wakes.write(), Some(1), "not fifteen");
}

#[test]
fn failed_write_is_reported_and_retried() {
    let object = object(0, None);
    let step = stepped(&object, 0, true, None);
    let seen = seen(&object, 0, Ok(0));
    let mut state = State::default();
    let error = ScaleWriteError { text: "conflict".into(), conflict: true };
    let settled = step.settle(&mut state, NOW, &seen, Some(ScaleWriteResult::Failed(error)));
    assert_eq!(settled.decision.outcome, ScaleOutcome::WriteFailed("conflict".into()));
    assert_eq!(settled.outcome.changes.last_active_time, None);
    let reason = settled.outcome.events.first().map(|event| event.reason);
    assert_eq!(reason, Some("KEDAScaleTargetActivationFailed"));
}

#[test]
fn pause_annotations_hold_replicas() {
    let annotated = |key: &str, min, idle| {
        let mut object = object(min, idle);
        object.metadata.annotations.insert(key.to_owned(), "true".to_owned());
        object
    };
    let all = annotated(annotations::PAUSED, 0, None);
    for (replicas, is_active) in [(0, true), (7, false)] {
        let step = stepped(&all, replicas, is_active, None);
        assert_eq!(step.write(), None);
        assert_eq!(why(&all, &step), "held: it is paused by annotation");
    }
    let out = annotated(annotations::PAUSED_SCALE_OUT, 0, None);
    let step = stepped(&out, 0, true, None);
    assert_eq!(
        (step.write(), why(&out, &step).as_str()),
        (None, "held: scaling out is paused by annotation")
    );
    assert_eq!(stepped(&out, 7, false, None).write(), Some(0));
    let out = annotated(annotations::PAUSED_SCALE_OUT, 3, None);
    assert_eq!(stepped(&out, 1, true, None).write(), None);
    let inwards = annotated(annotations::PAUSED_SCALE_IN, 0, None);
    assert_eq!(stepped(&inwards, 7, false, None).write(), None);
    assert_eq!(stepped(&inwards, 30, true, None).write(), None, "above max, but scaling in is paused");
    assert_eq!(stepped(&inwards, 0, true, None).write(), Some(1));
    let spec = plan(&inwards, &[vec![redis()]], Compat::Better).unwrap().spec;
    let behavior = spec.behavior.unwrap();
    assert_eq!((behavior.down.select, behavior.up.select), (SelectPolicy::Disabled, SelectPolicy::Max));
    assert!(!behavior.up.policies.is_empty(), "the other direction is as usual");
}

#[test]
fn forced_activation_names_the_annotation() {
    let mut object = object(0, None);
    object.metadata.annotations.insert(annotations::FORCE_ACTIVATION.into(), "true".into());
    let step = stepped(&object, 0, false, None);
    assert_eq!(why(&object, &step), "0 → 1: activated by annotation force-activation");
}

#[test]
fn unreadable_scale_changes_nothing() {
    let object = object(0, None);
    let mut seen = seen(&object, 0, Ok(0));
    seen.scale = Err(ScaleReadError::Query("not found".into()));
    let step = step(
        &mut State::default(),
        &seen,
        &input(&object, &[], None),
        Compat::Better,
        DecisionDetail::Counts,
    );
    assert_eq!(step.write(), None);
    assert!(matches!(step.decision.course, Course::NoScale(_)));
    let settled = step.settle(&mut State::default(), NOW, &seen, None);
    let reason = settled.outcome.changes.conditions.first().map(|condition| condition.reason.as_str());
    assert_eq!(reason, Some("ErrorGettingCurrentReplicas"));
}

proptest::proptest! {
    /// Whatever else is known: as long as one metric cannot be read, and so triggers fail, nothing is scaled in, unless
    /// an upper bound says so.
    #[test]
    fn failed_reads_do_not_scale_down(
        min in 0..4_i32, idle in proptest::option::of(0..3_i32), replicas in 0..20_i32, is_active: bool,
        work in proptest::option::of(0..400_i64), minutes in 0..100_i64, fallback in proptest::option::of(0..4_i32),
    ) {
        let mut object = object(min, idle.filter(|idle| *idle < min));
        object.status.last_active_time = Some(NOW - SignedDuration::from_mins(minutes));
        object.spec.fallback = fallback
            .map(|replicas| Fallback { failure_threshold: 3, replicas, behavior: String::new() });
        let error = "connection refused";
        let mut other = redis();
        other.external.as_mut().unwrap().metric.name = "s1-other".into();
        let mut seen = seen(&object, replicas, Err(error));
        seen.spec = Arc::new(plan(&object, &[vec![redis()], vec![other]], Compat::Better).unwrap().spec);
        seen.samples.push(work.map(|work| MetricSamples::Totals(vec![(work * 1000).into()])).ok_or_else(|| error.into()));
        let by = if is_active { active() } else { Vec::new() };
        let input = input(&object, &by, Some(error));
        let step = step(&mut State::default(), &seen, &input, Compat::Better, DecisionDetail::Counts);
        let to = step.write().unwrap_or(replicas);
        proptest::prop_assert!(to >= replicas, "{replicas} to {to}: {}", why(&object, &step));
        proptest::prop_assert!(to <= 20, "{to}");
    }

    /// Whatever is known and done, the count is at rest or between the bounds, or was not touched.
    #[test]
    fn bounds_hold(
        min in 0..4_i32, idle in proptest::option::of(0..3_i32), replicas in 0..30_i32, is_active: bool,
        work in 0..900_i64, minutes in 0..100_i64,
    ) {
        let mut object = object(min, idle.filter(|idle| *idle < min));
        object.status.last_active_time = Some(NOW - SignedDuration::from_mins(minutes));
        let by = if is_active { active() } else { Vec::new() };
        let seen = seen(&object, replicas, Ok(work));
        let step = step(&mut State::default(), &seen, &input(&object, &by, None), Compat::Better, DecisionDetail::Counts);
        let Some(to) = step.write() else { return Ok(()) };
        let rest = object.spec.idle_replica_count.unwrap_or(min);
        proptest::prop_assert!((min.max(1)..=20).contains(&to) || (to == rest && !is_active) || to > 20 && to < replicas,
            "{replicas} to {to}: {}", why(&object, &step));
    }
}
