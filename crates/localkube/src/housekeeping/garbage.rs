//! Garbage collection: objects without an existing owner are deleted, and foreground deletion waits for dependents.

use std::sync::Arc;

use serde_json::Value;

use super::take_off;
use crate::catalog::ServedResource;
use crate::cluster::Cluster;
use crate::object;
use crate::store::{ChangeRecord, ObjectKey, ResourceId, StoredObject};
use crate::verbs::delete::DeleteOptions;
use crate::verbs::internal::InternalWriter;

const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
const ORPHAN_FINALIZER: &str = "orphan";

pub(super) fn reconcile(cluster: &Cluster, served: &Arc<ServedResource>, change: &ChangeRecord) {
    if let Some(gone) = &change.gone {
        for (resource, key) in owned(cluster, &gone.uid) {
            release(cluster, resource, &key);
        }
        for owner in &gone.owners {
            let find_by_uid = cluster.store().find_by_uid(owner).cloned();
            if let Some((resource, key)) = find_by_uid
                && let Some(served) = cluster.served(resource)
            {
                advance(cluster, &served, &key);
            }
        }
    }
    if let Some(after) = &change.after {
        if change.before.is_none() && !after.owners.is_empty() {
            release(cluster, served.id, &change.key);
        }
        if after.deleting {
            advance(cluster, served, &change.key);
        }
    }
}

fn owned(cluster: &Cluster, uid: &str) -> Vec<(ResourceId, ObjectKey)> {
    cluster.store().owned_by(uid).cloned().collect()
}

/// Deletes an object that has no existing owner, or removes the owners that are gone from its list.
fn release(cluster: &Cluster, resource: ResourceId, key: &ObjectKey) {
    let Some(served) = cluster.served(resource) else { return };
    let Some(stored) = cluster.get(&served, key) else { return };
    let gone: Vec<&str> = {
        let store = cluster.store();
        // An owner must be cluster-scoped or in the same namespace.
        let seen = |uid: &str| {
            store
                .find_by_uid(uid)
                .is_some_and(|(_, o)| o.namespace.is_empty() || o.namespace == key.namespace)
        };
        stored.owners.iter().map(|uid| &**uid).filter(|uid| !seen(uid)).collect()
    };
    if gone.is_empty() {
        return;
    }
    if gone.len() == stored.owners.len() {
        cluster.discard(&served, key, &DeleteOptions::background());
        return;
    }
    cluster.edit(&served, key, InternalWriter::CONTROLLER, |value| disown(value, |uid| gone.contains(&uid)));
}

fn disown(value: &mut Value, is: impl Fn(&str) -> bool) -> bool {
    take_off(value, "/metadata/ownerReferences", |owner| is(object::string(owner, &["uid"])))
}

/// Advances the deletion of an object: deletes or orphans its dependents.
fn advance(cluster: &Cluster, served: &Arc<ServedResource>, key: &ObjectKey) {
    let Some(stored) = cluster.get(served, key).filter(|stored| stored.deleting) else { return };
    let value = object::unpack(&stored);
    let has = |finalizer: &str| {
        let all = value.pointer("/metadata/finalizers").and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|other| other == finalizer))
    };
    if has(ORPHAN_FINALIZER) {
        for (resource, key) in owned(cluster, &stored.uid) {
            if let Some(served) = cluster.served(resource) {
                cluster.edit(&served, &key, InternalWriter::CONTROLLER, |value| {
                    disown(value, |uid| uid == &*stored.uid)
                });
            }
        }
        finish(cluster, served, key, ORPHAN_FINALIZER);
    } else if has(FOREGROUND_FINALIZER) {
        let blocking = owned(cluster, &stored.uid).into_iter().filter(|(resource, key)| {
            let child = cluster.served(*resource).and_then(|served| cluster.get(&served, key));
            child.is_some_and(|child| delete_child(cluster, *resource, key, &child, &stored.uid))
        });
        if blocking.count() == 0 {
            finish(cluster, served, key, FOREGROUND_FINALIZER);
        }
    }
}

/// Deletes a dependent; returns whether its owner must wait for it.
fn delete_child(
    cluster: &Cluster,
    resource: ResourceId,
    key: &ObjectKey,
    child: &StoredObject,
    owner: &str,
) -> bool {
    let value = object::unpack(child);
    let references = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let reference =
        references.into_iter().flatten().find(|reference| object::string(reference, &["uid"]) == owner);
    let blocks = reference.and_then(|reference| reference.get("blockOwnerDeletion")).and_then(Value::as_bool);
    if !child.deleting
        && let Some(served) = cluster.served(resource)
    {
        let has_children = cluster.store().owned_by(&child.uid).next().is_some();
        let options = if has_children { DeleteOptions::foreground() } else { DeleteOptions::background() };
        cluster.discard(&served, key, &options);
        if cluster.get(&served, key).is_none() {
            return false;
        }
    }
    blocks == Some(true)
}

fn finish(cluster: &Cluster, served: &Arc<ServedResource>, key: &ObjectKey, finalizer: &str) {
    cluster.edit(served, key, InternalWriter::CONTROLLER, |value| {
        take_off(value, "/metadata/finalizers", |other| other == finalizer)
    });
}
