//! The HPA of a ScaledObject: its metrics, and what has to be written (docs/spec/keda.md 2.6).

use api::autoscaling::v2::{HorizontalPodAutoscaler, MetricSpec};
use api::keda::ScaledObject;
use api::provider::Compat;
use keda::event::Event;
use keda::hpa;

use crate::operator::effect::Effect;
use crate::operator::scalers_cache::TriggerMetrics;
use crate::operator::settings::ScalingMode;

/// The metrics of all triggers.
#[derive(Debug, Default)]
pub(crate) struct CollectedMetrics {
    pub(crate) specs: Vec<Vec<MetricSpec>>,
    /// The first trigger that failed, and why.
    pub(crate) broken_trigger: Option<String>,
    /// Events of triggers that failed, one for each.
    pub(crate) failures: Vec<Effect>,
}

/// Why there is no HPA; the failures up to that point are reported all the same.
#[derive(Debug)]
pub(crate) struct HpaMetricsError {
    pub(crate) cause: String,
    pub(crate) failures: Vec<Effect>,
}

/// Collects the metrics of all triggers. A trigger that does not list them keeps those it had; in KEDA it fails the reconcile.
/// `found` is the HPA in the cluster.
pub(crate) fn collect_metrics(
    object: &ScaledObject,
    listed: Vec<TriggerMetrics>,
    found: Option<&HorizontalPodAutoscaler>,
    mode: ScalingMode,
    compat: Compat,
) -> Result<CollectedMetrics, HpaMetricsError> {
    let mut all = CollectedMetrics::default();
    for listed in listed {
        let TriggerMetrics { index, specs, is_built, last } = listed;
        let error = match specs {
            Ok(specs) => {
                all.specs.push(specs);
                continue;
            }
            // In KEDA a trigger that does not list its metrics has none (docs/spec/keda.md 2.6).
            Err(_) if compat.is_strict() && is_built => {
                all.specs.push(Vec::new());
                continue;
            }
            Err(error) => error,
        };
        all.failures.push(Effect::Event(Event::warning("KEDAScalerFailed", error.to_string())));
        if compat.is_strict() {
            return Err(HpaMetricsError { cause: error.to_string(), failures: all.failures });
        }
        if let Some(trigger) = object.spec.triggers.get(index) {
            let named =
                if trigger.name.is_empty() { index.to_string() } else { format!("{:?}", trigger.name) };
            let broken = || format!("trigger {named} ({}): {error}", trigger.type_);
            all.broken_trigger.get_or_insert_with(broken);
        }
        all.specs.push(remembered(object, index, last, found, mode));
    }
    Ok(all)
}

/// The metrics of a trigger that does not list them now: those it listed last, else those of the HPA. Where no HPA holds their
/// targets, their names will do.
fn remembered(
    object: &ScaledObject,
    index: usize,
    last: Vec<MetricSpec>,
    found: Option<&HorizontalPodAutoscaler>,
    mode: ScalingMode,
) -> Vec<MetricSpec> {
    if !last.is_empty() {
        return last;
    }
    let written = found.zip(object.spec.triggers.get(index));
    let held =
        written.map(|(found, trigger)| hpa::metrics_from_hpa(found, index, trigger)).unwrap_or_default();
    let by_name = object.modifiers().is_some() || mode == ScalingMode::Direct;
    if held.is_empty() && by_name { hpa::metrics_from_status(object, index) } else { held }
}

/// The writes that turn the found HPA into the wanted one; none if it is right. An HPA with another name is replaced.
pub(crate) fn writes(
    object: &ScaledObject,
    found: Option<&HorizontalPodAutoscaler>,
    wanted: &HorizontalPodAutoscaler,
    compat: Compat,
) -> Vec<Effect> {
    match found {
        Some(found) if found.metadata.name == wanted.metadata.name => {
            let is_owned =
                found.metadata.owner_references.iter().any(|owner| owner.uid == object.metadata.uid);
            if is_owned && !hpa::needs_update(found, wanted, compat) {
                Vec::new()
            } else {
                vec![Effect::UpdateHpa(Box::new(wanted.clone()))]
            }
        }
        found => {
            let old = found.map(|found| Effect::DeleteHpa(found.metadata.name.clone()));
            old.into_iter().chain([Effect::CreateHpa(Box::new(wanted.clone()))]).collect()
        }
    }
}

/// The name of the HPA that the object has or is to have.
pub(crate) fn name(object: &ScaledObject) -> String {
    match object.status.hpa_name.as_str() {
        "" => object.hpa_name(),
        known => known.to_owned(),
    }
}
