//! Horizontal pod autoscalers, with the rules of crate `api`.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::autoscaling::{Defaults as _, FeatureGates, Version, Versioned, validation};
use api::field::FieldError;
use serde_json::Value;

use super::json::text;
use super::{GatedRules, NONE, Rules};

/// The rules of horizontal pod autoscalers.
pub const RULES: Rules = Rules {
    default: |object, _| rewrite(object),
    // The status was dropped; an autoscaler always has one.
    create: rewrite,
    gated: Some(&GatedRules {
        adapt: drop_fields,
        validate: |new, gates| {
            faults(new, None, gates, |new, _, gates| validation::validate_create(new, gates))
        },
        validate_update: |new, old, gates| faults(new, Some(old), gates, validation::validate_update),
        validate_status: |new, old, gates| faults(new, Some(old), gates, validation::validate_status_update),
        counts_generation: |gates| gates.generation,
        spec_differs: |old, new| in_v2(old).map(|old| old.spec) != in_v2(new).map(|new| new.spec),
    }),
    ..NONE
};

fn in_v2(object: &Value) -> Option<HorizontalPodAutoscaler> {
    decode(object)?.into_v2().ok()
}

/// Drops the generation of conditions, which older releases do not have.
fn drop_fields(object: &mut Value, gates: FeatureGates) {
    if gates.profile().condition_generation {
        return;
    }
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.shift_remove("observedGeneration");
    }
}

fn decode(object: &Value) -> Option<Versioned> {
    let version = Version::from_api_version(text(object, "apiVersion"))?;
    Versioned::decode_as(object, version).ok()
}

fn rewrite(object: &mut Value) {
    let Some(mut read) = decode(object) else { return };
    read.set_defaults();
    if let Ok(mut written) = serde_json::to_value(&read) {
        keep_empty_policies(object, &mut written);
        *object = written;
    }
}

/// An explicitly empty list of policies is not serialized, but must be refused.
fn keep_empty_policies(given: &Value, written: &mut Value) {
    for rules in ["/spec/behavior/scaleUp", "/spec/behavior/scaleDown"] {
        let empty =
            |value: &Value| value.get("policies").and_then(Value::as_array).is_some_and(Vec::is_empty);
        if given.pointer(rules).is_some_and(empty)
            && let Some(Value::Object(rules)) = written.pointer_mut(rules)
        {
            rules.insert("policies".to_owned(), Value::Array(Vec::new()));
        }
    }
}

fn faults(
    new: &Value,
    old: Option<&Value>,
    gates: FeatureGates,
    check: fn(&HorizontalPodAutoscaler, &HorizontalPodAutoscaler, FeatureGates) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let Some(new) = in_v2(new) else { return Vec::new() };
    let old = old.and_then(in_v2).unwrap_or_default();
    let mut faults = check(&new, &old, gates);
    faults.retain(|fault| !fault.field.starts_with("metadata."));
    faults
}
