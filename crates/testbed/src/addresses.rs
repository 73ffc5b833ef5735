//! The addresses of a control plane with real nodes; [`node`](crate::node) has the whole plan.

use std::net::Ipv4Addr;

/// The address of the machine for nodes and pods, on which kube-apiserver listens.
pub(crate) const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);
/// The address range of Services. It differs from the range without nodes, because the machine gets a route to it.
pub(crate) const SERVICES: &str = "10.214.0.0/16";
/// The address of the Service `kubernetes`, which is the first of the range.
pub(crate) const API_SERVICE_ADDRESS: &str = "10.214.0.1";
