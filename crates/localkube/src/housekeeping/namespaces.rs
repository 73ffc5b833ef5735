//! A namespace that is going is emptied first.

use std::sync::Arc;

use serde_json::json;

use super::Editor;
use crate::catalog::Served;
use crate::cluster::Cluster;
use crate::store::{Change, Key};
use crate::verbs::create;
use crate::verbs::delete::Options;

pub(super) fn tidy(cluster: &Cluster, served: &Arc<Served>, change: &Change) {
    let catalog = cluster.catalog();
    let Some(namespaces) = catalog.resource("", "namespaces") else { return };
    let name = if served.id == namespaces.id {
        &change.key.name
    } else if change.gone.is_some() && !change.key.namespace.is_empty() {
        &change.key.namespace
    } else {
        return;
    };
    let key = Key::new("", name);
    let Some(namespace) = cluster.get(namespaces, &key) else { return };
    if namespace.going {
        empty(cluster, namespaces, name);
    } else if matches!(change.key.name.as_str(), ACCOUNT | AUTHORITY) {
        let (cluster, name) = (cluster.clone(), name.clone());
        tokio::spawn(async move { furnish(&cluster, &name).await });
    }
}

/// Deletes what is in a namespace, and lets it go when nothing is left.
fn empty(cluster: &Cluster, namespaces: &Arc<Served>, name: &str) {
    let catalog = cluster.catalog();
    let inside = catalog.all().filter(|served| served.namespaced);
    let mut left = 0;
    for served in inside {
        for (key, object) in cluster.objects(served, Some(name)) {
            if !object.going {
                cluster.discard(served, &key, &Options::background());
            }
            left += usize::from(cluster.get(served, &key).is_some());
        }
    }
    if left == 0 {
        cluster.edit(namespaces, &Key::new("", name), Editor::CONTROLLER, |value| {
            super::take_off(value, "/spec/finalizers", |finalizer| finalizer == "kubernetes")
        });
    }
}

/// The service account every namespace has.
const ACCOUNT: &str = "default";
/// The certificate authority of the cluster, which every namespace has.
const AUTHORITY: &str = "kube-root-ca.crt";

/// Puts into a new namespace what every namespace has.
pub(crate) async fn furnish(cluster: &Cluster, namespace: &str) {
    let catalog = cluster.catalog();
    let account = json!({"metadata": {"name": ACCOUNT}});
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                       such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                       distributions of Kubernetes clusters.";
    let authority = json!({
        "metadata": {"name": AUTHORITY, "annotations": {"kubernetes.io/description": description}},
        "data": {"ca.crt": cluster.0.access.pki.ca_pem()},
    });
    for (plural, value) in [("serviceaccounts", account), ("configmaps", authority)] {
        let Some(served) = catalog.resource("", plural) else { continue };
        let call = cluster.own_call(served, &Key::new(namespace, ""));
        // Whoever has it already, or goes again, needs none.
        let _ = create::create(&call, value).await;
    }
}
