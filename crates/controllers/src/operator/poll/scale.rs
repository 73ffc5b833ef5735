//! The decision about activity, and the replica count that follows from it (docs/spec/keda.md 3.6, 3.9).

use api::keda::ScaledObject;
use keda::OperationError;
use keda::executor::{self, ExecutorInput};
use keda::status::StatusChanges;

use crate::operator::apply::{Applied, Applier, ScaleOutcome};
use crate::operator::decide::object::{conclude, scale_effect};
use crate::operator::effect::Effect;
use crate::operator::id::NamespacedName;
use crate::operator::record;

/// Decisions that are made in one poll when the replica count keeps changing in between.
pub(super) const MAX_SCALE_ATTEMPTS: u32 = 3;

/// Decides whether the target is activated or deactivated, writes its replica count, records events and the status
/// (docs/spec/keda.md 3.6, 3.9). The caller holds the object's lock.
pub(super) async fn decide_and_scale(
    applier: Applier<'_>,
    object: &ScaledObject,
    input: ExecutorInput<'_>,
    changes: StatusChanges,
    record: engine::TriggerPoll,
) {
    let (context, id, compat) = (applier.context, applier.id, applier.context.settings.compat);
    let name = NamespacedName::new(&object.metadata.namespace, &object.status.hpa_name);
    let condition = context.store().hpas.get(&name).and_then(|hpa| hpa.scaling_active.clone());
    let conditions = condition.as_deref().map(std::slice::from_ref);
    let mut current = context.reader.current(object).await.map_err(OperationError::from_error);
    let mut attempt = 1;
    let (input, decision, scaled) = loop {
        let input = input.clone().with(current, conditions);
        let decision = executor::decide(&input, compat).in_profile(context.settings.profile);
        if let Some(error) = &decision.error {
            tracing::warn!(
                namespace = &*id.namespace,
                name = id.record_name(),
                error,
                "nothing can be decided"
            );
        }
        let outcome = match scale_effect(&input, &decision, compat) {
            Some(effect) => match applier.apply(Effect::Scale(effect)).await {
                Ok(Applied::Scaled(outcome)) => Some(outcome),
                _ => None,
            },
            None => None,
        };
        match outcome {
            // The cached count was old: the decision is made again from the count that was found.
            Some(ScaleOutcome::Moved { to }) if attempt < MAX_SCALE_ATTEMPTS => {
                current = Ok(to);
                attempt += 1;
            }
            outcome => break (input, decision, outcome.map(ScaleOutcome::into_scaled)),
        }
    };
    let causes = record::keep_activity(context, id, &input, &decision, scaled.as_ref(), record);
    let effects = conclude(decision, scaled.as_ref(), changes).into_iter();
    let effects = effects.map(|effect| effect.because(&causes)).collect();
    applier.log_failed_status(applier.apply_all(effects).await);
}
