//! How a replica reads the history of the leader.

use std::path::PathBuf;
use std::sync::Arc;

use cluster::connect::{Credentials, Material};
use controllers::hpa::records::{FetchPasses, LeaderHistory};
use serve::Keyring;

use crate::certificates::Shared;

/// The token of the service account in a pod.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Reads passes of the leader with the token of our own account: that of the pod, or `tokenFile` of the kubeconfig. The certificate of
/// the leader must be from the CA in the Secret that replicas share; none without that Secret. A CA of others would not do: the token is
/// sent to every server that this CA has certified.
pub(crate) fn fetcher(
    shared: &Shared,
    keyring: Option<&Keyring>,
    api_version: &'static str,
    service: &str,
    credentials: &Credentials,
) -> Option<FetchPasses> {
    let Shared::Secret { namespace, .. } = shared else { return None };
    let keyring = keyring?.clone();
    let token_file = match &credentials.token {
        Some(Material::File(path)) => path.clone(),
        _ => PathBuf::from(TOKEN_FILE),
    };
    let history = LeaderHistory {
        api_version,
        server_name: format!("{service}.{namespace}.svc"),
        token_file,
        authorities: Arc::new(move || keyring.authorities()),
    };
    Some(history.fetcher())
}

#[cfg(test)]
mod tests;
