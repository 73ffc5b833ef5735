//! Which objects may use credentials of the operator, and for which destinations (docs/security.md).
//!
//! ```text
//! outbound    destinations that an administrator approved
//! audiences   audiences of service account tokens that an administrator approved
//! ```

pub mod audiences;
pub mod outbound;

use std::path::PathBuf;

use audiences::{TokenAudiences, TokenMode};
use outbound::OutboundFilter;

/// The token of the operator's own service account.
const OWN_TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The default of `--vault-kubernetes-auth-token-file`.
const VAULT_TOKEN_FILE: &str = "/var/run/secrets/keda-vault/token";

/// Which objects may use credentials of the operator (`--operator-identity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdentityUsers {
    /// All: namespaced ones too, as in KEDA.
    #[default]
    Any,
    /// ClusterTriggerAuthentications only, which administrators write.
    ClusterOnly,
}

impl IdentityUsers {
    /// Parses the value of the flag.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "any" => Some(Self::Any),
            "cluster-only" => Some(Self::ClusterOnly),
            _ => None,
        }
    }
}

/// Rules for credentials of the operator and for tokens of service accounts. No mode of compatibility changes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRules {
    /// Approved destinations (`KEDA_OUTBOUND_FILTER`).
    pub outbound: OutboundFilter,
    /// Whether audiences are checked (`--service-account-token-mode`).
    pub token_mode: TokenMode,
    /// Approved audiences (`KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES`).
    pub audiences: TokenAudiences,
    /// Which objects may use credentials of the operator (`--operator-identity`).
    pub users: IdentityUsers,
    /// The token for logins at Vault (`--vault-kubernetes-auth-token-file`).
    pub vault_token_file: PathBuf,
    /// The token of the operator's own service account.
    pub own_token_file: PathBuf,
}

impl Default for IdentityRules {
    fn default() -> Self {
        Self {
            outbound: OutboundFilter::default(),
            token_mode: TokenMode::default(),
            audiences: TokenAudiences::default(),
            users: IdentityUsers::default(),
            vault_token_file: PathBuf::from(VAULT_TOKEN_FILE),
            own_token_file: PathBuf::from(OWN_TOKEN_FILE),
        }
    }
}

impl IdentityRules {
    /// The rules of a command that a person runs with their own credentials: nothing of an operator can leak.
    pub fn of_caller() -> Self {
        Self { outbound: OutboundFilter::unrestricted(), token_mode: TokenMode::Legacy, ..Self::default() }
    }

    /// The file that a `credential.serviceAccount` names. Only two paths are known, and the rules hold them: a path that an object
    /// chooses is compared, never opened.
    pub(crate) fn token_file(&self, named: &str) -> Option<PathBuf> {
        let known = [&self.own_token_file, &self.vault_token_file];
        known.into_iter().find(|file| file.as_os_str() == named).cloned()
    }

    /// The token file of a login that names none.
    pub(crate) fn default_token_file(&self) -> PathBuf {
        match self.token_mode {
            TokenMode::EnforceAudience => self.vault_token_file.clone(),
            TokenMode::Legacy => self.own_token_file.clone(),
        }
    }
}
