//! The Helm chart, installed on real nodes from our image: every role runs as its pods.
//!
//! Needs root and an image: `make test-install`. The tests share one cluster with two nodes and run one after another.
//!
//! | file | what it tests |
//! |---|---|
//! | `roles` | every role is ready under its limits and service account, with a read-only root, where only restricted pods may run; kubectl reads what they serve |
//! | `changes` | another leader, new certificates of all roles, a rolling update, refused evictions, a drained node, a restart after OOM: the APIs answer throughout |
//! | `load` | an HPA follows the real CPU time of its pods up and down, and ignores a busy sidecar if it is told to |
//! | `events` | a ScaledObject scales a worker from zero for entries in a Redis and for pods; the webhook denies a second one |
//! | `switching` | Kubernetes' own HPA controller acts on the metrics of the installation, while ours is in shadow mode |
//! | `one_process` | the same chart with all roles in one process |
//! | `upgrade` | `helm upgrade` from the chart of the baseline (`tests/stored/v0.1.0/revision`), `helm rollback`, and the upgrade again |
//! | `removal` | the objects that `helm uninstall` keeps, and the Secret that an upgrade deletes |
//! | `guide` | the commands of `plimsoll migrate plan` from metrics-server, prometheus-adapter and KEDA, there and back |
//! | `cluster` | the cluster of the tests |

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod changes;
mod cluster;
mod events;
mod guide;
mod load;
mod one_process;
mod removal;
mod roles;
mod switching;
mod upgrade;

use cluster::Cluster;

/// The name of a step, and its function.
type InstallStep = (&'static str, fn(&Cluster));

/// One test, because its steps share a cluster that takes minutes to start. `PLIMSOLL_STEP` selects steps by a part of their names; the
/// first waits for the installation, so it always runs. Every other step depends only on the first.
#[test]
#[ignore = "needs root and an image: make test-install"]
fn every_role_runs_in_pods_on_real_nodes() {
    let steps: [InstallStep; 18] = [
        ("every role becomes ready", roles::become_ready),
        ("kubectl reads what they serve", roles::serve),
        ("an HPA follows real load", load::is_followed),
        ("an HPA ignores a busy sidecar", load::of_a_sidecar_is_ignored),
        ("a ScaledObject wakes a worker", events::wake_a_worker),
        ("Kubernetes' HPA controller acts, and ours again", switching::back_to_kubernetes_and_to_ours),
        ("cert-manager's CA is deleted with its mode", removal::of_the_ca_of_cert_manager),
        ("another leader takes over", changes::leader),
        ("certificates are renewed", changes::certificates),
        ("a rolling update is not noticed", changes::rolling_update),
        ("a node is drained", changes::drain),
        ("a container that runs out of memory is restarted", changes::out_of_memory),
        ("all roles in one process replace them", one_process::replaces_the_roles),
        ("helm uninstall leaves only definitions", removal::leaves_definitions),
        ("an upgrade from the baseline's chart and back", upgrade::from_the_baseline_and_back),
        ("the plan leads from metrics-server and back", guide::from_metrics_server),
        ("the plan leads from prometheus-adapter and back", guide::from_prometheus_adapter),
        ("the plan leads from KEDA and back", guide::from_keda),
    ];
    let only = std::env::var("PLIMSOLL_STEP").unwrap_or_default();
    assert!(steps.iter().any(|(name, _)| name.contains(&only)), "no step has {only:?} in its name");
    let cluster = Cluster::start();
    let chosen = |(number, (name, _)): &(usize, InstallStep)| *number == 0 || name.contains(&only);
    for (_, (name, step)) in steps.into_iter().enumerate().filter(chosen) {
        eprintln!("install: {name}");
        step(&cluster);
    }
}
