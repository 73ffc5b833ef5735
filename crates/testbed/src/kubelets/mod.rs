//! Simulated kubelets, few or thousands: each node has an address of its own on loopback, a certificate for it, and
//! counters that advance with time. Each can be made to fail.
//!
//! ```text
//! fleet    thousands of nodes and pods at once, and their objects for the store of a real cluster
//! objects  Node and Pod objects, as a cluster keeps them
//! load     the resource usage of pods and containers
//! node     the pods of a node and its usage
//! page     the text of /metrics/resource
//! fault    faulty responses of a kubelet
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
use crate::simulated;

pub use fault::Behaviour;
pub use load::{Container, PodLoad};

use node::Node;

/// Simulated kubelets, which serve until this is dropped.
pub struct Kubelets {
    authority: Authority,
    clients: RootCertStore,
    network: u8,
    /// The port of all kubelets, on an address that none of them has. It is kept open so that the system does not assign it to another process.
    port: (TcpListener, u16),
    addresses: AtomicUsize,
    nodes: Mutex<BTreeMap<String, Running>>,
}

struct Running {
    address: Ipv4Addr,
    node: Arc<Mutex<Node>>,
    task: AbortHandle,
}

/// When a kubelet measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    /// The kubelet measures at every request.
    Always,
    /// The kubelet measures periodically. Each node has its own period, which is up to half as long again.
    Every(Duration),
}

impl Kubelets {
    /// Starts without nodes. `clients` is the authority (PEM) of client certificates; a request with neither such a
    /// certificate nor a bearer token is refused. Addresses are 127.`network`.x.y, so that several of these can run at the same time.
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

    /// The authority of the kubelets' certificates (PEM).
    pub fn ca_pem(&self) -> &str {
        self.authority.certificate()
    }

    /// The port of all kubelets.
    pub fn port(&self) -> u16 {
        self.port.1
    }

    /// Adds a node, and returns its address.
    pub fn add_node(&self, name: &str, measures: Measures) -> Result<Ipv4Addr, Error> {
        let address = self.next_address();
        let listener = TcpListener::bind(SocketAddr::from((address, self.port())));
        let listener = listener.attempt(|| format!("listen on {address}:{}", self.port()))?;
        let identity = self.authority.server(&[&address.to_string(), name])?;
        let node = Arc::new(Mutex::new(Node::new(measures, name)));
        let served = serve::serve(listener, &identity, &self.clients, Arc::clone(&node))?;
        let task = simulated::handle().spawn(served).abort_handle();
        locked(&self.nodes).insert(name.to_owned(), Running { address, node, task });
        Ok(address)
    }

    /// Adds a pod to a node, and replaces a pod of the same name.
    pub fn set_pod(&self, node: &str, pod: PodLoad) {
        self.with(node, |node| node.set_pod(pod));
    }

    /// Removes a pod from a node.
    pub fn remove_pod(&self, node: &str, namespace: &str, name: &str) {
        self.with(node, |node| node.remove_pod(namespace, name));
    }

    /// Sets the CPU usage of a container in thousandths of a core, on whichever node its pod is.
    pub fn set_cpu(&self, namespace: &str, pod: &str, container: &str, milli: u64) {
        for running in locked(&self.nodes).values() {
            locked(&running.node).set_cpu(namespace, pod, container, milli);
        }
    }

    /// Sets how the kubelet of a node responds.
    pub fn set_behaviour(&self, node: &str, behaviour: Behaviour) {
        self.with(node, |node| node.behaviour = behaviour);
    }

    /// The number of metrics requests to a node.
    pub fn requests(&self, node: &str) -> u64 {
        locked(&self.nodes).get(node).map_or(0, |running| locked(&running.node).requests)
    }

    /// The number of metrics requests to all nodes.
    pub fn all_requests(&self) -> u64 {
        locked(&self.nodes).values().map(|running| locked(&running.node).requests).sum()
    }

    /// The address of a node.
    pub fn address(&self, node: &str) -> Option<Ipv4Addr> {
        locked(&self.nodes).get(node).map(|running| running.address)
    }

    fn with(&self, node: &str, change: impl FnOnce(&mut Node)) {
        if let Some(running) = locked(&self.nodes).get(node) {
            change(&mut locked(&running.node));
        }
    }

    fn next_address(&self) -> Ipv4Addr {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        // Each value of the third number has 250 addresses, so that the last number is neither 0 nor 255.
        Ipv4Addr::new(127, self.network, (number / 250) as u8, (number % 250 + 1) as u8)
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        locked(&self.nodes).values().for_each(|running| running.task.abort());
    }
}

/// Locks a mutex, also a poisoned one, because tests still have to clean up after a panic.
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.locked()
}
