//! What is left after `helm uninstall`: definitions. Hooks of the chart delete the Secrets and Leases that the roles created. Those that the
//! release does not use any more are deleted by the upgrade.

use crate::cluster::{Cluster, SYSTEM_NAMESPACE};

/// Kinds of which the installation creates objects outside of its namespace.
const CLUSTER_KINDS: &str = "clusterroles,clusterrolebindings,apiservices,validatingwebhookconfigurations,rolebindings --all-namespaces";

/// The kinds of cert-manager, which itself does not run: its Secret is created by the test.
const CERT_MANAGER_KINDS: [(&str, &str); 2] = [("Issuer", "issuers"), ("Certificate", "certificates")];

pub(crate) fn of_the_ca_of_cert_manager(cluster: &Cluster) {
    let definitions = CERT_MANAGER_KINDS.map(|(kind, plural)| definition(kind, plural)).join("---\n");
    cluster.apply(&definitions);
    cluster.until("kinds of cert-manager are served", || {
        let listed = cluster.try_kubectl("get issuers,certificates --all-namespaces --output name");
        listed.ok()
    });
    let upgrade = |mode: &str| {
        let mode = format!("--set=certificates.mode={mode}");
        cluster.helm(&["upgrade", "plimsoll", "charts/plimsoll", "--reset-then-reuse-values", &mode]);
    };
    upgrade("cert-manager");
    cluster.kubectl(&format!("create secret generic plimsoll-ca --namespace {SYSTEM_NAMESPACE}"));
    upgrade("self");
    let left = cluster.kubectl(&format!(
        "get secret plimsoll-ca --namespace {SYSTEM_NAMESPACE} --ignore-not-found --output name"
    ));
    assert_eq!(left, "", "left behind");
    for role in ["plimsoll-controller", "plimsoll-metrics", "plimsoll-operator"] {
        cluster.rolled_out(role);
    }
    cluster.delete(&definitions);
}

/// The definition of a kind of cert-manager, with any fields.
fn definition(kind: &str, plural: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.cert-manager.io}}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

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
