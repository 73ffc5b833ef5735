//! Why Vault gives no secret.

use sources::http::HttpError;

use super::AuthFailure;
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

/// Why a response holds no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultDataError {
    /// It has no data in the form of KV version 2.
    #[error("has no data of the second version of the store")]
    NotVersion2,
    /// It has no data.
    #[error("has no data")]
    NoData,
    /// The type of the secret is unknown.
    #[error("is of type {0:?}, which is not known")]
    UnknownType(String),
}

/// Why a value is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultValueError {
    /// The secret has no such key.
    #[error("vault secret {path:?} has no key {key:?}")]
    NoKey {
        /// The path of the secret.
        path: String,
        /// The key.
        key: String,
    },
    /// The value is an object or a list.
    #[error("vault secret {path:?}: the value of key {key:?} is not text")]
    NotText {
        /// The path of the secret.
        path: String,
        /// The key.
        key: String,
    },
}

/// Why a response was refused. It holds Vault's messages, but not the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultResponseError {
    /// There is nothing at this path.
    #[error("it does not exist")]
    NotFound,
    /// The status, without a message.
    #[error("answered {0}")]
    Status(u16),
    /// The status and Vault's message.
    #[error("answered {0}: {1}")]
    Message(u16, String),
    /// The body is not JSON.
    #[error("answered what is not JSON")]
    NotJson,
}
