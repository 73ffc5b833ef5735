//! The objects that a new cluster contains.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::object::set;
use crate::status::Status;
use crate::store::ObjectKey;
use crate::verbs::create;

/// Creates the objects of a new cluster.
pub(crate) async fn fill(cluster: &Cluster) -> Result<(), Status> {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        put(cluster, "", "namespaces", &json!({"metadata": {"name": name}})).await?;
    }
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]);
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let service = json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": "10.96.0.1", "ports": ports},
    });
    put(cluster, "", "services", &service).await?;
    let pki = &cluster.0.access.pki;
    let authentication = json!({
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": pki.ca_pem(),
            "requestheader-client-ca-file": pki.front_proxy_ca_pem(),
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        },
    });
    put(cluster, "", "configmaps", &authentication).await?;
    for (group, version) in cluster.catalog().versions() {
        let name = format!("{version}.{group}");
        let label = json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"});
        let mut spec = json!({"version": version, "groupPriorityMinimum": 17800, "versionPriority": 15});
        if !group.is_empty() {
            set(&mut spec, &["group"], json!(group));
        }
        put(
            cluster,
            "apiregistration.k8s.io",
            "apiservices",
            &json!({"metadata": {"name": name, "labels": label}, "spec": spec}),
        )
        .await?;
    }
    Ok(())
}

async fn put(cluster: &Cluster, group: &str, plural: &str, value: &Value) -> Result<(), Status> {
    let catalog = cluster.catalog();
    let Some(served) = catalog.resource(group, plural) else { return Ok(()) };
    let text = |field: &str| value.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
    let mut call = cluster.own_call(served, &key);
    "kube-apiserver".clone_into(&mut call.manager);
    create::create(&call, value.clone()).await.map(|_| ())
}
