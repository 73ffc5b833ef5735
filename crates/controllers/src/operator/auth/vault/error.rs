//! Why Vault gives no secret.

use sources::http::HttpError;

use super::query::{VaultDataError, VaultResponseError, VaultValueError};
use crate::operator::auth::AuthFailure;

/// Why Vault gives no secret.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The Kubernetes login has no mount.
    #[error("auth mount not in config")]
    NoMount,
    /// The Kubernetes login has no role.
    #[error("k8s role not in config")]
    NoRole,
    /// The login is not supported.
    #[error("vault auth method {0:?} is not supported; token and kubernetes are")]
    UnsupportedMethod(String),
    /// The token login has no token.
    #[error("vault token is neither in VAULT_TOKEN nor in credential.token")]
    NoToken,
    /// The login was accepted, but gave no token.
    #[error("vault login gave no token")]
    LoginWithoutToken,
    /// The token of the service account is missing.
    #[error(transparent)]
    AccountToken(Box<AuthFailure>),
    /// A header has characters that cannot be sent.
    #[error("{0} cannot be sent")]
    Header(&'static str),
    /// The request failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server refused the request.
    #[error("vault {server}: {source}")]
    Response {
        /// `https://host:port`.
        server: String,
        /// Why.
        source: VaultResponseError,
    },
    /// A path was not read.
    #[error("vault secret {path:?}: {source}")]
    Path {
        /// The path.
        path: String,
        /// Why.
        source: Box<VaultError>,
    },
    /// A response holds no data.
    #[error(transparent)]
    Data(#[from] VaultDataError),
    /// A value is missing.
    #[error(transparent)]
    Value(#[from] VaultValueError),
}
