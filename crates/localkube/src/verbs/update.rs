//! The verb `update`, and the parts that it shares with `patch`.

use api::autoscaling::KubernetesProfile;
use api::field::FieldError;
use api::meta::validation;
use serde_json::{Value, json};

use super::admit;
use super::cause;
use super::create::meta;
use super::{ApiCall, CallBody, CallOutcome, WriteMode, create, decode, expect_name, expect_namespace};
use crate::catalog::ResourceOrigin;
use crate::fields;
use crate::object::{self, set, string};
use crate::status::Status;
use crate::store::{ObjectKey, Revision, StoredObject, WriteError};

/// The maximum number of attempts of a write without an expected revision.
const MAX_WRITE_ATTEMPTS: usize = 5;

/// Replaces an object.
pub(crate) async fn update(call: &ApiCall, value: Value) -> Result<CallOutcome, Status> {
    let key = call.key()?;
    expect_name(&key.name, &value)?;
    expect_namespace(call, &key, &value)?;
    if call.served.row().is_some_and(|row| row.made_by_update)
        && call.cluster.get(&call.served, &key).is_none()
    {
        return create::create(call, value).await;
    }
    change(call, &key, WriteMode::Whole, |_| Ok(value.clone())).await
}

/// Replaces an object by the result of `make`.
pub(crate) async fn change(
    call: &ApiCall,
    key: &ObjectKey,
    how: WriteMode,
    make: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<CallOutcome, Status> {
    for _ in 0..MAX_WRITE_ATTEMPTS {
        let stored = call.cluster.get(&call.served, key).ok_or_else(|| call.not_found(&key.name))?;
        let old = call.shown(&stored);
        let mut new = make(&old)?;
        decode::shape(call, &mut new)?;
        let pinned = expected(call, key, how, &stored, &old, &new)?;
        let new = settle(call, key, how, &old, new)?;
        admit::webhooks(call, "UPDATE", Some(&new), Some(&old)).await?;
        if call.dry_run() {
            return Ok(CallOutcome { code: 200, body: CallBody::Value(new) });
        }
        if new == old {
            return Ok(CallOutcome::stored(200, stored));
        }
        match write(call, key, &stored, new) {
            Ok(body) => return Ok(CallOutcome { code: 200, body }),
            Err(WriteError::Stale) if !pinned => {}
            Err(WriteError::Missing) => return Err(call.not_found(&key.name)),
            Err(_) => break,
        }
    }
    Err(Status::conflict(call.served.about(&key.name)))
}

/// Stores the object, or removes it if it only waited for its last finalizer. Watches see the removed object as it was,
/// the client as it would have been.
fn write(call: &ApiCall, key: &ObjectKey, stored: &StoredObject, new: Value) -> Result<CallBody, WriteError> {
    if is_released(&new) {
        let last = &mut object::unpack(stored);
        return call.cluster.remove(&call.served, key, stored.revision, last).map(|_| CallBody::Value(new));
    }
    let mut kept = call.kept(new);
    call.cluster.put(&call.served, key.clone(), stored.revision, &mut kept).map(CallBody::Stored)
}

/// Whether an object is being deleted and nothing holds it any more.
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

/// Checks the uid and revision that the client expects; returns whether it named a revision.
fn expected(
    call: &ApiCall,
    key: &ObjectKey,
    how: WriteMode,
    stored: &StoredObject,
    old: &Value,
    new: &Value,
) -> Result<bool, Status> {
    let uid = string(new, &["metadata", "uid"]);
    let old_uid = string(old, &["metadata", "uid"]);
    if how == WriteMode::Whole && !uid.is_empty() && uid != old_uid {
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
        if needed && how == WriteMode::Whole {
            let detail = "must be specified for an update";
            let fault = FieldError::invalid("metadata.resourceVersion", 0_i64, detail);
            return Err(Status::invalid(call.served.about(&key.name), vec![cause(&fault)]));
        }
        return Ok(false);
    }
    if revision == stored.revision.to_string() {
        // A partial change has the revision it is based on, and can be retried.
        return Ok(how == WriteMode::Whole);
    }
    if revision.parse::<Revision>().is_err() {
        return Err(Status::internal(format!("strconv.ParseUint: parsing {revision:?}: invalid syntax")));
    }
    Err(Status::conflict(call.served.about(&key.name)))
}

/// The etcd key on the real server, which some of its errors contain.
fn registry_key(call: &ApiCall, key: &ObjectKey) -> String {
    let served = &call.served;
    let group = if served.row().is_none() { format!("{}/", served.group) } else { String::new() };
    let namespace = if served.namespaced { format!("{}/", key.namespace) } else { String::new() };
    format!("/registry/{group}{}/{namespace}{}", served.plural, key.name)
}

/// Prepares and validates the object to be stored; restores what the request cannot change.
fn settle(
    call: &ApiCall,
    key: &ObjectKey,
    how: WriteMode,
    old: &Value,
    mut new: Value,
) -> Result<Value, Status> {
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
    if let ResourceOrigin::BuiltIn(kind) = &call.served.origin
        && !call.by_server
    {
        (kind.rules.update)(&mut new, old);
    }
    // For deployments, annotations change the generation as well.
    let annotated = call.served.row().is_some_and(|row| row.kind == "Deployment")
        && old.pointer("/metadata/annotations") != new.pointer("/metadata/annotations");
    let aside =
        if call.served.has_status(&call.version) { &["metadata", "status"][..] } else { &["metadata"] };
    let counts = call.counts_generation() && !status_only && !call.by_server;
    let changed = || match call.served.row().and_then(|row| row.rules.gated) {
        Some(gated) => (gated.spec_differs)(old, &new),
        None => differs(old, &new, aside),
    };
    if counts && (annotated || changed()) {
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        set(&mut new, &["metadata", "generation"], json!(generation + 1));
    }
    if how != WriteMode::Applied
        && let Some(schema) = call.served.schema(&call.version)
    {
        call.writing(|who| fields::record_update(&schema, Some(old), &mut new, who));
    }
    let faults = faults(call, &new, old, status_only);
    if faults.is_empty() { Ok(new) } else { Err(call.invalid(&key.name, &faults)) }
}

/// Restores the metadata that no client can change.
fn keep_metadata(call: &ApiCall, old: &Value, new: &mut Value, status_only: bool) {
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
    // Validation refuses changes of these fields.
    for field in ["generateName", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata.get(field).is_none_or(Value::is_null) {
            copy(before, metadata, field);
        }
    }
}

/// Restores everything except some fields.
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

/// Whether two objects differ outside of some fields.
fn differs(old: &Value, new: &Value, aside: &[&str]) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old != new };
    let looked_at = |key: &&String| !aside.contains(&key.as_str());
    let keys = old.keys().chain(new.keys()).filter(looked_at);
    keys.into_iter().any(|key| old.get(key) != new.get(key))
}

/// Validates changed metadata; unchanged metadata is accepted.
fn metadata_faults(new: &Value, old: &Value, profile: &KubernetesProfile) -> Vec<FieldError> {
    let unchanged = match (new.get("metadata"), old.get("metadata")) {
        (Some(new), Some(old)) => !differs(old, new, &["managedFields"]),
        _ => false,
    };
    if unchanged { Vec::new() } else { validation::validate_update(&meta(new), &meta(old), profile) }
}

fn faults(call: &ApiCall, new: &Value, old: &Value, status_only: bool) -> Vec<FieldError> {
    let gates = call.cluster.gates();
    let mut faults = metadata_faults(new, old, gates.profile());
    if let ResourceOrigin::Custom(_) = &call.served.origin {
        faults.retain(|fault| !validation::is_of_built_in_kinds(fault));
    }
    // The real server reports metadata errors of built-in kinds twice, and those of labels and annotations four times.
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
        (ResourceOrigin::BuiltIn(kind), _) => kind.rules.update_faults(new, old, status_only, gates),
        (ResourceOrigin::Custom(definition), _) => definition.validate(&call.version, new, Some(old)),
    });
    if status_only && call.served.row().is_none() {
        // Errors in the status of a custom resource are reported relative to the status.
        for fault in &mut faults {
            if let Some(rest) = fault.detail.strip_prefix("status.") {
                fault.detail = rest.to_owned();
            }
        }
    }
    faults
}
