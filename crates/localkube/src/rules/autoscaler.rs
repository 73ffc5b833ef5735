//! Horizontal pod autoscalers, with the rules of crate `api`.

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::autoscaling::{Defaults as _, FeatureGates, Version, Versioned, validation};
use api::field::FieldError;
use serde_json::Value;

use super::json::text;
use super::{NONE, Rules};

/// The rules of horizontal pod autoscalers.
pub const RULES: Rules = Rules {
    default: |object, _| rewrite(object),
    // The status was dropped; an autoscaler always has one.
    create: rewrite,
    validate: |new| faults(new, None, |new, _| validation::validate_create(new, FeatureGates::default())),
    validate_update: |new, old| {
        faults(new, Some(old), |new, old| validation::validate_update(new, old, FeatureGates::default()))
    },
    validate_status: |new, old| faults(new, Some(old), validation::validate_status_update),
    ..NONE
};

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
    check: fn(&HorizontalPodAutoscaler, &HorizontalPodAutoscaler) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let read = |object| decode(object).and_then(|object| object.into_v2().ok());
    let Some(new) = read(new) else { return Vec::new() };
    let old = old.and_then(read).unwrap_or_default();
    let mut faults = check(&new, &old);
    faults.retain(|fault| !fault.field.starts_with("metadata."));
    faults
}
