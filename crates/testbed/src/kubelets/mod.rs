//! Simulated kubelets, few or thousands: each node has an address of its own on loopback, a certificate for it, and
//! counters that advance with time; and each can be made to fail.
//!
//! ```text
//! fleet    thousands of nodes and pods at once, and their objects for the store of a real cluster
//! objects  Node and Pod objects, as a cluster keeps them
//! load     what pods and containers use
//! node     what runs on a node and what it has used
//! page     how that reads: /metrics/resource
//! fault    the ways in which a kubelet can be bad
//! serve    TLS and HTTP
//! ```
//!
//! Unlike the nodes of [`localkube::nodes`], these run nothing: the test creates the objects of pods, and sets
//! what each container uses. A page is the same for all requests of the same few seconds, so that
//! two servers can be compared over the same bytes.

mod fault;
pub mod fleet;
mod load;
mod node;
pub mod objects;
mod page;
mod serve;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use localkube::access::roots;
use locks::MutexExt as _;
use rustls::RootCertStore;
use tokio::task::AbortHandle;

use crate::error::{Attempt as _, Error};
use crate::pki::Authority;
use crate::side;

pub use fault::Behaviour;
pub use load::{Container, PodLoad};

use node::Node;

/// Kubelets that answer until this is dropped.
pub struct Kubelets {
    authority: Authority,
    clients: RootCertStore,
    network: u8,
    /// Their port on an address that none of them has, so that the port is not given to another process.
    port: (TcpListener, u16),
    addresses: AtomicUsize,
    nodes: Mutex<BTreeMap<String, Running>>,
}

struct Running {
    address: Ipv4Addr,
    node: Arc<Mutex<Node>>,
    task: AbortHandle,
}

/// How often a kubelet measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    /// At every request.
    Always,
    /// Every so often, each node in its own rhythm that is up to half as long again.
    Every(Duration),
}

impl Kubelets {
    /// No nodes yet. `clients` is the authority (PEM) behind clients with certificates; who shows neither such a
    /// certificate nor a bearer token is refused. Addresses are 127.`network`.x.y, so that several can run at once.
    pub fn new(clients: &str, network: u8) -> Result<Self, Error> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr().map(|address| (listener, address.port())));
        let port = port.attempt(|| "find a free port".into())?;
        Ok(Self {
            authority: Authority::new("simulated-kubelets")?,
            clients: roots(clients.as_bytes())?,
            network,
            port,
            addresses: AtomicUsize::new(1),
            nodes: Mutex::default(),
        })
    }

    /// The authority behind their certificates (PEM).
    pub fn ca_pem(&self) -> &str {
        self.authority.certificate()
    }

    /// The port on which all of them answer.
    pub fn port(&self) -> u16 {
        self.port.1
    }

    /// A new node, and its address.
    pub fn add_node(&self, name: &str, measures: Measures) -> Result<Ipv4Addr, Error> {
        let address = self.next_address();
        let listener = TcpListener::bind(SocketAddr::from((address, self.port())));
        let listener = listener.attempt(|| format!("listen on {address}:{}", self.port()))?;
        let identity = self.authority.server(&[&address.to_string(), name])?;
        let node = Arc::new(Mutex::new(Node::new(measures, name)));
        let served = serve::serve(listener, &identity, &self.clients, Arc::clone(&node))?;
        let task = side::handle().spawn(served).abort_handle();
        held(&self.nodes).insert(name.to_owned(), Running { address, node, task });
        Ok(address)
    }

    /// Puts a pod on a node, in place of one of the same name.
    pub fn set_pod(&self, node: &str, pod: PodLoad) {
        self.with(node, |node| node.set_pod(pod));
    }

    /// Takes a pod away from a node.
    pub fn remove_pod(&self, node: &str, namespace: &str, name: &str) {
        self.with(node, |node| node.remove_pod(namespace, name));
    }

    /// What a container uses from now on, in thousandths of a core, wherever its pod is.
    pub fn set_cpu(&self, namespace: &str, pod: &str, container: &str, milli: u64) {
        for running in held(&self.nodes).values() {
            held(&running.node).set_cpu(namespace, pod, container, milli);
        }
    }

    /// How a node answers from now on.
    pub fn behave(&self, node: &str, behaviour: Behaviour) {
        self.with(node, |node| node.behaviour = behaviour);
    }

    /// How often a node was asked for its metrics.
    pub fn requests(&self, node: &str) -> u64 {
        held(&self.nodes).get(node).map_or(0, |running| held(&running.node).requests)
    }

    /// How often all nodes were asked.
    pub fn all_requests(&self) -> u64 {
        held(&self.nodes).values().map(|running| held(&running.node).requests).sum()
    }

    /// The address of a node.
    pub fn address(&self, node: &str) -> Option<Ipv4Addr> {
        held(&self.nodes).get(node).map(|running| running.address)
    }

    fn with(&self, node: &str, change: impl FnOnce(&mut Node)) {
        if let Some(running) = held(&self.nodes).get(node) {
            change(&mut held(&running.node));
        }
    }

    fn next_address(&self) -> Ipv4Addr {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        // 250 in each of the last network, so that neither 0 nor 255 occurs in the last place.
        Ipv4Addr::new(127, self.network, (number / 250) as u8, (number % 250 + 1) as u8)
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        held(&self.nodes).values().for_each(|running| running.task.abort());
    }
}

/// Locks a mutex, also a poisoned one: after a panic, tests still have to clean up.
pub(crate) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.locked()
}
