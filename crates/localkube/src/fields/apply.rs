//! Server-side apply: a manager says which fields it wants and how, and owns them from then on.

use serde_json::{Value, json};

use super::entry::{Entry, Operation};
use super::managed::{entries_before_apply, take_entries, write};
use super::merge::{merge, remove};
use super::{FieldSet, Step, Writer, typed};
use crate::schema::{Place, Schema};
use crate::status::{Cause, Status};

/// kubectl keeps here what it applied when it still did so by itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const KUBECTL: &str = "kubectl";

/// Fields that another manager owns and that would change.
#[derive(Debug)]
struct Conflict {
    who: String,
    fields: FieldSet,
}

/// The object with a configuration applied and its owners noted, not yet with defaults; `live` is none where it does not
/// exist yet.
///
/// Fields that this manager applied before and lists no more are removed, unless somebody else owns them too. A change
/// to what somebody else owns is refused with 409, unless `force`.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    who: &Writer<'_>,
    force: bool,
) -> Result<Value, Status> {
    if config.pointer("/metadata/managedFields").is_some_and(|entries| !entries.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let place = Place::Known(schema);
    typed::check(place, config)?;
    let config = &without_resets(config, who);
    let mut entries = live.map(|live| entries_before_apply(schema, live, who)).unwrap_or_default();
    let mut live = live.cloned().unwrap_or_else(|| json!({}));
    take_entries(&mut live);

    let mut wanted = FieldSet::of(schema, config);
    who.strip(&mut wanted);
    let last = entries.iter().position(|entry| is_own(entry, who)).map(|at| entries.swap_remove(at));
    let mut object = merge(place, Some(&live), config);
    if let Some(last) = &last {
        let gone = unclaimed(place, last, &wanted, &entries);
        remove(place, &mut object, &gone);
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
        // Who applied nothing new keeps its time, even if it had none.
        if object == live {
            own.time = last.and_then(|last| last.time);
        }
        entries.push(own);
    }
    entries.retain(|entry| !entry.fields.is_empty());
    keep_last_applied(&mut object, config, who);
    write(&mut object, entries.iter().map(Entry::to_json).collect());
    Ok(object)
}

/// Whether an entry is what this manager applied before; it is the same manager in every version.
fn is_own(entry: &Entry, who: &Writer<'_>) -> bool {
    entry.operation == Operation::Apply
        && entry.manager == who.manager
        && entry.subresource == who.subresource.unwrap_or_default()
}

/// What was applied last and nobody claims now.
fn unclaimed(place: Place<'_>, last: &Entry, wanted: &FieldSet, others: &[Entry]) -> FieldSet {
    let mut claimed = wanted.clone();
    for entry in others {
        claimed.union(&entry.fields);
    }
    // Whatever is applied, an object keeps what makes it one.
    for key in ["apiVersion", "kind", "metadata"] {
        claimed.children.entry(Step::Field(key.to_owned())).or_default().member = true;
    }
    claimed.with_declared(place);
    let mut gone = last.fields.clone();
    gone.with_declared(place);
    gone.subtract(&claimed);
    gone
}

fn without_resets(config: &Value, who: &Writer<'_>) -> Value {
    let mut config = config.clone();
    for path in who.resets {
        let Some((last, above)) = path.split_last() else { continue };
        let place = above.iter().try_fold(&mut config, |place, key| place.get_mut(key));
        let identity = ["name", "namespace", "generateName"];
        match place.and_then(Value::as_object_mut) {
            // The name is not to be changed either, but it says which object is meant.
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

fn conflicts(entries: &[Entry], taken: &FieldSet) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = entries
        .iter()
        .map(|entry| Conflict { who: described(entry), fields: entry.fields.intersection(taken) })
        .filter(|conflict| !conflict.fields.is_empty())
        .collect();
    found.sort_by(|one, other| one.who.cmp(&other.who));
    found
}

/// `"kubectl" with subresource "scale" using apps/v1`; who applies uses all versions.
fn described(entry: &Entry) -> String {
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

/// Whether kubectl had applied all these fields by itself before it learned to ask the server.
fn were_kubectls(schema: &Schema, live: &Value, conflicts: &[Conflict], who: &Writer<'_>) -> bool {
    let last = live.get("metadata").and_then(|m| m.get("annotations")?.get(LAST_APPLIED)?.as_str());
    let last = last.filter(|_| who.manager == KUBECTL).and_then(|text| serde_json::from_str(text).ok());
    last.is_some_and(|last: Value| {
        let allowed = FieldSet::of(schema, &last);
        conflicts.iter().all(|conflict| {
            let mut left = conflict.fields.clone();
            left.subtract(&allowed);
            left.is_empty()
        })
    })
}

/// So that kubectl can go back to applying by itself.
fn keep_last_applied(object: &mut Value, config: &Value, who: &Writer<'_>) {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotation) = annotations.and_then(|all| all.get_mut(LAST_APPLIED))
        && who.manager == KUBECTL
    {
        let mut config = config.clone();
        config.sort_all_objects();
        *annotation = json!(format!("{config}\n"));
    }
}
