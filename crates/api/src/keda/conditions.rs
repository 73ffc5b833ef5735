//! Conditions: a list with one entry per type.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::nullable;

/// Types of conditions.
pub mod types {
    /// Defined correctly, and the triggers work.
    pub const READY: &str = "Ready";
    /// Triggers are active.
    pub const ACTIVE: &str = "Active";
    /// The fallback of a trigger is in use.
    pub const FALLBACK: &str = "Fallback";
    /// The object is paused.
    pub const PAUSED: &str = "Paused";
    /// The conditions of the HPA.
    pub const HPA_ACTIVE: &str = "HPAActive";
}

/// Status of a condition. Any other text is read as `Unknown`, so that it does not make an object unreadable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`.
    #[default]
    Unknown,
}

impl<'de> Deserialize<'de> for ConditionStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(match text.as_deref() {
            Some("True") => Self::True,
            Some("False") => Self::False,
            _ => Self::Unknown,
        })
    }
}

/// One condition. KEDA's conditions have no time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Type.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// Status.
    pub status: ConditionStatus,
    /// Reason in CamelCase.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Message for people.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(type_: &str, status: ConditionStatus, reason: &str, message: impl Into<String>) -> Self {
        Self { type_: type_.to_owned(), status, reason: reason.to_owned(), message: message.into() }
    }
}

/// Conditions in the order in which they first appeared. The list is shared, since most objects have equal conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions(Arc<[Condition]>);

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|all: Vec<Condition>| Self(all.into()))
    }
}

impl Conditions {
    /// All conditions.
    pub fn iter(&self) -> std::slice::Iter<'_, Condition> {
        self.0.iter()
    }

    /// Number of conditions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both share one allocation.
    pub fn are_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Removes the condition of a type.
    pub fn remove(&mut self, type_: &str) {
        if self.get(type_).is_some() {
            self.0 = self.iter().filter(|own| own.type_ != type_).cloned().collect();
        }
    }

    /// The initial conditions.
    pub fn initial() -> Self {
        let unknown = |type_: &str| Condition::new(type_, ConditionStatus::Unknown, "", "");
        let paused = Condition::new(types::PAUSED, ConditionStatus::False, "", "");
        Self([unknown(types::READY), unknown(types::ACTIVE), unknown(types::FALLBACK), paused].into())
    }

    /// Whether the four mandatory conditions exist.
    pub fn are_complete(&self) -> bool {
        [types::READY, types::ACTIVE, types::FALLBACK, types::PAUSED]
            .iter()
            .all(|type_| self.get(type_).is_some())
    }

    /// The condition of a type.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.type_ == type_)
    }

    /// Status of a condition; `Unknown` if it does not exist.
    pub fn state(&self, type_: &str) -> ConditionStatus {
        self.get(type_).map_or(ConditionStatus::Unknown, |condition| condition.status)
    }

    /// Replaces the condition of the same type, or adds it.
    pub fn set(&mut self, condition: Condition) {
        match self.0.iter().position(|own| own.type_ == condition.type_) {
            Some(place) if self.0.get(place) == Some(&condition) => {}
            Some(place) => {
                if let Some(own) = Arc::make_mut(&mut self.0).get_mut(place) {
                    *own = condition;
                }
            }
            None => self.0 = self.iter().cloned().chain([condition]).collect(),
        }
    }
}
