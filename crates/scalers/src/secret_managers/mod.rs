//! Secret managers of clouds: AWS Secrets Manager, Azure Key Vault, GCP Secret Manager.
//!
//! ```text
//! aws      requests signed with keys
//! azure    requests with tokens of Microsoft Entra ID
//! google   requests with tokens of Google
//! ```
//!
//! Credentials are those of [`Identities`], which triggers share. Credentials of the operator are sent to hosts of the vendor only.
//! Values are never logged or quoted, and responses are not shared with other callers.

mod aws;
mod azure;
mod google;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use aws::{AwsSecretClient, value_of_key};
pub use azure::KeyVaultClient;
pub use google::GoogleSecretClient;

use crate::backends::Backends;
use crate::identity::Identities;
use crate::web::SharedHttpClient;

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Clients of secret managers.
#[derive(Clone)]
pub struct SecretManagers {
    identities: Arc<Identities>,
    web: Arc<SharedHttpClient>,
}

impl SecretManagers {
    /// With these credentials, over this HTTP client.
    pub fn new(identities: Arc<Identities>, web: Arc<SharedHttpClient>) -> Self {
        Self { identities, web }
    }

    /// With the credentials and the HTTP client of triggers.
    pub fn of(backends: &Backends) -> Self {
        Self::new(backends.state(), Arc::clone(&backends.web))
    }
}
