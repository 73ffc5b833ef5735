//! The HPA of a ScaledObject: made, adopted, renamed, written anew, or deleted where we act ourselves (docs/spec/keda.md 2.6).

use std::sync::Arc;

use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricSpec};
use api::keda::{ConditionStatus, ScaledObject, types};
use keda::event::Event;
use keda::hpa::{self, GeneratedHpa};

use super::object::scaling_mode;
use super::pause;
use crate::operator::context::{ObjectEntry, OperatorContext};
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::{Id, Name};
use crate::operator::leader_client::ResourcePath;
use crate::operator::scalers_cache::{CachedScaler, ScaledResource, ScalersCache};
use crate::operator::settings::ScalingMode;
use crate::operator::store::fingerprint;

/// Makes it so; what is wrong with single triggers, if others do.
pub(super) async fn ensure(
    context: &OperatorContext,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
) -> Result<Option<String>, String> {
    let owner = ScaledResource::Object(Arc::new(object.clone()));
    let is_new = !entry.triggers().is_some_and(|known| known.are_of(&owner));
    let is_restart = is_new
        && !entry.state().known
        && object.status.conditions.state(types::READY) == ConditionStatus::True;
    let triggers = context.triggers(entry, &owner);
    if let Some(Err(error)) = triggers.formula() {
        return Err(error.to_owned());
    }
    let told = triggers.specs(&context.builder, &owner, context.settings.source_deadline).await;
    // Only what cannot be told now is taken from what was there before.
    let found = if told.iter().all(Result::is_ok) { None } else { find(context, object).await? };
    let (specs, broken) = settle(context, object, &triggers, told, found.as_deref())?;
    let GeneratedHpa { hpa: wanted, status } = hpa::generate(object, &specs, context.settings.compat)
        .map_err(|error| {
            let none = matches!(error, hpa::HpaError::NoMetrics { .. });
            broken.clone().filter(|_| none).unwrap_or_else(|| error.to_string())
        })?;
    announce(context, object, &triggers, &specs, is_restart);
    object.status.external_metric_names = status.external_metric_names;
    object.status.resource_metric_names = status.resource_metric_names;
    object.status.composite_scaler_name = status.composite_scaler_name;
    object.status.health = status.health;
    if scaling_mode(context, object) == ScalingMode::Direct {
        object.status.conditions.remove(types::HPA_ACTIVE);
        let id = Id::object(&object.metadata.namespace, &object.metadata.name);
        pause::delete_hpa(context, &id, entry, object).await?;
        object.status.hpa_name = String::new();
    } else if !is_unchanged(context, entry, object, &wanted) {
        let found = match found {
            None => find(context, object).await?,
            found => found,
        };
        write(context, entry, object, found, wanted).await?;
    }
    let was_polled = std::mem::replace(&mut entry.state().polled, true);
    if !was_polled && !is_restart {
        let mut event = Event::normal("KEDAScalersStarted", "Started scalers watch");
        event.action = Some("ScalersWatchStarted");
        context.events.record_poll(EventSubject::Object, &object.metadata, &event);
    }
    Ok(broken)
}

/// Whether what is wanted was found before, and is as it was found.
fn is_unchanged(
    context: &OperatorContext,
    entry: &ObjectEntry,
    object: &ScaledObject,
    wanted: &HorizontalPodAutoscaler,
) -> bool {
    let Some((wanted_fingerprint, found_fingerprint)) = entry.state().hpa else { return false };
    let name = &wanted.metadata.name;
    let seen =
        context.store().hpas.get(&Name::new(&object.metadata.namespace, name)).map(|hpa| hpa.fingerprint);
    object.status.hpa_name == *name
        && wanted_fingerprint == fingerprint(wanted)
        && seen == Some(found_fingerprint)
}

/// The HPA under the name it has or shall have; none if there is none.
async fn find(
    context: &OperatorContext,
    object: &ScaledObject,
) -> Result<Option<Arc<HorizontalPodAutoscaler>>, String> {
    let name = match object.status.hpa_name.as_str() {
        "" => object.hpa_name(),
        known => known.to_owned(),
    };
    let namespace = &object.metadata.namespace;
    let held = context.store().hpas.get(&Name::new(namespace, &name)).and_then(|hpa| hpa.full.clone());
    if held.is_some() {
        return Ok(held);
    }
    // Those that are not ours, or were found right before, are not kept.
    match context.client.get(ResourcePath::hpa(namespace, &name)).await {
        Ok(found) => Ok(Some(Arc::new(found))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.message),
    }
}

/// The metrics of all triggers. A trigger that cannot tell keeps those it had; to the original it is the end of all.
fn settle(
    context: &OperatorContext,
    object: &ScaledObject,
    triggers: &ScalersCache,
    told: Vec<Result<Vec<MetricSpec>, String>>,
    found: Option<&HorizontalPodAutoscaler>,
) -> Result<(Vec<Vec<MetricSpec>>, Option<String>), String> {
    let (mut specs, mut broken) = (Vec::new(), None);
    for (slot, told) in triggers.slots().iter().zip(told) {
        let index = slot.index();
        let error = match told {
            Ok(told) => {
                specs.push(told);
                continue;
            }
            // To the original, what says of no metrics has none (docs/spec/keda.md 2.6).
            Err(_) if context.settings.compat.is_strict() && slot.is_built() => {
                specs.push(Vec::new());
                continue;
            }
            Err(error) => error,
        };
        context.counters.failed(&object.metadata, EventSubject::Object);
        let event = Event::warning("KEDAScalerFailed", error.clone());
        context.events.record_poll(EventSubject::Object, &object.metadata, &event);
        if context.settings.compat.is_strict() {
            return Err(error);
        }
        let trigger = slot.trigger();
        let named = if trigger.name.is_empty() { index.to_string() } else { format!("{:?}", trigger.name) };
        broken.get_or_insert_with(|| format!("trigger {named} ({}): {error}", trigger.type_));
        specs.push(last(context, object, slot, found));
    }
    Ok((specs, broken))
}

/// The metrics of a trigger that does not tell them now: what it last told, else those of the HPA, else, where no HPA says
/// what they are held against, their names.
fn last(
    context: &OperatorContext,
    object: &ScaledObject,
    slot: &CachedScaler,
    found: Option<&HorizontalPodAutoscaler>,
) -> Vec<MetricSpec> {
    let told = slot.last_specs();
    if !told.is_empty() {
        return told;
    }
    let index = slot.index();
    let written = found.zip(object.spec.triggers.get(index));
    let held =
        written.map(|(found, trigger)| hpa::metrics_from_hpa(found, index, trigger)).unwrap_or_default();
    let by_name = object.modifiers().is_some() || scaling_mode(context, object) == ScalingMode::Direct;
    if held.is_empty() && by_name { hpa::metrics_from_status(object, index) } else { held }
}

/// Tells of each trigger once that it is built, be it late; those of an object that was there before we were are no news.
fn announce(
    context: &OperatorContext,
    object: &ScaledObject,
    triggers: &ScalersCache,
    specs: &[Vec<MetricSpec>],
    is_restart: bool,
) {
    let built = triggers.slots().iter().zip(specs).filter(|(_, specs)| !specs.is_empty());
    for (slot, _) in built.filter(|(slot, _)| slot.is_news() && !is_restart) {
        let note = format!("Scaler {} is built", slot.trigger().type_);
        context.events.record_poll(
            EventSubject::Object,
            &object.metadata,
            &Event::normal("KEDAScalersStarted", note),
        );
    }
}

async fn write(
    context: &OperatorContext,
    entry: &ObjectEntry,
    object: &mut ScaledObject,
    found: Option<Arc<HorizontalPodAutoscaler>>,
    wanted: HorizontalPodAutoscaler,
) -> Result<(), String> {
    let wanted_fingerprint = fingerprint(&wanted);
    let (namespace, name) = (object.metadata.namespace.clone(), wanted.metadata.name.clone());
    let path = ResourcePath::hpa(&namespace, &name);
    let body = || serde_json::to_vec(&wanted).map_err(|error| error.to_string());
    let written: HorizontalPodAutoscaler = match found {
        Some(found) if found.metadata.name == name => {
            if !hpa::needs_update(&found, &wanted, context.settings.compat) && is_owned(&found, object) {
                (*found).clone()
            } else {
                context.client.put(path, body()?).await.map_err(|error| error.message)?
            }
        }
        found => {
            if let Some(old) = found {
                let old = ResourcePath::hpa(&namespace, &old.metadata.name);
                context.client.delete(old, "Background").await.map_err(|error| error.message)?;
            }
            match context.client.create(path, body()?).await {
                Ok(written) => written,
                // Whoever made it: it is overwritten. The original does that under the first name alone.
                Err(error) if error.code == 409 && !context.settings.compat.is_strict() => {
                    context.client.put(path, body()?).await.map_err(|error| error.message)?
                }
                Err(error) => return Err(error.message),
            }
        }
    };
    object.status.hpa_name.clone_from(&name);
    let found_fingerprint = fingerprint(&written);
    entry.state().hpa = Some((wanted_fingerprint, found_fingerprint));
    context.store().checked_hpa(&Name::new(&namespace, &name), found_fingerprint);
    Ok(())
}

/// Whether an HPA goes when the object goes.
fn is_owned(hpa: &HorizontalPodAutoscaler, object: &ScaledObject) -> bool {
    hpa.metadata.owner_references.iter().any(|owner| owner.uid == object.metadata.uid)
}
