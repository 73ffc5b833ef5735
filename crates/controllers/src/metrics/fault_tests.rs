//! The inventory of the metrics server, with an API server whose requests fail at random.
//!
//! `PLIMSOLL_FAULT_STEPS` and `PLIMSOLL_FAULT_SEED` ask for a longer run or another one (`make faults`).

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::request::{self, Request};
use http::Method;
use kube::Client;
use localkube::{Cluster, Options};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::ClusterInventory;
use crate::faulty_client::{FaultyClient, Random, setting};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// Steps between two times without faults, at which the inventory must be right.
const STEPS_PER_ROUND: u64 = 40;
/// The longest pause of a watch that was refused, and the time to list again.
const CONVERGENCE: Duration = Duration::from_secs(90);

async fn send(client: &Client, method: Method, path: &str, body: &Value) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = Some((kind, body.to_string().into_bytes()));
    request::send(client, Request { method, body, ..Request::get(path, "", Duration::from_secs(5)) })
        .await
        .unwrap();
}

async fn create_node(client: &Client, name: &str) {
    send(client, Method::POST, NODES, &json!({"metadata": {"name": name}})).await;
}

async fn create_pod(client: &Client, name: &str) {
    let spec = json!({"nodeName": "node-0", "containers": [{"name": "c", "image": "i"}]});
    send(client, Method::POST, PODS, &json!({"metadata": {"name": name}, "spec": spec})).await;
    let status = json!({"status": {"phase": "Running"}});
    send(client, Method::PATCH, &format!("{PODS}/{name}/status"), &status).await;
}

async fn delete(client: &Client, collection: &str, name: &str) {
    let now = json!({"gracePeriodSeconds": 0});
    send(client, Method::DELETE, &format!("{collection}/{name}"), &now).await;
}

/// Nodes and pods of the inventory.
fn known(watched: &ClusterInventory) -> BTreeSet<String> {
    let nodes = watched.inventory.nodes().into_iter().map(|node| format!("node {}", node.name));
    let pods = watched.inventory.pods(None).into_iter().map(|pod| format!("pod {}", pod.name));
    nodes.chain(pods).collect()
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_api_server_lose_no_node_and_no_pod() {
    let (seed, steps) = (setting("PLIMSOLL_FAULT_SEED", 1), setting("PLIMSOLL_FAULT_STEPS", 160));
    println!("PLIMSOLL_FAULT_SEED={seed} PLIMSOLL_FAULT_STEPS={steps}");
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let mut stable = BTreeSet::new();
    for number in 0..4 {
        create_node(&client, &format!("node-{number}")).await;
        create_pod(&client, &format!("pod-{number}")).await;
        stable.extend([format!("node node-{number}"), format!("pod pod-{number}")]);
    }
    let faults = FaultyClient::new("metrics", seed, Arc::new(Mutex::default()));
    let watched = ClusterInventory::start(&faults.client(&client));
    let mut random = Random::new(seed + 1);
    let (mut real, mut ever) = (stable.clone(), stable.clone());
    let mut synced = false;
    for step in 1..=steps {
        faults.set_rate(*random.pick(&[0, 20, 50, 80]));
        faults.set_stale(random.chance(30));
        if random.chance(40) {
            faults.cut_watches();
        }
        for _ in 0..random.below(4) {
            let (kind, collection) = *random.pick(&[("node", NODES), ("pod", PODS)]);
            let name = format!("{kind}-x{}", random.below(10));
            let object = format!("{kind} {name}");
            if real.remove(&object) {
                delete(&client, collection, &name).await;
                continue;
            }
            match kind {
                "node" => create_node(&client, &name).await,
                _ => create_pod(&client, &name).await,
            }
            ever.insert(object.clone());
            real.insert(object);
        }
        sleep(Duration::from_millis(200 + random.below(8000))).await;
        let found = known(&watched);
        synced |= watched.inventory.is_complete();
        assert!(!synced || stable.is_subset(&found), "step {step}: lost {:?}", stable.difference(&found));
        assert!(found.is_subset(&ever), "step {step}: {:?}", found.difference(&ever));
        if step % STEPS_PER_ROUND == 0 || step == steps {
            faults.set_rate(0);
            faults.set_stale(false);
            let begun = Instant::now();
            while known(&watched) != real {
                let found = known(&watched);
                assert!(begun.elapsed() < CONVERGENCE, "step {step}: {found:?} instead of {real:?}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    let injected = faults.injected();
    println!("{injected:?}");
    assert!(injected.keys().any(|fault| fault.starts_with("watch ")), "{injected:?}");
}
