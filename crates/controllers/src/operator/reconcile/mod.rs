//! Reconciles ScaledObjects and ScaledJobs: resolve, validate, decide, apply, status (docs/spec/keda.md 2, 5.1).
//!
//! ```text
//! object                ScaledObjects
//!   hpa                   creates, updates or deletes the HPA
//!   pause                 paused ScaledObjects
//! job                   ScaledJobs
//! finalize              deleted objects
//! steps                 steps that several of them share
//! authentication_users  the users of a TriggerAuthentication, in its status
//! ```

mod authentication_users;
mod finalize;
mod hpa;
mod job;
mod object;
mod pause;
mod steps;

pub(crate) use authentication_users::reconcile_authentication;

use api::diagnosis::poll_causes;
use cluster::request::ApiError;
use engine::TriggerPoll;
use keda::event::Event;

use super::apply::Applier;
use super::context::OperatorContext;
use super::decide::conditions::ReconcileOutcome;
use super::effect::Effect;
use super::id::{ResourceId, ResourceKind};
use super::record;

/// Reconciles one ScaledObject or ScaledJob.
pub(crate) async fn reconcile(context: &OperatorContext, id: &ResourceId) -> ReconcileOutcome {
    // The trace of a failed reconcile must not begin with an earlier poll.
    context.entry(id).state().poll_began = None;
    match id.kind {
        ResourceKind::Object => object::reconcile(context, id).await,
        ResourceKind::Job => job::reconcile(context, id).await,
    }
}

/// The outcome after a failed write. A conflict is retried without an event; an object that is gone is deleted.
async fn write_failed(applier: Applier<'_>, error: ApiError) -> ReconcileOutcome {
    if error.is_not_found() {
        return ReconcileOutcome::Deleted;
    }
    if !error.is_conflict() {
        let reason = match applier.id.kind {
            ResourceKind::Job => "ScaledJobUpdateFailed",
            ResourceKind::Object => "ScaledObjectUpdateFailed",
        };
        let reconcile = record::refused(applier.id.to_string(), &error);
        let causes = poll_causes(&TriggerPoll { reconcile, ..TriggerPoll::default() });
        let event = Effect::ReconcileEvent(Event::warning(reason, error.message)).because(&causes);
        applier.log_failed_status(applier.apply(event).await);
    }
    ReconcileOutcome::Failed
}
