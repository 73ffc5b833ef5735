//! Node heartbeats: a lease per node, renewed as kubelets do. The node object is written once.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::requests;
use crate::clock::Clock;

/// How many leases are written concurrently.
const MAX_CONCURRENT_LEASE_WRITES: usize = 16;

/// A node and the uid of its object, which owns the lease.
#[derive(Clone, Debug)]
pub(crate) struct LeasedNode {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Renews the leases of all nodes, spread over `period`, without end; returns if no lease can be created.
/// A node for which `is_lost` is true does not renew.
pub(crate) async fn beat(
    client: Client,
    nodes: Vec<LeasedNode>,
    period: Duration,
    clock: Clock,
    is_lost: impl Fn(usize) -> bool,
) {
    let nodes: Vec<Arc<LeasedNode>> = nodes.into_iter().map(Arc::new).collect();
    let mut writing = JoinSet::new();
    let mut made = false;
    for node in &nodes {
        if writing.len() >= MAX_CONCURRENT_LEASE_WRITES {
            made |= matches!(writing.join_next().await, Some(Ok(true)));
        }
        writing.spawn(make(client.clone(), Arc::clone(node), period, clock.now()));
    }
    made |= writing.join_all().await.contains(&true);
    if !made {
        return;
    }
    let gap = period / u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    let mut due = Instant::now() + period;
    let mut writing = JoinSet::new();
    for (index, node) in nodes.iter().enumerate().cycle() {
        tokio::time::sleep_until(due).await;
        due += gap;
        if is_lost(index) {
            continue;
        }
        if writing.len() >= MAX_CONCURRENT_LEASE_WRITES {
            writing.join_next().await;
        }
        writing.spawn(renew(client.clone(), Arc::clone(node), period, clock.now()));
    }
}

/// Creates the lease; returns whether it exists.
async fn make(client: Client, node: Arc<LeasedNode>, period: Duration, now: Timestamp) -> bool {
    let Some(request) = requests::create_lease(&lease(&node, period, now)) else { return false };
    match client.request::<Value>(request).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 409 => {
            renew(client, node, period, now).await;
            true
        }
        Err(_) => false,
    }
}

async fn renew(client: Client, node: Arc<LeasedNode>, period: Duration, now: Timestamp) {
    let patch = json!({"spec": {"renewTime": micro(now)}});
    let Some(request) = requests::patch_lease(&node.name, &patch) else { return };
    if let Err(kube::Error::Api(status)) = client.request::<Value>(request).await
        && status.code == 404
        && let Some(request) = requests::create_lease(&lease(&node, period, now))
    {
        // Other errors are ignored: the next renewal follows soon.
        let _ = client.request::<Value>(request).await;
    }
}

fn lease(node: &LeasedNode, period: Duration, now: Timestamp) -> Value {
    let LeasedNode { name, uid } = node;
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": requests::LEASE_NAMESPACE, "ownerReferences": [owner]},
        // Kubelets renew four times per lease duration.
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": (period.as_secs() * 4).max(1),
            "renewTime": micro(now),
        },
    })
}

fn micro(at: Timestamp) -> String {
    format!("{at:.6}")
}
