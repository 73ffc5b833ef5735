//! Builds a client from a kubeconfig or the pod's service account.
//!
//! ```text
//! settings        which kubeconfig and context, and what is wrong with it
//! kubeconfig      one file
//! credentials     our credentials, for requests that do not go through the client
//! transport       HTTP/2 over TLS, with keep-alive pings
//! adaptive_limit  how many requests may be in flight: a state machine
//! limiter         requests wait in order until the limit admits them
//! leader_only     writes that are not sent when the lease has passed meanwhile
//! explain         why a first request failed, and what to do
//! ```

mod adaptive_limit;
mod credentials;
mod explain;
mod kubeconfig;
mod leader_only;
mod limiter;
mod settings;
#[cfg(test)]
mod tests;
mod transport;

use std::path::PathBuf;

use kube::Client;

pub use adaptive_limit::{AdaptiveLimit, Admission, LimiterSnapshot, RequestOutcome};
pub use credentials::{Credentials, Material};
pub(crate) use explain::cause;
pub use explain::explain;
pub(crate) use leader_only::{LeaderOnly, NotLeading};
pub use limiter::ConcurrencyLimiter;
pub(crate) use limiter::RetryMarker;

/// Which cluster to connect to.
#[derive(Clone, Debug, Default)]
pub struct ConnectTarget {
    /// A kubeconfig; absent: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; absent: the current one.
    pub context: Option<String>,
}

/// A client and the cluster that it is connected to.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The server's URL.
    pub server: String,
    /// The namespace of the context.
    pub namespace: String,
    /// Where the settings came from, for messages: `~/.kube/config, context prod`.
    pub origin: String,
    /// The limiter of concurrent requests of this client.
    pub limiter: ConcurrencyLimiter,
    /// Our credentials.
    pub credentials: Credentials,
}

/// Why no client could be built, with a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub String);

/// Makes a client that speaks HTTP/2, notices dead connections and adapts the number of requests in flight.
pub async fn connect(target: &ConnectTarget) -> Result<Connection, ConnectError> {
    let settings = settings::load(target, &settings::ProcessEnvironment::here()).await?;
    let limiter = ConcurrencyLimiter::default();
    let config = settings.config;
    let client = transport::client(config.clone(), &limiter).map_err(|error| {
        ConnectError::new(
            &format!("cannot connect to {}: {}", config.cluster_url, explain::cause(&error)),
            &[("kubeconfig", &settings.origin)],
            "check the certificates and the credentials that the kubeconfig names",
        )
    })?;
    Ok(Connection {
        credentials: Credentials::of(&config),
        client,
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        namespace: config.default_namespace,
        origin: settings.origin,
        limiter,
    })
}

impl ConnectError {
    /// What is wrong, facts about it, and what to do, one line each.
    fn new(what: &str, facts: &[(&str, &str)], remedy: &str) -> Self {
        let mut text = what.to_owned();
        for (name, fact) in facts.iter().chain(&[("remedy", remedy)]) {
            text.push_str(&format!("\n  {name}: {fact}"));
        }
        Self(text)
    }
}
