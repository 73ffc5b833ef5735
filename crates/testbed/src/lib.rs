//! A real Kubernetes control plane for tests, on a machine with nothing but this repository and Go.
//!
//! [`Parts::ensure`] builds etcd, kube-apiserver, kube-controller-manager and kubectl once per machine;
//! [`ControlPlane::start`] runs them on free loopback ports and ends them when it is dropped, or when the process that
//! holds it ends; [`shared`] is one control plane for all tests of a process. There is no scheduler and no kubelet: pods stay
//! Pending unless there are real nodes ([`node`]) or a test writes their status. [`proxy`] injects faults between a
//! client and either cluster,
//! [`peer`] is Kubernetes' own HPA controller, [`keda`] is the original KEDA, and [`etcd`] stores objects that the API server would reject.
//! [`kubelets`],
//! [`sample`] and [`prometheus`] are sources of metrics, [`backends`] the servers that scalers query. See docs/testbed.md.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]

pub mod access;
mod addresses;
pub mod aggregate;
pub mod backends;
pub mod cache;
pub mod components;
pub mod direct;
mod encoding;
mod ensure;
mod error;
pub mod etcd;
mod fetch;
pub mod harness;
pub mod keda;
mod kubeconfig;
pub mod kubelets;
pub mod node;
pub mod oci;
mod options;
pub mod parts;
pub mod peer;
pub mod pki;
mod plain;
mod plane;
pub mod ports;
mod process;
pub mod program;
pub mod progress;
pub mod prometheus;
pub mod proxy;
mod release;
pub mod sample;
pub mod servers;
mod simulated;
pub mod state;

use std::sync::OnceLock;

pub use access::Access;
pub use cache::Cache;
pub use ensure::{Helm, KedaPrograms, Parts, Peers, Prometheus};
pub use error::Error;
pub use fetch::go_module;
pub use options::{MAX_NODES, NodeOptions, Options};
pub use parts::Part;
pub use plane::ControlPlane;
pub use process::{ProcessUsage, processes_mentioning};
pub use progress::Progress;
pub use release::{RELEASE_VARIABLE, Release, UnknownRelease};

/// The environment variable with the folder of the [`Cache`].
pub const CACHE_VARIABLE: &str = "PLIMSOLL_CACHE";

/// The environment variable with the state folder of a control plane that already runs, which [`shared`] then uses instead of a new one.
pub const ATTACH: &str = "PLIMSOLL_TESTBED";

enum SharedPlane {
    Attached(Box<Access>),
    Started(Box<ControlPlane>),
}

/// The control plane that all tests of this process share. The first call starts it; each test uses its own namespace.
pub fn shared() -> Result<&'static Access, &'static Error> {
    static SHARED: OnceLock<Result<SharedPlane, Error>> = OnceLock::new();
    let made = SHARED.get_or_init(|| match std::env::var_os(ATTACH) {
        Some(folder) => Access::open(folder.as_ref()).map(|access| SharedPlane::Attached(Box::new(access))),
        None => ControlPlane::start(&Options::default()).map(|plane| SharedPlane::Started(Box::new(plane))),
    });
    match made {
        Ok(SharedPlane::Attached(access)) => Ok(access),
        Ok(SharedPlane::Started(plane)) => Ok(plane.access()),
        Err(error) => Err(error),
    }
}
