//! Node objects, as kubelets register them.

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sim::time::to_the_second;

use super::heartbeat::LeasedNode;
use super::plan::Plan;
use super::status::{HOST_IP, identifier, seed_of};
use super::{NodesError, requests};

/// The version in the nodes' status.
const KUBELET_VERSION: &str = "v1.36.4";

/// Creates the node object, or takes over an existing one.
pub(crate) async fn register(
    client: &Client,
    plan: &Plan,
    name: &str,
    port: u16,
) -> Result<LeasedNode, NodesError> {
    let failed = |source| NodesError::Register { node: name.to_owned(), source };
    let invalid = || NodesError::Name(name.to_owned());
    let node = object(plan, name, port, plan.clock.now());
    let request = requests::create_node(&node).ok_or_else(invalid)?;
    let made = match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let labels = json!({"metadata": {"labels": node.pointer("/metadata/labels")}});
            let request = requests::patch_node(name, &labels).ok_or_else(invalid)?;
            client.request::<Value>(request).await
        }
        answer => answer,
    };
    let made = made.map_err(failed)?;
    if made.get("status") != node.get("status") {
        let patch = json!({"status": node.get("status")});
        let request = requests::patch_node_status(name, &patch).ok_or_else(invalid)?;
        client.request::<Value>(request).await.map_err(failed)?;
    }
    // The server taints a new node as not ready; a controller would remove the taint.
    let taints = made.pointer("/spec/taints").and_then(Value::as_array);
    let not_ready =
        |taint: &&Value| taint.get("key").is_some_and(|key| key == "node.kubernetes.io/not-ready");
    if taints.is_some_and(|taints| taints.iter().any(|taint| not_ready(&taint))) {
        let rest: Vec<&Value> = taints.into_iter().flatten().filter(|taint| !not_ready(taint)).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        let request = requests::patch_node(name, &json!({"spec": {"taints": rest}})).ok_or_else(invalid)?;
        client.request::<Value>(request).await.map_err(failed)?;
    }
    let uid = made.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(LeasedNode { name: name.to_owned(), uid })
}

fn object(plan: &Plan, name: &str, port: u16, now: Timestamp) -> Value {
    let id = identifier(seed_of(name).part(plan.seed));
    let resources = json!({
        "cpu": plan.capacity.cpu,
        "memory": plan.capacity.memory,
        "pods": plan.capacity.pods.to_string(),
    });
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let time = to_the_second(now).to_string();
        json!({
            "type": kind,
            "status": status,
            "lastHeartbeatTime": time,
            "lastTransitionTime": time,
            "reason": reason,
            "message": message,
        })
    };
    let (machine, boot) = (id.get(..32), id.get(32..));
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "addresses": [
                {"type": "InternalIP", "address": HOST_IP.to_string()},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "machineID": machine,
                "systemUUID": machine,
                "bootID": boot,
                "kernelVersion": "6.12.0",
                "osImage": "Simulated",
                "containerRuntimeVersion": "containerd://2.2.0",
                "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    })
}
