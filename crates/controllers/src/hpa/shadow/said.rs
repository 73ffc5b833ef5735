//! What a status says of a field, and when two of them say the same.
//!
//! Some words of `AbleToScale` tell what was done, not what was decided, and who only looks does nothing:
//!
//! | theirs | ours | why it is the same |
//! |---|---|---|
//! | `True SucceededRescale` | `True`, any reason | it wrote the count in its last pass; we never write, and at our next decision its count is the current one |
//! | `True`, any reason | `True SucceededRescale` | left over in the status from its pass, ours begins with it |
//! | `False FailedUpdateScale` | `True`, and we would write too | its write failed; ours was not tried |
//!
//! The counts are compared all the same, so nothing that matters hides behind these.

use std::fmt;

use engine::report::condition;
use engine::{Condition, Decision, ScaleOutcome, Status};

/// What a status says of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// `desiredReplicas`.
    Replicas(i32),
    /// Status and reason of a condition; empty if it is not there.
    Condition(String),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas(count) => write!(f, "{count}"),
            Self::Condition(text) if text.is_empty() => f.write_str("not there"),
            Self::Condition(text) => f.write_str(text),
        }
    }
}

/// What each says of `field`, unless it is the same: theirs, ours.
pub(super) fn disagree(field: &str, theirs: &Status, ours: &Decision) -> Option<(Said, Said)> {
    if !condition_types().contains(&field) {
        let (theirs, ours) = (theirs.desired_replicas, ours.status.desired_replicas);
        return (theirs != ours).then_some((Said::Replicas(theirs), Said::Replicas(ours)));
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
        Said::Condition(c.map(|c| format!("{} {}", c.status, c.reason)).unwrap_or_default())
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
