//! What is written into the status of a ScaledObject: many writers, one small patch (docs/spec/keda.md 3.9).

use api::keda::{Condition, ScaledObjectStatus, TriggerActivity, TriggerHealth};
use api::map::Map;
use jiff::Timestamp;
use serde_json::{Value, json};

/// What a round or a query changes. Everything that is not named stays as it is, whoever wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Conditions, in the order in which they are set.
    pub conditions: Vec<Condition>,
    /// When something was last active, in whole seconds.
    pub last_active_time: Option<Timestamp>,
    /// Activity of all metrics; `None` leaves it alone.
    pub activity: Option<Map<TriggerActivity>>,
    /// Health of some metrics.
    pub health: Map<TriggerHealth>,
}

impl Changes {
    /// Both; of two that contradict each other, the later is right.
    #[must_use]
    pub fn then(mut self, later: Self) -> Self {
        for condition in later.conditions {
            match self.conditions.iter_mut().find(|own| own.type_ == condition.type_) {
                Some(own) => *own = condition,
                None => self.conditions.push(condition),
            }
        }
        self.last_active_time = later.last_active_time.or(self.last_active_time);
        self.activity = later.activity.or(self.activity);
        self.health.extend(later.health);
        self
    }

    /// Whether they change anything, without making them.
    pub fn change(&self, status: &ScaledObjectStatus) -> bool {
        let Self { conditions, last_active_time, activity, health } = self;
        conditions.iter().any(|new| status.conditions.get(&new.type_) != Some(new))
            || last_active_time.is_some() && *last_active_time != status.last_active_time
            || activity.as_ref().is_some_and(|activity| *activity != status.triggers_activity)
            || health.iter().any(|(name, health)| status.health.get(name) != Some(health))
    }

    /// Makes the changes.
    pub fn apply(&self, status: &mut ScaledObjectStatus) {
        for condition in &self.conditions {
            status.conditions.set(condition.clone());
        }
        if let Some(time) = self.last_active_time {
            status.last_active_time = Some(time);
        }
        if let Some(activity) = &self.activity {
            status.triggers_activity.clone_from(activity);
        }
        status.health.extend(self.health.iter().map(|(name, health)| (name.clone(), health.clone())));
    }
}

/// Makes the changes in the newest status that is known, and says which merge patch of the status subresource tells it
/// to others; `None` if nothing changed. The array of conditions stands in it as a whole: whoever sends it should state
/// the resource version it was made for, and try again with a newer one.
pub fn merge(status: &mut ScaledObjectStatus, changes: &Changes) -> Option<Value> {
    let before = status.clone();
    changes.apply(status);
    difference(&before, status)
}

/// The merge patch that makes one status of another.
pub fn difference(before: &ScaledObjectStatus, after: &ScaledObjectStatus) -> Option<Value> {
    if before == after {
        return None;
    }
    // What is the same in both, mostly the longest parts, need not be written out to be compared.
    let (mut before, mut after) = (before.clone(), after.clone());
    macro_rules! leave_out {
        ($($field:ident),*) => {
            $(if before.$field == after.$field {
                before.$field = Default::default();
                after.$field = Default::default();
            })*
        };
    }
    leave_out!(
        scale_target_kind,
        scale_target_gvkr,
        external_metric_names,
        conditions,
        health,
        triggers_activity
    );
    let (before, after) = (serde_json::to_value(before).ok()?, serde_json::to_value(after).ok()?);
    let patch = merge_patch(&before, &after)?;
    Some(json!({"status": patch}))
}

/// The smallest JSON merge patch (RFC 7396) that makes one value of another; `None` if they are equal.
pub fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = serde_json::Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        let changed = match old.get(name) {
            Some(own) => merge_patch(own, value),
            None => Some(value.clone()),
        };
        if let Some(changed) = changed {
            patch.insert(name.clone(), changed);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use api::keda::ConditionStatus;

    use super::*;

    #[test]
    fn a_patch_names_only_what_changed() {
        let before = json!({"a": {"x": 1, "y": 2}, "b": [1, 2], "c": true});
        let after = json!({"a": {"x": 1, "y": 3}, "b": [2], "d": {"z": 0}});
        let patch = json!({"a": {"y": 3}, "b": [2], "c": null, "d": {"z": 0}});
        assert_eq!(merge_patch(&before, &after), Some(patch));
        assert_eq!(merge_patch(&after, &after), None);
    }

    #[test]
    fn the_later_of_two_changes_is_right() {
        let ready = |reason| Condition::new("Ready", ConditionStatus::True, reason, "");
        let of = |reason| Changes { conditions: vec![ready(reason)], ..Changes::default() };
        assert_eq!(of("A").then(of("B")), of("B"));
    }

    #[test]
    fn changes_change_something_exactly_if_a_patch_says_so() {
        let ready = |state| vec![Condition::new("Ready", state, "R", "m")];
        let health = |failures| {
            let health = TriggerHealth { number_of_failures: Some(failures), ..TriggerHealth::default() };
            Map::from_iter([("s0".to_owned(), health)])
        };
        let activity = |is_active| Map::from_iter([("s0".to_owned(), TriggerActivity { is_active })]);
        let time = |second| Timestamp::from_second(second).ok();
        let some = [
            Changes::default(),
            Changes { conditions: ready(ConditionStatus::True), ..Changes::default() },
            Changes { conditions: ready(ConditionStatus::False), ..Changes::default() },
            Changes { last_active_time: time(1), ..Changes::default() },
            Changes { last_active_time: time(2), ..Changes::default() },
            Changes { activity: Some(Map::default()), ..Changes::default() },
            Changes { activity: Some(activity(true)), ..Changes::default() },
            Changes { activity: Some(activity(false)), ..Changes::default() },
            Changes { health: health(0), ..Changes::default() },
            Changes { health: health(3), ..Changes::default() },
        ];
        let (mut yes, mut no) = (0, 0);
        for (first, second, third) in triples(&some) {
            let mut status = ScaledObjectStatus::default();
            first.apply(&mut status);
            second.apply(&mut status);
            let changes = third.change(&status);
            assert_eq!(changes, merge(&mut status, third).is_some(), "{first:?}, {second:?}, then {third:?}");
            *(if changes { &mut yes } else { &mut no }) += 1;
        }
        assert!(yes > 100 && no > 100, "{yes} changed something, {no} did not");
    }

    fn triples(of: &[Changes]) -> impl Iterator<Item = (&Changes, &Changes, &Changes)> {
        let pairs = of.iter().flat_map(|first| of.iter().map(move |second| (first, second)));
        pairs.flat_map(|(first, second)| of.iter().map(move |third| (first, second, third)))
    }
}
