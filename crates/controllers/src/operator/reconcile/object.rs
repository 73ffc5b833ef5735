//! Reconciles a ScaledObject (docs/spec/keda.md 2.2, 2.3). The status is written in one patch at the end.

use api::keda::ScaledObject;
use cluster::request::ApiError;
use engine::TriggerPoll;
use keda::status;

use super::steps::resolve_target;
use super::{authentication_users, finalize, hpa, pause, write_failed};
use crate::operator::apply::Applier;
use crate::operator::context::OperatorContext;
use crate::operator::decide::conditions::{
    ReconcileOutcome, Reconciled, adoption, complete, conclude_object, summarize,
};
use crate::operator::effect::Effect;
use crate::operator::id::{ResourceId, ResourceKind};
use crate::operator::object_state::ObjectEntry;
use crate::operator::record;
use crate::operator::resolve::target;
use crate::operator::scaled_resource::ScaledResource;
use crate::operator::validate::{self, ReconcileStep, StepFailure};

pub(super) async fn reconcile(context: &OperatorContext, id: &ResourceId) -> ReconcileOutcome {
    let entry = context.entry(id);
    let _lock = entry.decision_lock.lock().await;
    let Some(object) = context.store().object(id) else { return ReconcileOutcome::Deleted };
    if object.metadata.deletion_timestamp.is_some() {
        return finalize::object(context, id, &object).await;
    }
    if let Some(patch) = adoption(ResourceKind::Object, &object.metadata) {
        let applier = Applier { context, id, metadata: &object.metadata };
        if let Err(error) = applier.apply(Effect::PatchObject(patch)).await {
            record_refusal(applier, &entry, &object, &error).await;
            return write_failed(applier, error).await;
        }
    }
    // The object as that write has left it.
    let Some(object) = context.store().object(id) else { return ReconcileOutcome::Deleted };
    let applier = Applier { context, id, metadata: &object.metadata };
    let mut new = (*object).clone();
    complete(&mut new.status.conditions);
    let result = steps(applier, &entry, &mut new).await;
    if let Err(failure) = &result {
        tracing::warn!(
            namespace = &*id.namespace, name = id.record_name(), error = %failure,
            "failed to reconcile a ScaledObject"
        );
        record_failure(applier, &entry, &new, failure).await;
    }
    {
        let failure = result.as_ref().err();
        let mut state = entry.state();
        state.target_missing = failure.is_some_and(|failure| failure.step == ReconcileStep::ScaleTarget);
        state.reconcile_failure = failure.and_then(StepFailure::reconcile_failure).map(Box::new);
    }
    let causes = result.as_ref().err().map(StepFailure::causes).unwrap_or_default();
    let (outcome, effects) = conclude_object(&object, &mut new, result, context.settings.compat);
    let patch = status::difference(&object.status, &new.status).map(Effect::PatchStatus);
    let effects = effects.into_iter().map(|effect| effect.because(&causes));
    if let Err(error) = applier.apply_all(effects.chain(patch).collect()).await {
        record_refusal(applier, &entry, &object, &error).await;
        return write_failed(applier, error).await;
    }
    let before = object.status.authentications_types.clone().unwrap_or_default();
    authentication_users::add(context, &ScaledResource::Object(object.clone()), &before).await;
    outcome
}

/// The steps of docs/spec/keda.md 2.3: the first failure ends them.
async fn steps(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
) -> Result<Reconciled, StepFailure> {
    if object.is_paused() {
        pause::pause(applier, entry, object).await?;
        return Ok(Reconciled::Paused);
    }
    pause::update_partial_pause(applier, object).await;
    validate::target_name(object).map_err(StepFailure::of_spec)?;
    let target = resolve_target(applier, object).await.map_err(|failure| {
        let causes = record::keep_unresolved(applier.context, applier.id, object, &failure.read);
        ReconcileStep::ScaleTarget.failed(failure).recorded_with(causes)
    })?;
    target.write_to(object);
    validate::object(object).map_err(StepFailure::of_spec)?;
    let (types, names) = summarize(&object.spec.triggers);
    (object.status.triggers_types, object.status.authentications_types) = (Some(types), Some(names));
    let broken_trigger = hpa::ensure(applier, entry, object).await?;
    Ok(Reconciled::Ready { broken_trigger })
}

/// Records why a reconcile failed. The polls of an object that is polled already record it too, except without a target, where
/// they are skipped, and in strict mode, where they may end before.
async fn record_failure(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &ScaledObject,
    failure: &StepFailure,
) {
    let is_recorded_by_polls = entry.state().polled
        && failure.step != ReconcileStep::ScaleTarget
        && !applier.context.settings.compat.is_strict();
    if let Some(round) = failure.record.as_deref().filter(|_| !is_recorded_by_polls) {
        let (context, id) = (applier.context, applier.id);
        let interval = record::retry_interval(context, id);
        record::keep_unpolled(context, id, interval, object, round.clone()).await;
    }
}

/// Records that a write of the object itself was refused.
async fn record_refusal(applier: Applier<'_>, entry: &ObjectEntry, object: &ScaledObject, error: &ApiError) {
    if error.is_not_found() {
        return;
    }
    let Some(failure) = record::refused(applier.id.to_string(), error) else { return };
    entry.state().reconcile_failure = Some(Box::new(failure.clone()));
    if entry.state().polled {
        return;
    }
    // The target of a new object is not in its status yet.
    let mut object = object.clone();
    match target::resolve(applier.context, &object).await {
        Ok(target) => target.write_to(&mut object),
        Err(failure) => {
            record::keep_unresolved(applier.context, applier.id, &object, &failure.read);
            return;
        }
    }
    let round = TriggerPoll { reconcile: Some(failure), ..TriggerPoll::default() };
    let interval = record::retry_interval(applier.context, applier.id);
    record::keep_unpolled(applier.context, applier.id, interval, &object, round).await;
}
