//! The identity of this process: its namespace, host name and unique name.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

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

/// Where other replicas reach this pod, of the variable `POD_IP` and a port; none if the variable is not set or nothing is served.
pub(crate) fn pod_address(pod_ip: Option<String>, port: i64) -> Option<SocketAddr> {
    let address: IpAddr = pod_ip?.trim().parse().ok()?;
    let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
    Some(SocketAddr::new(address, port))
}

/// The host name; in a pod, its name.
pub(crate) fn hostname() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).filter(|name| !name.is_empty());
    host.unwrap_or_else(|| "plimsoll".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_pod_needs_its_ip_and_a_port() {
        let address = |ip: &str, port| pod_address(Some(ip.to_owned()), port).map(|found| found.to_string());
        assert_eq!(address("10.0.0.7", 10257).as_deref(), Some("10.0.0.7:10257"));
        assert_eq!(address("fd00::7", 6443).as_deref(), Some("[fd00::7]:6443"));
        for (ip, port) in
            [("", 1), ("web.example", 1), ("10.0.0.7", 0), ("10.0.0.7", -1), ("10.0.0.7", 70_000)]
        {
            assert_eq!(address(ip, port), None, "{ip} {port}");
        }
        assert_eq!(pod_address(None, 10257), None);
    }
}
