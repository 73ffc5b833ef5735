//! Conditions of a ScaledObject with KEDA's exact texts, on which users alert (docs/spec/keda.md 2.8, 3.7).

use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::keda::{Condition, ConditionStatus, Conditions, types};
use api::provider::Compat;

use super::ScaleReason;

/// Maximum length of a cause in a condition, in characters.
const MAX_CAUSE_CHARS: usize = 256;

pub(super) fn ready() -> Condition {
    let message = "ScaledObject is defined correctly and is ready for scaling";
    Condition::new(types::READY, ConditionStatus::True, "ScaledObjectReady", message)
}

pub(super) fn partly_ready(cause: &str, compat: Compat) -> Condition {
    let message = "Some triggers defined in ScaledObject are not working correctly";
    let message = format!("{message}{}", because(cause, compat));
    Condition::new(types::READY, ConditionStatus::Unknown, "PartialTriggerError", message)
}

pub(super) fn not_ready(cause: &str, compat: Compat) -> Condition {
    let message = "Triggers defined in ScaledObject are not working correctly";
    let message = format!("{message}{}", because(cause, compat));
    Condition::new(types::READY, ConditionStatus::False, "TriggerError", message)
}

pub(super) fn no_current(error: &str) -> Condition {
    let message = format!("Error getting current replicas count for ScaleTarget: {error}");
    Condition::new(types::READY, ConditionStatus::False, "ErrorGettingCurrentReplicas", message)
}

/// The scale was not written, as KEDA reports it since 2.21.
pub(super) fn not_scaled(why: ScaleReason, error: &str) -> Condition {
    let attempt = match why {
        ScaleReason::Activate => "activating ScaleTarget",
        ScaleReason::Deactivate => "deactivating ScaleTarget",
        ScaleReason::LiftToMinimum => "setting ScaleTarget replicas count to ScaledObject minReplicaCount",
    };
    let message = format!("error {attempt}: {error}");
    Condition::new(types::READY, ConditionStatus::False, "ErrorScalingTarget", message)
}

pub(super) fn active(is_forced: bool) -> Condition {
    let cause = if is_forced { "activation is being forced by annotation" } else { "triggers are active" };
    let message = format!("Scaling is performed because {cause}");
    Condition::new(types::ACTIVE, ConditionStatus::True, "ScalerActive", message)
}

pub(super) fn not_active() -> Condition {
    let message = "Scaling is not performed because triggers are not active";
    Condition::new(types::ACTIVE, ConditionStatus::False, "ScalerNotActive", message)
}

pub(super) fn cooling_down() -> Condition {
    let message = "Scaler cooling down because triggers are not active";
    Condition::new(types::ACTIVE, ConditionStatus::False, "ScalerCooldown", message)
}

pub(super) fn paused() -> Condition {
    Condition::new(types::PAUSED, ConditionStatus::True, "ScaledObjectPaused", "ScaledObject is paused")
}

/// The condition of the HPA, if it is known. `ScalingDisabled` (target at zero) is not an error.
pub(super) fn hpa(conditions: &[HorizontalPodAutoscalerCondition]) -> Option<Condition> {
    let own = conditions.iter().find(|condition| condition.type_ == "ScalingActive")?;
    Some(match (own.status.as_str(), own.reason.as_str()) {
        ("True", _) => {
            Condition::new(types::HPA_ACTIVE, ConditionStatus::True, "HPAActive", "HPA is actively scaling")
        }
        (_, reason @ "ScalingDisabled") => {
            Condition::new(types::HPA_ACTIVE, ConditionStatus::True, reason, own.message.as_str())
        }
        (_, reason) => {
            let reason = if reason.is_empty() { "HPAMetricsUnavailable" } else { reason };
            let message = format!("HPA is not actively scaling: {}", own.message);
            Condition::new(types::HPA_ACTIVE, ConditionStatus::False, reason, message)
        }
    })
}

/// Whether the last reconcile refused the object.
pub(super) fn is_refused(conditions: &Conditions) -> bool {
    conditions.get(types::READY).is_some_and(|ready| {
        ready.status == ConditionStatus::False && ready.reason == "ScaledObjectCheckFailed"
    })
}

/// The cause of a failure as a suffix of KEDA's text; empty in strict mode.
pub(crate) fn because(cause: &str, compat: Compat) -> String {
    if compat.is_strict() || cause.is_empty() {
        return String::new();
    }
    let end = cause.char_indices().nth(MAX_CAUSE_CHARS).map(|(end, _)| end);
    match end.and_then(|end| cause.get(..end)) {
        Some(start) => format!(": {start}…"),
        None => format!(": {cause}"),
    }
}
