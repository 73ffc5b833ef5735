//! Decoding, defaults, preparation and validation of autoscalers (`validation.jsonl`).

use anyhow::Context as _;
use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::autoscaling::{Defaults as _, FeatureGates, GROUP, KIND, Version, Versioned, strategy, validation};
use api::field::{self, FieldError};
use serde_json::{Value, json};

use super::Difference;

pub(crate) fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let version =
        record["apiVersion"].as_str().and_then(Version::from_api_version).context("unknown apiVersion")?;
    let gate = |name: &str| record["featureGates"].get(name).and_then(Value::as_bool).unwrap_or(false);
    let gates = FeatureGates {
        scale_to_zero: gate("HPAScaleToZero"),
        configurable_tolerance: gate("HPAConfigurableTolerance"),
        // The vectors were recorded with the default release.
        ..FeatureGates::default()
    };
    let mut differences = Vec::new();
    let mut new = match Versioned::decode_as(&record["object"], version) {
        Ok(new) => new,
        Err(error) => {
            compare("decodeError", &record["decodeError"], &json!(error.to_string()), &mut differences);
            return Ok(differences);
        }
    };
    if let Some(expected) = record.get("decodeError") {
        compare("decodeError", expected, &Value::Null, &mut differences);
        return Ok(differences);
    }
    new.set_defaults();
    compare("defaulted", &record["defaulted"], &json!(new), &mut differences);

    let mut new = new.into_v2()?;
    let faults = match record.get("old") {
        None => {
            strategy::prepare_create(&mut new, gates);
            validation::validate_create(&new, gates)
        }
        Some(old) => {
            let old = stored(old, version)?;
            strategy::prepare_update(&mut new, &old, gates);
            validation::validate_update(&new, &old, gates)
        }
    };
    compare("valid", &record["valid"], &json!(faults.is_empty()), &mut differences);
    if faults.is_empty() {
        let accepted = json!(Versioned::from_v2(new, Version::V2));
        compare("accepted", &record["accepted"], &accepted, &mut differences);
    } else {
        compare_faults(record, &new, &faults, &mut differences);
    }
    Ok(differences)
}

fn stored(old: &Value, version: Version) -> anyhow::Result<HorizontalPodAutoscaler> {
    let mut old = Versioned::decode_as(old, version).context("old object")?;
    old.set_defaults();
    Ok(old.into_v2()?)
}

fn compare_faults(
    record: &Value,
    object: &HorizontalPodAutoscaler,
    faults: &[FieldError],
    differences: &mut Vec<Difference>,
) {
    let causes: Vec<Value> = faults
        .iter()
        .map(|fault| json!({"reason": fault.kind.reason(), "field": fault.field, "message": fault.message()}))
        .collect();
    if record["unordered"] == true {
        let sorted = |causes: &[Value]| {
            let mut texts: Vec<String> = causes.iter().map(ToString::to_string).collect();
            texts.sort_unstable();
            json!(texts)
        };
        let expected = record["causes"].as_array().map(|causes| sorted(causes)).unwrap_or_default();
        compare("causes", &expected, &sorted(&causes), differences);
        return;
    }
    compare("causes", &record["causes"], &json!(causes), differences);
    let message = field::invalid_object(KIND, GROUP, &object.metadata.name, faults);
    compare("message", &record["message"], &json!(message), differences);
}

/// Reports every place where two values differ, the order of keys included.
pub(crate) fn compare(at: &str, expected: &Value, got: &Value, differences: &mut Vec<Difference>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                compare(&format!("{at}.{key}"), value, b.get(key).unwrap_or(&Value::Null), differences);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                differences.push(Difference::json(format!("{at}.{key}"), &Value::Null, value));
            }
            if a == b && a.keys().ne(b.keys()) {
                let keys = |map: &serde_json::Map<String, Value>| json!(map.keys().collect::<Vec<_>>());
                differences.push(Difference::json(format!("{at} (order of keys)"), &keys(a), &keys(b)));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{at}[{i}]"), a, b, differences);
            }
        }
        _ if expected != got => differences.push(Difference::json(at, expected, got)),
        _ => {}
    }
}
