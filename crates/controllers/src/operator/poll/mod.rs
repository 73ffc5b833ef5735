//! What sources say, and what follows from it (docs/spec/keda.md 3.2, 3.8, 5.3, 5.4).

mod job;
mod last_active;
mod object;
mod push;

use std::time::Duration;

pub(crate) use object::{after_query, decide_and_write, report};
pub(crate) use push::pushed;

use super::context::OperatorContext;
use super::id::{Id, Kind};

/// A sample that an HPA asked for so recently does for a poll too.
const SHARED: Duration = Duration::from_secs(1);

/// What a poll found out about the object itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PollOutcome {
    /// Its metrics are not those its HPA has: it should be reconciled.
    pub(crate) is_stale: bool,
    /// It is active, and was not.
    pub(crate) woke: bool,
}

/// Polls an object.
pub(crate) async fn poll(context: &OperatorContext, id: &Id) -> PollOutcome {
    match id.kind {
        Kind::Object => object::poll(context, id).await,
        Kind::Job => job::poll(context, id).await,
    }
}
