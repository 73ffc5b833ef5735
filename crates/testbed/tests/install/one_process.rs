//! The same chart with all roles in one process.

use crate::cluster::{Cluster, ONE_PROCESS, ROLES, SYSTEM_NAMESPACE, VALUES};
use crate::{events, load, roles};

/// An upgrade replaces the Deployments of all roles by one, which serves the same APIs and scales in the same way.
pub(crate) fn replaces_the_roles(cluster: &Cluster) {
    let mut arguments = vec!["upgrade", "plimsoll", "charts/plimsoll", "--set=singleProcess.enabled=true"];
    arguments.extend(VALUES);
    cluster.helm(&arguments);
    cluster.rolled_out(ONE_PROCESS);
    for role in ROLES {
        cluster.until_gone(role);
    }
    // The process has a Secret of its own, and hooks of the upgrade deleted those of the roles.
    let secrets = cluster.kubectl(&format!("get secrets --namespace {SYSTEM_NAMESPACE} --output name"));
    for secret in ["plimsoll-controller-certs", "plimsoll-metrics-certs", "kedaorg-certs"] {
        assert!(!secrets.contains(secret), "left behind: {secrets}");
    }
    roles::check_pods(cluster, ONE_PROCESS);
    roles::check_apis(cluster);
    load::is_followed(cluster);
    events::wake_a_worker(cluster);
}
