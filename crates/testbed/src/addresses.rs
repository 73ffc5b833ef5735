//! The addresses of a control plane with real nodes; [`node`](crate::node) has the whole plan.

use std::net::Ipv4Addr;

/// The machine's address for nodes and pods, where kube-apiserver listens.
pub(crate) const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);
/// The addresses of Services. Another range than without nodes, because the machine gets a route to it.
pub(crate) const SERVICES: &str = "10.214.0.0/16";
/// The address of the Service `kubernetes`: the first.
pub(crate) const API_SERVICE_ADDRESS: &str = "10.214.0.1";
