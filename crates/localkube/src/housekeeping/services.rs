//! Availability of aggregated APIs.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::aggregate;
use crate::catalog::ServedResource;
use crate::cluster::Cluster;
use crate::object::{self, set};
use crate::store::{ChangeRecord, ObjectKey};
use crate::verbs::internal::InternalWriter;

pub(super) fn changed(cluster: &Cluster, served: &Arc<ServedResource>, change: &ChangeRecord) {
    if served.row().is_some_and(|row| row.kind == "APIService") && change.after.is_some() {
        reconcile(cluster, served, &change.key);
    }
}

/// Checks all APIServices.
pub(super) fn check(cluster: &Cluster) {
    let catalog = cluster.catalog();
    let Some(served) = catalog.resource("apiregistration.k8s.io", "apiservices") else { return };
    for (key, _) in cluster.objects(served, None) {
        reconcile(cluster, served, &key);
    }
}

/// Checks one APIService in the background.
fn reconcile(cluster: &Cluster, served: &Arc<ServedResource>, key: &ObjectKey) {
    let (cluster, served, key) = (cluster.clone(), Arc::clone(served), key.clone());
    tokio::spawn(async move { look_at(&cluster, &served, &key).await });
}

async fn look_at(cluster: &Cluster, served: &Arc<ServedResource>, key: &ObjectKey) {
    let Some(stored) = cluster.get(served, key) else { return };
    let value = object::unpack(&stored);
    let (group, version) =
        (object::string(&value, &["spec", "group"]), object::string(&value, &["spec", "version"]));
    let upstream = cluster.upstream(group, version);
    let found = aggregate::availability(upstream.as_deref()).await;
    let now = api::instant::format(cluster.0.clock.now());
    cluster.edit(served, key, InternalWriter::SERVER, |value| {
        let known = value.pointer("/status/conditions/0").cloned().unwrap_or_default();
        let same = |field: &str| known.get(field) == found.get(field);
        if ["status", "reason", "message"].into_iter().all(same) {
            return false;
        }
        let mut condition = found.clone();
        let since = if same("status") {
            known.get("lastTransitionTime").cloned().unwrap_or_default()
        } else {
            Value::from(now.clone())
        };
        set(&mut condition, &["lastTransitionTime"], since);
        set(value, &["status"], json!({"conditions": [condition]}));
        true
    });
}
