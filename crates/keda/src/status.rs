//! Changes of a ScaledObject's status as small merge patches (docs/spec/keda.md 3.9).

use api::keda::{Condition, ScaledObjectStatus, TriggerActivity, TriggerHealth};
use api::map::Map;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Status changes of a poll or query. All other fields are left unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusChanges {
    /// Conditions, in the order in which they are set.
    pub conditions: Vec<Condition>,
    /// Time of the last activity, in whole seconds.
    pub last_active_time: Option<Timestamp>,
    /// Activity of all metrics; `None` leaves it unchanged.
    pub activity: Option<Map<TriggerActivity>>,
    /// Health of some metrics.
    pub health: Map<TriggerHealth>,
}

impl StatusChanges {
    /// Merges two changes; the later one wins.
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

    /// Whether applying the changes would change the status.
    pub fn would_change(&self, status: &ScaledObjectStatus) -> bool {
        let Self { conditions, last_active_time, activity, health } = self;
        conditions.iter().any(|new| status.conditions.get(&new.type_) != Some(new))
            || last_active_time.is_some() && *last_active_time != status.last_active_time
            || activity.as_ref().is_some_and(|activity| *activity != status.triggers_activity)
            || health.iter().any(|(name, health)| status.health.get(name) != Some(health))
    }

    /// Applies the changes.
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

/// Applies the changes to the newest known status and returns the merge patch of the status subresource;
/// `None` if nothing changed. The patch contains the whole array of conditions, so that one which was made from
/// an older status would overwrite newer conditions: the operator makes and sends patches while it holds the object's lock.
pub fn merge(status: &mut ScaledObjectStatus, changes: &StatusChanges) -> Option<Value> {
    let before = status.clone();
    changes.apply(status);
    difference(&before, status)
}

/// The merge patch between two statuses.
pub fn difference(before: &ScaledObjectStatus, after: &ScaledObjectStatus) -> Option<Value> {
    if before == after {
        return None;
    }
    // Equal fields, mostly the longest ones, are cleared before serialization.
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

/// The smallest JSON merge patch (RFC 7396) between two values; `None` if they are equal.
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
    fn merge_patch_contains_only_changes() {
        let before = json!({"a": {"x": 1, "y": 2}, "b": [1, 2], "c": true});
        let after = json!({"a": {"x": 1, "y": 3}, "b": [2], "d": {"z": 0}});
        let patch = json!({"a": {"y": 3}, "b": [2], "c": null, "d": {"z": 0}});
        assert_eq!(merge_patch(&before, &after), Some(patch));
        assert_eq!(merge_patch(&after, &after), None);
    }

    #[test]
    fn later_change_wins() {
        let ready = |reason| Condition::new("Ready", ConditionStatus::True, reason, "");
        let of = |reason| StatusChanges { conditions: vec![ready(reason)], ..StatusChanges::default() };
        assert_eq!(of("A").then(of("B")), of("B"));
    }

    #[test]
    fn would_change_agrees_with_merge() {
        let ready = |state| vec![Condition::new("Ready", state, "R", "m")];
        let health = |failures| {
            let health = TriggerHealth { number_of_failures: Some(failures), ..TriggerHealth::default() };
            Map::from_iter([("s0".to_owned(), health)])
        };
        let activity = |is_active| Map::from_iter([("s0".to_owned(), TriggerActivity { is_active })]);
        let time = |second| Timestamp::from_second(second).ok();
        let some = [
            StatusChanges::default(),
            StatusChanges { conditions: ready(ConditionStatus::True), ..StatusChanges::default() },
            StatusChanges { conditions: ready(ConditionStatus::False), ..StatusChanges::default() },
            StatusChanges { last_active_time: time(1), ..StatusChanges::default() },
            StatusChanges { last_active_time: time(2), ..StatusChanges::default() },
            StatusChanges { activity: Some(Map::default()), ..StatusChanges::default() },
            StatusChanges { activity: Some(activity(true)), ..StatusChanges::default() },
            StatusChanges { activity: Some(activity(false)), ..StatusChanges::default() },
            StatusChanges { health: health(0), ..StatusChanges::default() },
            StatusChanges { health: health(3), ..StatusChanges::default() },
        ];
        let (mut yes, mut no) = (0, 0);
        for (first, second, third) in triples(&some) {
            let mut status = ScaledObjectStatus::default();
            first.apply(&mut status);
            second.apply(&mut status);
            let changes = third.would_change(&status);
            assert_eq!(changes, merge(&mut status, third).is_some(), "{first:?}, {second:?}, then {third:?}");
            *(if changes { &mut yes } else { &mut no }) += 1;
        }
        assert!(yes > 100 && no > 100, "{yes} changed something, {no} did not");
    }

    fn triples(
        of: &[StatusChanges],
    ) -> impl Iterator<Item = (&StatusChanges, &StatusChanges, &StatusChanges)> {
        let pairs = of.iter().flat_map(|first| of.iter().map(move |second| (first, second)));
        pairs.flat_map(|(first, second)| of.iter().map(move |third| (first, second, third)))
    }
}
