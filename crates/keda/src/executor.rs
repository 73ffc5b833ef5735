//! The scale executor for 0 ↔ 1: writes, events and status (docs/spec/keda.md 3.6, 3.7, 3.9).
//!
//! [`decide`] decides, the caller writes the scale, [`ScaleDecision::finish`] yields the events, and
//! [`crate::status::merge`] the status patch.

mod conditions;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::keda::{Condition, KedaProfile, ScaledObject, TriggerActivity, types};
use api::map::Map;
use api::provider::Compat;
use jiff::{SignedDuration, Timestamp};

use crate::OperationError;
use crate::activity::ActivityState;
use crate::event::Event;
use crate::status::StatusChanges;

pub(crate) use conditions::because;

/// KEDA's error for a target that is not resolved yet.
pub const TARGET_NOT_RESOLVED: &str =
    "failed to get ScaledObject.Status.ScaleTargetGVKR, probably invalid ScaledObject cache";

/// Input of a decision.
#[derive(Clone, Debug)]
pub struct ExecutorInput<'a> {
    /// The time.
    pub now: Timestamp,
    /// The object as it is stored.
    pub object: &'a ScaledObject,
    /// Whether its triggers are active.
    pub active: bool,
    /// The error of triggers that failed; may be empty.
    pub error: Option<&'a str>,
    /// The triggers named as the cause of an activation.
    pub active_triggers: &'a [String],
    /// The metrics that are active.
    pub active_metrics: &'a [String],
    /// The metric of the push scaler that became active, if any.
    pub push_metric: Option<&'a str>,
    /// Desired replicas of the target, or why they are unknown.
    pub current: Result<i32, OperationError>,
    /// Conditions of the HPA named in the status; `None` if it is unknown.
    pub hpa: Option<&'a [HorizontalPodAutoscalerCondition]>,
}

/// The decision.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleDecision {
    /// The scale change, if any.
    pub scale: Option<ScaleChange>,
    /// Status changes independent of the result of the write.
    pub changes: StatusChanges,
    /// Why no decision was possible.
    pub error: Option<String>,
    now: Timestamp,
    /// `apps/v1.Deployment shop/worker`.
    target: String,
    cause: String,
    /// Whether the last reconcile refused the object, which a poll must not overwrite.
    is_refused: bool,
    compat: Compat,
    profile: KedaProfile,
}

/// A scale change: GET scale, set `spec.replicas`, PUT, even if the value is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleChange {
    /// New number of replicas.
    pub to: i32,
    /// Why the count changes.
    pub why: ScaleReason,
}

/// Why the scale is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleReason {
    /// A trigger is active.
    Activate,
    /// No trigger has been active for the cooldown period.
    Deactivate,
    /// The count is below the minimum, by another writer.
    LiftToMinimum,
}

/// The result of a scale change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleResult {
    /// Reading the scale failed.
    NotRead(String),
    /// Writing the scale failed.
    NotWritten {
        /// Replicas before the write.
        from: i32,
        /// Why the write failed.
        error: String,
    },
    /// It was written.
    Written {
        /// Replicas before the write.
        from: i32,
    },
}

impl ScaleResult {
    /// Why the scale was not changed.
    fn error(&self) -> Option<&str> {
        match self {
            Self::NotRead(error) | Self::NotWritten { error, .. } => Some(error),
            Self::Written { .. } => None,
        }
    }
}

/// Events and status changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutorOutcome {
    /// Status changes.
    pub changes: StatusChanges,
    /// Events to record.
    pub events: Vec<Event>,
}

impl<'a> ExecutorInput<'a> {
    /// The input after a poll.
    pub fn of_round(now: Timestamp, object: &'a ScaledObject, state: &'a ActivityState) -> Self {
        Self {
            now,
            object,
            active: state.active,
            error: state.error.as_deref(),
            active_triggers: &state.active_triggers,
            active_metrics: &state.active_metrics,
            push_metric: None,
            current: Err(TARGET_NOT_RESOLVED.into()),
            hpa: None,
        }
    }

    /// The input after a push scaler became active; `metric` is the only one of the slice.
    pub fn of_push(now: Timestamp, object: &'a ScaledObject, metric: &'a [String; 1]) -> Self {
        let [name] = metric;
        Self {
            now,
            object,
            active: true,
            error: None,
            active_triggers: metric,
            active_metrics: metric,
            push_metric: Some(name),
            current: Err(TARGET_NOT_RESOLVED.into()),
            hpa: None,
        }
    }

    /// Adds the target's replicas and the HPA's conditions.
    #[must_use]
    pub fn with(
        mut self,
        current: Result<i32, OperationError>,
        hpa: Option<&'a [HorizontalPodAutoscalerCondition]>,
    ) -> Self {
        self.current = current;
        self.hpa = hpa;
        self
    }
}

/// The decision.
pub fn decide(input: &ExecutorInput<'_>, compat: Compat) -> ScaleDecision {
    let object = input.object;
    let mut decision = ScaleDecision {
        scale: None,
        changes: StatusChanges { activity: Some(activity(input)), ..StatusChanges::default() },
        error: None,
        now: input.now,
        target: format!(
            "{} {}/{}",
            object.status.scale_target_kind, object.metadata.namespace, object.spec.scale_target_ref.name
        ),
        cause: if object.is_forced() {
            "caused by forced activation annotation".to_owned()
        } else {
            format!("triggered by {}", input.active_triggers.join(";"))
        },
        is_refused: !compat.is_strict() && conditions::is_refused(&object.status.conditions),
        compat,
        profile: KedaProfile::default(),
    };
    let current = match &input.current {
        Ok(current) => *current,
        Err(error) => {
            decision.error = Some(format!("error getting current replicas count for ScaleTarget: {error}"));
            if !decision.is_refused {
                decision.changes.conditions = vec![conditions::no_current(error.as_str())];
            }
            return decision;
        }
    };
    let mut conditions = if object.is_paused() {
        vec![conditions::ready(), conditions::paused()]
    } else if input.active || object.is_forced() {
        when_active(input, current, &mut decision)
    } else {
        when_inactive(input, current, &mut decision)
    };
    if !object.is_paused() && !object.status.hpa_name.is_empty() {
        conditions.extend(input.hpa.and_then(conditions::hpa));
    }
    // The reconcile owns `Ready=False`: a poll does not know whether the refused spec was corrected (trap 32). A failure of a poll
    // would hide the refusal from the next poll, which would make the object ready.
    if decision.is_refused {
        conditions.retain(|condition| condition.type_ != types::READY);
    }
    decision.changes.conditions = conditions;
    decision
}

/// Rows 2 to 4 of the decision table in docs/spec/keda.md 3.6.
fn when_active(input: &ExecutorInput<'_>, current: i32, decision: &mut ScaleDecision) -> Vec<Condition> {
    let object = input.object;
    let min = object.spec.min_replica_count.unwrap_or(0);
    let active = conditions::active(object.is_forced());
    let is_idle = object.spec.idle_replica_count.is_some() && current < min;
    if is_idle || current == 0 {
        if !object.is_scale_out_paused() {
            let to = if min > 0 { min } else { 1 };
            decision.scale = Some(ScaleChange { to, why: ScaleReason::Activate });
        }
        return vec![conditions::ready(), active];
    }
    let Some(error) = input.error else {
        decision.changes.last_active_time = Some(whole_seconds(input.now));
        return vec![conditions::ready(), active];
    };
    // An active trigger updates the time even if others fail; otherwise the cooldown would be over at once (trap 7).
    if !decision.compat.is_strict() {
        decision.changes.last_active_time = Some(whole_seconds(input.now));
    }
    vec![conditions::partly_ready(error, decision.compat), active]
}

/// Rows 5 to 9 of the decision table in docs/spec/keda.md 3.6.
fn when_inactive(input: &ExecutorInput<'_>, current: i32, decision: &mut ScaleDecision) -> Vec<Condition> {
    let spec = &input.object.spec;
    let min = spec.min_replica_count.unwrap_or(0);
    let idle = spec.idle_replica_count;
    let not_active = conditions::not_active();
    if let Some(error) = input.error {
        match &spec.fallback {
            None => return vec![conditions::not_ready(error, decision.compat), not_active],
            Some(fallback) if fallback.replicas != 0 => return vec![conditions::ready(), not_active],
            Some(_) => {}
        }
    }
    if idle.is_some_and(|idle| current > idle) || (current > 0 && min == 0) {
        if input.object.is_scale_in_paused() {
            return vec![conditions::ready(), not_active];
        }
        if is_cooling_down(input) {
            return vec![conditions::ready(), conditions::cooling_down()];
        }
        // A failure below the threshold says nothing about activity: a fallback to zero replicas happens when the fallback
        // begins, not before (trap 4). And an idle count above the minimum, which admission refuses, may
        // be above the current count: that would scale out.
        let to = idle.unwrap_or(min);
        let is_forbidden = input.error.is_some() || (to > current && input.object.is_scale_out_paused());
        if decision.compat.is_strict() || !is_forbidden {
            decision.scale = Some(ScaleChange { to, why: ScaleReason::Deactivate });
        }
    } else if idle.is_none() && current < min {
        // KEDA scales up to the minimum even while scale-out is paused.
        if decision.compat.is_strict() || !input.object.is_scale_out_paused() {
            decision.scale = Some(ScaleChange { to: min, why: ScaleReason::LiftToMinimum });
        }
    }
    vec![conditions::ready(), not_active]
}

/// Whether the cooldown lasts; its last instant is included.
fn is_cooling_down(input: &ExecutorInput<'_>) -> bool {
    let object = input.object;
    let (since, period) = match object.status.last_active_time {
        Some(time) => (Some(time), object.spec.cooldown_period.unwrap_or(300)),
        None => (object.metadata.creation_timestamp, object.spec.initial_cooldown_period.unwrap_or(0)),
    };
    since.is_some_and(|since| {
        since.checked_add(SignedDuration::from_secs(period.into())).map_or(true, |end| end >= input.now)
    })
}

/// Activity of all metrics: after a poll of those in the HPA, after a push of one more.
fn activity(input: &ExecutorInput<'_>) -> Map<TriggerActivity> {
    let status = &input.object.status;
    if let Some(metric) = input.push_metric {
        let mut activity = status.triggers_activity.clone();
        activity.insert(metric.to_owned(), TriggerActivity { is_active: true });
        return activity;
    }
    let active: HashSet<&str> = input.active_metrics.iter().map(String::as_str).collect();
    let of = |name: &String| TriggerActivity { is_active: active.contains(&**name) };
    status.external_metric_names.iter().map(|name| (name.clone(), of(name))).collect()
}

/// Times in the status are whole seconds.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_nanosecond().div_euclid(1_000_000_000).try_into().unwrap_or_default())
        .unwrap_or(now)
}

impl ScaleDecision {
    /// The decision, with the events and conditions of this release of KEDA.
    #[must_use]
    pub fn in_profile(self, profile: KedaProfile) -> Self {
        Self { profile, ..self }
    }

    /// Completes the decision with the result of the write; `None` if nothing was written.
    pub fn finish(self, scaled: Option<&ScaleResult>) -> ExecutorOutcome {
        let reports_failures = self.profile.behavior().operator.reports_failed_scale_writes;
        let mut outcome = ExecutorOutcome { changes: self.changes.clone(), events: Vec::new() };
        let (Some(ScaleChange { to, why }), Some(scaled)) = (self.scale, scaled) else { return outcome };
        let is_written = matches!(scaled, ScaleResult::Written { .. });
        if why == ScaleReason::Activate && is_written {
            outcome.changes.last_active_time = Some(whole_seconds(self.now));
        }
        if let Some(error) = scaled.error().filter(|_| reports_failures && !self.is_refused) {
            let conditions = &mut outcome.changes.conditions;
            conditions.retain(|condition| condition.type_ != types::READY);
            conditions.insert(0, conditions::not_scaled(why, error));
        }
        outcome.events.extend(self.event(to, why, scaled, reports_failures));
        outcome
    }

    fn event(&self, to: i32, why: ScaleReason, scaled: &ScaleResult, names_cause: bool) -> Option<Event> {
        let Self { target, cause, compat, .. } = self;
        let error = scaled.error();
        let from = match scaled {
            ScaleResult::NotRead(_) => -1,
            ScaleResult::NotWritten { from, .. } | ScaleResult::Written { from } => *from,
        };
        let because = match error {
            Some(error) if names_cause && compat.is_strict() => format!(": {error}"),
            error => conditions::because(error.unwrap_or_default(), *compat),
        };
        Some(match (why, error) {
            (ScaleReason::LiftToMinimum, _) => return None,
            (ScaleReason::Activate, None) => Event::normal(
                "KEDAScaleTargetActivated",
                format!("Scaled {target} from {from} to {to}, {cause}"),
            ),
            (ScaleReason::Activate, Some(_)) => Event::warning(
                "KEDAScaleTargetActivationFailed",
                format!("Failed to scale {target} from {from} to {to}{because}"),
            ),
            (ScaleReason::Deactivate, None) => Event::normal(
                "KEDAScaleTargetDeactivated",
                format!("Deactivated {target} from {from} to {to}"),
            ),
            (ScaleReason::Deactivate, Some(_)) => Event::warning(
                "KEDAScaleTargetDeactivationFailed",
                format!("Failed to deactivate {target} from {from} to {to}{because}"),
            ),
        })
    }
}
