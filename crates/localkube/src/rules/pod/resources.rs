//! Validation of resource requirements.

use api::field::{AsJson, FieldError};
use api::names::label_key_faults;
use serde_json::Value;

use crate::rules::faults::{Faults, NEGATIVE};
use crate::rules::json::{amount, at, entries};

/// Unqualified resources of containers.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Other unqualified resources.
const OTHER_RESOURCES: [&str; 9] = [
    "storage",
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "requests.cpu",
];

/// Validates limits and requests.
pub(super) fn check(faults: &mut Faults, path: &str, resources: &Value) {
    for (name, value) in entries(resources, "limits") {
        one(faults, &format!("{path}.limits[{name}]"), name, value);
    }
    for (name, value) in entries(resources, "requests") {
        one(faults, &format!("{path}.requests[{name}]"), name, value);
        let limit = at(resources, "limits").get(name).unwrap_or(&Value::Null);
        compare(faults, path, name, value, limit);
    }
}

fn one(faults: &mut Faults, path: &str, name: &str, value: &Value) {
    let plain = !name.contains('/');
    let wrong = label_key_faults(name);
    let pages = name.starts_with("hugepages-");
    let known = CONTAINER_RESOURCES.contains(&name) || pages;
    if wrong.is_empty() && plain && !known && !OTHER_RESOURCES.contains(&name) {
        faults.invalid(path, name, "must be a standard resource type or fully qualified");
    }
    for wrong in wrong {
        faults.invalid(path, name, wrong);
    }
    if plain && !known {
        faults.invalid(path, name, "must be a standard resource for containers");
    }
    let Some(amount) = amount(value) else { return };
    if amount.sign() < 0 {
        faults.invalid(path, AsJson(value), NEGATIVE);
    }
    if (!plain || pages) && amount.milli_value() % 1000 != 0 {
        faults.invalid(path, AsJson(value), "must be an integer");
    }
}

fn compare(faults: &mut Faults, path: &str, name: &str, value: &Value, limit: &Value) {
    let fixed = name.contains('/') || name.starts_with("hugepages-");
    let path = format_args!("{path}.requests");
    match (amount(value), amount(limit)) {
        (Some(request), Some(most)) if fixed && request != most => {
            faults.invalid(path, AsJson(value), format!("must be equal to {name} limit of {most}"));
        }
        (Some(request), Some(most)) if request > most => {
            faults.invalid(
                path,
                AsJson(value),
                format!("must be less than or equal to {name} limit of {most}"),
            );
        }
        (Some(_), None) if fixed => {
            let detail = "Limit must be set for non overcommitable resources";
            faults.add(FieldError::required(path.to_string().replace(".requests", ".limits"), detail));
        }
        _ => {}
    }
}
