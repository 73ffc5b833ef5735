//! 0 ↔ 1: what is written, told and remembered (docs/spec/keda.md 3.6, 3.7, 3.9).
//!
//! [`decide`] says what is to be done, somebody else writes the scale, [`Decision::finish`] says what is told of it, and
//! [`crate::status::merge`] what is written into the status.

mod conditions;
#[cfg(test)]
mod tests;

use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::keda::{Condition, ScaledObject, TriggerActivity};
use api::map::Map;
use api::provider::Compat;
use jiff::{SignedDuration, Timestamp};

use crate::activity::State;
use crate::event::Event;
use crate::status::Changes;

pub(crate) use conditions::because;

/// Why the count of a target is not known when it is not yet known what the target is.
pub const NO_TARGET: &str =
    "failed to get ScaledObject.Status.ScaleTargetGVKR, probably invalid ScaledObject cache";

/// What is known when it is decided.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The time.
    pub now: Timestamp,
    /// The object as it is stored.
    pub object: &'a ScaledObject,
    /// Whether its triggers are active.
    pub active: bool,
    /// That triggers failed, and why; the reason may be empty.
    pub error: Option<&'a str>,
    /// What is said to have caused an activation.
    pub active_triggers: &'a [String],
    /// The metrics that are active.
    pub active_metrics: &'a [String],
    /// The one metric whose source told of activity by itself.
    pub push_metric: Option<&'a str>,
    /// Replicas the target is to have, or why that is not known.
    pub current: Result<i32, String>,
    /// Conditions of the HPA named in the status; `None` if it cannot be seen.
    pub hpa: Option<&'a [HorizontalPodAutoscalerCondition]>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// How the count is changed.
    pub scale: Option<Change>,
    /// What is written whatever comes of it.
    pub changes: Changes,
    /// Why nothing could be decided.
    pub error: Option<String>,
    now: Timestamp,
    /// `apps/v1.Deployment shop/worker`.
    target: String,
    cause: String,
    compat: Compat,
}

/// A change of the count: GET scale, set `spec.replicas`, PUT, even if it is what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Replicas from now on.
    pub to: i32,
    /// Why.
    pub why: Why,
}

/// Why a count is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is something to do.
    Activate,
    /// There has been nothing to do for a while.
    Deactivate,
    /// Somebody else scaled below the minimum.
    LiftToMinimum,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scaled {
    /// The scale could not be read, and why.
    NotRead(String),
    /// It could not be written.
    NotWritten {
        /// Replicas it had.
        from: i32,
        /// Why.
        error: String,
    },
    /// It was written.
    Written {
        /// Replicas it had.
        from: i32,
    },
}

/// What is told and remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What is written into the status.
    pub changes: Changes,
    /// What is told.
    pub events: Vec<Event>,
}

impl<'a> Input<'a> {
    /// After a round over all triggers.
    pub fn of_round(now: Timestamp, object: &'a ScaledObject, state: &'a State) -> Self {
        Self {
            now,
            object,
            active: state.active,
            error: state.error.as_deref(),
            active_triggers: &state.active_triggers,
            active_metrics: &state.active_metrics,
            push_metric: None,
            current: Err(NO_TARGET.to_owned()),
            hpa: None,
        }
    }

    /// When a source tells of activity by itself; the metric is the only one of the slice.
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
            current: Err(NO_TARGET.to_owned()),
            hpa: None,
        }
    }

    /// With the target's count and the HPA's conditions.
    #[must_use]
    pub fn with(
        mut self,
        current: Result<i32, String>,
        hpa: Option<&'a [HorizontalPodAutoscalerCondition]>,
    ) -> Self {
        self.current = current;
        self.hpa = hpa;
        self
    }
}

/// What is to be done.
pub fn decide(input: &Input<'_>, compat: Compat) -> Decision {
    let object = input.object;
    let mut decision = Decision {
        scale: None,
        changes: Changes { activity: Some(activity(input)), ..Changes::default() },
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
        compat,
    };
    let current = match &input.current {
        Ok(current) => *current,
        Err(error) => {
            decision.error = Some(format!("error getting current replicas count for ScaleTarget: {error}"));
            decision.changes.conditions = vec![conditions::no_current(error)];
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
    // Ready is first what the reconcile said; a round does not know that what it refused is right by now (trap 32).
    if !compat.is_strict() && conditions::is_refused(&object.status.conditions) {
        conditions.retain(|condition| *condition != conditions::ready());
    }
    decision.changes.conditions = conditions;
    decision
}

/// Rows 2 to 4.
fn when_active(input: &Input<'_>, current: i32, decision: &mut Decision) -> Vec<Condition> {
    let object = input.object;
    let min = object.spec.min_replica_count.unwrap_or(0);
    let active = conditions::active(object.is_forced());
    let is_idle = object.spec.idle_replica_count.is_some() && current < min;
    if is_idle || current == 0 {
        if !object.is_scale_out_paused() {
            let to = if min > 0 { min } else { 1 };
            decision.scale = Some(Change { to, why: Why::Activate });
        }
        return vec![conditions::ready(), active];
    }
    let Some(error) = input.error else {
        decision.changes.last_active_time = Some(whole_seconds(input.now));
        return vec![conditions::ready(), active];
    };
    // What is active is active, whatever happens to others: else the cooldown is over as soon as it ends (trap 7).
    if !decision.compat.is_strict() {
        decision.changes.last_active_time = Some(whole_seconds(input.now));
    }
    vec![conditions::partly_ready(error, decision.compat), active]
}

/// Rows 5 to 9.
fn when_inactive(input: &Input<'_>, current: i32, decision: &mut Decision) -> Vec<Condition> {
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
        // A source that fails seldom says nothing about what there is to do: what falls back to nothing at all does so
        // when it falls back, not before (trap 4). And an idle count above the minimum, which is refused elsewhere, may
        // be above the count as well: that would be growing.
        let to = idle.unwrap_or(min);
        let is_forbidden = input.error.is_some() || (to > current && input.object.is_scale_out_paused());
        if decision.compat.is_strict() || !is_forbidden {
            decision.scale = Some(Change { to, why: Why::Deactivate });
        }
    } else if idle.is_none() && current < min {
        // The original lifts although scaling out is forbidden.
        if decision.compat.is_strict() || !input.object.is_scale_out_paused() {
            decision.scale = Some(Change { to: min, why: Why::LiftToMinimum });
        }
    }
    vec![conditions::ready(), not_active]
}

/// Whether it is too early to scale to zero; the very end of the period still belongs to it.
fn is_cooling_down(input: &Input<'_>) -> bool {
    let object = input.object;
    let (since, period) = match object.status.last_active_time {
        Some(time) => (Some(time), object.spec.cooldown_period.unwrap_or(300)),
        None => (object.metadata.creation_timestamp, object.spec.initial_cooldown_period.unwrap_or(0)),
    };
    since.is_some_and(|since| {
        since.checked_add(SignedDuration::from_secs(period.into())).map_or(true, |end| end >= input.now)
    })
}

/// Activity of all metrics: after a round of all that the HPA has, after a push of one more.
fn activity(input: &Input<'_>) -> Map<TriggerActivity> {
    let status = &input.object.status;
    if let Some(metric) = input.push_metric {
        let mut activity = status.triggers_activity.clone();
        activity.insert(metric.to_owned(), TriggerActivity { is_active: true });
        return activity;
    }
    let of = |name: &String| TriggerActivity { is_active: input.active_metrics.contains(name) };
    status.external_metric_names.iter().map(|name| (name.clone(), of(name))).collect()
}

/// Times in the status have no fractions.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_nanosecond().div_euclid(1_000_000_000).try_into().unwrap_or_default())
        .unwrap_or(now)
}

impl Decision {
    /// What is told and remembered when the change was tried; `None` if it was not, or there was none.
    pub fn finish(self, scaled: Option<&Scaled>) -> Outcome {
        let mut outcome = Outcome { changes: self.changes.clone(), events: Vec::new() };
        let (Some(Change { to, why }), Some(scaled)) = (self.scale, scaled) else { return outcome };
        let is_written = matches!(scaled, Scaled::Written { .. });
        if why == Why::Activate && is_written {
            outcome.changes.last_active_time = Some(whole_seconds(self.now));
        }
        outcome.events.extend(self.event(to, why, scaled));
        outcome
    }

    fn event(&self, to: i32, why: Why, scaled: &Scaled) -> Option<Event> {
        let Self { target, cause, compat, .. } = self;
        let (from, error) = match scaled {
            Scaled::NotRead(error) => (-1, Some(error)),
            Scaled::NotWritten { from, error } => (*from, Some(error)),
            Scaled::Written { from } => (*from, None),
        };
        let because = conditions::because(error.map_or("", String::as_str), *compat);
        Some(match (why, error) {
            (Why::LiftToMinimum, _) => return None,
            (Why::Activate, None) => Event::normal(
                "KEDAScaleTargetActivated",
                format!("Scaled {target} from {from} to {to}, {cause}"),
            ),
            (Why::Activate, Some(_)) => Event::warning(
                "KEDAScaleTargetActivationFailed",
                format!("Failed to scale {target} from {from} to {to}{because}"),
            ),
            (Why::Deactivate, None) => Event::normal(
                "KEDAScaleTargetDeactivated",
                format!("Deactivated {target} from {from} to {to}"),
            ),
            (Why::Deactivate, Some(_)) => Event::warning(
                "KEDAScaleTargetDeactivationFailed",
                format!("Failed to deactivate {target} from {from} to {to}{because}"),
            ),
        })
    }
}
