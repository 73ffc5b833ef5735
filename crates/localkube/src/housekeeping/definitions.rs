//! Accepts the names of new definitions, and deletes the objects of definitions that are being deleted.

use std::sync::Arc;

use serde_json::Value;

use crate::catalog::{ResourceOrigin, ServedResource};
use crate::cluster::Cluster;
use crate::custom;
use crate::object::{self, set};
use crate::store::{ChangeRecord, ObjectKey};
use crate::verbs::delete::{DEFINITION_FINALIZER, DeleteOptions};
use crate::verbs::internal::InternalWriter;

pub(super) fn reconcile(cluster: &Cluster, served: &Arc<ServedResource>, change: &ChangeRecord) {
    let catalog = cluster.catalog();
    let Some(crds) = catalog.resource("apiextensions.k8s.io", "customresourcedefinitions") else { return };
    if served.id == crds.id {
        match &change.after {
            Some(after) if after.deleting => empty(cluster, crds, &change.key),
            Some(_) => accept(cluster, crds, &change.key),
            // The names of a deleted definition are free.
            None => {
                for (key, _) in cluster.objects(crds, None) {
                    accept(cluster, crds, &key);
                }
            }
        }
    } else if change.gone.is_some() && matches!(served.origin, ResourceOrigin::Custom(_)) {
        let key = ObjectKey::new("", &served.group_resource());
        if cluster.get(crds, &key).is_some_and(|definition| definition.deleting) {
            empty(cluster, crds, &key);
        }
    }
}

fn accept(cluster: &Cluster, crds: &Arc<ServedResource>, key: &ObjectKey) {
    let others: Vec<Value> = cluster
        .objects(crds, None)
        .iter()
        .filter(|(other, _)| other != key)
        .map(|(_, definition)| object::unpack(definition))
        .collect();
    let now = cluster.0.clock.now();
    cluster.edit(crds, key, InternalWriter::SERVER, |value| match custom::accepted(value, &others, now) {
        Some(status) => {
            set(value, &["status"], status);
            true
        }
        None => false,
    });
}

/// Deletes the objects of a definition, and removes the finalizer when none is left.
fn empty(cluster: &Cluster, crds: &Arc<ServedResource>, key: &ObjectKey) {
    let Some((plural, group)) = key.name.split_once('.') else { return };
    let catalog = cluster.catalog();
    let mut left = 0;
    if let Some(served) = catalog.resource(group, plural).filter(|served| served.row().is_none()) {
        for (key, _) in cluster.objects(served, None) {
            cluster.discard(served, &key, &DeleteOptions::background());
            left += usize::from(cluster.get(served, &key).is_some());
        }
    }
    if left == 0 {
        cluster.edit(crds, key, InternalWriter::CONTROLLER, |value| {
            super::take_off(value, "/metadata/finalizers", |finalizer| finalizer == DEFINITION_FINALIZER)
        });
    }
}
