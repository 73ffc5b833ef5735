//! Requests to Vault and its responses.

use std::collections::BTreeMap;

use api::keda::{VaultPki, VaultSecret};
use serde_json::{Map, Value};

/// Characters of Vault's message in an error.
const MAX_ERROR_CHARS: usize = 200;

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
    /// The body of the request; only certificate requests have one.
    pub(super) fn body(&self) -> Option<Value> {
        if self.type_ != "pki" {
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
    pub(super) fn data(&self, mut answer: Value) -> Result<Value, String> {
        let mut data = answer.get_mut("data").map(Value::take).unwrap_or_default();
        let wrapped = data.get("data").is_some_and(Value::is_object);
        match self.type_ {
            "" | "secretV2" if wrapped => Ok(data.get_mut("data").map(Value::take).unwrap_or_default()),
            "secretV2" => Err("has no data of the second version of the store".to_owned()),
            "" | "secret" | "pki" if data.is_object() => Ok(data),
            "" | "secret" | "pki" => Err("has no data".to_owned()),
            other => Err(format!("is of type {other:?}, which is not known")),
        }
    }
}

/// The value of a key, as text. A certificate chain is joined to one text.
pub(super) fn value(data: &Value, secret: &VaultSecret) -> Result<String, String> {
    let missing = || format!("vault secret {:?} has no key {:?}", secret.path, secret.key);
    match data.get(&secret.key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(chain)) if secret.type_ == "pki" => {
            Ok(chain.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
        }
        Some(plain @ (Value::Number(_) | Value::Bool(_))) => Ok(plain.to_string()),
        None | Some(Value::Null) => Err(missing()),
        Some(_) => {
            Err(format!("vault secret {:?}: the value of key {:?} is not text", secret.path, secret.key))
        }
    }
}

/// The decoded response. An error holds Vault's messages, but not the body.
pub(super) fn answer(status: u16, body: &[u8]) -> Result<Value, String> {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    if !(200..300).contains(&status) {
        let errors = parsed.as_ref().and_then(|answer| answer.get("errors")?.as_array());
        let words: Vec<&str> = errors.into_iter().flatten().filter_map(Value::as_str).collect();
        let words: String = words.join("; ").chars().take(MAX_ERROR_CHARS).collect();
        return Err(match (status, words) {
            (404, words) if words.is_empty() => "it does not exist".to_owned(),
            (_, words) if words.is_empty() => format!("answered {status}"),
            (_, words) => format!("answered {status}: {words}"),
        });
    }
    match parsed {
        Some(answer) => Ok(answer),
        // A renewal may have an empty response.
        None if body.is_empty() => Ok(Value::Object(Map::new())),
        None => Err("answered what is not JSON".to_owned()),
    }
}
