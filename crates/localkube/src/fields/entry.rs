//! Entries of `metadata.managedFields` and their order.

use serde_json::{Value, json};

use super::FieldSet;

/// The operation of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct ManagedEntry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

/// The maximum number of update entries; older ones are merged into one.
const MAX_UPDATE_ENTRIES: usize = 10;
const ANCIENT_MANAGER: &str = "ancient-changes";

impl ManagedEntry {
    pub(super) fn from_json(json: &Value) -> Self {
        let owned = |key: &str| text(json, key).unwrap_or_default().to_owned();
        Self {
            manager: owned("manager"),
            operation: operation(json),
            api_version: owned("apiVersion"),
            subresource: owned("subresource"),
            time: text(json, "time").map(str::to_owned),
            fields: json.get("fieldsV1").map(FieldSet::from_json).unwrap_or_default(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut json = json!({
            "manager": self.manager,
            "operation": operation,
            "apiVersion": self.api_version,
        });
        if let Value::Object(map) = &mut json {
            map.extend(self.time.clone().map(|time| ("time".to_owned(), json!(time))));
            map.insert("fieldsType".to_owned(), json!("FieldsV1"));
            map.insert("fieldsV1".to_owned(), self.fields.to_json());
            if !self.subresource.is_empty() {
                map.insert("subresource".to_owned(), json!(self.subresource));
            }
        }
        json
    }
}

pub(super) fn text<'v>(entry: &'v Value, key: &str) -> Option<&'v str> {
    entry.get(key).and_then(Value::as_str)
}

pub(super) fn operation(entry: &Value) -> Operation {
    if text(entry, "operation") == Some("Apply") { Operation::Apply } else { Operation::Update }
}

/// Sorts entries as the API server does, after merging surplus update entries.
pub(super) fn arrange(entries: &mut Vec<Value>) {
    entries.sort_by(|one, other| rank(one).cmp(&rank(other)));
    let appliers = entries.iter().filter(|entry| operation(entry) == Operation::Apply).count();
    let Some(surplus) =
        (entries.len() - appliers).checked_sub(MAX_UPDATE_ENTRIES).filter(|surplus| *surplus > 0)
    else {
        return;
    };
    // Appliers come first, then the oldest updaters.
    let mut ancient: Vec<ManagedEntry> = Vec::new();
    for entry in entries.drain(appliers..=appliers + surplus) {
        let entry = ManagedEntry::from_json(&entry);
        match ancient.iter_mut().find(|ancient| ancient.api_version == entry.api_version) {
            Some(ancient) => {
                ancient.fields.union(&entry.fields);
                ancient.time = entry.time;
            }
            None => {
                ancient.push(ManagedEntry {
                    manager: ANCIENT_MANAGER.to_owned(),
                    subresource: String::new(),
                    ..entry
                });
            }
        }
    }
    entries.extend(ancient.iter().map(ManagedEntry::to_json));
    entries.sort_by(|one, other| rank(one).cmp(&rank(other)));
}

/// Appliers first, then by time; entries without a time come first.
fn rank(entry: &Value) -> (Operation, [Option<&str>; 4]) {
    (operation(entry), ["time", "manager", "apiVersion", "subresource"].map(|key| text(entry, key)))
}
