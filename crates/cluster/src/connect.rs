//! A kubeconfig (or the pod's service account) becomes a client.

use std::path::PathBuf;

use kube::Client;

/// Where the cluster is and who we are there.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// A kubeconfig; absent: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; absent: the current one.
    pub context: Option<String>,
}

/// A client and what is known about where it leads.
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The server's URL.
    pub server: String,
    /// The namespace of the context.
    pub namespace: String,
    /// Where the settings came from, for messages: `~/.kube/config, context prod`.
    pub origin: String,
}

/// Why there is no client, with a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// Makes a client that speaks HTTP/2, notices dead connections and adapts the number of requests in flight.
pub async fn connect(target: &Target) -> Result<Connection, ConnectError> {
    let _ = target;
    todo!()
}
