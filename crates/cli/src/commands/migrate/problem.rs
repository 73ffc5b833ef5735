//! A problem of a switch.

use serde::Serialize;

use super::Peer;

/// Something that would not be as before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MigrationProblem {
    pub(super) impact: SwitchImpact,
    pub(super) from: Peer,
    /// The object that it concerns.
    pub(super) object: String,
    /// The field, flag or rule.
    pub(super) field: String,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// What a problem means for a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SwitchImpact {
    /// It would not work after the switch.
    Breaks,
    /// It would work in another way.
    Differs,
}
