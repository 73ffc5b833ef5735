//! The time of last activity: remembered exactly, written to the status rarely.
//!
//! KEDA writes it in every poll in which a trigger is active; for most objects that is the only write of a poll. Here it is
//! written together with other changes, and alone only when the written time is old. A new leader does not know times that were
//! not written, so it assumes for an active object the latest time that may have been left out.

use std::sync::Arc;
use std::time::Duration;

use api::keda::{ConditionStatus, ScaledObject, types};
use jiff::{SignedDuration, Timestamp};
use keda::status::StatusChanges;

use crate::operator::scaled_resource::poll_interval;

/// Bounds of the age of the written time while an object is active. Within them it is the cooldown period, but at least one poll.
/// A new leader may delay a scale-down by that much, and never hastens it.
const MIN_WRITTEN_AGE: Duration = Duration::from_secs(30);
const MAX_WRITTEN_AGE: Duration = Duration::from_mins(5);

/// How old the written time may become while the object is active.
fn max_written_age(object: &ScaledObject) -> Duration {
    let cooldown = u64::try_from(object.spec.cooldown_period.unwrap_or(300)).unwrap_or(0);
    // Polls begin a little earlier or later than one interval after the last.
    let poll = poll_interval(object.spec.polling_interval).mul_f64(0.9);
    poll.max(Duration::from_secs(cooldown).clamp(MIN_WRITTEN_AGE, MAX_WRITTEN_AGE))
}

/// The object with the latest known time of last activity and its creation, both by the clock as it is now. A written time in the
/// future is left over from a clock that was set back, and does not count.
pub(crate) fn latest(
    remembered: Option<Timestamp>,
    created: Option<Timestamp>,
    object: &Arc<ScaledObject>,
    now: Timestamp,
) -> Arc<ScaledObject> {
    let written = object.status.last_active_time;
    // After the clock was set back, the creation may be in the future and says nothing about the remembered time.
    let is_comparable = created.is_none_or(|created| created <= now);
    let remembered = if is_comparable { since_creation(remembered, created) } else { remembered };
    let latest = match (remembered, written) {
        (Some(remembered), written) => Some(
            written.filter(|written| *written <= now).map_or(remembered, |written| written.max(remembered)),
        ),
        // This replica has not seen the object active, but the last leader may have, after its last write.
        (None, Some(written)) if object.status.conditions.state(types::ACTIVE) == ConditionStatus::True => {
            let age = SignedDuration::try_from(max_written_age(object)).unwrap_or_default();
            written.checked_add(age).ok().map(|latest| latest.min(now).max(written))
        }
        (None, written) => written,
    };
    if latest == written && created == object.metadata.creation_timestamp {
        return Arc::clone(object);
    }
    let mut object = (**object).clone();
    object.status.last_active_time = latest;
    object.metadata.creation_timestamp = created;
    Arc::new(object)
}

/// Remembers the time of last activity, and removes it from the changes if the written time is recent enough.
pub(crate) fn coalesce(
    remembered: &mut Option<Timestamp>,
    object: &ScaledObject,
    mut changes: StatusChanges,
) -> StatusChanges {
    if let Some(time) = changes.last_active_time {
        *remembered = Some(time);
    } else {
        // The time of last activity is written together with the end of activity.
        changes.last_active_time = since_creation(*remembered, object.metadata.creation_timestamp);
    }
    let (Some(time), Some(written)) = (changes.last_active_time, object.status.last_active_time) else {
        return changes;
    };
    let is_recent = time.duration_since(written).unsigned_abs() < max_written_age(object);
    let rest = StatusChanges { last_active_time: None, ..changes };
    if time < written || is_recent && !rest.would_change(&object.status) {
        return rest;
    }
    StatusChanges { last_active_time: Some(time), ..rest }
}

/// A remembered time, unless it belongs to an older object with the same name.
fn since_creation(remembered: Option<Timestamp>, created: Option<Timestamp>) -> Option<Timestamp> {
    remembered.filter(|time| created.is_none_or(|created| *time >= created))
}

#[cfg(test)]
mod tests {
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

    fn last_active(remembered: Option<Timestamp>, object: &Arc<ScaledObject>, now: i64) -> Option<Timestamp> {
        latest(remembered, object.metadata.creation_timestamp, object, at(now)).status.last_active_time
    }

    #[test]
    fn recent_activity_is_remembered_but_not_written() {
        let (mut remembered, object) = (None, object(ConditionStatus::True, 100));
        for time in [130, 160, 190, 399] {
            assert_eq!(coalesce(&mut remembered, &object, active(time)), StatusChanges::default());
            assert_eq!(last_active(remembered, &object, time), Some(at(time)));
        }
        assert_eq!(
            coalesce(&mut remembered, &object, active(400)),
            active(400),
            "the written time is one cooldown old"
        );
    }

    #[test]
    fn exact_time_is_written_together_with_other_changes() {
        let (mut remembered, object) = (None, object(ConditionStatus::True, 100));
        coalesce(&mut remembered, &object, active(130));
        let over = Condition::new(types::ACTIVE, ConditionStatus::False, "ScalerNotActive", "");
        let changes = StatusChanges { conditions: vec![over], ..StatusChanges::default() };
        let written = coalesce(&mut remembered, &object, changes.clone());
        assert_eq!(written, StatusChanges { last_active_time: Some(at(130)), ..changes });
    }

    #[test]
    fn new_leader_never_assumes_an_earlier_end_of_activity() {
        // The last leader wrote at 100 and left out later times up to 399.
        assert_eq!(last_active(None, &object(ConditionStatus::True, 100), 460), Some(at(400)));
        assert_eq!(
            last_active(None, &object(ConditionStatus::True, 100), 200),
            Some(at(200)),
            "not in the future"
        );
        assert_eq!(
            last_active(None, &object(ConditionStatus::False, 100), 260),
            Some(at(100)),
            "this time is exact"
        );
    }

    #[test]
    fn activity_of_an_older_object_with_the_same_name_does_not_count() {
        let mut remembered = Some(at(-5));
        assert_eq!(last_active(remembered, &object(ConditionStatus::False, 100), 260), Some(at(100)));
        let mut new = (*object(ConditionStatus::False, 100)).clone();
        new.status.last_active_time = None;
        assert_eq!(coalesce(&mut remembered, &new, StatusChanges::default()), StatusChanges::default());
    }

    #[test]
    fn written_time_in_the_future_does_not_count() {
        assert_eq!(last_active(Some(at(40)), &object(ConditionStatus::True, 3600), 50), Some(at(40)));
        // The clock was set back to before the creation.
        assert_eq!(last_active(Some(at(-60)), &object(ConditionStatus::True, 0), -50), Some(at(-60)));
    }

    #[test]
    fn creation_follows_a_clock_that_was_set() {
        let object = object(ConditionStatus::False, 100);
        let moved = latest(None, Some(at(3600)), &object, at(3700));
        assert_eq!(moved.metadata.creation_timestamp, Some(at(3600)));
        let unmoved = latest(None, Some(at(0)), &object, at(3700));
        assert!(Arc::ptr_eq(&unmoved, &object));
    }

    #[test]
    fn short_cooldown_does_not_write_in_every_poll() {
        let mut remembered = None;
        let mut object = (*object(ConditionStatus::True, 100)).clone();
        (object.spec.polling_interval, object.spec.cooldown_period) = (Some(5), Some(5));
        assert_eq!(coalesce(&mut remembered, &object, active(129)), StatusChanges::default());
        assert_eq!(
            last_active(remembered, &Arc::new(object.clone()), 129),
            Some(at(129)),
            "it is remembered"
        );
        assert_eq!(coalesce(&mut remembered, &object, active(130)), active(130));
    }

    #[test]
    fn long_interval_writes_in_every_poll() {
        let mut object = (*object(ConditionStatus::True, 0)).clone();
        object.spec.polling_interval = Some(600);
        assert_eq!(coalesce(&mut None, &object, active(599)), active(599));
    }
}
