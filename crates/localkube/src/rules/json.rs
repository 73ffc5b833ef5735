//! Changes of JSON objects whose types were already checked: defaults, omitted empty values, canonical quantities.

use quantity::Quantity;
use serde_json::{Map, Value};

pub(super) use crate::json::{at, entries, flag, has, list, number, text, texts};

/// Maps with arbitrary keys: their contents are kept, and an empty map is omitted.
const FREE_MAPS: &[&str] = &[
    "allocatable",
    "annotations",
    "binaryData",
    "capacity",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "overhead",
    "requests",
    "stringData",
];

/// Quantities and maps of quantities.
const QUANTITY_FIELDS: &[&str] =
    &["allocatable", "capacity", "divisor", "limits", "overhead", "requests", "sizeLimit"];

/// Strings that are kept if they are empty; other empty strings are omitted.
const KEPT_EMPTY_TEXTS: &[&str] = &["holderIdentity", "storageClassName"];

/// Flags that are omitted if they are false; for others false differs from absent.
const DROPPED_FLAGS: &[&str] = &[
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "insecureSkipTLSVerify",
    "paused",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "unschedulable",
];

/// Numbers that are omitted if they are zero; for others zero differs from absent.
const DROPPED_ZEROS: &[&str] = &[
    "active",
    "count",
    "currentReplicas",
    "failed",
    "fullyLabeledReplicas",
    "healthCheckNodePort",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "observedGeneration",
    "readyReplicas",
    "succeeded",
    "unavailableReplicas",
    "updatedReplicas",
];

/// Omits empty values and canonicalizes quantities, as decoding and encoding with Go's types does.
pub(super) fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|key, value| {
            if key == "managedFields" {
                return true;
            }
            if QUANTITY_FIELDS.contains(&key.as_str()) {
                canonical_amounts(value);
            }
            if !FREE_MAPS.contains(&key.as_str()) {
                tidy(value);
            }
            !is_omitted(key, value)
        }),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn is_omitted(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && FREE_MAPS.contains(&key),
        Value::String(text) => text.is_empty() && !KEPT_EMPTY_TEXTS.contains(&key),
        Value::Bool(flag) => !flag && DROPPED_FLAGS.contains(&key),
        Value::Number(number) => number.as_i64() == Some(0) && DROPPED_ZEROS.contains(&key),
    }
}

fn canonical_amounts(value: &mut Value) {
    match value {
        // Quantities in maps are rounded up to thousandths.
        Value::Object(amounts) => amounts.values_mut().for_each(|value| canonical_amount(value, true)),
        value => canonical_amount(value, false),
    }
}

fn canonical_amount(value: &mut Value, round: bool) {
    if let Some(mut amount) = amount(value) {
        if round {
            amount.round_up(-3);
        }
        *value = amount.to_string().into();
    }
}

/// Parses a quantity from a string or number.
pub(super) fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text.trim()).ok(),
        Value::Number(number) => Quantity::from_json_text(&number.to_string()).ok(),
        _ => None,
    }
}

/// Sets a field if it is absent.
pub(super) fn fill(value: &mut Value, key: &str, default: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut()
        && fields.get(key).is_none_or(Value::is_null)
    {
        fields.insert(key.to_owned(), default.into());
    }
}

/// Sets a field.
pub(super) fn put(value: &mut Value, key: &str, content: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(key.to_owned(), content.into());
    }
}

/// Removes a field.
pub(super) fn remove(value: &mut Value, key: &str) -> Option<Value> {
    value.as_object_mut().and_then(|fields| fields.shift_remove(key))
}

/// A nested object, created if it is absent.
pub(super) fn part<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    fill(value, key, Map::new());
    match value {
        Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
        other => other,
    }
}

/// A nested object, if it is set.
pub(super) fn part_of<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    value.get_mut(key).filter(|part| !part.is_null())
}

/// The items of a list, mutable.
pub(super) fn each<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// A number derived from the uid, for values that a real cluster allocates or randomizes.
pub(super) fn derived(object: &Value, salt: usize) -> u64 {
    let bytes = text(object, "metadata.uid").bytes().chain(salt.to_le_bytes());
    // FNV-1a with a final mix, since short texts leave the high bits unchanged.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_values_are_omitted() {
        let mut pod = json!({
            "metadata": {"labels": {}, "annotations": {"a": ""}, "creationTimestamp": null},
            "spec": {"containers": [{"env": [{"name": "A", "value": ""}], "args": [], "tty": false}],
                "hostNetwork": false, "enableServiceLinks": false, "affinity": {}, "dnsPolicy": ""},
        });
        tidy(&mut pod);
        let expected = json!({
            "metadata": {"annotations": {"a": ""}},
            "spec": {"containers": [{"env": [{"name": "A"}]}], "enableServiceLinks": false, "affinity": {}},
        });
        assert_eq!(pod, expected);
    }

    #[test]
    fn quantities_are_canonicalized() {
        let mut resources = json!({"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}});
        tidy(&mut resources);
        assert_eq!(resources, json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}));
    }

    #[test]
    fn nested_objects_are_created_only_if_missing() {
        let mut value = json!({"a": {"b": 1}});
        fill(part(&mut value, "a"), "b", 2);
        fill(part(&mut value, "c"), "d", 3);
        assert_eq!(value, json!({"a": {"b": 1}, "c": {"d": 3}}));
        assert_eq!((number(&value, "a.b"), text(&value, "a.x"), has(&value, "c.d")), (Some(1), "", true));
    }
}
