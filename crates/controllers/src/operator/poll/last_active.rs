//! When an object was last active: remembered exactly, written now and then.
//!
//! The original writes it in every round in which something is active, which for most objects is all that a round writes.
//! Here it is written along with whatever else is written, and alone only when what stands there is old. Whoever takes over
//! does not know what was not written: an object that was active is taken to have been so for as long as it may have been.

use std::sync::Arc;
use std::time::Duration;

use api::keda::{ConditionStatus, ScaledObject, types};
use jiff::{SignedDuration, Timestamp};
use keda::status::StatusChanges;

use crate::operator::context::ObjectEntry;
use crate::operator::scalers_cache::interval;

/// What is written is no older than the cooldown while something is active (or one poll), within these bounds. Whoever takes
/// over may wait longer by that much, and never less.
const OLDEST: [Duration; 2] = [Duration::from_secs(30), Duration::from_mins(5)];

/// SampleQuery old what is written may be while something is active.
fn oldest(object: &ScaledObject) -> Duration {
    let cooldown = u64::try_from(object.spec.cooldown_period.unwrap_or(300)).unwrap_or(0);
    // A poll begins a little earlier or later than the last one did.
    let poll = interval(object.spec.polling_interval).mul_f64(0.9);
    let [least, most] = OLDEST;
    poll.max(Duration::from_secs(cooldown).clamp(least, most))
}

/// The object, with the time at which it was last active as far as anybody knows.
pub(super) fn known(entry: &ObjectEntry, object: &Arc<ScaledObject>, now: Timestamp) -> Arc<ScaledObject> {
    let written = object.status.last_active_time;
    let made = object.metadata.creation_timestamp;
    let remembered = entry.state().last_active.filter(|time| made.is_none_or(|made| *time >= made));
    let known = match (remembered, written) {
        (Some(remembered), written) => Some(written.map_or(remembered, |written| written.max(remembered))),
        // Nobody here has seen it active, but somebody may have, after what was written.
        (None, Some(written)) if object.status.conditions.state(types::ACTIVE) == ConditionStatus::True => {
            let oldest = SignedDuration::try_from(oldest(object)).unwrap_or_default();
            written.checked_add(oldest).ok().map(|latest| latest.min(now).max(written))
        }
        (None, written) => written,
    };
    if known == written {
        return Arc::clone(object);
    }
    let mut object = (**object).clone();
    object.status.last_active_time = known;
    Arc::new(object)
}

/// ObjectState that an object was active, and leaves that out of what is written if it need not be.
pub(super) fn leave_out(
    entry: &ObjectEntry,
    object: &ScaledObject,
    mut changes: StatusChanges,
) -> StatusChanges {
    let mut object_state = entry.state();
    if let Some(time) = changes.last_active_time {
        object_state.last_active = Some(time);
    } else {
        // Along with the end of activity its time is written, unless it was that of an older object of this name.
        let made = object.metadata.creation_timestamp;
        changes.last_active_time =
            object_state.last_active.filter(|time| made.is_none_or(|made| *time >= made));
    }
    drop(object_state);
    let (Some(time), Some(written)) = (changes.last_active_time, object.status.last_active_time) else {
        return changes;
    };
    let is_recent = time.duration_since(written).unsigned_abs() < oldest(object);
    let rest = StatusChanges { last_active_time: None, ..changes };
    if time < written || is_recent && !rest.change(&object.status) {
        return rest;
    }
    StatusChanges { last_active_time: Some(time), ..rest }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use api::keda::{Condition, Conditions};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn object(active: ConditionStatus, written: i64) -> Arc<ScaledObject> {
        let mut object = ScaledObject::default();
        object.metadata.creation_timestamp = Some(at(0));
        object.status.last_active_time = Some(at(written));
        object.status.conditions = Conditions::initial();
        object.status.conditions.set(Condition::new(types::ACTIVE, active, "", ""));
        Arc::new(object)
    }

    fn active(time: i64) -> StatusChanges {
        StatusChanges { last_active_time: Some(at(time)), ..StatusChanges::default() }
    }

    fn since(entry: &ObjectEntry, object: &Arc<ScaledObject>, now: i64) -> Option<Timestamp> {
        known(entry, object, at(now)).status.last_active_time
    }

    #[test]
    fn what_is_only_a_little_later_is_remembered_but_not_written() {
        let (entry, object) = (ObjectEntry::default(), object(ConditionStatus::True, 100));
        for time in [130, 160, 190, 399] {
            assert_eq!(leave_out(&entry, &object, active(time)), StatusChanges::default());
            assert_eq!(since(&entry, &object, time), Some(at(time)));
        }
        assert_eq!(leave_out(&entry, &object, active(400)), active(400), "the cooldown has passed");
    }

    #[test]
    fn along_with_anything_else_it_is_written_exactly() {
        let (entry, object) = (ObjectEntry::default(), object(ConditionStatus::True, 100));
        leave_out(&entry, &object, active(130));
        let over = Condition::new(types::ACTIVE, ConditionStatus::False, "ScalerNotActive", "");
        let changes = StatusChanges { conditions: vec![over], ..StatusChanges::default() };
        let written = leave_out(&entry, &object, changes.clone());
        assert_eq!(written, StatusChanges { last_active_time: Some(at(130)), ..changes });
    }

    #[test]
    fn who_takes_over_never_thinks_that_activity_ended_earlier_than_it_did() {
        // The one before wrote at 100 and was content with that until 399.
        assert_eq!(since(&ObjectEntry::default(), &object(ConditionStatus::True, 100), 460), Some(at(400)));
        assert_eq!(
            since(&ObjectEntry::default(), &object(ConditionStatus::True, 100), 200),
            Some(at(200)),
            "but not in the future"
        );
        assert_eq!(
            since(&ObjectEntry::default(), &object(ConditionStatus::False, 100), 260),
            Some(at(100)),
            "this was exact"
        );
    }

    #[test]
    fn what_is_remembered_of_an_older_object_of_that_name_does_not_count() {
        let entry = ObjectEntry::default();
        entry.state().last_active = Some(at(-5));
        assert_eq!(since(&entry, &object(ConditionStatus::False, 100), 260), Some(at(100)));
        let mut new = (*object(ConditionStatus::False, 100)).clone();
        new.status.last_active_time = None;
        assert_eq!(leave_out(&entry, &new, StatusChanges::default()), StatusChanges::default());
    }

    #[test]
    fn with_short_cooldowns_not_every_poll_writes() {
        let entry = ObjectEntry::default();
        let mut object = (*object(ConditionStatus::True, 100)).clone();
        (object.spec.polling_interval, object.spec.cooldown_period) = (Some(5), Some(5));
        assert_eq!(leave_out(&entry, &object, active(129)), StatusChanges::default());
        assert_eq!(since(&entry, &Arc::new(object.clone()), 129), Some(at(129)), "though it is known");
        assert_eq!(leave_out(&entry, &object, active(130)), active(130));
    }

    #[test]
    fn with_long_intervals_every_poll_writes() {
        let entry = ObjectEntry::default();
        let mut object = (*object(ConditionStatus::True, 0)).clone();
        object.spec.polling_interval = Some(600);
        assert_eq!(leave_out(&entry, &object, active(599)), active(599));
    }
}
