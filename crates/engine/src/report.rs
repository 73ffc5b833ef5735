//! Step 6: status, conditions and events with the texts of Kubernetes (docs/spec/hpa.md 3.9, 3.10).

use jiff::Timestamp;
use quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::CowStr;
use crate::units::Replicas;

/// Condition types.
pub mod condition {
    /// Whether the target's scale can be read and written.
    pub const ABLE_TO_SCALE: &str = "AbleToScale";
    /// Whether a replica count could be computed from metrics.
    pub const SCALING_ACTIVE: &str = "ScalingActive";
    /// Whether a limit changed the replica count.
    pub const SCALING_LIMITED: &str = "ScalingLimited";
    /// Whether this controller scaled the target to zero.
    pub const SCALED_TO_ZERO: &str = "ScaledToZero";
}

/// The status that is stored on the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// Replicas before this step's change.
    pub current_replicas: Replicas,
    /// Replicas after this step's change.
    pub desired_replicas: Replicas,
    /// Time of the last scale write.
    #[serde(serialize_with = "crate::nanoseconds::serialize")]
    pub last_scale_time: Option<Timestamp>,
    /// One entry per metric of the spec, `None` where the metric failed; absent if metrics were not evaluated.
    pub metrics: Option<Vec<Option<CurrentMetricValue>>>,
    /// Conditions in the order in which they first appeared.
    pub conditions: Vec<Condition>,
}

/// The current value of a metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CurrentMetricValue {
    /// Total value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// Average over pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// Average percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Condition type.
    #[serde(rename = "type")]
    pub kind: CowStr,
    /// `True`, `False` or `Unknown`.
    pub status: CowStr,
    /// When the status last changed.
    #[serde(serialize_with = "crate::nanoseconds::serialize")]
    pub since: Option<Timestamp>,
    /// Reason in CamelCase.
    pub reason: CowStr,
    /// Message for people.
    pub message: CowStr,
    /// The generation that another client stored; the controller keeps it and never sets it (docs/spec/hpa.md 11.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// One event on the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Normal or warning.
    pub kind: EventKind,
    /// Reason in CamelCase.
    pub reason: CowStr,
    /// Message for people.
    pub message: String,
}

/// Event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

impl Status {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }

    /// Whether the condition of this type is `True`.
    pub fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.status == "True")
    }

    /// Sets a condition in place. Its transition time changes only with its status (docs/spec/hpa.md 3.0).
    pub fn set(
        &mut self,
        now: Timestamp,
        kind: &'static str,
        status: bool,
        reason: impl Into<CowStr>,
        message: impl Into<CowStr>,
    ) {
        let status: CowStr = if status { "True".into() } else { "False".into() };
        let (reason, message) = (reason.into(), message.into());
        if let Some(found) = self.conditions.iter_mut().find(|c| c.kind == kind) {
            if found.status != status {
                found.since = Some(now);
                found.status = status;
            }
            found.reason = reason;
            found.message = message;
        } else {
            self.conditions.push(Condition {
                kind: kind.into(),
                status,
                since: Some(now),
                reason,
                message,
                observed_generation: None,
            });
        }
    }

    /// Removes a condition.
    pub fn unset(&mut self, kind: &str) {
        self.conditions.retain(|c| c.kind != kind);
    }
}

impl Event {
    /// An event of type `Warning`.
    pub fn warning(reason: impl Into<CowStr>, message: impl Into<String>) -> Self {
        Self { kind: EventKind::Warning, reason: reason.into(), message: message.into() }
    }

    /// An event of type `Normal`.
    pub fn normal(reason: impl Into<CowStr>, message: impl Into<String>) -> Self {
        Self { kind: EventKind::Normal, reason: reason.into(), message: message.into() }
    }
}
