//! Events and status after a poll (docs/spec/keda.md 5.4).

use api::keda::{
    Condition, ConditionStatus, KedaProfile, ScaledJob, ScaledJobStatus, TriggerActivity, types,
};
use api::provider::Compat;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{JobPoll, generate_name};
use crate::OperationError;
use crate::event::Event;
use crate::executor::because;
use crate::status::merge_patch;

/// Events and status changes.
#[derive(Clone, Debug, PartialEq)]
pub struct JobReport {
    /// Events, in order.
    pub events: Vec<Event>,
    /// The new status.
    pub status: ScaledJobStatus,
    /// The merge patch of the status subresource; none if nothing changed.
    pub patch: Option<Value>,
}

/// Events and status after a poll with these results of job creations.
pub fn report(
    object: &ScaledJob,
    round: &JobPoll,
    created: &[Result<(), OperationError>],
    now: Timestamp,
    compat: Compat,
    profile: KedaProfile,
) -> JobReport {
    let reports_failures = profile.behavior().operator.reports_failed_job_creation;
    let active = round.queue.active;
    let mut status = object.status.clone();
    let mut events: Vec<Event> =
        round.errors.iter().map(|error| Event::warning("KEDAScalerFailed", error.clone())).collect();
    events.extend(creation(object, created, reports_failures));
    let not_created = not_created(created).filter(|_| reports_failures);
    let (ready, activity) = (not_created.unwrap_or_else(|| ready(round, compat)), activity(active));
    let was = status.conditions.state(types::ACTIVE) == ConditionStatus::True;
    if was != active {
        let reason = if active { "ScaledJobActive" } else { "ScaledJobInactive" };
        events.push(Event::normal(reason, activity.message.clone()));
    }
    status.conditions.set(ready);
    status.conditions.set(activity);
    if active {
        status.last_active_time = Some(whole_second(now));
    }
    let found = round.activity.iter();
    status.triggers_activity =
        found.map(|(name, active)| (name.clone(), TriggerActivity { is_active: *active })).collect();
    let patch = difference(&object.status, &status);
    JobReport { events, status, patch }
}

/// Events of job creations; in KEDA 2.20 the count includes failed ones.
fn creation(
    object: &ScaledJob,
    created: &[Result<(), OperationError>],
    counts_only_created: bool,
) -> Vec<Event> {
    let name = generate_name(object);
    let failed = created.iter().filter_map(|result| result.as_ref().err());
    let mut events: Vec<Event> = failed
        .map(|error| Event::warning("KEDAJobCreateFailed", format!("Failed to create job {name}: {error}")))
        .collect();
    let count = created.iter().filter(|result| !counts_only_created || result.is_ok()).count();
    if count > 0 {
        events.push(Event::normal("KEDAJobsCreated", format!("Created {count} jobs")));
    }
    events
}

/// The condition after failed creations, with all causes.
fn not_created(created: &[Result<(), OperationError>]) -> Option<Condition> {
    let causes: Vec<&str> =
        created.iter().filter_map(|result| result.as_ref().err()).map(OperationError::as_str).collect();
    let condition =
        || Condition::new(types::READY, ConditionStatus::False, "KEDAJobCreateFailed", causes.join("\n"));
    (!causes.is_empty()).then(condition)
}

fn ready(round: &JobPoll, compat: Compat) -> Condition {
    let (status, reason, message) = match (round.errors.is_empty(), round.queue.active) {
        (true, _) => (
            ConditionStatus::True,
            "ScaledJobReady",
            "ScaledJob is defined correctly and is ready for scaling",
        ),
        (false, true) => (
            ConditionStatus::Unknown,
            "PartialTriggerError",
            "Some triggers defined in ScaledJob are not working correctly",
        ),
        (false, false) => (
            ConditionStatus::False,
            "TriggerError",
            "Triggers defined in ScaledJob are not working correctly",
        ),
    };
    let because = because(round.cause.as_deref().unwrap_or_default(), compat);
    Condition::new(types::READY, status, reason, format!("{message}{because}"))
}

fn activity(active: bool) -> Condition {
    if active {
        let message = "Scaling is performed because triggers are active";
        Condition::new(types::ACTIVE, ConditionStatus::True, "ScalerActive", message)
    } else {
        let message = "Scaling is not performed because triggers are not active";
        Condition::new(types::ACTIVE, ConditionStatus::False, "ScalerNotActive", message)
    }
}

/// Times in the status are whole seconds.
fn whole_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

fn difference(before: &ScaledJobStatus, after: &ScaledJobStatus) -> Option<Value> {
    if before == after {
        return None;
    }
    let (before, after) = (serde_json::to_value(before).ok()?, serde_json::to_value(after).ok()?);
    Some(json!({"status": merge_patch(&before, &after)?}))
}
