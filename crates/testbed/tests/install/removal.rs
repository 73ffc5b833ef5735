//! What is left after `helm uninstall`: definitions, and the Secrets and Leases that the roles made themselves.

use crate::cluster::{Cluster, SYSTEM};

/// Kinds of which the installation creates objects outside of its namespace.
const CLUSTER_KINDS: &str = "clusterroles,clusterrolebindings,apiservices,validatingwebhookconfigurations,rolebindings --all-namespaces";

pub(crate) fn leaves_definitions(cluster: &Cluster) {
    let said = uninstall(cluster);
    assert!(said.contains("kept due to the resource policy"), "{said}");
    let label = "--selector app.kubernetes.io/part-of=plimsoll --output name";
    let kinds =
        format!("deployments,services,serviceaccounts,poddisruptionbudgets,roles --namespace {SYSTEM}");
    for kinds in [kinds.as_str(), CLUSTER_KINDS] {
        let left = cluster.kubectl(&format!("get {kinds} {label}"));
        assert_eq!(left, "", "left behind");
    }
    let definitions = cluster.kubectl("get customresourcedefinitions --output name");
    assert!(definitions.contains("scaledobjects.keda.sh"), "{definitions}");
}

/// Removes the installation, if there is one, waits until its pods have ended, and returns what Helm says.
pub(crate) fn uninstall(cluster: &Cluster) -> String {
    let said = cluster.helm(&["uninstall", "plimsoll", "--ignore-not-found", "--wait", "--timeout", "5m"]);
    cluster.until("all pods end", || {
        cluster.kubectl(&format!("get pods --namespace {SYSTEM} --output name")).is_empty().then_some(())
    });
    said
}
