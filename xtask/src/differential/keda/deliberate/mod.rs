//! Deliberate differences: where Plimsoll is better, and where it cannot be the same.
//!
//! ```text
//! case    a field that differs, and everything that can be seen around it
//! both    what differs with `--compat strict` too
//! better  what differs without it
//! ```
//!
//! An entry names the fields it is about and what must hold in both views. None of them is about a number of replicas, an
//! HPA or Jobs but those in whose reason it stands.

mod better;
mod both;
mod case;
#[cfg(test)]
mod tests;

pub(crate) use case::Case;

use super::env::ComparedOperator;

/// A kind of difference, with its reason; docs/compatibility.md lists the same.
pub(crate) struct Deliberate {
    /// Which of ours differs so.
    pub(crate) who: Applies,
    /// Whether every whole run meets it.
    pub(crate) often: bool,
    pub(crate) why: &'static str,
    /// Whether a difference is of this kind.
    is_it: fn(&Case<'_>) -> bool,
}

/// Which of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applies {
    /// With `--compat better` alone.
    Better,
    /// Always.
    Both,
}

/// Burst of Plimsoll's event recorder per object.
pub(crate) const EVENT_BURST: u64 = 25;

/// The list. An entry that a whole run does not need fails the run, unless it is about something that happens seldom.
pub(crate) fn all() -> impl Iterator<Item = &'static Deliberate> {
    both::LIST.iter().chain(better::LIST)
}

/// The entry of the list that explains a difference.
pub(crate) fn explains(case: &Case<'_>) -> Option<usize> {
    let applies = |who: Applies| who == Applies::Both || case.operator == ComparedOperator::Better;
    all().position(|entry| applies(entry.who) && (entry.is_it)(case))
}
