//! The same chart with all roles in one process.

use crate::cluster::{Cluster, ONE_PROCESS, ROLES, VALUES};
use crate::{events, load, roles};

/// An upgrade replaces the Deployments of all roles by one, which serves the same APIs and scales as they did.
pub(crate) fn replaces_the_roles(cluster: &Cluster) {
    let mut arguments = vec!["upgrade", "plimsoll", "charts/plimsoll", "--set=singleProcess.enabled=true"];
    arguments.extend(VALUES);
    cluster.helm(&arguments);
    cluster.rolled_out(ONE_PROCESS);
    for role in ROLES {
        cluster.until_gone(role);
    }
    roles::check_pods(cluster, ONE_PROCESS);
    roles::check_apis(cluster);
    load::is_followed(cluster);
    events::wake_a_worker(cluster);
}
