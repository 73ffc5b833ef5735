//! What the triggers of an object that is scaled by events said, beside the decision that followed from it. It is kept
//! for people: nothing is decided by it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// One look at all triggers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerPoll {
    /// What each trigger said, in the order of the object. After a push, only the one that told of it.
    pub triggers: Vec<PolledTrigger>,
    /// The formula that makes one number of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaResult>,
    /// How long after the last activity there is rest, where there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Cooldown>,
    /// The HPA that decides between the bounds; without one the decision is about all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa: Option<String>,
    /// A source told of activity by itself, between two looks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pushed: bool,
}

/// What one trigger said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolledTrigger {
    /// The name the user gave it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which scaler.
    #[serde(rename = "type")]
    pub type_: String,
    /// What its values count, as people say it: `messages`; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Above what it is active, in thousandths, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<i64>,
    /// Its metrics; none for cpu and memory, which others measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<TriggerMetric>,
    /// Why its metrics are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What was heard of one metric. Values are in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerMetric {
    /// Its name, as the HPA knows it.
    pub metric: String,
    /// Its value; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// What it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<i64>,
    /// Whether that is meant for each replica.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// Whether there is something to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// So many replicas stand in for it, since it fails too often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<i32>,
}

/// A formula and what came of it. Values are in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormulaResult {
    /// As the user wrote it; may be empty, where only targets are set.
    pub text: String,
    /// Its value, or why there is none.
    pub value: Result<i64, String>,
    /// What it should be, as the user wrote it.
    pub target: String,
    /// Above what it is active, as the user wrote it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub activation: String,
    /// Whether there is something to do.
    pub active: bool,
}

/// How long there is no rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cooldown {
    /// So long after the last activity.
    pub period: SignedDuration,
    /// When that was; before the first, when the object was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Cooldown {
    /// When it is over.
    pub fn end(&self) -> Option<Timestamp> {
        Some(self.since?.checked_add(self.period).unwrap_or(Timestamp::MAX))
    }
}

impl TriggerPoll {
    /// What people call a metric: the name of its trigger, or the type, where that is enough to tell it from others.
    pub fn label(&self, metric: &str) -> Option<String> {
        let owner = self.triggers.iter().find(|one| one.metrics.iter().any(|own| own.metric == metric))?;
        let label = owner.label();
        let is_same = |one: &&PolledTrigger| one.label() == label;
        let is_clear = owner.metrics.len() == 1 && self.triggers.iter().filter(is_same).count() == 1;
        is_clear.then(|| label.to_owned())
    }
}

impl PolledTrigger {
    /// Its name, or its type.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.type_ } else { &self.name }
    }
}
