//! `decisions.plimsoll.dev/v1alpha1`: decisions and shadow-mode differences of the controller. The operator, another
//! process, serves its decisions in the same form as `operator.plimsoll.dev/v1alpha1`.
//!
//! ```text
//! /apis/decisions.plimsoll.dev/v1alpha1/decisions                               the latest of every autoscaler
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/decisions               … of a namespace
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/decisions/{kind}.{name} all recorded decisions of one, oldest first
//!                                                            ?watch=true        … and later ones, one line each
//!                                                            ?at=TIME           the pass in force then; the oldest kept one if that is not kept
//!                                                            ?since=TIME&until=TIME  every pass of that time
//! /apis/decisions.plimsoll.dev/v1alpha1/passes                                  every pass in short, see [`passes`]
//! /apis/decisions.plimsoll.dev/v1alpha1/differences                             differences that shadow mode found
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/differences             … in a namespace
//! ```

pub mod passes;

use engine::explain::{Explanation, explain, explain_trigger_poll, sentence_with_triggers};
use engine::{Decision, Spec, TriggerPoll};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The group.
pub const GROUP: &str = "decisions.plimsoll.dev";
/// The version.
pub const VERSION: &str = "v1alpha1";
/// Group and version.
pub const API_VERSION: &str = "decisions.plimsoll.dev/v1alpha1";

/// The group of the operator's decisions.
pub const OPERATOR_GROUP: &str = "operator.plimsoll.dev";
/// Group and version of the operator's decisions.
pub const OPERATOR_API_VERSION: &str = "operator.plimsoll.dev/v1alpha1";

/// The annotation of an HPA or Autoscaler with a mode of its own: `active`, `shadow`, `dry-run` or `off`.
pub const MODE_ANNOTATION: &str = "plimsoll.dev/mode";

/// Names a record: `hpa.web` in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionMeta {
    /// Kind (in short), a dot, name: `hpa.web`.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// A decision, possibly repeated several times without change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `Decision`.
    pub kind: String,
    /// Name of the record.
    pub metadata: DecisionMeta,
    /// Mode of the controller for this object.
    pub mode: DecisionMode,
    /// Time of the first decision.
    pub first: Timestamp,
    /// Time of the last decision.
    pub last: Timestamp,
    /// Number of consecutive equal decisions.
    pub times: u64,
    /// Time between two decisions.
    pub period: SignedDuration,
    /// Spec of the autoscaler.
    pub spec: Spec,
    /// The last decision.
    pub decision: Decision,
    /// Result of polling the triggers, for ScaledObjects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<TriggerPoll>,
}

impl DecisionRecord {
    /// Explains the decision in one line.
    pub fn sentence(&self) -> String {
        sentence_with_triggers(&self.spec, &self.decision, self.round.as_ref())
    }

    /// Explains the decision. `kind` is the short kind of the object (`hpa`).
    pub fn explain(&self, kind: &str) -> Explanation {
        match &self.round {
            Some(round) => explain_trigger_poll(kind, &self.spec, &self.decision, round, self.period),
            None => explain(kind, &self.spec, &self.decision, self.period),
        }
    }
}

/// Mode of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionMode {
    /// Carries out decisions.
    #[default]
    Active,
    /// Compares decisions with those of the active controller.
    Shadow,
    /// Only records decisions.
    DryRun,
    /// Makes no decisions.
    Off,
}

/// A difference between shadow mode and the active controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceRecord {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `Difference`.
    pub kind: String,
    /// Name of the record.
    pub metadata: DecisionMeta,
    /// Start.
    pub since: Timestamp,
    /// Time of the last comparison that found it.
    pub last: Timestamp,
    /// Whether it is over.
    pub over: bool,
    /// Field that differs: `desiredReplicas`, `AbleToScale`, `ScalingActive`, `ScalingLimited`.
    pub field: String,
    /// Value of the active controller.
    pub theirs: String,
    /// Value of shadow mode.
    pub ours: String,
    /// Reason in one sentence.
    pub why: String,
}

/// Result of shadow mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DifferenceList {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `DifferenceList`.
    pub kind: String,
    /// Number of autoscalers in shadow mode.
    pub autoscalers: u64,
    /// Number of compared decisions.
    pub compared: u64,
    /// Number of differences that were gone when the decision was made again with the readings of the active controller.
    pub timing: u64,
    /// Start of the comparison.
    pub since: Option<Timestamp>,
    /// Current and past differences of logic, newest first.
    pub items: Vec<DifferenceRecord>,
}

/// A list of decisions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionList {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `DecisionList`.
    pub kind: String,
    /// The decisions.
    pub items: Vec<DecisionRecord>,
}
