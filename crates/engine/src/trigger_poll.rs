//! The result of polling the triggers of a ScaledObject or ScaledJob. It is recorded together with the decision to explain it;
//! nothing is decided by it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::RecordedError;
use crate::failure::TriggerFailure;
use crate::units::{MilliValue, Replicas};

/// The result of polling all triggers of an object once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerPoll {
    /// Result of each trigger, in the order of the object. After a push, only the trigger that pushed.
    pub triggers: Vec<PolledTrigger>,
    /// Result of the `scalingModifiers` formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaResult>,
    /// The cooldown, for objects that scale to zero or to an idle count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Cooldown>,
    /// Name of the HPA that decides between the bounds; absent if the operator decides itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa: Option<String>,
    /// Whether an external-push scaler reported activity between two polls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pushed: bool,
    /// The jobs of a ScaledJob; absent for a ScaledObject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobCounts>,
    /// Why the last reconcile of the object failed, other than by a trigger. Triggers may not have been polled because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<ReconcileFailure>,
}

/// Why an object could not be reconciled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReconcileFailure {
    /// The spec is invalid; holds the error text.
    #[error("the spec is invalid: {0}")]
    InvalidSpec(String),
    /// The API server did not carry out a request of the operator.
    #[error("the operator cannot manage {object}: {error}")]
    Request {
        /// The object of the request, such as `HPA keda-hpa-web`.
        object: String,
        /// The response.
        error: RecordedError,
    },
}

/// The queue and the jobs of a ScaledJob in one poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobCounts {
    /// Whether a trigger is active, or jobs always run (`minReplicaCount`).
    pub active: bool,
    /// Length of the queue of all triggers.
    pub queue: i64,
    /// Number of jobs for that queue, at most the maximum.
    pub max_scale: i64,
    /// Scaling strategy; empty is `default`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// Jobs that had not finished, pending ones included.
    pub running: i64,
    /// Jobs whose pods had not started.
    pub pending: i64,
    /// Jobs that were to be created.
    pub wanted: i64,
    /// Jobs that were created.
    pub created: i64,
    /// Error text if not all of them were created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The result of polling one trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolledTrigger {
    /// Name from the object; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Scaler type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Unit of the values, such as `messages`; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Activation threshold, if the trigger has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<MilliValue>,
    /// Metrics of the trigger; empty for cpu and memory, which the HPA reads from the resource metrics API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<TriggerMetric>,
    /// Error text if the trigger could not be polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Class of that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<TriggerFailure>,
}

/// One metric of a trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerMetric {
    /// Metric name as in the HPA.
    pub metric: String,
    /// Value; absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<MilliValue>,
    /// Target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<MilliValue>,
    /// Whether the target is per replica (`AverageValue`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// Whether the value is above the activation threshold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
    /// Error text if the value could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Class of that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<TriggerFailure>,
    /// Fallback replicas that are used because the metric failed too often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Replicas>,
    /// When and how the value was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<SampleRead>,
}

/// When and how a value was read from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SampleRead {
    /// Time of the response.
    pub at: Timestamp,
    /// How long the query took.
    pub took: SignedDuration,
    /// Whether the response to an earlier query was used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// A formula and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormulaResult {
    /// Text of the formula; may be empty if only a target is set.
    pub text: String,
    /// Value, or the error.
    pub value: Result<MilliValue, RecordedError>,
    /// Target as written in the object.
    pub target: String,
    /// Activation threshold as written in the object; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub activation: String,
    /// Whether the value is above the activation threshold.
    pub active: bool,
}

/// The cooldown of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cooldown {
    /// `cooldownPeriod`.
    pub period: SignedDuration,
    /// Time of the last activity; before the first activity, creation of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Cooldown {
    /// End of the cooldown.
    pub fn end(&self) -> Option<Timestamp> {
        Some(self.since?.checked_add(self.period).unwrap_or(Timestamp::MAX))
    }
}

impl TriggerPoll {
    /// Label of a metric: name or type of its trigger, if that identifies it.
    pub fn label(&self, metric: &str) -> Option<String> {
        let owner = self.triggers.iter().find(|one| one.metrics.iter().any(|own| own.metric == metric))?;
        let label = owner.label();
        let is_same = |one: &&PolledTrigger| one.label() == label;
        let is_clear = owner.metrics.len() == 1 && self.triggers.iter().filter(is_same).count() == 1;
        is_clear.then(|| label.to_owned())
    }
}

impl PolledTrigger {
    /// The trigger's name, or its type.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.type_ } else { &self.name }
    }
}
