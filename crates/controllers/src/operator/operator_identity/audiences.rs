//! Audiences of service account tokens that an administrator approved: `KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES` and
//! `--service-account-token-mode`, with the syntax and texts of KEDA 2.21.

use std::collections::{BTreeMap, BTreeSet};

use api::names;
use api::yaml::{SourceFile, parse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The variable that holds the audiences.
pub const VARIABLE: &str = "KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES";
/// The start of the subject of every service account token.
const ACCOUNT_SUBJECT: &str = "system:serviceaccount:";

/// Whether audiences of service account tokens are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenMode {
    /// Only tokens with an approved audience are requested and sent.
    #[default]
    EnforceAudience,
    /// No audience is requested or checked, as before KEDA 2.21.
    Legacy,
}

impl TokenMode {
    /// Parses the value of the flag.
    pub fn parse(text: &str) -> Result<Self, TokenAudiencesError> {
        match text {
            "enforce-audience" => Ok(Self::EnforceAudience),
            "legacy" => Ok(Self::Legacy),
            other => Err(TokenAudiencesError::Mode(other.to_owned())),
        }
    }
}

/// The approved audiences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenAudiences {
    /// By namespace and name of the service account: the audience of the tokens that are requested for it.
    requested: BTreeMap<(String, String), String>,
    /// All audiences, for tokens in files.
    approved: BTreeSet<String>,
}

/// Why the audiences or the mode cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenAudiencesError {
    /// The mode is unknown.
    #[error("unsupported service-account-token-mode {0:?}: expected enforce-audience or legacy")]
    Mode(String),
    /// An audience is empty or has spaces around it.
    #[error("service account token audiences must be nonempty and contain no surrounding whitespace")]
    Audience,
    /// An entry has one of the two names.
    #[error(
        "{VARIABLE} entries must set both namespace and serviceAccountName for minting, or omit both for audience approval only"
    )]
    HalfNamed,
    /// The namespace or the name of a service account is invalid.
    #[error(
        "{VARIABLE} entries require valid, exact Kubernetes namespace and service account names; wildcards are not supported"
    )]
    Names,
    /// A service account has two audiences.
    #[error("duplicate service account token audience mapping for {0}/{1}")]
    Duplicate(String, String),
    /// Audiences are given, but not checked.
    #[error(
        "legacy token mode cannot be combined with configured audiences; use enforce-audience or remove the audience settings"
    )]
    Legacy,
    /// The document is null.
    #[error("{VARIABLE} must be an array, not null")]
    Null,
    /// There are several documents.
    #[error("{VARIABLE} must contain one YAML or JSON document")]
    Documents,
    /// The document cannot be decoded.
    #[error("{0}")]
    Undecodable(String),
}

/// Why the token of a service account is not used. No text holds the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenClaimsError {
    /// It is no token of a service account.
    #[error("it is not the token of a service account")]
    NotAccount,
    /// It has no audience.
    #[error("service account token has no audience")]
    NoAudience,
    /// It has an audience that is not approved.
    #[error("service account token contains an audience not approved by the allowed audience list")]
    Unapproved,
    /// It does not expire.
    #[error("invalid service account token lifetime: it has no expiry")]
    NoExpiry,
    /// It has expired.
    #[error("invalid service account token lifetime: it has expired")]
    Expired,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AudienceEntry {
    #[serde(default)]
    audience: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    service_account_name: String,
}

impl TokenAudiences {
    /// Parses the value of the variable.
    pub fn parse(text: &str) -> Result<Self, TokenAudiencesError> {
        let source = SourceFile::new(VARIABLE, text);
        let undecodable = |problem: &dyn ToString| TokenAudiencesError::Undecodable(problem.to_string());
        let documents = parse(&source).map_err(|problem| undecodable(&problem))?;
        let document = match documents.as_slice() {
            [] => return Err(TokenAudiencesError::Null),
            [one] => one,
            _ => return Err(TokenAudiencesError::Documents),
        };
        let entries: Vec<AudienceEntry> = document.decode().map_err(|problems| match problems.first() {
            Some(problem) => undecodable(problem),
            None => TokenAudiencesError::Null,
        })?;
        let mut out = Self::default();
        for AudienceEntry { audience, namespace, service_account_name: name } in entries {
            if audience.is_empty() || audience.trim() != audience {
                return Err(TokenAudiencesError::Audience);
            }
            if namespace.is_empty() != name.is_empty() {
                return Err(TokenAudiencesError::HalfNamed);
            }
            if !name.is_empty() {
                let is_named = names::dns_label_faults(&namespace).is_empty()
                    && names::subdomain_faults(&name).is_empty();
                if !is_named {
                    return Err(TokenAudiencesError::Names);
                }
                let account = (namespace, name);
                if out.requested.contains_key(&account) {
                    return Err(TokenAudiencesError::Duplicate(account.0, account.1));
                }
                out.requested.insert(account, audience.clone());
            }
            out.approved.insert(audience);
        }
        Ok(out)
    }

    /// Whether nothing is approved.
    pub fn is_empty(&self) -> bool {
        self.approved.is_empty()
    }

    /// The audience of tokens that are requested for a service account.
    pub(crate) fn requested(&self, namespace: &str, name: &str) -> Option<&str> {
        self.requested.get(&(namespace.to_owned(), name.to_owned())).map(String::as_str)
    }

    /// Whether an audience is approved for tokens in files.
    pub(crate) fn approves(&self, audience: &str) -> bool {
        self.approved.contains(audience)
    }
}

/// The claims of a token. Its signature is not verified: it is read to know what it would be good for, not who sent it.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, claims) = (parts.next()?, parts.next()?);
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// Checks that a text is the token of a service account.
pub(crate) fn check_subject(token: &str) -> Result<(), TokenClaimsError> {
    let claims = claims(token).ok_or(TokenClaimsError::NotAccount)?;
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
    if subject.starts_with(ACCOUNT_SUBJECT) { Ok(()) } else { Err(TokenClaimsError::NotAccount) }
}

/// Checks subject, audiences and expiry of a token.
pub(crate) fn check_claims(
    token: &str,
    is_approved: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Result<(), TokenClaimsError> {
    check_subject(token)?;
    let claims = claims(token).ok_or(TokenClaimsError::NotAccount)?;
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().map(|one| one.as_str().unwrap_or_default()).collect(),
        _ => Vec::new(),
    };
    if audiences.is_empty() {
        return Err(TokenClaimsError::NoAudience);
    }
    if !audiences.into_iter().all(is_approved) {
        return Err(TokenClaimsError::Unapproved);
    }
    let expiry = claims.get("exp").and_then(Value::as_f64).ok_or(TokenClaimsError::NoExpiry)?;
    if expiry > now.as_second() as f64 { Ok(()) } else { Err(TokenClaimsError::Expired) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn audiences_are_found_by_exact_name() {
        let text = "- {audience: vault, namespace: shop, serviceAccountName: reader}\n- audience: file\n";
        let audiences = TokenAudiences::parse(text).unwrap();
        assert_eq!(audiences.requested("shop", "reader"), Some("vault"));
        for (namespace, name) in [("shop", "reade"), ("sho", "preader"), ("", ""), ("till", "reader")] {
            assert_eq!(audiences.requested(namespace, name), None);
        }
        assert!(audiences.approves("file") && audiences.approves("vault") && !audiences.approves("x"));
        assert!(TokenAudiences::parse("[]").unwrap().is_empty());
    }

    #[test]
    fn faults_of_the_variable_have_the_texts_of_keda() {
        let error = |text: &str| TokenAudiences::parse(text).unwrap_err().to_string();
        let audience =
            "service account token audiences must be nonempty and contain no surrounding whitespace";
        assert_eq!(error("[{audience: ''}]"), audience);
        assert_eq!(error("[{audience: ' a'}]"), audience);
        assert_eq!(error("[{}]"), audience);
        assert_eq!(
            error("[{audience: a, namespace: b}]"),
            "KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES entries must set both namespace and serviceAccountName for minting, or \
             omit both for audience approval only"
        );
        for bad in ["'*'", "A", "a/b", "a*"] {
            assert_eq!(
                error(&format!("[{{audience: a, namespace: b, serviceAccountName: {bad}}}]")),
                "KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES entries require valid, exact Kubernetes namespace and service account \
                 names; wildcards are not supported"
            );
        }
        let entry = "{audience: a, namespace: b, serviceAccountName: c}";
        assert_eq!(
            error(&format!("[{entry}, {entry}]")),
            "duplicate service account token audience mapping for b/c"
        );
        assert_eq!(error("null"), "KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES must be an array, not null");
        assert_eq!(
            error("[]\n---\n[]"),
            "KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES must contain one YAML or JSON document"
        );
        assert!(error("[{audience: a, name: b}]").contains("name"));
        assert_eq!(
            TokenMode::parse("off").unwrap_err().to_string(),
            "unsupported service-account-token-mode \"off\": expected enforce-audience or legacy"
        );
    }

    #[test]
    fn tokens_are_checked_for_subject_audience_and_expiry() {
        let now = Timestamp::from_second(1000).unwrap();
        let check = |claims: Value| check_claims(&token(&claims), |audience| audience == "vault", now);
        let sub = "system:serviceaccount:shop:reader";
        assert_eq!(check(json!({"sub": sub, "aud": "vault", "exp": 1001})), Ok(()));
        assert_eq!(check(json!({"sub": sub, "aud": ["vault"], "exp": 1001.5})), Ok(()));
        for (claims, error) in [
            (json!({"sub": "admin", "aud": "vault", "exp": 1001}), TokenClaimsError::NotAccount),
            (json!({"sub": sub, "exp": 1001}), TokenClaimsError::NoAudience),
            (json!({"sub": sub, "aud": [], "exp": 1001}), TokenClaimsError::NoAudience),
            (json!({"sub": sub, "aud": ["vault", "x"], "exp": 1001}), TokenClaimsError::Unapproved),
            (json!({"sub": sub, "aud": ["vault", 1], "exp": 1001}), TokenClaimsError::Unapproved),
            (json!({"sub": sub, "aud": "vault"}), TokenClaimsError::NoExpiry),
            (json!({"sub": sub, "aud": "vault", "exp": 1000}), TokenClaimsError::Expired),
        ] {
            assert_eq!(check(claims.clone()), Err(error), "{claims}");
        }
        assert_eq!(check_subject("hunter2"), Err(TokenClaimsError::NotAccount));
        assert_eq!(check_subject("-----BEGIN.e30.x"), Err(TokenClaimsError::NotAccount));
    }
}
