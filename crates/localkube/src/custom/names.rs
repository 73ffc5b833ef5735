//! Validation and acceptance of the names of a definition.

use std::collections::BTreeSet;

use api::field::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json::strings;
use crate::rules::faults::letter_label_faults;

/// Error in the name of a kind.
pub(super) fn kind_fault(field: &str, kind: &str) -> Option<FieldError> {
    let faults = letter_label_faults(&kind.to_lowercase());
    let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
    (!faults.is_empty()).then(|| FieldError::invalid(field, kind, detail))
}

/// The status of a definition after its names were compared with those of the `others`; `None` if it is unchanged.
///
/// A name that another definition of the group has is not accepted, and a definition is served only after all its names
/// were accepted once.
pub fn accepted<'a>(
    crd: &Value,
    others: impl IntoIterator<Item = &'a Value>,
    now: Timestamp,
) -> Option<Value> {
    let taken = TakenNames::by(crd, others);
    let wanted = crd.pointer("/spec/names")?;
    let mut names =
        crd.pointer("/status/acceptedNames").filter(|names| names.is_object()).cloned().unwrap_or(json!({}));
    let mut verdict = ("True", "NoConflicts", "no conflicts found".to_owned());
    for (field, reason) in NAME_FIELDS {
        let mine = values(wanted, field);
        let taken = if field.to_lowercase().ends_with("kind") { &taken.kinds } else { &taken.resources };
        let conflicts: Vec<String> = mine.iter().filter(|name| taken.contains(*name)).cloned().collect();
        if conflicts.is_empty() || values(&names, field) == mine {
            set(&mut names, field, wanted.get(field));
        } else {
            let each: Vec<String> =
                conflicts.iter().map(|name| format!("{name:?} is already in use")).collect();
            verdict = ("False", reason, api::field::aggregate(&each));
        }
    }
    for field in ["plural", "kind"] {
        if names.get(field).is_none() {
            set(&mut names, field, Some(&json!("")));
        }
    }
    set(&mut names, "categories", wanted.get("categories"));

    let mut status = crd.get("status").filter(|status| status.is_object()).cloned().unwrap_or(json!({}));
    let mut conditions: Vec<Value> =
        status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let was = |kind: &str| {
        conditions
            .iter()
            .any(|c| c.get("type") == Some(&json!(kind)) && c.get("status") == Some(&json!("True")))
    };
    let established = was("Established");
    let accepted = verdict.0 == "True";
    condition(&mut conditions, "NamesAccepted", verdict.0, verdict.1, &verdict.2, now);
    if accepted && !established {
        let text = "the initial names have been accepted";
        condition(&mut conditions, "Established", "True", "InitialNamesAccepted", text, now);
    } else if !established {
        condition(&mut conditions, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
    set(&mut status, "conditions", Some(&Value::Array(conditions)));
    set(&mut status, "acceptedNames", Some(&names));
    (crd.get("status") != Some(&status)).then_some(status)
}

/// The name fields, in the order in which conflicts are checked; the last conflict is reported.
const NAME_FIELDS: [(&str, &str); 5] = [
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
];

/// The accepted names of other definitions.
#[derive(Default)]
struct TakenNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl TakenNames {
    fn by<'a>(crd: &Value, others: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut taken = Self::default();
        for other in others {
            let same = |path: &str| crd.pointer(path) == other.pointer(path);
            if same("/metadata/name") || !same("/spec/group") {
                continue;
            }
            let Some(names) = other.pointer("/status/acceptedNames") else { continue };
            taken
                .resources
                .extend(["plural", "singular", "shortNames"].iter().flat_map(|field| values(names, field)));
            taken.kinds.extend(["kind", "listKind"].iter().flat_map(|field| values(names, field)));
        }
        taken
    }
}

/// The name or names in a field.
fn values(names: &Value, field: &str) -> Vec<String> {
    match names.get(field) {
        Some(Value::String(name)) if !name.is_empty() => vec![name.clone()],
        Some(Value::Array(_)) => strings(names, field),
        _ => Vec::new(),
    }
}

fn set(object: &mut Value, field: &str, value: Option<&Value>) {
    if let Some(fields) = object.as_object_mut() {
        match value {
            Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
            None => drop(fields.shift_remove(field)),
        }
    }
}

/// Sets a condition; its transition time stays if the status stays.
fn condition(all: &mut Vec<Value>, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let is = |c: &Value, field: &str, text: &str| c.get(field).and_then(Value::as_str) == Some(text);
    let old = all.iter_mut().find(|c| is(c, "type", kind));
    let time = match &old {
        Some(old) if is(old, "status", status) => old.get("lastTransitionTime").cloned().unwrap_or_default(),
        _ => json!(api::instant::format(now)),
    };
    let new = json!({"type": kind, "status": status, "lastTransitionTime": time, "reason": reason, "message": message});
    match old {
        Some(old) => *old = new,
        None => all.push(new),
    }
}
