//! The loss of a node, and its return.

use http::Request;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sim::time::to_the_second;

use super::{Nodes, requests};

/// The taint of a node whose kubelet does not report.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// A node could not be lost or restored.
#[derive(Debug, thiserror::Error)]
pub enum NodeLossError {
    /// There is no node of this name.
    #[error("there is no node {0:?}")]
    Unknown(String),
    /// The server refused a change.
    #[error("failed to change {object}: {source}")]
    Refused {
        /// What should have been changed.
        object: String,
        /// The server's error.
        source: kube::Error,
    },
}

impl Nodes {
    /// The node with the most pods, of those that are not lost.
    pub fn busiest(&self) -> Option<&str> {
        self.shared.busiest().and_then(|node| self.names.get(node)).map(String::as_str)
    }

    /// Loses a node, as when its machine is gone: its kubelet does not respond, the node is not ready, and its pods are
    /// deleted immediately. In a cluster without a cloud controller they would be deleted after five minutes.
    pub async fn lose(&self, node: &str) -> Result<(), NodeLossError> {
        let index = self.known(node)?;
        let pods = self.shared.lose(index);
        let reason = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
        self.set_condition(node, reason).await?;
        let taint = |effect: &str| json!({"key": UNREACHABLE, "effect": effect});
        self.set_taints(node, &[taint("NoSchedule"), taint("NoExecute")]).await?;
        for pod in pods {
            let object = format!("pod {}/{}", pod.namespace, pod.name);
            match send::<IgnoredAny>(&self.client, requests::remove_pod(&pod), &object).await {
                // The pod was deleted meanwhile, and perhaps created again under its name.
                Err(NodeLossError::Refused { source: kube::Error::Api(status), .. })
                    if matches!(status.code, 404 | 409) => {}
                other => other.map(|_| ())?,
            }
        }
        Ok(())
    }

    /// Restores a lost node; pods can be placed on it again.
    pub async fn restore(&self, node: &str) -> Result<(), NodeLossError> {
        let index = self.known(node)?;
        self.set_condition(node, ("True", "KubeletReady", "kubelet is posting ready status")).await?;
        self.set_taints(node, &[]).await?;
        self.shared.restore(index);
        Ok(())
    }

    fn known(&self, node: &str) -> Result<usize, NodeLossError> {
        self.node_index(node).ok_or_else(|| NodeLossError::Unknown(node.to_owned()))
    }

    async fn set_condition(
        &self,
        node: &str,
        (status, reason, message): (&str, &str, &str),
    ) -> Result<(), NodeLossError> {
        let time = to_the_second(self.shared.wall_time()).to_string();
        let ready = json!({
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": time,
            "lastTransitionTime": time,
        });
        let request = requests::patch_node_status(node, &json!({"status": {"conditions": [ready]}}));
        send::<IgnoredAny>(&self.client, request, &format!("node {node}")).await.map(|_| ())
    }

    /// Replaces our taints of a node; others stay.
    async fn set_taints(&self, node: &str, ours: &[Value]) -> Result<(), NodeLossError> {
        let object = format!("node {node}");
        let read = Request::get(format!("/api/v1/nodes/{node}")).body(Vec::new()).ok();
        let found: Value = send(&self.client, read, &object).await?;
        let known = found.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
        let others = known.filter(|taint| taint.get("key").is_none_or(|key| key != UNREACHABLE));
        let taints: Vec<&Value> = others.chain(ours).collect();
        let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
        let request = requests::patch_node(node, &json!({"spec": {"taints": taints}}));
        send::<IgnoredAny>(&self.client, request, &object).await.map(|_| ())
    }
}

async fn send<T: serde::de::DeserializeOwned>(
    client: &Client,
    request: Option<Request<Vec<u8>>>,
    object: &str,
) -> Result<T, NodeLossError> {
    let request = request.ok_or_else(|| NodeLossError::Unknown(object.to_owned()))?;
    let refused = |source| NodeLossError::Refused { object: object.to_owned(), source };
    client.request::<T>(request).await.map_err(refused)
}
