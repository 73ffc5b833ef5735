//! Definitions of custom resources are accepted when they are new, and go after the last of their objects.

use std::sync::Arc;

use serde_json::Value;

use super::Editor;
use crate::catalog::{Origin, Served};
use crate::cluster::Cluster;
use crate::custom;
use crate::object::{self, set};
use crate::store::{Change, Key};
use crate::verbs::delete::Options;

/// Holds a definition that is deleted until its objects are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn tidy(cluster: &Cluster, served: &Arc<Served>, change: &Change) {
    let catalog = cluster.catalog();
    let Some(crds) = catalog.resource("apiextensions.k8s.io", "customresourcedefinitions") else { return };
    if served.id == crds.id {
        match &change.after {
            Some(after) if after.going => empty(cluster, crds, &change.key),
            Some(_) => accept(cluster, crds, &change.key),
            // Names it had are free for others.
            None => {
                for (key, _) in cluster.objects(crds, None) {
                    accept(cluster, crds, &key);
                }
            }
        }
    } else if change.gone.is_some() && matches!(served.origin, Origin::Custom(_)) {
        let key = Key::new("", &served.group_resource());
        if cluster.get(crds, &key).is_some_and(|definition| definition.going) {
            empty(cluster, crds, &key);
        }
    }
}

fn accept(cluster: &Cluster, crds: &Arc<Served>, key: &Key) {
    let others: Vec<Value> = cluster
        .objects(crds, None)
        .iter()
        .filter(|(other, _)| other != key)
        .map(|(_, definition)| object::unpack(definition))
        .collect();
    let now = cluster.0.clock.now();
    cluster.edit(crds, key, Editor::SERVER, |value| match custom::accepted(value, &others, now) {
        Some(status) => {
            set(value, &["status"], status);
            true
        }
        None => false,
    });
}

/// Deletes the objects of a definition, and lets it go when none is left.
fn empty(cluster: &Cluster, crds: &Arc<Served>, key: &Key) {
    let Some((plural, group)) = key.name.split_once('.') else { return };
    let catalog = cluster.catalog();
    let mut left = 0;
    if let Some(served) = catalog.resource(group, plural).filter(|served| served.row().is_none()) {
        for (key, _) in cluster.objects(served, None) {
            cluster.discard(served, &key, &Options::background());
            left += usize::from(cluster.get(served, &key).is_some());
        }
    }
    if left == 0 {
        cluster.edit(crds, key, Editor::CONTROLLER, |value| {
            super::take_off(value, "/metadata/finalizers", |finalizer| finalizer == FINALIZER)
        });
    }
}
