//! How a replica reads the history of the leader.

use std::path::PathBuf;
use std::sync::Arc;

use controllers::hpa::records::{FetchPasses, LeaderHistory};
use serve::Keyring;

use crate::certificates::Shared;

/// The token of the service account in a pod.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Reads passes of the leader, whose certificate must be from the CA in the Secret that replicas share; none without that Secret. A
/// CA of others would not do: the token of the service account is sent to whom it has certified.
pub(crate) fn fetcher(
    shared: &Shared,
    keyring: Option<&Keyring>,
    api_version: &'static str,
    service: &str,
) -> Option<FetchPasses> {
    let Shared::Secret { namespace, .. } = shared else { return None };
    let keyring = keyring?.clone();
    let history = LeaderHistory {
        api_version,
        server_name: format!("{service}.{namespace}.svc"),
        token_file: PathBuf::from(TOKEN_FILE),
        authorities: Arc::new(move || keyring.authorities()),
    };
    Some(history.fetcher())
}

#[cfg(test)]
mod tests;
