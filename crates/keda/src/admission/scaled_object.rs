//! Rules 1 to 6 of ScaledObjects, in this order, then the triggers; and warnings.

use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::gotext::quote;
use api::keda::{ScaledObject, Trigger, annotations};

use super::{AdmissionRules, ClusterView, Denial, Target, TargetError, resources, triggers};
use crate::modifiers::CompiledFormula;

/// Maximum length of names, which are label values.
const MAX_NAME_BYTES: usize = 63;

/// Unresolvable targets are not counted as validation errors.
fn unresolved(error: &TargetError) -> Denial {
    Denial::uncounted(error.to_string())
}

pub(super) fn check(
    object: &ScaledObject,
    dry_run: bool,
    around: &dyn ClusterView,
    rules: &AdmissionRules<'_>,
) -> Result<(), Denial> {
    let target = target_of(object, around).map_err(|error| unresolved(&error))?;
    others(object, &target, around, rules)?;
    modifiers(object, rules)?;
    resources::check(object, &target, dry_run, around, rules)?;
    autoscalers(object, &target, around, rules)?;
    bounds(object)?;
    fallback(object)?;
    names(object)?;
    triggers::check(&object.spec.triggers)
}

/// All rules that do not depend on a cluster, with the field that each is about.
pub(super) fn check_alone(object: &ScaledObject, rules: &AdmissionRules<'_>) -> Vec<(&'static str, Denial)> {
    let target = &object.spec.scale_target_ref;
    let named =
        if target.name.is_empty() { Err(Denial::uncounted("the target has no name")) } else { Ok(()) };
    let parsed = Target::parse(&target.api_version, &target.kind, &target.name).map(drop);
    let results = [
        ("spec.scaleTargetRef", named),
        ("spec.scaleTargetRef.apiVersion", parsed.map_err(|error| unresolved(&error))),
        ("spec.advanced.scalingModifiers", modifiers(object, rules)),
        ("spec.minReplicaCount", bounds(object)),
        ("spec.fallback", fallback(object)),
        ("metadata.name", names(object)),
    ];
    results.into_iter().filter_map(|(field, result)| Some((field, result.err()?))).collect()
}

fn target_of(object: &ScaledObject, around: &dyn ClusterView) -> Result<Target, TargetError> {
    let target = &object.spec.scale_target_ref;
    resolve(&target.api_version, &target.kind, &target.name, around)
}

/// Parses a reference and checks that the cluster has its kind. Deployments and StatefulSets are not checked.
fn resolve(
    api_version: &str,
    kind: &str,
    name: &str,
    around: &dyn ClusterView,
) -> Result<Target, TargetError> {
    let target = Target::parse(api_version, kind, name)?;
    let is_known = matches!(target.kind.as_str(), "Deployment" | "StatefulSet")
        || around.has_kind(&target.group, &target.version, &target.kind);
    if is_known {
        return Ok(target);
    }
    Err(TargetError::NoMatch { version: target.api_version(), kind: target.kind })
}

/// The target of another object; unresolvable targets are ignored, except in strict mode.
fn foreign(
    target: Result<Target, TargetError>,
    rules: &AdmissionRules<'_>,
) -> Result<Option<Target>, Denial> {
    match target {
        Ok(target) => Ok(Some(target)),
        Err(_) if rules.is_better() => Ok(None),
        Err(error) => Err(unresolved(&error)),
    }
}

/// Rules 1a and 1b: no other ScaledObject has the same target or HPA name.
fn others(
    object: &ScaledObject,
    target: &Target,
    around: &dyn ClusterView,
    rules: &AdmissionRules<'_>,
) -> Result<(), Denial> {
    let hpa = object.hpa_name();
    let mut others = around.scaled_objects(&object.metadata.namespace);
    others.retain(|other| other.metadata.name != object.metadata.name);
    others.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let same_target = |other: &ScaledObject| -> Result<(), Denial> {
        let name = &other.metadata.name;
        if foreign(target_of(other, around), rules)?.is_none_or(|theirs| theirs != *target) {
            return Ok(());
        }
        let workload = &target.name;
        let text = format!(
            "the workload '{workload}' of type '{target}' is already managed by the ScaledObject '{name}'"
        );
        Err(Denial::of("other-scaled-object", text))
    };
    let same_hpa = |other: &ScaledObject| -> Result<(), Denial> {
        if other.hpa_name() != hpa {
            return Ok(());
        }
        // KEDA 2.20 prints the configured name, which may be empty.
        let prints_configured = !rules.is_better() && !rules.behavior().names_incoming_hpa;
        let written = config_name(other).filter(|_| prints_configured).unwrap_or(&hpa);
        let name = &other.metadata.name;
        let text = format!("the HPA '{written}' is already managed by the ScaledObject '{name}'");
        Err(Denial::of("other-scaled-object-hpa", text))
    };
    if rules.behavior().compares_namesakes_only {
        // Two look-ups, one after the other: by the name of the target, then by that of the HPA.
        let is_namesake = |other: &&Arc<ScaledObject>| {
            other.spec.scale_target_ref.name == object.spec.scale_target_ref.name
        };
        others.iter().filter(is_namesake).try_for_each(|other| same_target(other))?;
        return others.iter().try_for_each(|other| same_hpa(other));
    }
    others.iter().try_for_each(|other| same_target(other).and_then(|()| same_hpa(other)))
}

fn config_name(object: &ScaledObject) -> Option<&str> {
    let config = object.spec.advanced.as_ref()?.horizontal_pod_autoscaler_config.as_ref()?;
    Some(&config.name)
}

/// Rules 1c and 1d: the formula is valid.
fn modifiers(object: &ScaledObject, rules: &AdmissionRules<'_>) -> Result<(), Denial> {
    if object.modifiers().is_some() {
        CompiledFormula::new(object, rules.compat).map_err(|text| Denial::of("scaling-modifiers", text))?;
    }
    let needs_formula =
        object.spec.fallback.as_ref().is_some_and(|fallback| fallback.behavior == "scalingModifiers");
    if needs_formula && object.modifiers().is_none_or(|modifiers| modifiers.formula.is_empty()) {
        let text = "scalingModifiers fallback behavior requires scalingModifiers.formula to be defined";
        return Err(Denial::of("scaling-modifiers-fallback", text));
    }
    Ok(())
}

/// Rule 3: no other HPA has the same target, unless its ownership is transferred.
fn autoscalers(
    object: &ScaledObject,
    target: &Target,
    around: &dyn ClusterView,
    rules: &AdmissionRules<'_>,
) -> Result<(), Denial> {
    let transfer = object.metadata.annotations.get(annotations::TRANSFER_HPA_OWNERSHIP);
    let takes_over = transfer.is_some_and(|value| value == "true");
    let is_own = |hpa: &HorizontalPodAutoscaler| {
        let mut owners = hpa.metadata.owner_references.iter();
        owners.any(|owner| owner.kind == "ScaledObject" && owner.name == object.metadata.name)
    };
    let is_hidden = |hpa: &HorizontalPodAutoscaler| {
        hpa.metadata.annotations.get(annotations::HPA_OWNERSHIP).is_some_and(|value| value == "false")
    };
    let mut all = around.autoscalers(&object.metadata.namespace);
    let is_namesake =
        |hpa: &HorizontalPodAutoscaler| hpa.spec.scale_target_ref.name == object.spec.scale_target_ref.name;
    all.retain(|hpa| !is_hidden(hpa) && (!rules.behavior().compares_namesakes_only || is_namesake(hpa)));
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for hpa in all {
        let aim = &hpa.spec.scale_target_ref;
        let theirs = resolve(&aim.api_version, &aim.kind, &aim.name, around);
        if foreign(theirs, rules)?.is_none_or(|theirs| theirs != *target) || is_own(&hpa) {
            continue;
        }
        let (name, workload) = (&hpa.metadata.name, &target.name);
        if !takes_over {
            let text = format!(
                "the workload '{workload}' of type '{target}' is already managed by the hpa '{name}'"
            );
            return Err(Denial::of("other-hpa", text));
        }
        if config_name(object).is_none_or(|written| written != name) {
            let text = format!(
                "the existing hpa '{name}' for workload '{workload}' of type '{target}' must be specified by name in \
                 advanced settings to enable ownership transfer"
            );
            return Err(Denial::of("transfer-ownership-missing-hpa-name", text));
        }
    }
    Ok(())
}

/// Rule 4.
pub(super) fn bounds(object: &ScaledObject) -> Result<(), Denial> {
    const LABEL: &str = "incorrect-replicas";
    let min = object.spec.min_replica_count.map_or(0, |_| object.hpa_min());
    let max = object.hpa_max();
    if min > max {
        let text = format!("MinReplicaCount={min} must be less than MaxReplicaCount={max}");
        return Err(Denial::of(LABEL, text));
    }
    match object.spec.idle_replica_count {
        Some(idle) if idle >= min => {
            let text = format!("IdleReplicaCount={idle} must be less than MinReplicaCount={min}");
            Err(Denial::of(LABEL, text))
        }
        _ => Ok(()),
    }
}

/// Rule 5.
fn fallback(object: &ScaledObject) -> Result<(), Denial> {
    const LABEL: &str = "incorrect-fallback";
    let Some(fallback) = &object.spec.fallback else { return Ok(()) };
    let (threshold, replicas) = (fallback.failure_threshold, fallback.replicas);
    if threshold < 0 || replicas < 0 {
        let text = format!(
            "FailureThreshold={threshold} & Replicas={replicas} must both be greater than or equal to 0"
        );
        return Err(Denial::of(LABEL, text));
    }
    if object.modifiers().is_none() && object.spec.triggers.iter().all(Trigger::is_resource) {
        let text = "at least one trigger (that is not cpu or memory) has to have the `AverageValue` type for the \
                    fallback to be enabled";
        return Err(Denial::of(LABEL, text));
    }
    Ok(())
}

/// Rule 6.
fn names(object: &ScaledObject) -> Result<(), Denial> {
    let name = &object.metadata.name;
    if name.len() > MAX_NAME_BYTES {
        let text = format!(
            "scaledobject name {} is {} characters long; must be no more than {MAX_NAME_BYTES} characters because it is \
             used as the \"{}\" label value",
            quote(name),
            name.len(),
            annotations::SCALED_OBJECT_NAME
        );
        return Err(Denial::of("name-too-long", text));
    }
    let hpa = object.hpa_name();
    if hpa.len() > MAX_NAME_BYTES {
        let text = format!(
            "HPA name {} derived from scaledobject is {} characters long; must be no more than {MAX_NAME_BYTES} \
             characters; set spec.advanced.horizontalPodAutoscalerConfig.name to a shorter name or shorten the \
             scaledobject name",
            quote(&hpa),
            hpa.len()
        );
        return Err(Denial::of("hpa-name-too-long", text));
    }
    Ok(())
}

/// Warnings about settings without effect.
pub(super) fn warnings(object: &ScaledObject, rules: &AdmissionRules<'_>) -> Vec<String> {
    let (spec, texts) = (&object.spec, rules.behavior().replica_warnings);
    let idles = spec.idle_replica_count.is_some_and(|idle| idle == 0 || !texts.only_idle_zero_counts);
    let mut warnings = Vec::new();
    if spec.min_replica_count.unwrap_or(0) <= 0 || idles {
        return warnings;
    }
    let is_polled = spec.triggers.iter().any(|trigger| trigger.use_cached_metrics)
        || (texts.modifiers_count && object.modifiers().is_some());
    if spec.polling_interval.is_some() && !is_polled {
        warnings.push(texts.polling.to_owned());
    }
    if spec.cooldown_period.is_some() {
        warnings.push(texts.cooldown.to_owned());
    }
    warnings
}
