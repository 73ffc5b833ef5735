//! Creates, adopts, renames, updates or deletes the HPA of a ScaledObject (docs/spec/keda.md 2.6).

use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::diagnosis::trigger_causes;
use api::keda::{ConditionStatus, ScaledObject, types};
use cluster::request::ApiError;
use keda::hpa::{self, GeneratedHpa};

use super::steps::delete_hpa;
use crate::operator::apply::{Applied, Applier};
use crate::operator::decide::conditions::{polls_started, scaler_built};
use crate::operator::decide::hpa::{CollectedMetrics, HpaMetricsError, collect_metrics, name, writes};
use crate::operator::effect::Effect;
use crate::operator::id::{NamespacedName, ResourceKind};
use crate::operator::object_state::{CheckedHpa, ObjectEntry};
use crate::operator::record;
use crate::operator::resolve::hpa::find;
use crate::operator::scaled_resource::ScaledResource;
use crate::operator::settings::ScalingMode;
use crate::operator::store::fingerprint;
use crate::operator::validate::{ReconcileStep, StepFailure};

const HTTP_CONFLICT: u16 = 409;

fn failed(object: &ScaledObject, error: &ApiError) -> StepFailure {
    let failure = record::refused(format!("HPA {}", name(object)), error);
    ReconcileStep::EnsureHpa.failed(&error.message).of_reconcile(failure)
}

/// Creates or updates the HPA so that it matches the object; returns the error of a single trigger, if others work.
pub(super) async fn ensure(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
) -> Result<Option<String>, StepFailure> {
    let context = applier.context;
    let (compat, mode) = (context.settings.compat, context.scaling_mode(object));
    let owner = ScaledResource::Object(Arc::new(object.clone()));
    let is_new = !entry.scalers().is_some_and(|known| known.are_of(&owner));
    let is_restart = is_new
        && !entry.state().reconciled
        && object.status.conditions.state(types::READY) == ConditionStatus::True;
    let scalers = context.scalers(entry, &owner);
    if let Some(Err(error)) = scalers.formula() {
        let round = record::broken_formula(object, &error.to_string());
        return Err(ReconcileStep::EnsureHpa.failed(error).recorded_as(round));
    }
    let listed = scalers.list_metrics(&context.builder, &owner, context.settings.source_deadline).await;
    // The HPA is needed only for metrics that triggers do not list now.
    let is_complete = listed.iter().all(|listed| listed.specs.is_ok());
    let found = if is_complete {
        None
    } else {
        find(context, object).await.map_err(|error| failed(object, &error))?
    };
    let unlisted = record::unlisted(&object.spec.triggers, &listed);
    let metrics = collect_metrics(object, listed, found.as_deref(), mode, compat);
    let (Ok(CollectedMetrics { failures, .. }) | Err(HpaMetricsError { failures, .. })) = &metrics;
    let causes = trigger_causes(&unlisted);
    for failure in failures {
        context.counters.count_build_failure(ResourceKind::Object, &object.metadata);
        applier.log_failed_status(applier.apply(failure.clone().because(&causes)).await);
    }
    let CollectedMetrics { specs, broken_trigger, .. } = metrics
        .map_err(|error| ReconcileStep::EnsureHpa.failed(error.cause).of_triggers(unlisted.clone()))?;
    let generated = hpa::generate(object, &specs, compat).map_err(|error| {
        let has_no_metrics = matches!(error, hpa::HpaError::NoMetrics { .. });
        let cause = broken_trigger.clone().filter(|_| has_no_metrics).unwrap_or_else(|| error.to_string());
        ReconcileStep::EnsureHpa.failed(cause).of_triggers(unlisted)
    })?;
    let GeneratedHpa { hpa: wanted, status } = generated.in_profile(object, context.settings.profile);
    // One event per scaler, even if it was built late. After a restart of the operator they are not new.
    let built = scalers.scalers().iter().zip(&specs).filter(|(_, specs)| !specs.is_empty());
    for (scaler, _) in built.filter(|(scaler, _)| scaler.mark_announced() && !is_restart) {
        applier.log_failed_status(applier.apply(scaler_built(scaler.trigger())).await);
    }
    object.status.external_metric_names = status.external_metric_names;
    object.status.resource_metric_names = status.resource_metric_names;
    object.status.composite_scaler_name = status.composite_scaler_name;
    object.status.health = status.health;
    if mode == ScalingMode::Direct {
        object.status.conditions.remove(types::HPA_ACTIVE);
        delete_hpa(applier, entry, object).await.map_err(|error| failed(object, &error))?;
        object.status.hpa_name = String::new();
    } else if !is_unchanged(applier, entry, object, &wanted) {
        let found = match found {
            None => find(context, object).await.map_err(|error| failed(object, &error))?,
            found => found,
        };
        let written = write(applier, entry, object, found.as_deref(), wanted).await;
        written.map_err(|error| failed(object, &error))?;
    }
    let was_polled = std::mem::replace(&mut entry.state().polled, true);
    if !was_polled && !is_restart {
        applier.log_failed_status(applier.apply(polls_started()).await);
    }
    Ok(broken_trigger)
}

/// Whether the wanted HPA was written or found before, and the HPA in the cluster has not changed since.
fn is_unchanged(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &ScaledObject,
    wanted: &HorizontalPodAutoscaler,
) -> bool {
    let Some(checked) = entry.state().hpa else { return false };
    let name = &wanted.metadata.name;
    let full = NamespacedName::new(&object.metadata.namespace, name);
    let seen = applier.context.store().hpas.get(&full).map(|hpa| hpa.fingerprint);
    object.status.hpa_name == *name && checked.wanted == fingerprint(wanted) && seen == Some(checked.found)
}

async fn write(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
    found: Option<&HorizontalPodAutoscaler>,
    wanted: HorizontalPodAutoscaler,
) -> Result<(), ApiError> {
    let compat = applier.context.settings.compat;
    let mut found_fingerprint = found.map_or(0, fingerprint);
    for effect in writes(object, found, &wanted, compat) {
        let is_creation = matches!(effect, Effect::CreateHpa(_));
        let applied = match applier.apply(effect).await {
            // An HPA that another client created is overwritten. KEDA does so only under the first name.
            Err(error) if is_creation && error.code == Some(HTTP_CONFLICT) && !compat.is_strict() => {
                applier.apply(Effect::UpdateHpa(Box::new(wanted.clone()))).await?
            }
            applied => applied?,
        };
        if let Applied::Hpa(written) = applied {
            found_fingerprint = fingerprint(&written);
        }
    }
    object.status.hpa_name.clone_from(&wanted.metadata.name);
    entry.state().hpa = Some(CheckedHpa { wanted: fingerprint(&wanted), found: found_fingerprint });
    let name = NamespacedName::new(&object.metadata.namespace, &wanted.metadata.name);
    applier.context.store().checked_hpa(&name, found_fingerprint);
    Ok(())
}
