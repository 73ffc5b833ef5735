//! Requests to Vault and its responses.

use std::collections::BTreeMap;

use api::keda::{VaultPki, VaultSecret};
use serde_json::{Map, Value};

use crate::operator::auth::error::{VaultDataError, VaultResponseError, VaultValueError};

/// Characters of Vault's message in an error.
const MAX_ERROR_CHARS: usize = 200;
/// Vault's own parts, beside the mounts of secrets. No namespace of Vault has one of these names.
const OWN_PARTS: [&str; 3] = ["auth", "sys", "identity"];

/// Secrets that one response holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VaultRequest<'a> {
    /// Empty, `secretV2`, `secret` or `pki`.
    pub(super) type_: &'a str,
    /// The path of the secret.
    pub(super) path: &'a str,
    /// The fields of a certificate request.
    pub(super) pki: Option<&'a VaultPki>,
}

/// The requests, and the parameters that each response holds.
pub(super) fn groups(secrets: &[VaultSecret]) -> BTreeMap<VaultRequest<'_>, Vec<&VaultSecret>> {
    let mut out: BTreeMap<VaultRequest<'_>, Vec<&VaultSecret>> = BTreeMap::new();
    for secret in secrets {
        let group = VaultRequest { type_: &secret.type_, path: &secret.path, pki: secret.pki_data.as_ref() };
        out.entry(group).or_default().push(secret);
    }
    out
}

impl VaultRequest<'_> {
    fn is_certificate(&self) -> bool {
        self.type_ == "pki"
    }

    /// Whether the request may be sent with a credential of the operator: an object that a tenant wrote must not revoke or read the
    /// credential itself, nor change Vault. A path may begin with namespaces of Vault, as the header may name some.
    pub(super) fn is_allowed_for_operator(&self, namespace: &str) -> bool {
        let is_own_part = |segment: &&str| OWN_PARTS.contains(segment);
        if segments(namespace).any(|segment| is_own_part(&segment)) {
            return false;
        }
        let path: Vec<&str> = segments(self.path).collect();
        if self.is_certificate() {
            let [mount @ .., action, _role] = path.as_slice() else { return false };
            return !mount.is_empty()
                && !mount.iter().any(is_own_part)
                && matches!(*action, "issue" | "sign");
        }
        path.first().is_none_or(|segment| !is_own_part(segment))
            && !path.ends_with(&["auth", "token", "lookup-self"])
            && !path.windows(3).any(|run| run == ["identity", "oidc", "token"])
    }

    /// The body of the request; only certificate requests have one.
    pub(super) fn body(&self) -> Option<Value> {
        if !self.is_certificate() {
            return None;
        }
        let none = VaultPki::default();
        let pki = self.pki.unwrap_or(&none);
        let fields = [
            ("common_name", &pki.common_name),
            ("alt_names", &pki.alt_names),
            ("ip_sans", &pki.ip_sans),
            ("uri_sans", &pki.uri_sans),
            ("other_sans", &pki.other_sans),
            ("ttl", &pki.ttl),
            ("format", &pki.format),
        ];
        let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
        Some(Value::Object(given.map(|(name, text)| (name.to_owned(), text.clone().into())).collect()))
    }

    /// The keys and values of a response. KV version 2 wraps them once more.
    pub(super) fn data(&self, mut response: Value) -> Result<Value, VaultDataError> {
        let mut data = response.get_mut("data").map(Value::take).unwrap_or_default();
        let wrapped = data.get("data").is_some_and(Value::is_object);
        match self.type_ {
            "" | "secretV2" if wrapped => Ok(data.get_mut("data").map(Value::take).unwrap_or_default()),
            "secretV2" => Err(VaultDataError::NotVersion2),
            "" | "secret" | "pki" if data.is_object() => Ok(data),
            "" | "secret" | "pki" => Err(VaultDataError::NoData),
            other => Err(VaultDataError::UnknownType(other.to_owned())),
        }
    }
}

/// The segments of a path that are sent.
pub(super) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// The value of a key, as text. A certificate chain is joined to one text.
pub(super) fn value(data: &Value, secret: &VaultSecret) -> Result<String, VaultValueError> {
    let (path, key) = (secret.path.clone(), secret.key.clone());
    match data.get(&secret.key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(chain)) if secret.type_ == "pki" => {
            Ok(chain.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
        }
        Some(plain @ (Value::Number(_) | Value::Bool(_))) => Ok(plain.to_string()),
        None | Some(Value::Null) => Err(VaultValueError::NoKey { path, key }),
        Some(_) => Err(VaultValueError::NotText { path, key }),
    }
}

/// Decodes a response.
pub(super) fn decode(status: u16, body: &[u8]) -> Result<Value, VaultResponseError> {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    if !(200..300).contains(&status) {
        let errors = parsed.as_ref().and_then(|response| response.get("errors")?.as_array());
        let words: Vec<&str> = errors.into_iter().flatten().filter_map(Value::as_str).collect();
        let words: String = words.join("; ").chars().take(MAX_ERROR_CHARS).collect();
        return Err(match (status, words) {
            (404, words) if words.is_empty() => VaultResponseError::NotFound,
            (_, words) if words.is_empty() => VaultResponseError::Status(status),
            (_, words) => VaultResponseError::Message(status, words),
        });
    }
    match parsed {
        Some(response) => Ok(response),
        // A renewal may have an empty response.
        None if body.is_empty() => Ok(Value::Object(Map::new())),
        None => Err(VaultResponseError::NotJson),
    }
}
