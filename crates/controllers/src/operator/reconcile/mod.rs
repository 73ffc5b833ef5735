//! An object as it is meant: what it scales is there, its HPA is right, its conditions say so (docs/spec/keda.md 2, 5.1).
//!
//! ```text
//! object    ScaledObjects, step by step
//!   pause     those that shall do nothing
//!   target    what is scaled
//!   hpa       the HPA that is made
//!   end       what is left behind when it is deleted
//! job       ScaledJobs
//! users     who uses a TriggerAuthentication, as its status says
//! ```

mod end;
mod hpa;
mod job;
mod object;
mod pause;
mod target;
mod users;

use std::borrow::Cow;
use std::time::Duration;

pub(crate) use object::scaling_mode;
pub(crate) use users::authentication;

use api::meta::ObjectMeta;
use cluster::request::ApiError;
use keda::event::Event;

use super::context::OperatorContext;
use super::event_recorder::EventSubject;
use super::id::{Id, Kind};

/// First pause after a failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(50);
/// But not longer than this.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileOutcome {
    /// It is as it is meant, and is polled.
    Polled,
    /// It is as it is meant, and is not polled.
    Still,
    /// It is not.
    Failed,
    /// It is on its way out, or gone.
    Ended,
}

/// A step that failed: what it was for, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepFailure {
    pub(crate) step: Cow<'static, str>,
    pub(crate) cause: String,
}

impl StepFailure {
    pub(crate) fn new(step: impl Into<Cow<'static, str>>, cause: impl std::fmt::Display) -> Self {
        Self { step: step.into(), cause: cause.to_string() }
    }
}

/// Makes an object as it is meant.
pub(crate) async fn reconcile(context: &OperatorContext, id: &Id) -> ReconcileOutcome {
    match id.kind {
        Kind::Object => object::reconcile(context, id).await,
        Kind::Job => job::reconcile(context, id).await,
    }
}

/// What a write that failed means. One that lost a race is tried again, and nobody need know; what is gone is gone.
fn unwritten(
    context: &OperatorContext,
    subject: EventSubject,
    metadata: &ObjectMeta,
    error: &ApiError,
) -> ReconcileOutcome {
    if error.is_not_found() {
        return ReconcileOutcome::Ended;
    }
    if !error.is_conflict() {
        let reason = match subject {
            EventSubject::Job => "ScaledJobUpdateFailed",
            _ => "ScaledObjectUpdateFailed",
        };
        context.events.record_reconcile(subject, metadata, &Event::warning(reason, error.message.clone()));
    }
    ReconcileOutcome::Failed
}

/// After how long it is tried again.
pub(crate) fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(LONGEST_PAUSE)
}

/// Types of triggers, each once, with commas; and likewise the names of their authentications.
fn types(triggers: &[api::keda::Trigger]) -> (String, String) {
    let distinct = |names: &mut dyn Iterator<Item = &str>| {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        seen.join(",")
    };
    let types = distinct(&mut triggers.iter().map(|trigger| trigger.type_.as_str()));
    let named = triggers.iter().filter_map(|trigger| trigger.authentication_ref.as_ref());
    let names = distinct(&mut named.map(|reference| reference.name.as_str()).filter(|name| !name.is_empty()));
    (types, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_tried_again_ever_more_seldom() {
        assert_eq!(pause(1), Duration::from_millis(50));
        assert_eq!(pause(2), Duration::from_millis(100));
        assert_eq!(pause(40), LONGEST_PAUSE);
    }
}
