//! update, and what it shares with patch.

use api::field::FieldError;
use api::meta::validation;
use serde_json::{Value, json};

use super::cause;
use super::create::meta;
use super::patch::expect_name;
use super::{Body, Call, Outcome, create, decode};
use crate::admit;
use crate::catalog::Origin;
use crate::fields;
use crate::object::{self, set, string};
use crate::status::Status;
use crate::store::{Key, Object, Refusal, Revision};

/// How often a write without an expected revision is tried again when somebody else was faster.
const ATTEMPTS: usize = 5;

/// Puts what a client sent in the place of an object.
pub(crate) async fn update(call: &Call, value: Value) -> Result<Outcome, Status> {
    let key = call.key()?;
    expect_name(&key.name, &value)?;
    expect_namespace(call, &key, &value)?;
    if call.served.row().is_some_and(|row| row.made_by_update)
        && call.cluster.get(&call.served, &key).is_none()
    {
        return create::create(call, value).await;
    }
    change(call, &key, How::Whole, |_| Ok(value.clone())).await
}

/// Refuses an object that names another namespace than the path.
pub(crate) fn expect_namespace(call: &Call, key: &Key, value: &Value) -> Result<(), Status> {
    let namespace = string(value, &["metadata", "namespace"]);
    if call.served.namespaced && !namespace.is_empty() && namespace != key.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(text));
    }
    Ok(())
}

/// How an object is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It is replaced as a whole.
    Whole,
    /// It is changed in part, starting from what is stored.
    Part,
    /// A configuration is applied, and it is already noted who owns what.
    Applied,
}

/// Replaces an object by what `make` makes of it.
pub(crate) async fn change(
    call: &Call,
    key: &Key,
    how: How,
    make: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Outcome, Status> {
    for _ in 0..ATTEMPTS {
        let stored = call.cluster.get(&call.served, key).ok_or_else(|| call.not_found(&key.name))?;
        let old = call.shown(&stored);
        let mut new = make(&old)?;
        decode::shape(call, &mut new)?;
        let pinned = expected(call, key, how, &stored, &old, &new)?;
        let new = settle(call, key, how, &old, new)?;
        admit::webhooks(call, "UPDATE", Some(&new), Some(&old)).await?;
        if call.dry_run() {
            return Ok(Outcome { code: 200, body: Body::Value(new) });
        }
        if new == old {
            return Ok(Outcome::stored(200, stored));
        }
        match write(call, key, &stored, new) {
            Ok(body) => return Ok(Outcome { code: 200, body }),
            Err(Refusal::Stale) if !pinned => {}
            Err(Refusal::Missing) => return Err(call.not_found(&key.name)),
            Err(_) => break,
        }
    }
    Err(Status::conflict(call.served.about(&key.name)))
}

/// Stores the object, or removes it if it only waited for its last finalizer. Those who watch are shown the end of an
/// object as it was, and whoever ends it as it would have been.
fn write(call: &Call, key: &Key, stored: &Object, new: Value) -> Result<Body, Refusal> {
    if is_released(&new) {
        let last = &mut object::unpack(stored);
        return call.cluster.remove(&call.served, key, stored.revision, last).map(|_| Body::Value(new));
    }
    let mut kept = call.kept(new);
    call.cluster.put(&call.served, key.clone(), stored.revision, &mut kept).map(Body::Stored)
}

/// Whether an object is to go and nothing holds it any more.
pub(crate) fn is_released(value: &Value) -> bool {
    let metadata = value.get("metadata");
    let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
    let held = |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let grace = field("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    field("deletionTimestamp").is_some_and(|time| !time.is_null())
        && grace == 0
        && !held(field("finalizers"))
        && !(value.get("kind").is_some_and(|kind| kind == "Namespace")
            && held(value.pointer("/spec/finalizers")))
}

/// Checks which revision and object the client meant; whether it named a revision.
fn expected(
    call: &Call,
    key: &Key,
    how: How,
    stored: &Object,
    old: &Value,
    new: &Value,
) -> Result<bool, Status> {
    let uid = string(new, &["metadata", "uid"]);
    let old_uid = string(old, &["metadata", "uid"]);
    if how == How::Whole && !uid.is_empty() && uid != old_uid {
        let text = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {uid}, UID in object meta: {old_uid}",
            registry_key(call, key)
        );
        return Err(Status::conflict_because(call.served.about(&key.name), &text));
    }
    let revision = string(new, &["metadata", "resourceVersion"]);
    if revision.is_empty() || revision == "0" {
        let needed = call.served.row().is_none_or(|row| row.needs_revision);
        if needed && how == How::Whole {
            let detail = "must be specified for an update";
            let fault = FieldError::invalid("metadata.resourceVersion", 0_i64, detail);
            return Err(Status::invalid(call.served.about(&key.name), vec![cause(&fault)]));
        }
        return Ok(false);
    }
    if revision == stored.revision.to_string() {
        // A change in part has the revision of what it started from, and can start again.
        return Ok(how == How::Whole);
    }
    if revision.parse::<Revision>().is_err() {
        return Err(Status::internal(format!("strconv.ParseUint: parsing {revision:?}: invalid syntax")));
    }
    Err(Status::conflict(call.served.about(&key.name)))
}

/// Where the real server keeps an object, which some of its errors show.
fn registry_key(call: &Call, key: &Key) -> String {
    let served = &call.served;
    let group = if served.row().is_none() { format!("{}/", served.group) } else { String::new() };
    let namespace = if served.namespaced { format!("{}/", key.namespace) } else { String::new() };
    format!("/registry/{group}{}/{namespace}{}", served.plural, key.name)
}

/// The object as it will be stored: with what the request cannot change as it was.
fn settle(call: &Call, key: &Key, how: How, old: &Value, mut new: Value) -> Result<Value, Status> {
    let status_only = call.subresource.as_deref() == Some("status");
    keep_metadata(call, old, &mut new, status_only);
    if status_only {
        keep_all_but(&["metadata", "status"], old, &mut new);
        if call.served.row().is_some_and(|row| row.kind == "Deployment") {
            keep_labels(old, &mut new);
        }
    } else if call.served.has_status(&call.version) && !call.by_server {
        copy(old, &mut new, "status");
    }
    if let Origin::BuiltIn(kind) = &call.served.origin
        && !call.by_server
    {
        (kind.rules.update)(&mut new, old);
    }
    // Deployments count changes of annotations too.
    let annotated = call.served.row().is_some_and(|row| row.kind == "Deployment")
        && old.pointer("/metadata/annotations") != new.pointer("/metadata/annotations");
    let aside =
        if call.served.has_status(&call.version) { &["metadata", "status"][..] } else { &["metadata"] };
    let counts = call.served.generation && !status_only && !call.by_server;
    if counts && (annotated || differs(old, &new, aside)) {
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        set(&mut new, &["metadata", "generation"], json!(generation + 1));
    }
    if how != How::Applied
        && let Some(schema) = call.served.schema(&call.version)
    {
        call.writing(|who| fields::record_update(&schema, Some(old), &mut new, who));
    }
    let faults = faults(call, &new, old, status_only);
    if faults.is_empty() { Ok(new) } else { Err(call.invalid(&key.name, &faults)) }
}

/// What of metadata no writer can change.
fn keep_metadata(call: &Call, old: &Value, new: &mut Value, status_only: bool) {
    let Some(before) = old.get("metadata") else { return };
    if !new.get("metadata").is_some_and(Value::is_object) {
        set(new, &["metadata"], json!({}));
    }
    if status_only && call.served.row().is_none() {
        let managed = new.pointer("/metadata/managedFields").cloned();
        set(new, &["metadata"], before.clone());
        if let Some(managed) = managed {
            set(new, &["metadata", "managedFields"], managed);
        }
        return;
    }
    let Some(metadata) = new.get_mut("metadata") else { return };
    for field in ["namespace", "selfLink", "resourceVersion", "generation", "creationTimestamp"] {
        copy(before, metadata, field);
    }
    // What is given here must be what it was; validation sees to that.
    for field in ["generateName", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata.get(field).is_none_or(Value::is_null) {
            copy(before, metadata, field);
        }
    }
}

/// Makes everything but some fields what it was.
fn keep_all_but(aside: &[&str], old: &Value, new: &mut Value) {
    let (Some(before), Some(map)) = (old.as_object(), new.as_object_mut()) else { return };
    map.retain(|field, _| aside.contains(&field.as_str()) || before.contains_key(field));
    for (field, value) in before.iter().filter(|(field, _)| !aside.contains(&field.as_str())) {
        if map.get(field) != Some(value) {
            map.insert(field.clone(), value.clone());
        }
    }
}

fn keep_labels(old: &Value, new: &mut Value) {
    if let (Some(before), Some(metadata)) = (old.get("metadata"), new.get_mut("metadata")) {
        copy(before, metadata, "labels");
    }
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    let Some(map) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => {
            map.insert(field.to_owned(), value.clone());
        }
        None => {
            map.shift_remove(field);
        }
    }
}

/// Whether two objects differ beside some fields.
fn differs(old: &Value, new: &Value, aside: &[&str]) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old != new };
    let looked_at = |key: &&String| !aside.contains(&key.as_str());
    let keys = old.keys().chain(new.keys()).filter(looked_at);
    keys.into_iter().any(|key| old.get(key) != new.get(key))
}

/// What is wrong with changed metadata; what did not change was good enough before.
fn metadata_faults(new: &Value, old: &Value) -> Vec<FieldError> {
    let unchanged = match (new.get("metadata"), old.get("metadata")) {
        (Some(new), Some(old)) => !differs(old, new, &["managedFields"]),
        _ => false,
    };
    if unchanged { Vec::new() } else { validation::validate_update(&meta(new), &meta(old)) }
}

fn faults(call: &Call, new: &Value, old: &Value, status_only: bool) -> Vec<FieldError> {
    let mut faults = metadata_faults(new, old);
    if let Origin::Custom(_) = &call.served.origin {
        faults.retain(|fault| !validation::is_of_built_in_kinds(fault));
    }
    // Built-in kinds look at metadata twice, and twice as often at labels and annotations.
    if call.served.row().is_some() {
        let tags =
            |fault: &&FieldError| matches!(fault.field.as_str(), "metadata.labels" | "metadata.annotations");
        let again: Vec<FieldError> = faults.iter().filter(tags).cloned().collect();
        faults.extend(faults.clone());
        faults.extend(again.iter().cloned());
        faults.extend(again);
    }
    if !call.served.namespaced {
        faults.retain(|fault| fault.field != "metadata.namespace");
    }
    if call.by_server {
        return faults;
    }
    faults.extend(match (&call.served.origin, status_only) {
        (Origin::BuiltIn(kind), false) => (kind.rules.validate_update)(new, old),
        (Origin::BuiltIn(kind), true) => (kind.rules.validate_status)(new, old),
        (Origin::Custom(definition), _) => definition.validate(&call.version, new, Some(old)),
    });
    if status_only && call.served.row().is_none() {
        // The status of a custom resource is looked at by itself.
        for fault in &mut faults {
            if let Some(rest) = fault.detail.strip_prefix("status.") {
                fault.detail = rest.to_owned();
            }
        }
    }
    faults
}
