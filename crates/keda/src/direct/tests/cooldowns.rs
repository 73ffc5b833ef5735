//! "cooldown until T" holds: the count stays up to T, and changes right after it.

use api::provider::Compat;
use engine::ActivationVerdict;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{NOW, input, object};
use crate::direct::activation;
use crate::executor::{ExecutorInput, ScaleReason, decide};

proptest! {
    #[test]
    fn cooldown_ends_at_the_recorded_time(
        min in 0..5, idle in prop::option::of(0..5), current in 0..9, quiet in 0_i64..1000,
        period in prop::option::of(0..600), strict in any::<bool>(),
    ) {
        let compat = if strict { Compat::Strict } else { Compat::Better };
        let mut object = object(min, idle);
        object.spec.cooldown_period = period;
        object.status.last_active_time = Some(NOW - SignedDuration::from_secs(quiet));
        let inactive = input(&object, &[], None).with(Ok(current), None);
        let verdict = activation(&inactive, &decide(&inactive, compat), current).verdict;
        let ActivationVerdict::Cooling { until } = verdict else { return Ok(()) };
        let at = |now: Timestamp| {
            let change = decide(&ExecutorInput { now, ..inactive.clone() }, compat).scale;
            change.map(|change| (change.to, change.why))
        };
        prop_assert_eq!(at(until), None);
        let rest = idle.unwrap_or(min);
        prop_assert_eq!(at(until + SignedDuration::from_nanos(1)), Some((rest, ScaleReason::Deactivate)));
    }
}
