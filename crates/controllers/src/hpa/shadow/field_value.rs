//! The value of a compared field, and when two values count as equal.
//!
//! Some reasons of `AbleToScale` report a write, not a decision, and shadow mode never writes:
//!
//! | theirs | ours | why they count as equal |
//! |---|---|---|
//! | `True SucceededRescale` | `True`, any reason | it wrote the count in its last reconcile; we never write, and at our next decision its count is the current one |
//! | `True`, any reason | `True SucceededRescale` | our decision starts from the status of its last reconcile |
//! | `False FailedUpdateScale` | `True`, and we would write too | its write failed; ours was not tried |
//!
//! Replica counts are always compared, so that no scaling difference is hidden.

use std::fmt;

use engine::report::condition;
use engine::{Condition, Decision, ScaleOutcome, Status};

/// The value of a field in a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldValue {
    /// `desiredReplicas`.
    Replicas(i32),
    /// Status and reason of a condition; empty if it is absent.
    Condition(String),
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas(count) => write!(f, "{count}"),
            Self::Condition(text) if text.is_empty() => f.write_str("not there"),
            Self::Condition(text) => f.write_str(text),
        }
    }
}

/// Their and our value of `field`, unless they count as equal.
pub(super) fn disagree(field: &str, theirs: &Status, ours: &Decision) -> Option<(FieldValue, FieldValue)> {
    if !condition_types().contains(&field) {
        let (theirs, ours) = (theirs.desired_replicas.get(), ours.status.desired_replicas.get());
        return (theirs != ours).then_some((FieldValue::Replicas(theirs), FieldValue::Replicas(ours)));
    }
    let (their, our) = (theirs.condition(field), ours.status.condition(field));
    let same = match (their, our) {
        (None, None) => true,
        (Some(their), Some(our)) => {
            (&their.status, &their.reason) == (&our.status, &our.reason) || is_timing(field, their, our, ours)
        }
        _ => false,
    };
    let words = |c: Option<&Condition>| {
        FieldValue::Condition(c.map(|c| format!("{} {}", c.status, c.reason)).unwrap_or_default())
    };
    (!same).then(|| (words(their), words(our)))
}

fn condition_types() -> [&'static str; 3] {
    [condition::ABLE_TO_SCALE, condition::SCALING_ACTIVE, condition::SCALING_LIMITED]
}

/// See the table above.
fn is_timing(field: &str, their: &Condition, our: &Condition, ours: &Decision) -> bool {
    let rescaled = |c: &Condition| c.reason == "SucceededRescale";
    let both_able = their.status == "True" && our.status == "True";
    let failed = their.reason == "FailedUpdateScale" && our.status == "True";
    field == condition::ABLE_TO_SCALE
        && ((both_able && (rescaled(their) || rescaled(our)))
            || (failed && matches!(ours.outcome, ScaleOutcome::DryRun | ScaleOutcome::Pending)))
}
