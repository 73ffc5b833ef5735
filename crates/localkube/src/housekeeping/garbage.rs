//! Objects whose owners are gone go too; owners that wait for what they own go when that is gone.

use std::sync::Arc;

use serde_json::Value;

use super::{Editor, take_off};
use crate::catalog::Served;
use crate::cluster::Cluster;
use crate::object;
use crate::store::{Change, Key, Object, Resource};
use crate::verbs::delete::Options;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub(super) fn tidy(cluster: &Cluster, served: &Arc<Served>, change: &Change) {
    if let Some(gone) = &change.gone {
        for (resource, key) in owned(cluster, &gone.uid) {
            release(cluster, resource, &key);
        }
        for owner in &gone.owners {
            let place = cluster.store().place(owner).cloned();
            if let Some((resource, key)) = place
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
        if after.going {
            advance(cluster, served, &change.key);
        }
    }
}

fn owned(cluster: &Cluster, uid: &str) -> Vec<(Resource, Key)> {
    cluster.store().owned_by(uid).cloned().collect()
}

/// Deletes an object none of whose owners is left, or takes those that are gone off its list.
fn release(cluster: &Cluster, resource: Resource, key: &Key) {
    let Some(served) = cluster.served(resource) else { return };
    let Some(stored) = cluster.get(&served, key) else { return };
    let gone: Vec<&str> = {
        let store = cluster.store();
        // An owner in another namespace is no owner.
        let seen = |uid: &str| {
            store.place(uid).is_some_and(|(_, o)| o.namespace.is_empty() || o.namespace == key.namespace)
        };
        stored.owners.iter().map(|uid| &**uid).filter(|uid| !seen(uid)).collect()
    };
    if gone.is_empty() {
        return;
    }
    if gone.len() == stored.owners.len() {
        cluster.discard(&served, key, &Options::background());
        return;
    }
    cluster.edit(&served, key, Editor::CONTROLLER, |value| disown(value, |uid| gone.contains(&uid)));
}

fn disown(value: &mut Value, is: impl Fn(&str) -> bool) -> bool {
    take_off(value, "/metadata/ownerReferences", |owner| is(object::string(owner, &["uid"])))
}

/// Does what an object that is going waits for: its dependents deleted, or told that they are on their own.
fn advance(cluster: &Cluster, served: &Arc<Served>, key: &Key) {
    let Some(stored) = cluster.get(served, key).filter(|stored| stored.going) else { return };
    let value = object::unpack(&stored);
    let has = |finalizer: &str| {
        let all = value.pointer("/metadata/finalizers").and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|other| other == finalizer))
    };
    if has(ORPHAN) {
        for (resource, key) in owned(cluster, &stored.uid) {
            if let Some(served) = cluster.served(resource) {
                cluster.edit(&served, &key, Editor::CONTROLLER, |value| {
                    disown(value, |uid| uid == &*stored.uid)
                });
            }
        }
        finish(cluster, served, key, ORPHAN);
    } else if has(FOREGROUND) {
        let blocking = owned(cluster, &stored.uid).into_iter().filter(|(resource, key)| {
            let child = cluster.served(*resource).and_then(|served| cluster.get(&served, key));
            child.is_some_and(|child| delete_child(cluster, *resource, key, &child, &stored.uid))
        });
        if blocking.count() == 0 {
            finish(cluster, served, key, FOREGROUND);
        }
    }
}

/// Deletes a dependent; whether its owner must wait for it.
fn delete_child(cluster: &Cluster, resource: Resource, key: &Key, child: &Object, owner: &str) -> bool {
    let value = object::unpack(child);
    let references = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let reference =
        references.into_iter().flatten().find(|reference| object::string(reference, &["uid"]) == owner);
    let blocks = reference.and_then(|reference| reference.get("blockOwnerDeletion")).and_then(Value::as_bool);
    if !child.going
        && let Some(served) = cluster.served(resource)
    {
        let has_children = cluster.store().owned_by(&child.uid).next().is_some();
        let options = if has_children { Options::foreground() } else { Options::background() };
        cluster.discard(&served, key, &options);
        if cluster.get(&served, key).is_none() {
            return false;
        }
    }
    blocks == Some(true)
}

fn finish(cluster: &Cluster, served: &Arc<Served>, key: &Key, finalizer: &str) {
    cluster.edit(served, key, Editor::CONTROLLER, |value| {
        take_off(value, "/metadata/finalizers", |other| other == finalizer)
    });
}
