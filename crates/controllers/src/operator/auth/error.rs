//! Why credentials cannot be resolved. No text holds a secret.

mod vault;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cluster::request::ApiError;
use keda::environment::{EnvironmentError, SourceRef};

use crate::operator::operator_identity::audiences::{TokenClaimsError, VARIABLE};
use crate::operator::secret_access::RestrictedSecret;

pub use vault::VaultError;
pub(super) use vault::{VaultDataError, VaultResponseError, VaultValueError};

/// Why a resolution failed, and the objects that were read.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AuthError {
    /// Why it failed.
    #[source]
    pub cause: AuthFailure,
    /// The objects that were read; the last one usually caused the failure.
    pub seen: Vec<SourceRef>,
}

/// Why a resolution failed.
#[derive(Debug, thiserror::Error)]
pub enum AuthFailure {
    /// The `authenticationRef` has an unknown kind.
    #[error(
        "authenticationRef {name:?} is of kind {kind:?}; TriggerAuthentication and ClusterTriggerAuthentication are known"
    )]
    UnknownKind {
        /// The name of the reference.
        name: String,
        /// The kind of the reference.
        kind: String,
    },
    /// An object does not exist.
    #[error("{0} does not exist")]
    Missing(SourceRef),
    /// An object was not read.
    #[error("failed to read {object}: {source}")]
    Unread {
        /// The object.
        object: SourceRef,
        /// The cause.
        source: Box<FetchError>,
    },
    /// A ServiceAccount was not read.
    #[error(transparent)]
    ServiceAccount(FetchError),
    /// No token of a ServiceAccount was issued.
    #[error("failed to create bound service account token for {account}: {source}")]
    NoToken {
        /// Namespace and name of the ServiceAccount.
        account: String,
        /// The cause.
        source: Box<FetchError>,
    },
    /// No audience is approved for the tokens of a ServiceAccount.
    #[error("no configured token audience for service account {0} in {VARIABLE}")]
    NoAudience(String),
    /// The API server issued an empty token.
    #[error("token request for {0} returned an empty token")]
    EmptyToken(String),
    /// The API server issued a token with other claims than requested.
    #[error("invalid token returned for service account {account}: {source}")]
    InvalidToken {
        /// Namespace and name of the ServiceAccount.
        account: String,
        /// The cause.
        source: TokenClaimsError,
    },
    /// A bound token names no ServiceAccount.
    #[error("serviceAccountName is required for boundServiceAccountToken")]
    NoAccountName,
    /// A Secret or ConfigMap lacks a key.
    #[error("{object} has no key {key:?}")]
    NoKey {
        /// The Secret or ConfigMap.
        object: SourceRef,
        /// The key.
        key: String,
    },
    /// The value of a key is not UTF-8.
    #[error("the value of key {key:?} of {object} is not text")]
    NotText {
        /// The Secret.
        object: SourceRef,
        /// The key.
        key: String,
    },
    /// Secrets are read in one namespace only.
    #[error(transparent)]
    RestrictedSecret(#[from] RestrictedSecret),
    /// Environment variables of the workload cannot be resolved.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The same, for parameters that end in `FromEnv`.
    #[error("error resolving secrets for ScaleTarget: {0}")]
    TargetEnvironment(#[source] EnvironmentError),
    /// A file is given by an object of another kind.
    #[error("filePath is only supported for ClusterTriggerAuthentication, got kind: {0}")]
    FilePathKind(String),
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Vault failed.
    #[error(transparent)]
    Vault(Arc<VaultError>),
    /// A secret manager of a cloud failed.
    #[error("{manager} {secret:?}: {source}")]
    SecretManager {
        /// The field of the object.
        manager: &'static str,
        /// The secret, vault or region.
        secret: String,
        /// The cause.
        source: scalers::ScalerError,
    },
    /// The values were not read in time.
    #[error(
        "its values were not read within {0:?}: check that the API server and the servers that it names respond, or name fewer \
         values"
    )]
    TimedOut(Duration),
    /// A list has too many entries.
    #[error("{list} has {count} entries, more than {limit}: leave out those that the trigger does not need")]
    TooManyEntries {
        /// The field of the object.
        list: &'static str,
        /// The number of its entries.
        count: usize,
        /// The largest number that is read.
        limit: usize,
    },
    /// The values are too large.
    #[error("its values are larger than {0} bytes together: leave out those that the trigger does not need")]
    TooLarge(usize),
    /// The secret manager has the pod identity of another cloud.
    #[error("{manager} does not support podIdentity {provider}: use {cloud}, or credentials")]
    SecretManagerIdentity {
        /// The field of the object.
        manager: &'static str,
        /// The provider that is given.
        provider: String,
        /// The provider that can be used.
        cloud: &'static str,
    },
    /// The secret manager has neither a pod identity nor credentials.
    #[error("{manager} needs a podIdentity, or credentials that are not empty")]
    NoSecretManagerCredentials {
        /// The field of the object.
        manager: &'static str,
    },
    /// Cloud identities of the operator are for administrators.
    #[error(
        "podIdentity {0} is the operator's, which a TriggerAuthentication may not use (--operator-identity=cluster-only): use a \
         ClusterTriggerAuthentication, or credentials of your own"
    )]
    ClusterOnlyIdentity(String),
    /// A tenant chooses where the operator proves its identity.
    #[error(
        "podIdentity.identityAuthorityHost is not used in a TriggerAuthentication: the operator proves its identity only to the \
         authority of the vendor; use a ClusterTriggerAuthentication"
    )]
    AuthorityHost,
    /// The pod identity names a role, but the workload owns the identity.
    #[error("roleArn can't be set if KEDA isn't identity owner, current value: 'workload'")]
    RoleOfWorkload,
    /// The identity of a workload is used without a workload.
    #[error("identityOwner workload needs a target with pods, whose ServiceAccount has a role")]
    NoWorkload,
    /// The ServiceAccount of the workload has no role.
    #[error("ServiceAccount {namespace}/{account} of the workload has no annotation {annotation}")]
    NoRole {
        /// Namespace of the workload.
        namespace: String,
        /// Name of the ServiceAccount.
        account: String,
        /// The annotation that holds the role.
        annotation: &'static str,
    },
    /// The identity is empty.
    #[error("IdentityID of PodIdentity should not be empty")]
    EmptyIdentityId,
    /// A TriggerAuthentication cannot be used.
    #[error("{object}: {source}")]
    Of {
        /// The TriggerAuthentication.
        object: SourceRef,
        /// The cause.
        source: Box<AuthFailure>,
    },
}

/// Why an object was not read. The text is the message of Kubernetes: `secrets "x" not found`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The object does not exist.
    #[error("{resource} \"{name}\" not found")]
    NotFound {
        /// The resource, with its group.
        resource: String,
        /// The name.
        name: String,
    },
    /// The request failed.
    #[error(transparent)]
    Request(ApiError),
    /// The object cannot be decoded. The position is that of the JSON text, which may hold a secret.
    #[error("{object}: not understood at {position:?}")]
    Undecodable {
        /// Resource and name.
        object: String,
        /// Line and column.
        position: (usize, usize),
    },
    /// A value of a Secret is not base64.
    #[error("secrets {name:?}: the value of {key:?} is not base64")]
    NotBase64 {
        /// The name of the Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// A manifest cannot be decoded.
    #[error("{kind} {name:?}: {error}")]
    Manifest {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The decoding error.
        error: String,
    },
    /// Secrets are read in one namespace only.
    #[error(transparent)]
    Restricted(#[from] RestrictedSecret),
    /// Manifests have no tokens.
    #[error("serviceaccounts {0:?}: manifests have no tokens")]
    NoTokens(String),
}

impl FetchError {
    /// The object does not exist.
    pub fn not_found(resource: &str, name: &str) -> Self {
        Self::NotFound { resource: resource.to_owned(), name: name.to_owned() }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Request(error) => error.is_not_found(),
            _ => false,
        }
    }
}

impl From<ApiError> for FetchError {
    fn from(error: ApiError) -> Self {
        Self::Request(error)
    }
}

/// Why a file of the operator cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// No folder is configured.
    #[error("filepath-auth-root-path not configured")]
    NoRoot,
    /// The path leads out of the folder.
    #[error("filePath must be relative and not contain '..'")]
    OutsideRoot,
    /// The content is something else. The text of the JSON error is left out, since it may quote the file.
    #[error("{} is not a JSON object of texts", .0.display())]
    NotParameters(PathBuf),
    /// The content is not a token that may be sent.
    #[error("{}: {source}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: TokenClaimsError,
    },
    /// The file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// It is a folder, a device or a pipe.
    #[error("{} is not a regular file", .0.display())]
    NotRegular(PathBuf),
    /// It is too large.
    #[error("{} is larger than 1 MiB", .0.display())]
    TooLarge(PathBuf),
    /// The thread that reads ended.
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
}
