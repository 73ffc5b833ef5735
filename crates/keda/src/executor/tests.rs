use std::collections::BTreeSet;

use api::keda::{ConditionStatus as Truth, Fallback, annotations, types};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::status::merge;

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn before(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

/// A ScaledObject without bounds that was made a day ago and was never active.
fn object() -> ScaledObject {
    let mut object: ScaledObject = serde_json::from_value(json!({
        "metadata": {"name": "so", "namespace": "ns"},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "cron", "metadata": {}}]},
        "status": {"scaleTargetKind": "apps/v1.Deployment", "externalMetricNames": ["s0-cron"]},
    }))
    .unwrap();
    object.metadata.creation_timestamp = Some(before(86_400));
    object
}

fn input(object: &ScaledObject, current: i32, active: bool) -> ExecutorInput<'_> {
    ExecutorInput {
        now: now(),
        object,
        active,
        error: None,
        active_triggers: &[],
        active_metrics: &[],
        push_metric: None,
        current: Ok(current),
        hpa: None,
    }
}

fn change(input: &ExecutorInput<'_>) -> Option<ScaleChange> {
    decide(input, Compat::Better).scale
}

fn down(to: i32) -> ScaleChange {
    ScaleChange { to, why: ScaleReason::Deactivate }
}

fn reason<'a>(decision: &'a ScaleDecision, type_: &str) -> &'a str {
    let own = decision.changes.conditions.iter().find(|condition| condition.type_ == type_);
    own.map_or("", |condition| &condition.reason)
}

#[test]
fn active_object_scales_from_zero() {
    let mut object = object();
    assert_eq!(change(&input(&object, 0, true)), Some(ScaleChange { to: 1, why: ScaleReason::Activate }));
    object.spec.min_replica_count = Some(3);
    assert_eq!(change(&input(&object, 0, true)), Some(ScaleChange { to: 3, why: ScaleReason::Activate }));
    assert_eq!(change(&input(&object, 1, true)), None, "the HPA lifts it");
    object.spec.idle_replica_count = Some(1);
    assert_eq!(change(&input(&object, 1, true)), Some(ScaleChange { to: 3, why: ScaleReason::Activate }));
}

#[test]
fn inactive_object_scales_to_zero_or_idle() {
    let mut object = object();
    assert_eq!(change(&input(&object, 7, false)), Some(down(0)));
    object.spec.min_replica_count = Some(3);
    assert_eq!(change(&input(&object, 7, false)), None, "the HPA owns it");
    assert_eq!(
        change(&input(&object, 1, false)),
        Some(ScaleChange { to: 3, why: ScaleReason::LiftToMinimum })
    );
    object.spec.idle_replica_count = Some(1);
    assert_eq!(change(&input(&object, 7, false)), Some(down(1)));
}

/// Found by chance: an idle count above the minimum raised what had nothing to do although growing was forbidden.
#[test]
fn deactivation_does_not_scale_out_while_scale_out_is_paused() {
    let mut object = object();
    object.spec.idle_replica_count = Some(2);
    assert_eq!(change(&input(&object, 1, false)), Some(down(2)));
    object.metadata.annotations.insert("autoscaling.keda.sh/paused-scale-out".to_owned(), String::new());
    assert_eq!(change(&input(&object, 1, false)), None);
    assert_eq!(change(&input(&object, 3, false)), Some(down(2)));
}

#[test]
fn last_instant_of_cooldown_still_cools_down() {
    let mut object = object();
    for (ago, is_over) in [(299, false), (300, false), (301, true)] {
        object.status.last_active_time = Some(before(ago));
        assert_eq!(change(&input(&object, 7, false)).is_some(), is_over, "{ago} s ago");
    }
    object.status.last_active_time = Some(before(300));
    let late = ExecutorInput { now: now() + SignedDuration::from_millis(1), ..input(&object, 7, false) };
    assert_eq!(change(&late), Some(down(0)), "a fraction of a second counts");
    let cooling = decide(&input(&object, 7, false), Compat::Better);
    assert_eq!(reason(&cooling, types::ACTIVE), "ScalerCooldown");
}

#[test]
fn initial_cooldown_counts_from_creation() {
    let mut object = object();
    object.spec.initial_cooldown_period = Some(86_400);
    assert_eq!(change(&input(&object, 7, false)), None);
    object.spec.initial_cooldown_period = Some(86_399);
    assert_eq!(change(&input(&object, 7, false)), Some(down(0)));
    object.spec.cooldown_period = Some(i32::MAX);
    object.status.last_active_time = Some(Timestamp::MAX);
    assert_eq!(change(&input(&object, 7, false)), None, "times beyond all times are later");
}

#[test]
fn failing_trigger_does_not_stop_last_active_time() {
    let object = object();
    let input = ExecutorInput { error: Some("trigger 1: down"), ..input(&object, 7, true) };
    let strict = decide(&input, Compat::Strict);
    assert_eq!(strict.changes.last_active_time, None);
    let better = decide(&input, Compat::Better);
    assert_eq!(better.changes.last_active_time, Some(now()));
    assert_eq!(reason(&better, types::READY), "PartialTriggerError");
    assert!(better.changes.conditions[0].message.ends_with(": trigger 1: down"));
}

#[test]
fn pauses_and_force() {
    let mut object = object();
    let mut with = |key: &str| {
        object.metadata.annotations = [(key.to_owned(), "true".to_owned())].into();
        object.clone()
    };
    assert_eq!(change(&input(&with(annotations::PAUSED_SCALE_IN), 7, false)), None);
    assert_eq!(change(&input(&with(annotations::PAUSED_SCALE_OUT), 0, true)), None);
    assert!(change(&input(&with(annotations::FORCE_ACTIVATION), 0, false)).is_some());
    let paused = with(annotations::PAUSED);
    let decision = decide(&input(&paused, 0, true), Compat::Better);
    assert_eq!((decision.scale, reason(&decision, types::PAUSED)), (None, "ScaledObjectPaused"));
}

#[test]
fn refused_object_does_not_become_ready_by_polling() {
    let mut object = object();
    let refused = Condition::new(types::READY, Truth::False, "ScaledObjectCheckFailed", "no such target");
    object.status.conditions.set(refused.clone());
    let before = object.clone();
    let failed = |active| ExecutorInput { error: Some("trigger 0: down"), ..input(&before, 1, active) };
    let unread = ExecutorInput { current: Err("no route".into()), ..input(&before, 1, true) };
    // A failure must not replace the refusal either: the next poll would no longer know of it.
    for poll in [input(&before, 1, true), failed(true), failed(false), unread] {
        let decision = decide(&poll, Compat::Better);
        merge(&mut object.status, &decision.finish(None).changes);
        assert_eq!(object.status.conditions.get(types::READY), Some(&refused), "{poll:?}");
    }
}

#[test]
fn events_report_the_scale_result() {
    let object = object();
    let note = |scaled: &ScaleResult, active: bool| {
        let triggers = ["s0-a".to_owned(), "s1-b".to_owned()];
        let input =
            ExecutorInput { active_triggers: &triggers, ..input(&object, i32::from(!active), active) };
        let outcome = decide(&input, Compat::Better).finish(Some(scaled));
        (outcome.events[0].note.clone(), outcome.changes.last_active_time.is_some())
    };
    let failed = ScaleResult::NotRead("no route".to_owned());
    let message = "Scaled apps/v1.Deployment ns/web from 0 to 1, triggered by s0-a;s1-b";
    assert_eq!(note(&ScaleResult::Written { from: 0 }, true), (message.to_owned(), true));
    let message = "Failed to scale apps/v1.Deployment ns/web from -1 to 1: no route";
    assert_eq!(note(&failed, true), (message.to_owned(), false));
    let message = "Deactivated apps/v1.Deployment ns/web from 5 to 0";
    assert_eq!(note(&ScaleResult::Written { from: 5 }, false), (message.to_owned(), false));
}

#[test]
fn failed_write_is_reported_as_the_release_does() {
    let failed = ScaleResult::NotWritten { from: 4, error: "no route".to_owned() };
    let mut object = object();
    let finish = |object: &ScaledObject, current, active, profile, compat| {
        let decision = decide(&input(object, current, active), compat).in_profile(profile);
        let outcome = decision.finish(Some(&failed));
        let ready = outcome.changes.conditions.iter().find(|own| own.type_ == types::READY).cloned();
        let active = outcome.changes.conditions.iter().any(|own| own.type_ == types::ACTIVE);
        assert!(active, "activity is reported whatever happens to the write");
        (ready, outcome.events.first().map(|event| event.note.clone()))
    };
    let strict = |object: &ScaledObject, current, active, profile| {
        let (ready, note) = finish(object, current, active, profile, Compat::Strict);
        let ready = ready.unwrap();
        (ready.reason, ready.message, note.unwrap_or_default())
    };
    let (reason, _, note) = strict(&object, 0, true, KedaProfile::V2_20);
    assert_eq!(
        (&*reason, &*note),
        ("ScaledObjectReady", "Failed to scale apps/v1.Deployment ns/web from 4 to 1")
    );
    let (reason, message, note) = strict(&object, 0, true, KedaProfile::V2_21);
    assert_eq!((&*reason, &*message), ("ErrorScalingTarget", "error activating ScaleTarget: no route"));
    assert_eq!(note, "Failed to scale apps/v1.Deployment ns/web from 4 to 1: no route");
    let (_, message, note) = strict(&object, 4, false, KedaProfile::V2_21);
    assert_eq!(message, "error deactivating ScaleTarget: no route");
    assert_eq!(note, "Failed to deactivate apps/v1.Deployment ns/web from 4 to 0: no route");
    object.spec.min_replica_count = Some(3);
    let (_, message, note) = strict(&object, 1, false, KedaProfile::V2_21);
    let attempt = "error setting ScaleTarget replicas count to ScaledObject minReplicaCount";
    assert_eq!((message, note), (format!("{attempt}: no route"), String::new()));
    object.status.conditions.set(Condition::new(types::READY, Truth::False, "ScaledObjectCheckFailed", ""));
    let (ready, _) = finish(&object, 1, false, KedaProfile::V2_21, Compat::Better);
    assert_eq!(ready, None, "the reconcile owns the condition of a refused object");
}

#[test]
fn a_push_changes_the_activity_of_one_metric() {
    let mut object = object();
    object.status.triggers_activity = [("s0-a".to_owned(), TriggerActivity { is_active: false })].into();
    let metric = ["s1-b".to_owned()];
    let decision = decide(&ExecutorInput::of_push(now(), &object, &metric).with(Ok(0), None), Compat::Better);
    let activity = decision.changes.activity.unwrap();
    assert!(!activity["s0-a"].is_active && activity["s1-b"].is_active);
    assert_eq!(decision.scale.unwrap().to, 1);
}

fn annotation() -> impl Strategy<Value = Option<(String, String)>> {
    let key = prop::sample::select(vec![
        annotations::PAUSED,
        annotations::PAUSED_REPLICAS,
        annotations::PAUSED_SCALE_IN,
        annotations::PAUSED_SCALE_OUT,
        annotations::FORCE_ACTIVATION,
    ]);
    prop::option::of((key.prop_map(str::to_owned), prop::sample::select(vec!["true", "false", ""])))
        .prop_map(|given| given.map(|(key, value)| (key, value.to_owned())))
}

prop_compose! {
    fn any_object()(
        min in prop::option::of(0..5), idle in prop::option::of(0..5),
        fallback in prop::option::of((0..3, 0..4)), annotation in annotation(),
        last in prop::option::of(0i64..1000), cooldown in prop::option::of(0..600),
        refused in any::<bool>(),
    ) -> ScaledObject {
        let mut object = object();
        object.spec.min_replica_count = min;
        object.spec.idle_replica_count = idle;
        object.spec.cooldown_period = cooldown;
        object.spec.fallback = fallback
            .map(|(failure_threshold, replicas)| Fallback { failure_threshold, replicas, ..Fallback::default() });
        object.metadata.annotations = annotation.into_iter().collect();
        object.status.last_active_time = last.map(before);
        if refused {
            object.status.conditions.set(Condition::new("Ready", Truth::False, "ScaledObjectCheckFailed", ""));
        }
        object
    }
}

fn compat() -> impl Strategy<Value = Compat> {
    prop::sample::select(vec![Compat::Strict, Compat::Better])
}

proptest! {
    #[test]
    fn errors_never_scale_in(object in any_object(), current in 0..9, active in any::<bool>()) {
        let input = ExecutorInput { error: Some("down"), ..input(&object, current, active) };
        let to = decide(&input, Compat::Better).scale.map_or(current, |change| change.to);
        prop_assert!(to >= current, "{current} to {to}");
        let to = decide(&input, Compat::Strict).scale.map_or(current, |change| change.to);
        let falls_to_zero = object.spec.fallback.is_some_and(|fallback| fallback.replicas == 0);
        prop_assert!(to >= current || falls_to_zero, "{current} to {to}");
    }

    #[test]
    fn active_object_never_scales_in(object in any_object(), current in 0..9, compat in compat()) {
        if let Some(change) = decide(&input(&object, current, true), compat).scale {
            prop_assert!(change.to > current, "{current} to {}", change.to);
        }
    }

    /// Deactivation ends at the idle or minimum count, activation at the minimum or above, and no change passes a pause.
    #[test]
    fn scale_changes_end_at_configured_counts(
        object in any_object(), current in 0..9, active in any::<bool>(), error in any::<bool>(),
    ) {
        let input = ExecutorInput { error: error.then_some("down"), ..input(&object, current, active) };
        let Some(ScaleChange { to, why }) = decide(&input, Compat::Better).scale else { return Ok(()) };
        let (min, idle) = (object.spec.min_replica_count.unwrap_or(0), object.spec.idle_replica_count);
        let expected = match why {
            ScaleReason::Activate => min.max(1),
            ScaleReason::Deactivate => idle.unwrap_or(min),
            ScaleReason::LiftToMinimum => min,
        };
        prop_assert_eq!(to, expected);
        prop_assert!(to >= idle.map_or(min, |idle| idle.min(min)), "{} is below rest", to);
        prop_assert!(!object.is_paused());
        // An object at its idle count is deactivated again, as in KEDA (executor-02815).
        let is_repeated = why == ScaleReason::Deactivate && idle == Some(current);
        prop_assert!(to < current || is_repeated || !object.is_scale_out_paused());
        prop_assert!(to > current || !object.is_scale_in_paused());
    }

    #[test]
    fn unknown_replica_count_changes_nothing(object in any_object(), active in any::<bool>()) {
        let unseen = ExecutorInput { current: Err("gone".into()), ..input(&object, 0, active) };
        prop_assert_eq!(decide(&unseen, Compat::Better).scale, None);
    }

    #[test]
    fn status_merge_is_idempotent(
        object in any_object(), current in 0..9, active in any::<bool>(), error in any::<bool>(), compat in compat(),
    ) {
        let input = ExecutorInput { error: error.then_some("down"), ..input(&object, current, active) };
        let decision = decide(&input, compat);
        let scaled = decision.scale.map(|_| ScaleResult::Written { from: current });
        let outcome = decision.finish(scaled.as_ref());
        let mut status = object.status.clone();
        merge(&mut status, &outcome.changes);
        prop_assert_eq!(merge(&mut status, &outcome.changes), None);
        let types: BTreeSet<&str> = status.conditions.iter().map(|own| own.type_.as_str()).collect();
        prop_assert_eq!(types.len(), status.conditions.len());
    }

    #[test]
    fn status_patch_turns_old_status_into_new(
        object in any_object(), current in 0..9, active in any::<bool>(),
    ) {
        let outcome = decide(&input(&object, current, active), Compat::Better).finish(None);
        let mut status = object.status.clone();
        let patch = merge(&mut status, &outcome.changes);
        let mut patched = json!({"status": object.status});
        apply(&mut patched, patch.as_ref().unwrap_or(&json!({})));
        prop_assert_eq!(patched, json!({"status": status}));
    }
}

/// As an API server does it (RFC 7396).
fn apply(target: &mut serde_json::Value, patch: &serde_json::Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            apply(target.entry(name.clone()).or_insert(json!(null)), value);
        }
    }
}
