//! Server-side apply: a manager applies a configuration and owns its fields.

use serde_json::{Value, json};

use super::entry::{ManagedEntry, Operation};
use super::managed::{entries_before_apply, take_entries, write};
use super::merge::{merge, remove};
use super::{FieldSet, FieldWriter, PathStep, typed};
use crate::schema::{Schema, SchemaCursor};
use crate::status::{Cause, Status};

/// The annotation in which client-side `kubectl apply` keeps its last configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const KUBECTL_MANAGER: &str = "kubectl";

/// Fields of another manager that would change.
#[derive(Debug)]
struct Conflict {
    who: String,
    fields: FieldSet,
}

/// Applies a configuration and records its owner; defaults are not applied yet. `live` is `None` if the object does not
/// exist.
///
/// Fields that this manager applied before and no longer lists are removed, unless another manager owns them. Changing
/// a field of another manager is a conflict (409), unless `force`.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    who: &FieldWriter<'_>,
    force: bool,
) -> Result<Value, Status> {
    if config.pointer("/metadata/managedFields").is_some_and(|entries| !entries.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let cursor = SchemaCursor::Known(schema);
    typed::check(cursor, config)?;
    let config = &without_resets(config, who);
    let mut entries = live.map(|live| entries_before_apply(schema, live, who)).unwrap_or_default();
    let mut live = live.cloned().unwrap_or_else(|| json!({}));
    take_entries(&mut live);

    let mut wanted = FieldSet::of(schema, config);
    who.strip(&mut wanted);
    let last = entries.iter().position(|entry| is_own(entry, who)).map(|at| entries.swap_remove(at));
    let mut object = merge(cursor, Some(&live), config);
    if let Some(last) = &last {
        let gone = unclaimed(cursor, last, &wanted, &entries);
        remove(cursor, &mut object, &gone);
    }

    let changes = who.changes(schema, &live, &object);
    let (taken, removed) = changes.split();
    let conflicts = conflicts(&entries, &taken);
    if !force && !conflicts.is_empty() && !were_kubectls(schema, &live, &conflicts, who) {
        return Err(refuse(&conflicts));
    }
    for entry in &mut entries {
        entry.fields.subtract(&taken);
        entry.fields.subtract(&removed);
    }
    if !wanted.is_empty() {
        let mut own = who.entry(Operation::Apply, wanted);
        // A manager that changes nothing keeps its time, even if it has none.
        if object == live {
            own.time = last.and_then(|last| last.time);
        }
        entries.push(own);
    }
    entries.retain(|entry| !entry.fields.is_empty());
    keep_last_applied(&mut object, config, who);
    write(&mut object, entries.iter().map(ManagedEntry::to_json).collect());
    Ok(object)
}

/// Whether an entry is this manager's earlier apply, in any version.
fn is_own(entry: &ManagedEntry, who: &FieldWriter<'_>) -> bool {
    entry.operation == Operation::Apply
        && entry.manager == who.manager
        && entry.subresource == who.subresource.unwrap_or_default()
}

/// The fields of the last apply that no manager claims now.
fn unclaimed(
    cursor: SchemaCursor<'_>,
    last: &ManagedEntry,
    wanted: &FieldSet,
    others: &[ManagedEntry],
) -> FieldSet {
    let mut claimed = wanted.clone();
    for entry in others {
        claimed.union(&entry.fields);
    }
    // An object always keeps these fields.
    for key in ["apiVersion", "kind", "metadata"] {
        claimed.children.entry(PathStep::Field(key.to_owned())).or_default().member = true;
    }
    claimed.with_declared(cursor);
    let mut gone = last.fields.clone();
    gone.with_declared(cursor);
    gone.subtract(&claimed);
    gone
}

fn without_resets(config: &Value, who: &FieldWriter<'_>) -> Value {
    let mut config = config.clone();
    for path in who.resets {
        let Some((last, above)) = path.split_last() else { continue };
        let cursor = above.iter().try_fold(&mut config, |cursor, key| cursor.get_mut(key));
        let identity = ["name", "namespace", "generateName"];
        match cursor.and_then(Value::as_object_mut) {
            // The name cannot change, but it identifies the object.
            Some(map) if path == &["metadata"] => {
                if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
                    metadata.retain(|key, _| identity.contains(&key.as_str()));
                }
            }
            Some(map) => {
                map.shift_remove(*last);
            }
            None => {}
        }
    }
    config
}

fn conflicts(entries: &[ManagedEntry], taken: &FieldSet) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = entries
        .iter()
        .map(|entry| Conflict { who: described(entry), fields: entry.fields.intersection(taken) })
        .filter(|conflict| !conflict.fields.is_empty())
        .collect();
    found.sort_by(|one, other| one.who.cmp(&other.who));
    found
}

/// `"kubectl" with subresource "scale" using apps/v1`; appliers have no version.
fn described(entry: &ManagedEntry) -> String {
    let mut text = format!("\"{}\"", entry.manager);
    if !entry.subresource.is_empty() {
        text.push_str(&format!(" with subresource \"{}\"", entry.subresource));
    }
    if entry.operation == Operation::Update {
        text.push_str(&format!(" using {}", entry.api_version));
    }
    text
}

fn refuse(conflicts: &[Conflict]) -> Status {
    let each = conflicts.iter().flat_map(|conflict| {
        conflict.fields.paths().into_iter().map(|field| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", conflict.who),
            field,
        })
    });
    let causes: Vec<Cause> = each.collect();
    let text = match causes.as_slice() {
        [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
        _ => {
            let groups = conflicts.iter().map(|conflict| {
                let paths = conflict.fields.paths();
                let lines: Vec<String> = paths.iter().map(|path| format!("- {path}")).collect();
                format!("conflicts with {}:\n{}", conflict.who, lines.join("\n"))
            });
            let groups: Vec<String> = groups.collect();
            format!("Apply failed with {} conflicts: {}", causes.len(), groups.join("\n"))
        }
    };
    Status { code: 409, reason: "Conflict", causes, ..Status::bad_request(text) }
}

/// Whether client-side `kubectl apply` set all these fields before.
fn were_kubectls(schema: &Schema, live: &Value, conflicts: &[Conflict], who: &FieldWriter<'_>) -> bool {
    let last = live.get("metadata").and_then(|m| m.get("annotations")?.get(LAST_APPLIED)?.as_str());
    let last =
        last.filter(|_| who.manager == KUBECTL_MANAGER).and_then(|text| serde_json::from_str(text).ok());
    last.is_some_and(|last: Value| {
        let allowed = FieldSet::of(schema, &last);
        conflicts.iter().all(|conflict| {
            let mut left = conflict.fields.clone();
            left.subtract(&allowed);
            left.is_empty()
        })
    })
}

/// Updates the annotation, so that client-side `kubectl apply` keeps working.
fn keep_last_applied(object: &mut Value, config: &Value, who: &FieldWriter<'_>) {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotation) = annotations.and_then(|all| all.get_mut(LAST_APPLIED))
        && who.manager == KUBECTL_MANAGER
    {
        let mut config = config.clone();
        config.sort_all_objects();
        *annotation = json!(format!("{config}\n"));
    }
}
