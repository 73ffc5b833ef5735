//! Polls: query the triggers of an object, decide and apply (docs/spec/keda.md 3.2, 3.8, 5.3, 5.4).
//!
//! ```text
//! object   one poll of a ScaledObject
//! direct   the same without an HPA
//! job      one poll of a ScaledJob
//! scale    activation, deactivation and the replica count
//! push     a trigger that reports activity by itself
//! ```

mod direct;
mod job;
mod object;
mod push;
mod scale;

use std::time::Duration;

pub(crate) use push::act_on_push;

use super::context::OperatorContext;
use super::id::{ResourceId, ResourceKind};

/// A sample that an HPA has requested within this time is used by a poll too.
pub(crate) const SHARED_SAMPLE_MAX_AGE: Duration = Duration::from_secs(1);

/// What a poll has found out about the object itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PollOutcome {
    /// The HPA lacks metrics of the triggers, so the object is to be reconciled.
    pub(crate) hpa_is_stale: bool,
    /// The object has become active.
    pub(crate) activated: bool,
}

/// Polls an object.
pub(crate) async fn poll(context: &OperatorContext, id: &ResourceId) -> PollOutcome {
    let woken = context.known_entry(id).map(|entry| std::mem::take(&mut entry.state().woken));
    let age = match woken {
        Some(woken) if !woken.is_empty() => object::SampleAge::Woken(woken),
        _ => object::SampleAge::Shared,
    };
    match id.kind {
        ResourceKind::Object => object::poll_object(context, id, age).await,
        ResourceKind::Job => {
            job::poll_job(context, id, age).await;
            PollOutcome::default()
        }
    }
}
