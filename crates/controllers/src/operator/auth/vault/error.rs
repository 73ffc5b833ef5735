//! Why Vault gives no secret.

use sources::http::HttpError;

use super::query::{VaultDataError, VaultResponseError, VaultValueError};
use crate::operator::auth::AuthFailure;
use crate::operator::operator_identity::audiences::VARIABLE;
use crate::operator::operator_identity::outbound::DestinationError;

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
    /// The credential may not be sent to this server.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// The token login has no token.
    #[error("could not get Vault token: it is neither in VAULT_TOKEN nor in credential.token")]
    NoToken,
    /// The Kubernetes login has a credential without a service account.
    #[error("k8s SA file not in config or serviceAccountName not supplied")]
    NoAccount,
    /// The Kubernetes login names a file that is not known.
    #[error(
        "credential.serviceAccount {0:?} is not read: no file that an object chooses is; name a service account of this \
         namespace in credential.serviceAccountName, or have an administrator set --vault-kubernetes-auth-token-file"
    )]
    UnknownFile(String),
    /// No audience is approved.
    #[error("no approved service account token audiences; configure {VARIABLE}")]
    NoApprovedAudiences,
    /// A path has segments that a server may resolve to another path.
    #[error("vault path {0:?} must not contain . or ..")]
    DotSegment(String),
    /// A path is not for credentials of the operator.
    #[error(
        "vault path {0:?} is not requested with a credential of the operator: that is used only to issue certificates at \
         MOUNT/issue/ROLE and MOUNT/sign/ROLE, and to read outside of auth/, sys/ and identity/; log in with a service account of \
         this namespace (credential.serviceAccountName)"
    )]
    NotForOperator(String),
    /// The login was accepted, but gave no token.
    #[error("vault Kubernetes login returned no client token")]
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
        /// The cause.
        source: VaultResponseError,
    },
    /// A path was not read.
    #[error("vault secret {path:?}: {source}")]
    Path {
        /// The path.
        path: String,
        /// The cause.
        source: Box<VaultError>,
    },
    /// A response holds no data.
    #[error(transparent)]
    Data(#[from] VaultDataError),
    /// A value is missing.
    #[error(transparent)]
    Value(#[from] VaultValueError),
}
