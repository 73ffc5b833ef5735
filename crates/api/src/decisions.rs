//! `decisions.plimsoll.dev/v1alpha1`: decisions and differences as the controller serves them. The operator, another
//! process, serves its own in the same form as `operator.plimsoll.dev/v1alpha1`.
//!
//! ```text
//! /apis/decisions.plimsoll.dev/v1alpha1/decisions                               the latest of every autoscaler
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/decisions               … of a namespace
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/decisions/{kind}.{name} all that are kept of one, oldest first
//!                                                            ?watch=true        … and those that follow, a line each
//! /apis/decisions.plimsoll.dev/v1alpha1/differences                             what shadow mode found
//! /apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/differences             … in a namespace
//! ```

use engine::explain::{Explanation, explain, explain_round, sentence_of};
use engine::{Decision, Spec, TriggerPoll};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The group.
pub const GROUP: &str = "decisions.plimsoll.dev";
/// The version.
pub const VERSION: &str = "v1alpha1";
/// Group and version.
pub const API_VERSION: &str = "decisions.plimsoll.dev/v1alpha1";

/// The group of what the operator has decided.
pub const OPERATOR_GROUP: &str = "operator.plimsoll.dev";
/// That group and its version.
pub const OPERATOR_API_VERSION: &str = "operator.plimsoll.dev/v1alpha1";

/// Names a record: `hpa.web` in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionMeta {
    /// Kind (in short), a dot, name: `hpa.web`.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// A decision that was made once or, with nothing changing, several times in a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `Decision`.
    pub kind: String,
    /// Whose decision.
    pub metadata: DecisionMeta,
    /// What the controller does with decisions on this object.
    pub mode: DecisionMode,
    /// When it was first made.
    pub first: Timestamp,
    /// When it was last made.
    pub last: Timestamp,
    /// How many times in a row.
    pub times: u64,
    /// Time between two decisions.
    pub period: SignedDuration,
    /// What was asked for.
    pub spec: Spec,
    /// The decision as it was last made.
    pub decision: Decision,
    /// What triggers said before it, where the target is scaled by events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<TriggerPoll>,
}

impl DecisionRecord {
    /// Why the count is what it is, in one line.
    pub fn sentence(&self) -> String {
        sentence_of(&self.spec, &self.decision, self.round.as_ref())
    }

    /// The decision in words. `kind` is how users name the object (`hpa`).
    pub fn explain(&self, kind: &str) -> Explanation {
        match &self.round {
            Some(round) => explain_round(kind, &self.spec, &self.decision, round, self.period),
            None => explain(kind, &self.spec, &self.decision, self.period),
        }
    }
}

/// What the controller does with decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionMode {
    /// Acts on them.
    #[default]
    Active,
    /// Compares them with those of the controller that acts.
    Shadow,
    /// Only records them.
    DryRun,
    /// Makes none.
    Off,
}

/// Where shadow mode and the controller that acts did not agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceRecord {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `Difference`.
    pub kind: String,
    /// Whose.
    pub metadata: DecisionMeta,
    /// Since when.
    pub since: Timestamp,
    /// When it was last seen.
    pub last: Timestamp,
    /// Whether it is over.
    pub over: bool,
    /// What differs: `desiredReplicas`, `AbleToScale`, `ScalingActive`, `ScalingLimited`.
    pub field: String,
    /// What the controller that acts says.
    pub theirs: String,
    /// What we would say.
    pub ours: String,
    /// Why, in one sentence.
    pub why: String,
}

/// What shadow mode has looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DifferenceList {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `DifferenceList`.
    pub kind: String,
    /// Autoscalers looked at in shadow mode.
    pub autoscalers: u64,
    /// Decisions compared.
    pub compared: u64,
    /// Since when.
    pub since: Option<Timestamp>,
    /// What differs or differed, newest first.
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
