//! Every role as its pods.

use serde_json::Value;

use crate::cluster::{Cluster, ROLES, SYSTEM_NAMESPACE};

/// The APIs of all roles.
const API_SERVICES: [&str; 6] = [
    "v1beta1.metrics.k8s.io",
    "v1.metrics.k8s.io",
    "v1alpha1.metrics.plimsoll.dev",
    "v1beta1.external.metrics.k8s.io",
    "v1alpha1.decisions.plimsoll.dev",
    "v1alpha1.operator.plimsoll.dev",
];

pub(crate) fn become_ready(cluster: &Cluster) {
    for role in ROLES {
        cluster.rolled_out(role);
        let pods = check_pods(cluster, role);
        let node = |pod: &Value| pod["spec"]["nodeName"].clone();
        assert_ne!(node(&pods[0]), node(&pods[1]), "{role}: both pods are on one node");
    }
    check_apis(cluster);
}

/// Asserts that a Deployment has two pods with a read-only root that have never been restarted, and returns them.
pub(crate) fn check_pods(cluster: &Cluster, role: &str) -> Vec<Value> {
    let pods = cluster.pods(role);
    assert_eq!(pods.len(), 2, "{role}");
    for pod in &pods {
        let status = &pod["status"]["containerStatuses"][0];
        assert_eq!(status["restartCount"], 0, "{role}: {status}");
        let security = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true, "{role}");
    }
    pods
}

/// Waits until the API server can use the APIs of all roles.
pub(crate) fn check_apis(cluster: &Cluster) {
    for name in API_SERVICES {
        available(cluster, name);
    }
}

/// Waits until the API server reaches the pods behind an APIService and trusts their certificate.
fn available(cluster: &Cluster, name: &str) {
    cluster.until(&format!("{name} is available"), || {
        let service = cluster.get(&format!("apiservice {name}"));
        let conditions = service["status"]["conditions"].as_array()?.clone();
        conditions.iter().any(|c| c["type"] == "Available" && c["status"] == "True").then_some(())
    });
}

pub(crate) fn serve(cluster: &Cluster) {
    // The first window of samples takes two scrapes of each kubelet.
    let nodes = cluster.until("kubectl top nodes", || cluster.try_kubectl("top nodes").ok());
    assert!(nodes.contains("node-1") && nodes.contains("node-2"), "{nodes}");
    let pods = cluster.until("kubectl top pods lists every pod", || {
        let pods =
            cluster.try_kubectl(&format!("top pods --namespace {SYSTEM_NAMESPACE} --no-headers")).ok()?;
        (pods.lines().count() == 6).then_some(pods)
    });
    assert!(ROLES.iter().all(|role| pods.contains(role)), "{pods}");
    let webhook = cluster.get("validatingwebhookconfiguration keda-admission");
    assert!(webhook["webhooks"][0]["clientConfig"]["caBundle"].is_string(), "{webhook}");
}
