//! Identities at clouds: temporary credentials of AWS, Azure and Google Cloud, by their public protocols.
//!
//! ```text
//! environment   what the platform has set for this process
//! cache         credentials per identity, renewed ahead of time
//! aws           keys: web identity, EKS Pod Identity, assumed roles
//! azure         tokens: workload identity federation, client secrets
//! google        tokens: service account keys, metadata server, federation
//! jwt           signed tokens
//! sigv4         signatures of AWS
//! ```
//!
//! Endpoints are those of the vendors, or set for this process; a trigger never chooses where a credential of the operator is sent.

mod aws;
mod azure;
mod cache;
mod environment;
mod google;
pub(crate) mod jwt;
mod sigv4;
#[cfg(test)]
mod tests;

pub use aws::AwsIdentity;
pub(crate) use aws::{aws_domain, is_aws_region};
pub use azure::AzureIdentity;
pub use environment::IdentityEnvironment;
pub use google::GoogleIdentity;
pub use sigv4::AwsKeys;
pub(crate) use sigv4::{RequestToPresign, RequestToSign, presign, sign};

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use sources::http::Secret;

use crate::ScalerError;
use crate::web::{HttpCall, SharedHttpClient};
use cache::CredentialCache;

/// Timeout of a request for credentials.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a token file, in bytes.
const MAX_TOKEN_FILE_BYTES: u64 = 64 << 10;

/// Credentials of all identities that triggers use.
#[derive(Default)]
pub struct Identities {
    environment: IdentityEnvironment,
    aws: CredentialCache<aws::AwsCacheKey, AwsKeys>,
    azure: CredentialCache<azure::AzureCacheKey, Secret>,
    google: CredentialCache<google::GoogleCacheKey, Secret>,
}

impl Identities {
    /// No credentials yet, in this environment.
    pub fn new(environment: IdentityEnvironment) -> Self {
        Self { environment, ..Self::default() }
    }
}

/// Sends a request for credentials. No tenant chooses its address, and its response is never shared with other callers.
async fn send(web: &SharedHttpClient, call: HttpCall) -> Result<(u16, Bytes), ScalerError> {
    let response = web.send(call.alone().own_address()).await?;
    Ok((response.status.as_u16(), response.body))
}

/// Sends a request with credentials of a tenant to an address of the tenant; its response is never shared with other callers.
async fn send_to_tenant(web: &SharedHttpClient, call: HttpCall) -> Result<(u16, Bytes), ScalerError> {
    let response = web.send(call.alone()).await?;
    Ok((response.status.as_u16(), response.body))
}

/// Reads a token that the platform renews in a file.
async fn token_file(path: &str) -> Result<Secret, ScalerError> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut text = String::new();
        let file = std::fs::File::open(&path);
        file.and_then(|file| file.take(MAX_TOKEN_FILE_BYTES).read_to_string(&mut text))
            .map_err(|error| ScalerError::caused_by(format!("failed to read {path}: {error}"), error))?;
        Ok(Secret::new(text.trim()))
    });
    read.await.unwrap_or_else(|_| Err(scaler_error!("failed to read a token")))
}

/// The time until a moment; zero if it is past.
fn until(moment: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default()
}

/// Whether a text can be one label of a host name or a segment of a path: letters, digits, dots, hyphens.
fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=128).contains(&text.len()) && text.chars().all(allowed)
}
