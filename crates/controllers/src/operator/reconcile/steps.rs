//! Steps that several reconciles share.

use api::keda::ScaledObject;
use cluster::request::ApiError;
use keda::executor::ScaleResult;

use crate::operator::apply::{Applied, Applier, ScaleOutcome};
use crate::operator::decide::conditions::polls_stopped;
use crate::operator::decide::hpa;
use crate::operator::effect::{Effect, ScaleEffect};
use crate::operator::id::NamespacedName;
use crate::operator::object_state::{ObjectEntry, ObservedMetrics, PolledMetrics};
use crate::operator::resolve::target;

/// Resolves the target; a failure may have an event of its own.
pub(super) async fn resolve_target(
    applier: Applier<'_>,
    object: &ScaledObject,
) -> Result<target::ResolvedTarget, target::TargetFailure> {
    let resolved = target::resolve(applier.context, object).await;
    if let Err(target::TargetFailure { event: Some(event), .. }) = &resolved {
        applier.log_failed_status(applier.apply(Effect::ReconcileEvent(event.clone())).await);
    }
    resolved
}

/// Drops the scalers and the metrics that they read, and ends polls; an event follows if the object was polled.
pub(super) async fn stop_polls(applier: Applier<'_>, entry: &ObjectEntry) {
    entry.drop_scalers();
    let was_polled = {
        let mut state = entry.state();
        (state.observed, state.records) = (ObservedMetrics::default(), PolledMetrics::default());
        std::mem::take(&mut state.polled)
    };
    if was_polled {
        applier.log_failed_status(applier.apply(polls_stopped()).await);
    }
}

/// Writes a replica count, whatever the count is.
pub(super) async fn scale(applier: Applier<'_>, effect: ScaleEffect) -> ScaleResult {
    match applier.apply(Effect::Scale(effect)).await {
        Ok(Applied::Scaled(ScaleOutcome::Tried(scaled))) => scaled,
        Ok(Applied::Scaled(ScaleOutcome::Moved { to })) => {
            ScaleResult::NotWritten { from: to, error: format!("the count is {to}") }
        }
        Ok(_) => ScaleResult::NotRead("no replica count was written".to_owned()),
        Err(error) => ScaleResult::NotRead(error.message),
    }
}

/// Deletes the HPA of an object, if it has one and owns it.
pub(super) async fn delete_hpa(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &ScaledObject,
) -> Result<(), ApiError> {
    let name = hpa::name(object);
    let full = NamespacedName::new(&object.metadata.namespace, &name);
    let (is_known, owner) = {
        let store = applier.context.store();
        let found = store.hpas.get(&full);
        (found.is_some(), found.and_then(|hpa| hpa.owner.clone()))
    };
    // An HPA that was never adopted belongs to another owner. One that the watch has not delivered yet may be ours.
    if is_known && owner.as_ref() != Some(applier.id) {
        return Ok(());
    }
    // The HPA may have been created a moment ago, even if the status does not name it.
    let is_created = entry.state().hpa.is_some();
    if is_known || is_created || !object.status.hpa_name.is_empty() {
        applier.apply(Effect::DeleteHpa(name)).await?;
    }
    entry.state().hpa = None;
    Ok(())
}
