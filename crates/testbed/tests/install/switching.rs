//! The guide for Kubernetes' HPA controller (docs/switching.md) with its Helm commands: back to shadow mode, where Kubernetes' controller
//! acts on the metrics that the installation serves, and to active mode again.

use crate::cluster::Cluster;
use crate::{events, load, roles};

const ACTIVE_DEPLOYMENT: &str = "plimsoll-controller";
const SHADOW_DEPLOYMENT: &str = "plimsoll-shadow";
const DIFFERENCES: &str = "/apis/decisions.plimsoll.dev/v1alpha1/differences";

pub(crate) fn back_to_kubernetes_and_to_ours(cluster: &Cluster) {
    switch(cluster, "--set=controller.mode=shadow", SHADOW_DEPLOYMENT, ACTIVE_DEPLOYMENT);
    let theirs = cluster.kubernetes_controller();
    load::is_followed(cluster);
    events::wake_a_worker(cluster);
    drop(theirs);
    switch(cluster, "--set=controller.mode=active", ACTIVE_DEPLOYMENT, SHADOW_DEPLOYMENT);
    roles::check_apis(cluster);
}

/// Changes the mode, and waits until the Deployment of the other mode has no pods and the API server trusts the new one.
fn switch(cluster: &Cluster, mode: &str, started: &str, ended: &str) {
    cluster.helm(&["upgrade", "plimsoll", "charts/plimsoll", "--reset-then-reuse-values", mode]);
    cluster.rolled_out(started);
    cluster.until_gone(ended);
    cluster.until("decisions can be read", || cluster.try_kubectl(&format!("get --raw {DIFFERENCES}")).ok());
}
