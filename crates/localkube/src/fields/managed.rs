//! `metadata.managedFields`: which manager wrote which fields, when and how.

use serde_json::{Map, Value, json};

use super::entry::{ManagedEntry, Operation, arrange, operation, text};
use super::{FieldDiff, FieldSet, PathStep, compare};
use crate::schema::Schema;

/// The user that writes.
#[derive(Clone, Copy)]
pub struct FieldWriter<'a> {
    /// The manager's name.
    pub manager: &'a str,
    /// The version of the write with its group: `apps/v1`.
    pub api_version: &'a str,
    /// The subresource of the write.
    pub subresource: Option<&'a str>,
    /// The time in the API's format.
    pub now: &'a str,
    /// Paths that a write to this resource or subresource does not change; see [`resets`].
    pub resets: &'a [&'a [&'a str]],
    /// Converts the object to another version; `None` where all versions have the same fields.
    pub convert: Option<ConvertVersion<'a>>,
}

/// Converts an object to the named version.
pub type ConvertVersion<'a> = &'a dyn Fn(&Value, &str) -> Option<Value>;

/// The manager of fields that were written before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Metadata fields without an owner.
const UNOWNED_METADATA: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// The paths that a write to a resource (`subresource` is `None`) or to its status does not change.
pub fn resets(kind: &str, custom: bool, subresource: Option<&str>) -> &'static [&'static [&'static str]] {
    match (subresource, kind) {
        (None, _) => &[&["status"]],
        (Some("status"), _) if custom => &[&["spec"], &["metadata"]],
        (Some("status"), "APIService") => &[&["spec"], &["metadata"]],
        (Some("status"), "Deployment") => &[&["spec"], &["metadata", "labels"]],
        (Some("status"), "Pod") => &[&["spec"], &["metadata", "ownerReferences"]],
        (Some("status"), _) => &[&["spec"]],
        (Some(_), _) => &[],
    }
}

/// Updates the managed fields in `new` after a create (`live` is `None`), an update or a patch other than apply.
///
/// Call this after defaulting and before the server adds its own values, such as a cluster IP.
pub fn record_update(schema: &Schema, live: Option<&Value>, new: &mut Value, who: &FieldWriter<'_>) {
    let given = take_entries(new);
    let kept = live.and_then(entries_of);
    let mut entries = match (live, given) {
        (Some(_), Some(given)) if is_reset(&given) => return,
        // Managed fields were reset: they are not tracked until the next apply.
        (Some(_), _) if kept.is_none_or(<[Value]>::is_empty) => return,
        (_, Some(given)) if who.subresource.is_none() && !given.is_empty() => given,
        _ => kept.unwrap_or_default().to_vec(),
    };
    let nothing = json!({});
    let before = live.unwrap_or(&nothing);
    let (taken, removed) = who.changes(schema, before, new).split();
    let mut is_noted = taken.is_empty();
    entries.retain_mut(|entry| {
        let version = text(entry, "apiVersion").unwrap_or_default();
        let other = if version == who.api_version { None } else { who.in_version(version, before, new) };
        let Some(fields) = entry.get("fieldsV1") else { return true };
        match &other {
            // The manager owns all changed fields already: only the time changes.
            None if who.is(entry, Operation::Update)
                && taken.is_within(fields)
                && !removed.touches(fields) =>
            {
                if !taken.is_empty() {
                    set(entry, "time", who.time());
                    is_noted = true;
                }
                true
            }
            None => lose(entry, &taken, &removed),
            Some((taken, removed)) => lose(entry, taken, removed),
        }
    });
    if !is_noted {
        own(&mut entries, taken, who);
    }
    write(new, entries);
}

/// The entries of an object; an object without entries gets one for all its fields.
pub(super) fn entries_before_apply(
    schema: &Schema,
    live: &Value,
    who: &FieldWriter<'_>,
) -> Vec<ManagedEntry> {
    match entries_of(live) {
        Some(entries) if !entries.is_empty() => entries.iter().map(ManagedEntry::from_json).collect(),
        _ => {
            let fields = who.changes(schema, &json!({}), live).added;
            let nobody = FieldWriter { manager: BEFORE_FIRST_APPLY, subresource: None, ..*who };
            if fields.is_empty() { Vec::new() } else { vec![nobody.entry(Operation::Update, fields)] }
        }
    }
}

/// Stores entries in an object.
pub(super) fn write(object: &mut Value, mut entries: Vec<Value>) {
    arrange(&mut entries);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && !entries.is_empty()
    {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// Removes the entries from an object.
pub(super) fn take_entries(object: &mut Value) -> Option<Vec<Value>> {
    match object.get_mut("metadata")?.as_object_mut()?.shift_remove("managedFields")? {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

impl FieldWriter<'_> {
    /// The fields in which two objects differ, without those that this writer cannot change.
    pub(super) fn changes(&self, schema: &Schema, old: &Value, new: &Value) -> FieldDiff {
        let mut found = compare(schema, old, new);
        for set in [&mut found.added, &mut found.modified, &mut found.removed] {
            self.strip(set);
        }
        found
    }

    /// Removes fields without an owner, and fields that this writer cannot change.
    pub(super) fn strip(&self, set: &mut FieldSet) {
        set.member = false;
        for key in ["apiVersion", "kind"] {
            set.children.remove(&PathStep::Field(key.to_owned()));
        }
        let metadata = PathStep::Field("metadata".to_owned());
        if let Some(below) = set.children.get_mut(&metadata) {
            below.member = false;
            below.children.retain(
                |step, _| !matches!(step, PathStep::Field(key) if UNOWNED_METADATA.contains(&key.as_str())),
            );
            if below.children.is_empty() {
                set.children.remove(&metadata);
            }
        }
        for path in self.resets {
            let mut reset = FieldSet { member: true, ..FieldSet::default() };
            for key in path.iter().rev() {
                let mut above = FieldSet::default();
                above.put(PathStep::Field((*key).to_owned()), reset);
                reset = above;
            }
            set.subtract_all_below(&reset);
        }
    }

    fn in_version(&self, version: &str, old: &Value, new: &Value) -> Option<(FieldSet, FieldSet)> {
        let convert = self.convert?;
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        let kind = new.get("kind").and_then(Value::as_str)?;
        let schema = crate::schema::built_in(group, short, kind)?;
        Some(self.changes(&schema, &convert(old, version)?, &convert(new, version)?).split())
    }

    /// Whether an entry belongs to this writer.
    fn is(&self, entry: &Value, done: Operation) -> bool {
        text(entry, "manager") == Some(self.manager)
            && operation(entry) == done
            && text(entry, "subresource") == self.subresource
            && text(entry, "apiVersion") == Some(self.api_version)
    }

    pub(super) fn entry(&self, operation: Operation, fields: FieldSet) -> ManagedEntry {
        ManagedEntry {
            manager: self.manager.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.unwrap_or_default().to_owned(),
            time: self.time().map(str::to_owned),
            fields,
        }
    }

    /// Entries of the scale subresource have no time.
    fn time(&self) -> Option<&str> {
        (self.subresource != Some("scale")).then_some(self.now)
    }
}

/// Removes fields from an entry; returns whether any are left.
fn lose(entry: &mut Value, taken: &FieldSet, removed: &FieldSet) -> bool {
    let Some(fields) = entry.get_mut("fieldsV1") else { return true };
    if taken.touches(fields) || removed.touches(fields) {
        let mut left = FieldSet::from_json(fields);
        left.subtract(taken);
        left.subtract(removed);
        *fields = left.to_json();
        return !left.is_empty();
    }
    true
}

fn own(entries: &mut Vec<Value>, fields: FieldSet, who: &FieldWriter<'_>) {
    let mut own = who.entry(Operation::Update, fields);
    if let Some(at) = entries.iter().position(|entry| who.is(entry, Operation::Update)) {
        own.fields.union(&ManagedEntry::from_json(&entries.swap_remove(at)).fields);
    }
    entries.push(own.to_json());
}

fn set(entry: &mut Value, key: &str, value: Option<&str>) {
    if let (Some(map), Some(value)) = (entry.as_object_mut(), value) {
        map.insert(key.to_owned(), json!(value));
    }
}

/// `[]` and `[{}]` reset the managed fields.
fn is_reset(given: &[Value]) -> bool {
    given.iter().all(|entry| entry.as_object().is_some_and(Map::is_empty)) && given.len() < 2
}

fn entries_of(object: &Value) -> Option<&[Value]> {
    object.get("metadata")?.get("managedFields")?.as_array().map(Vec::as_slice)
}
