//! Namespaces: deletes the contents of terminating ones, and creates the default contents of new ones.

use std::sync::Arc;

use crate::catalog::ServedResource;
use crate::cluster::Cluster;
use crate::store::{ChangeRecord, ObjectKey};
use crate::verbs::create::{DEFAULT_SERVICE_ACCOUNT, ROOT_CA_CONFIG_MAP, populate};
use crate::verbs::delete::DeleteOptions;
use crate::verbs::internal::InternalWriter;

pub(super) fn reconcile(cluster: &Cluster, served: &Arc<ServedResource>, change: &ChangeRecord) {
    let catalog = cluster.catalog();
    let Some(namespaces) = catalog.resource("", "namespaces") else { return };
    let name = if served.id == namespaces.id {
        &change.key.name
    } else if change.gone.is_some() && !change.key.namespace.is_empty() {
        &change.key.namespace
    } else {
        return;
    };
    let key = ObjectKey::new("", name);
    let Some(namespace) = cluster.get(namespaces, &key) else { return };
    if namespace.deleting {
        empty(cluster, namespaces, name);
    } else if matches!(change.key.name.as_str(), DEFAULT_SERVICE_ACCOUNT | ROOT_CA_CONFIG_MAP) {
        let (cluster, name) = (cluster.clone(), name.clone());
        tokio::spawn(async move { populate(&cluster, &name).await });
    }
}

/// Deletes the contents of a namespace, and removes its finalizer when nothing is left.
fn empty(cluster: &Cluster, namespaces: &Arc<ServedResource>, name: &str) {
    let catalog = cluster.catalog();
    let inside = catalog.all().filter(|served| served.namespaced);
    let mut left = 0;
    for served in inside {
        for (key, object) in cluster.objects(served, Some(name)) {
            if !object.deleting {
                cluster.discard(served, &key, &DeleteOptions::background());
            }
            left += usize::from(cluster.get(served, &key).is_some());
        }
    }
    if left == 0 {
        cluster.edit(namespaces, &ObjectKey::new("", name), InternalWriter::CONTROLLER, |value| {
            super::take_off(value, "/spec/finalizers", |finalizer| finalizer == "kubernetes")
        });
    }
}
