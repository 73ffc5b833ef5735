//! Updating conditions: an unchanged condition keeps its times, a changed one moves to the end.

use jiff::Timestamp;

use super::objects::Condition;

/// A condition without times.
pub(crate) fn new(kind: &str, status: &str, reason: &str, message: impl Into<String>) -> Condition {
    Condition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        ..Condition::default()
    }
}

pub(crate) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == kind)
}

/// Whether the condition is true.
pub(crate) fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Sets a condition, unless one with this status and reason exists. The transition time stays if the status stays.
pub(crate) fn set(conditions: &mut Vec<Condition>, condition: Condition) {
    let same = find(conditions, &condition.r#type)
        .is_some_and(|old| old.status == condition.status && old.reason == condition.reason);
    if !same {
        replace(conditions, condition);
    }
}

/// Replaces a condition. The transition time stays if the status stays.
pub(crate) fn replace(conditions: &mut Vec<Condition>, mut condition: Condition) {
    if let Some(old) = find(conditions, &condition.r#type)
        && old.status == condition.status
    {
        condition.last_transition_time = old.last_transition_time.or(condition.last_transition_time);
    }
    conditions.retain(|old| old.r#type != condition.r#type);
    conditions.push(condition);
}

/// Times in objects are whole seconds.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
