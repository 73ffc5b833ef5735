//! Signs of life: a lease per node, renewed as kubelets do. The node object itself is written once.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::requests;
use crate::clock::Clock;

/// How many leases are written at once.
const AT_ONCE: usize = 16;

/// A node and the uid of its object, which owns the lease.
#[derive(Clone, Debug)]
pub(crate) struct Patient {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Renews the leases of all nodes, spread over `period`, for ever; or ends at once if there is no place for leases.
pub(crate) async fn beat(client: Client, patients: Vec<Patient>, period: Duration, clock: Clock) {
    let patients: Vec<Arc<Patient>> = patients.into_iter().map(Arc::new).collect();
    let mut writing = JoinSet::new();
    let mut made = false;
    for patient in &patients {
        if writing.len() >= AT_ONCE {
            made |= matches!(writing.join_next().await, Some(Ok(true)));
        }
        writing.spawn(make(client.clone(), Arc::clone(patient), period, clock.now()));
    }
    made |= writing.join_all().await.contains(&true);
    if !made {
        return;
    }
    let gap = period / u32::try_from(patients.len()).unwrap_or(u32::MAX);
    let mut due = Instant::now() + period;
    let mut writing = JoinSet::new();
    for patient in patients.iter().cycle() {
        tokio::time::sleep_until(due).await;
        due += gap;
        if writing.len() >= AT_ONCE {
            writing.join_next().await;
        }
        writing.spawn(renew(client.clone(), Arc::clone(patient), period, clock.now()));
    }
}

/// Says whether the lease is there.
async fn make(client: Client, patient: Arc<Patient>, period: Duration, now: Timestamp) -> bool {
    let Some(request) = requests::create_lease(&lease(&patient, period, now)) else { return false };
    match client.request::<Value>(request).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 409 => {
            renew(client, patient, period, now).await;
            true
        }
        Err(_) => false,
    }
}

async fn renew(client: Client, patient: Arc<Patient>, period: Duration, now: Timestamp) {
    let patch = json!({"spec": {"renewTime": micro(now)}});
    let Some(request) = requests::patch_lease(&patient.name, &patch) else { return };
    if let Err(kube::Error::Api(status)) = client.request::<Value>(request).await
        && status.code == 404
        && let Some(request) = requests::create_lease(&lease(&patient, period, now))
    {
        // Whatever else goes wrong, the next turn comes soon.
        let _ = client.request::<Value>(request).await;
    }
}

fn lease(patient: &Patient, period: Duration, now: Timestamp) -> Value {
    let Patient { name, uid } = patient;
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid});
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": requests::LEASES, "ownerReferences": [owner]},
        // Kubelets renew four times as often as they must.
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
