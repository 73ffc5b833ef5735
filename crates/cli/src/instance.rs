//! The identity of this process: its namespace, host name and unique name.

use std::hash::{BuildHasher, RandomState};

/// The namespace of our own objects: the pod's, or `kube-system`.
pub(crate) fn own_namespace() -> String {
    let own = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok();
    own.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "kube-system".into())
}

/// A unique name of this instance.
pub(crate) fn instance_identity() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}_{random:016x}", hostname())
}

/// The host name; in a pod, its name.
pub(crate) fn hostname() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).filter(|name| !name.is_empty());
    host.unwrap_or_else(|| "plimsoll".into())
}
