//! Destinations that an administrator approved: `KEDA_OUTBOUND_FILTER`, with the syntax and texts of KEDA 2.21.
//!
//! KEDA's filter is off by default, and then every credential goes to every address. Here the mode decides only about credentials
//! that belong to a tenant. Those of the operator go to listed origins in every mode.

use std::collections::BTreeSet;

use api::yaml::{NodeValue, SourceFile, parse};
use http::Uri;
use serde::Deserialize;

/// The variable that holds the filter.
pub const VARIABLE: &str = "KEDA_OUTBOUND_FILTER";
/// Characters of an origin in messages.
const MAX_SHOWN_CHARS: usize = 200;

/// What happens if a Vault is not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterMode {
    /// Credentials of tenants are sent.
    #[default]
    Off,
    /// The same, with a warning in the log.
    Warn,
    /// Nothing is sent.
    Enforce,
}

/// Destinations that an administrator approved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundFilter {
    mode: FilterMode,
    allowed: AllowedOrigins,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedOrigins {
    /// These, as `scheme://host:port` in lower case.
    Listed(BTreeSet<String>),
    /// All: the person who runs the command is the one whose credentials are sent.
    All,
}

impl Default for AllowedOrigins {
    fn default() -> Self {
        Self::Listed(BTreeSet::new())
    }
}

/// Why a filter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundFilterError {
    /// An endpoint is not an origin.
    #[error(
        "invalid {VARIABLE}.hashiCorpVault.allowedEndpoints entry: expected an HTTP(S) origin without user information"
    )]
    Endpoint,
    /// The mode is unknown.
    #[error("unsupported {VARIABLE}.hashiCorpVault.mode {0:?}: expected off, warn, or enforce")]
    Mode(String),
    /// The mode is empty.
    #[error("{VARIABLE}.hashiCorpVault.mode must be off, warn, or enforce")]
    EmptyMode,
    /// The document or its section is null.
    #[error("{VARIABLE} and its hashiCorpVault section must be objects, not null")]
    Null,
    /// There are several documents.
    #[error("{VARIABLE} must contain one YAML or JSON document")]
    Documents,
    /// The document cannot be decoded.
    #[error("{0}")]
    Undecodable(String),
}

/// Why a credential is not sent to a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The filter is enforced, and its list is empty.
    #[error(
        "no outbound endpoint allowlist is configured in enforce mode ({VARIABLE}.hashiCorpVault.allowedEndpoints)"
    )]
    EmptyList,
    /// The filter is enforced, and does not list the destination.
    #[error(
        "vault endpoint {0:?} is not in the configured allowlist ({VARIABLE}.hashiCorpVault.allowedEndpoints)"
    )]
    NotListed(String),
    /// A credential of the operator would go to an address that is not listed.
    #[error(
        "{credential} of the operator is not sent to {origin:?}: an administrator must list this origin in \
         {VARIABLE}.hashiCorpVault.allowedEndpoints; or use a credential of your own (credential.serviceAccountName)"
    )]
    OperatorCredential {
        /// What would be sent.
        credential: &'static str,
        /// The destination.
        origin: String,
    },
    /// A namespaced object would use a credential of the operator.
    #[error(
        "{credential} of the operator is not used by a TriggerAuthentication (--operator-identity=cluster-only): use a \
         ClusterTriggerAuthentication, or a credential of your own (credential.serviceAccountName)"
    )]
    ClusterOnly {
        /// What would be sent.
        credential: &'static str,
    },
    /// The token of a service account would be sent in clear text.
    #[error(
        "the token of a service account is not sent to {0:?} without TLS: use https, or have an administrator list this \
         origin in {VARIABLE}.hashiCorpVault.allowedEndpoints"
    )]
    ClearText(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterDocument {
    #[serde(default)]
    hashi_corp_vault: Option<VaultSection>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VaultSection {
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    allowed_endpoints: Option<Vec<String>>,
}

impl OutboundFilter {
    /// Approves every destination: for commands that run with the credentials of the person who calls them.
    pub fn unrestricted() -> Self {
        Self { mode: FilterMode::Off, allowed: AllowedOrigins::All }
    }

    /// Parses the value of the variable.
    pub fn parse(text: &str) -> Result<Self, OutboundFilterError> {
        let source = SourceFile::new(VARIABLE, text);
        let undecodable = |problem: &dyn ToString| OutboundFilterError::Undecodable(problem.to_string());
        let documents = parse(&source).map_err(|problem| undecodable(&problem))?;
        let document = match documents.as_slice() {
            [] => return Err(OutboundFilterError::Null),
            [one] => one,
            _ => return Err(OutboundFilterError::Documents),
        };
        if document.root.get("hashiCorpVault").is_some_and(|section| section.value == NodeValue::Null) {
            return Err(OutboundFilterError::Null);
        }
        let decoded: FilterDocument = document.decode().map_err(|problems| match problems.first() {
            Some(problem) => undecodable(problem),
            None => OutboundFilterError::Null,
        })?;
        let Some(section) = decoded.hashi_corp_vault else { return Ok(Self::default()) };
        let mode = match section.mode.as_deref() {
            None | Some("off") => FilterMode::Off,
            Some("warn") => FilterMode::Warn,
            Some("enforce") => FilterMode::Enforce,
            Some("") => return Err(OutboundFilterError::EmptyMode),
            Some(other) => return Err(OutboundFilterError::Mode(other.to_owned())),
        };
        let listed = section.allowed_endpoints.unwrap_or_default();
        let listed = listed.iter().map(|text| listed_origin(text).ok_or(OutboundFilterError::Endpoint));
        Ok(Self { mode, allowed: AllowedOrigins::Listed(listed.collect::<Result<_, _>>()?) })
    }

    /// Whether an administrator listed the origin of a server (`https://host:port`).
    pub fn lists(&self, server: &str) -> bool {
        match &self.allowed {
            AllowedOrigins::All => true,
            AllowedOrigins::Listed(listed) => origin(server).is_some_and(|origin| listed.contains(&origin)),
        }
    }

    /// Whether anything may be sent to a server.
    pub(crate) fn check(&self, server: &str) -> Result<(), DestinationError> {
        if self.lists(server) {
            return Ok(());
        }
        let is_empty = matches!(&self.allowed, AllowedOrigins::Listed(listed) if listed.is_empty());
        let refused =
            if is_empty { DestinationError::EmptyList } else { DestinationError::NotListed(shown(server)) };
        match self.mode {
            FilterMode::Off => Ok(()),
            FilterMode::Warn => {
                tracing::warn!(vault = shown(server), "not in {VARIABLE}.hashiCorpVault.allowedEndpoints");
                Ok(())
            }
            FilterMode::Enforce => Err(refused),
        }
    }

    /// Whether the token of a tenant's service account may be sent to a server: not in clear text, unless it is listed.
    pub(crate) fn check_account_token(&self, server: &str) -> Result<(), DestinationError> {
        if server.starts_with("https://") || self.lists(server) {
            return Ok(());
        }
        Err(DestinationError::ClearText(shown(server)))
    }

    /// Whether a credential of the operator may be sent to a server.
    pub(crate) fn check_operator(
        &self,
        server: &str,
        credential: &'static str,
    ) -> Result<(), DestinationError> {
        if self.lists(server) {
            return Ok(());
        }
        Err(DestinationError::OperatorCredential { credential, origin: shown(server) })
    }
}

/// An origin for messages.
fn shown(server: &str) -> String {
    server.chars().take(MAX_SHOWN_CHARS).collect()
}

/// An entry of the list: an origin and nothing else.
fn listed_origin(text: &str) -> Option<String> {
    let (_, authority) = text.split_once("://")?;
    if authority.contains(['/', '?', '#', '@', '*', ' ']) {
        return None;
    }
    origin(text)
}

/// `scheme://host:port` in lower case, with the default port if there is none.
fn origin(server: &str) -> Option<String> {
    let uri: Uri = server.parse().ok()?;
    let (scheme, default_port) = match uri.scheme_str()?.to_ascii_lowercase().as_str() {
        "https" => ("https", 443),
        "http" => ("http", 80),
        _ => return None,
    };
    let authority = uri.authority()?;
    let host = authority.host().to_ascii_lowercase();
    // A port that is empty or too large is not a port.
    let port = match authority.as_str().strip_prefix(authority.host())? {
        "" => default_port,
        _ => authority.port_u16()?,
    };
    (!host.is_empty()).then(|| format!("{scheme}://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(endpoints: &[&str], mode: &str) -> OutboundFilter {
        let document = serde_json::json!({"hashiCorpVault": {"mode": mode, "allowedEndpoints": endpoints}});
        OutboundFilter::parse(&document.to_string()).unwrap()
    }

    #[test]
    fn origins_are_compared_by_scheme_host_and_port() {
        let filter = listing(&["https://Vault.example:8200", "http://plain", "https://[::1]:1"], "off");
        for server in [
            "https://vault.example:8200",
            "HTTPS://VAULT.example:8200",
            "http://plain",
            "http://plain:80",
            "https://[::1]:1",
        ] {
            assert!(filter.lists(server), "{server}");
        }
        for server in [
            "http://vault.example:8200",
            "https://vault.example",
            "https://vault.example:82000",
            "https://vault.example:",
            "https://vault.example.evil:8200",
            "https://vault.example:8200@evil",
            "https://evil/https://vault.example:8200",
            "https://plain",
            "",
        ] {
            assert!(!filter.lists(server), "{server}");
        }
    }

    #[test]
    fn faults_of_the_variable_have_the_texts_of_keda() {
        let error = |text: &str| OutboundFilter::parse(text).unwrap_err().to_string();
        let endpoint = |text: &str| {
            error(
                &serde_json::json!({"hashiCorpVault": {"mode": "off", "allowedEndpoints": [text]}})
                    .to_string(),
            )
        };
        for bad in [
            "vault",
            "ftp://vault",
            "https://",
            "https://u@vault",
            "https://v/x",
            "https://v/",
            "https://*.v",
            "https://v?x",
        ] {
            assert_eq!(
                endpoint(bad),
                "invalid KEDA_OUTBOUND_FILTER.hashiCorpVault.allowedEndpoints entry: expected an HTTP(S) origin \
                 without user information",
                "{bad}"
            );
        }
        assert_eq!(
            error("hashiCorpVault: {mode: on1}"),
            "unsupported KEDA_OUTBOUND_FILTER.hashiCorpVault.mode \"on1\": expected off, warn, or enforce"
        );
        assert_eq!(
            error("hashiCorpVault: {mode: ''}"),
            "KEDA_OUTBOUND_FILTER.hashiCorpVault.mode must be off, warn, or enforce"
        );
        for null in ["null", "hashiCorpVault:", "{\"hashiCorpVault\": null}"] {
            assert_eq!(
                error(null),
                "KEDA_OUTBOUND_FILTER and its hashiCorpVault section must be objects, not null"
            );
        }
        assert!(error("a: 1\n---\nb: 1").contains("one YAML or JSON document"));
        assert!(error("hashiCorpVaults: {}").contains("hashiCorpVaults"));
        assert!(error("hashiCorpVault: {modes: off}").contains("modes"));
        assert_eq!(OutboundFilter::parse("{}").unwrap(), OutboundFilter::default());
    }

    #[test]
    fn modes_decide_about_credentials_of_tenants_only() {
        let (listed, other) = ("https://vault:8200", "https://evil:8200");
        for mode in ["off", "warn", "enforce"] {
            let filter = listing(&[listed], mode);
            assert_eq!(filter.check(listed), Ok(()));
            assert_eq!(filter.check(other).is_err(), mode == "enforce", "{mode}");
            assert_eq!(filter.check_operator(listed, "the token"), Ok(()));
            let refused = filter.check_operator(other, "the token").unwrap_err().to_string();
            assert!(
                refused.contains("https://evil:8200") && refused.contains("allowedEndpoints"),
                "{refused}"
            );
            assert!(filter.check_account_token("http://vault:8200").is_err());
            assert_eq!(filter.check_account_token(other), Ok(()));
        }
        assert_eq!(
            listing(&[], "enforce").check(other).unwrap_err().to_string(),
            "no outbound endpoint allowlist is configured in enforce mode (KEDA_OUTBOUND_FILTER.hashiCorpVault.allowedEndpoints)"
        );
        assert_eq!(
            listing(&[listed], "enforce").check(other).unwrap_err().to_string(),
            "vault endpoint \"https://evil:8200\" is not in the configured allowlist \
             (KEDA_OUTBOUND_FILTER.hashiCorpVault.allowedEndpoints)"
        );
        assert!(OutboundFilter::unrestricted().check_operator(other, "the token").is_ok());
    }
}
