//! Decisions without a runtime: object, samples and state in, effects out.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricTarget};
use api::keda::{ConditionStatus, GroupVersionKindResource, KedaProfile, ScaledJob, ScaledObject, types};
use api::provider::Compat;
use jiff::Timestamp;
use keda::activity::{MetricSample, MetricValue, Reading, TriggerMetric, TriggerResult};
use keda::executor::{self, ExecutorInput, ScaleReason, ScaleResult};
use keda::fallback::TargetFacts;
use scalers::ScalerError;
use serde_json::json;

use super::conditions::{ReconcileOutcome, Reconciled, adoption, conclude_object, set_paused};
use super::object::{Evaluation, NextStep, ObjectPoll, PollSkip, conclude, evaluate, scale_effect, skip};
use super::{hpa, job};
use crate::operator::effect::Effect;
use crate::operator::id::ResourceKind;
use crate::operator::scalers_cache::{SampleError, TriggerMetrics};
use crate::operator::settings::ScalingMode;
use crate::operator::validate::ReconcileStep;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn object() -> Arc<ScaledObject> {
    let mut object: ScaledObject = serde_json::from_value(json!({
        "metadata": {"name": "worker", "namespace": "shop", "uid": "u"},
        "spec": {"scaleTargetRef": {"name": "worker"}, "triggers": [{"type": "redis", "metadata": {}}]},
    }))
    .unwrap();
    object.status.scale_target_gvkr = Some(GroupVersionKindResource {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Deployment".into(),
        resource: "deployments".into(),
    });
    object.status.external_metric_names = vec!["s0-redis".into()];
    Arc::new(object)
}

fn samples(value: i64) -> Vec<TriggerResult> {
    let value = MetricValue {
        name: "s0-redis".into(),
        value: quantity::Quantity::new(value, quantity::Format::DecimalSi),
    };
    let active = value.value.as_f64() > 0.0;
    let sample = MetricSample {
        name: "s0-redis".into(),
        target: MetricTarget::default(),
        reading: Ok(Reading { values: vec![value], active }),
        is_remembered: false,
        is_ignored: false,
    };
    vec![TriggerResult { trigger: 0, metrics: Ok(vec![TriggerMetric::External(sample)]) }]
}

fn evaluated(
    object: &Arc<ScaledObject>,
    samples: &[TriggerResult],
    last_active: Option<Timestamp>,
    now: i64,
) -> Evaluation {
    evaluate(&ObjectPoll {
        now: at(now),
        queried_at: at(now),
        object,
        samples,
        observed: &keda::activity::HpaObservations::new(),
        facts: &TargetFacts::default(),
        formula: None,
        build_error: None,
        last_active,
        created: object.metadata.creation_timestamp,
        compat: Compat::Better,
    })
}

fn reasons(effects: &[Effect]) -> Vec<&str> {
    let reason = |effect: &'_ Effect| match effect {
        Effect::Event(event) | Effect::ReconcileEvent(event) => Some(event.reason),
        _ => None,
    };
    effects.iter().filter_map(reason).collect()
}

#[test]
fn active_trigger_activates_target_and_expects_the_count_that_was_read() {
    let object = object();
    let Evaluation { activity, effects, next } = evaluated(&object, &samples(5), None, 0);
    assert_eq!(effects, []);
    let NextStep::Scale(object) = next else { panic!("the poll ends") };
    let input = ExecutorInput::of_round(at(0), &object, &activity).with(Ok(0), None);
    let decision = executor::decide(&input, Compat::Better);
    let effect = scale_effect(&input, &decision, Compat::Better).unwrap();
    assert_eq!((effect.to, effect.expected, effect.why), (1, Some(0), Some(ScaleReason::Activate)));
    let effects = conclude(decision, Some(&ScaleResult::Written { from: 0 }), activity.changes);
    assert_eq!(reasons(&effects), ["KEDAScaleTargetActivated"]);
    let Some(Effect::MergeStatus(changes)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(changes.last_active_time, Some(at(0)));
}

#[test]
fn scale_down_waits_for_cooldown_since_remembered_activity() {
    let object = object();
    let scale = |last_active: i64, now: i64| {
        let Evaluation { activity, next, .. } = evaluated(&object, &samples(0), Some(at(last_active)), now);
        let NextStep::Scale(object) = next else { panic!("the poll ends") };
        let input = ExecutorInput::of_round(at(now), &object, &activity).with(Ok(3), None);
        let decision = executor::decide(&input, Compat::Better);
        scale_effect(&input, &decision, Compat::Better).map(|effect| effect.to)
    };
    assert_eq!(scale(100, 399), None);
    assert_eq!(scale(100, 401), Some(0));
}

#[test]
fn push_since_the_query_outdates_inactive_samples() {
    let object = object();
    let Evaluation { next, effects, .. } = evaluated(&object, &samples(0), Some(at(10)), 10);
    assert!(matches!(next, NextStep::Stop));
    assert!(matches!(effects.as_slice(), [Effect::MergeStatus(_)]), "{effects:?}");
}

#[test]
fn poll_is_skipped_without_target_and_reported_without_scaler() {
    let object = object();
    let skipped = |error, missing, compat| skip(&object, None, error, missing, compat);
    assert_eq!(skipped(None, false, Compat::Better), None);
    assert_eq!(skipped(None, true, Compat::Better), Some(PollSkip::Silent));
    assert_eq!(skipped(Some("no password"), false, Compat::Better), None);
    let Some(PollSkip::ScalerFailed(event)) = skipped(Some("no password"), false, Compat::Strict) else {
        panic!("KEDA ends the poll")
    };
    assert_eq!((event.reason, event.note.as_str()), ("KEDAScalerFailed", "no password"));
}

#[test]
fn jobs_are_created_for_the_queue_and_reported() {
    let scaled_job: ScaledJob = serde_json::from_value(json!({
        "metadata": {"name": "mail", "namespace": "shop"},
        "spec": {
            "jobTargetRef": {"template": {"spec": {"containers": [{"name": "mail", "image": "mail"}]}}},
            "maxReplicaCount": 10,
            "triggers": [{"type": "redis", "metadata": {}}],
        },
    }))
    .unwrap();
    let spec = serde_json::from_value(json!({"type": "External", "external": {
        "metric": {"name": "s0-redis"}, "target": {"type": "AverageValue", "averageValue": "1"}}}))
    .unwrap();
    let value = quantity::Quantity::new(3, quantity::Format::DecimalSi);
    let sample = keda::jobs::JobReading { values: vec![("s0-redis".to_owned(), value)], active: true };
    let answer = keda::jobs::JobTriggerResult {
        specs: Ok(vec![spec]),
        samples: vec![("s0-redis".into(), Ok(sample))],
    };
    let none = Vec::new();
    let decision =
        job::decide(&scaled_job, &[answer], &[], |_| false, none, Compat::Better, KedaProfile::V2_20);
    let Some(Effect::CreateJobs { names, .. }) = &decision.create else { panic!("no job is created") };
    assert_eq!(names.len(), 3);
    let created = [Ok(()), Ok(()), Err("quota exceeded".into())];
    let conclusion =
        job::conclude(&scaled_job, &decision.round, &created, &[], at(0), Compat::Better, KedaProfile::V2_20);
    assert!(reasons(&conclusion.events).contains(&"KEDAJobCreateFailed"), "{:?}", conclusion.events);
    assert!(matches!(conclusion.status, Some(Effect::PatchStatus(_))));
    assert_eq!(conclusion.delete, []);
}

#[test]
fn jobs_of_one_poll_are_limited() {
    let scaled_job: ScaledJob = serde_json::from_value(json!({
        "metadata": {"name": "mail", "namespace": "shop"},
        "spec": {
            "jobTargetRef": {"template": {"spec": {"containers": [{"name": "mail", "image": "mail"}]}}},
            "minReplicaCount": i32::MAX,
            "maxReplicaCount": i32::MAX,
            "triggers": [],
        },
    }))
    .unwrap();
    let decision =
        job::decide(&scaled_job, &[], &[], |_| false, Vec::new(), Compat::Better, KedaProfile::V2_20);
    let Some(Effect::CreateJobs { names, .. }) = &decision.create else { panic!("no job is created") };
    assert_eq!(names.len(), 2_000, "later polls create the others");
}

#[test]
fn hpa_with_another_name_is_replaced_and_a_right_one_is_left() {
    let object = object();
    let named = |name: &str| -> HorizontalPodAutoscaler {
        let owner =
            json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "worker", "uid": "u"});
        serde_json::from_value(json!({
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "worker"}, "maxReplicas": 5},
        }))
        .unwrap()
    };
    let wanted = named("keda-hpa-worker");
    let writes =
        |found: Option<&HorizontalPodAutoscaler>| hpa::writes(&object, found, &wanted, Compat::Better);
    let create = Effect::CreateHpa(Box::new(wanted.clone()));
    assert_eq!(writes(None), std::slice::from_ref(&create));
    assert_eq!(writes(Some(&named("old"))), [Effect::DeleteHpa("old".into()), create]);
    assert_eq!(writes(Some(&wanted)), []);
    let mut edited = wanted.clone();
    edited.spec.max_replicas = 7;
    assert_eq!(writes(Some(&edited)), [Effect::UpdateHpa(Box::new(wanted.clone()))]);
}

#[test]
fn trigger_that_fails_keeps_its_metrics_and_is_reported() {
    let object = object();
    let last = serde_json::from_value(json!({"type": "External", "external": {
        "metric": {"name": "s0-redis"}, "target": {"type": "AverageValue", "averageValue": "1"}}}))
    .unwrap();
    let listed = |last| {
        vec![TriggerMetrics {
            index: 0,
            specs: Err(SampleError::Source(ScalerError::new("connection refused"))),
            is_built: true,
            last,
        }]
    };
    let collect = |last, compat| hpa::collect_metrics(&object, listed(last), None, ScalingMode::Hpa, compat);
    let metrics = collect(vec![last], Compat::Better).unwrap();
    assert_eq!(metrics.specs[0].len(), 1);
    assert_eq!(metrics.broken_trigger.as_deref(), Some("trigger 0 (redis): connection refused"));
    assert_eq!(reasons(&metrics.failures), ["KEDAScalerFailed"]);
    assert!(metrics.failures.iter().all(Effect::is_event));
    assert_eq!(collect(Vec::new(), Compat::Strict).unwrap().specs, [Vec::new()], "in KEDA it has no metrics");
}

#[test]
fn failed_reconcile_sets_conditions_and_records_one_event() {
    let old = object();
    let mut new = (*old).clone();
    let failure = ReconcileStep::ScaleTarget.failed("deployments.apps \"worker\" not found");
    let (outcome, effects) = conclude_object(&old, &mut new, Err(failure), Compat::Better);
    assert_eq!(outcome, ReconcileOutcome::Failed);
    assert_eq!(reasons(&effects), ["ScaledObjectCheckFailed"]);
    assert_eq!(new.status.conditions.state(types::READY), ConditionStatus::False);
    assert_eq!(new.status.conditions.state(types::ACTIVE), ConditionStatus::Unknown);
    let ready = Ok(Reconciled::Ready { broken_trigger: None });
    let (outcome, effects) = conclude_object(&old, &mut new, ready, Compat::Better);
    assert_eq!((outcome, reasons(&effects)), (ReconcileOutcome::Polled, vec!["ScaledObjectReady"]));
}

#[test]
fn pause_is_recorded_once() {
    let mut conditions = api::keda::Conditions::initial();
    let first = set_paused(ResourceKind::Job, &mut conditions, true);
    assert_eq!(reasons(&Vec::from_iter(first)), ["ScaledJobPaused"]);
    assert_eq!(set_paused(ResourceKind::Job, &mut conditions, true), None);
}

#[test]
fn adoption_adds_finalizer_and_label_in_one_patch() {
    let mut metadata = object().metadata.clone();
    let patch = adoption(ResourceKind::Object, &metadata).unwrap();
    assert_eq!(patch["metadata"]["finalizers"], json!([api::keda::FINALIZER]));
    assert_eq!(patch["metadata"]["labels"], json!({"scaledobject.keda.sh/name": "worker"}));
    metadata.finalizers.push(api::keda::FINALIZER.to_owned());
    assert_eq!(adoption(ResourceKind::Job, &metadata), None);
    assert!(adoption(ResourceKind::Object, &metadata).is_some(), "the label is missing");
}
