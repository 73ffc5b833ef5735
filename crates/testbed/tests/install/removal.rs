//! What is left after `helm uninstall`: definitions. Hooks of the chart delete the Secrets and Leases that the roles created.

use crate::cluster::{Cluster, SYSTEM_NAMESPACE};

/// Kinds of which the installation creates objects outside of its namespace.
const CLUSTER_KINDS: &str = "clusterroles,clusterrolebindings,apiservices,validatingwebhookconfigurations,rolebindings --all-namespaces";

pub(crate) fn leaves_definitions(cluster: &Cluster) {
    let text = uninstall(cluster);
    assert!(text.contains("kept due to the resource policy"), "{text}");
    let label = "--selector app.kubernetes.io/part-of=plimsoll --output name";
    let kinds = format!(
        "deployments,services,serviceaccounts,poddisruptionbudgets,roles --namespace {SYSTEM_NAMESPACE}"
    );
    for kinds in [kinds.as_str(), CLUSTER_KINDS] {
        let left = cluster.kubectl(&format!("get {kinds} {label}"));
        assert_eq!(left, "", "left behind");
    }
    // Not selected by label, which the Leases do not have.
    let kinds = "secrets,configmaps,leases.coordination.k8s.io";
    let left = cluster.kubectl(&format!("get {kinds} --namespace {SYSTEM_NAMESPACE} --output name"));
    // Kubernetes itself writes its CA into every namespace.
    let left: Vec<&str> = left.lines().filter(|object| *object != "configmap/kube-root-ca.crt").collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    let definitions = cluster.kubectl("get customresourcedefinitions --output name");
    assert!(definitions.contains("scaledobjects.keda.sh"), "{definitions}");
}

/// Removes the installation, if there is one, waits until its pods have ended, and returns the output of Helm.
pub(crate) fn uninstall(cluster: &Cluster) -> String {
    let text = cluster.helm(&["uninstall", "plimsoll", "--ignore-not-found", "--wait", "--timeout", "5m"]);
    cluster.until("all pods end", || {
        cluster
            .kubectl(&format!("get pods --namespace {SYSTEM_NAMESPACE} --output name"))
            .is_empty()
            .then_some(())
    });
    text
}
