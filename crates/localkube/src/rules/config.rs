//! ConfigMaps and secrets.

use api::field::FieldError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::faults::{Faults, IMMUTABLE, config_key_faults};
use super::json::{at, entries, fill, flag, has, part, put, remove, text, tidy};
use super::{NONE, Rules};

/// The rules of ConfigMaps.
pub const CONFIG_MAPS: Rules = Rules {
    default: |map, _| tidy(map),
    validate: |map| map_faults(map).into(),
    validate_update: |new, old| {
        let mut faults = Faults::default();
        sealed(&mut faults, new, old);
        faults.extend(map_faults(new));
        faults.into()
    },
    ..NONE
};

/// The rules of secrets.
pub const SECRETS: Rules = Rules {
    default: default_secret,
    validate: |secret| secret_faults(secret).into(),
    validate_update: |new, old| {
        let mut faults = Faults::default();
        if text(new, "type") != text(old, "type") {
            faults.invalid("type", text(new, "type"), IMMUTABLE);
        }
        sealed(&mut faults, new, old);
        faults.extend(secret_faults(new));
        faults.into()
    },
    ..NONE
};

/// The maximum size of the data.
const MAX_DATA_BYTES: usize = 1024 * 1024;
/// The keys that secrets of some types must have.
const REQUIRED_KEYS: [(&str, &[&str]); 4] = [
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
];

fn default_secret(secret: &mut Value, _version: &str) {
    tidy(secret);
    fill(secret, "type", "Opaque");
    let plain = remove(secret, "stringData");
    for (key, text) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        put(part(secret, "data"), key, STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

fn map_faults(map: &Value) -> Faults {
    let mut faults = Faults::default();
    let mut size = 0;
    for (key, value) in entries(map, "data") {
        faults.follows(format_args!("data[{key}]"), key, config_key_faults);
        if at(map, "binaryData").get(key).is_some() {
            faults.invalid(format_args!("data[{key}]"), key, "duplicate of key present in binaryData");
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in entries(map, "binaryData") {
        faults.follows(format_args!("binaryData[{key}]"), key, config_key_faults);
        size += bytes(value).len();
    }
    if size > MAX_DATA_BYTES {
        // The real server names no field in this error.
        faults.add(FieldError::too_long("[]", MAX_DATA_BYTES));
    }
    faults
}

fn secret_faults(secret: &Value) -> Faults {
    let mut faults = Faults::default();
    let mut size = 0;
    for (key, value) in entries(secret, "data") {
        faults.follows(format_args!("data[{key}]"), key, config_key_faults);
        size += bytes(value).len();
    }
    if size > MAX_DATA_BYTES {
        faults.add(FieldError::too_long("data", MAX_DATA_BYTES));
    }
    let kind = text(secret, "type");
    let held = |key: &str| at(secret, "data").get(key);
    for key in REQUIRED_KEYS.iter().filter(|(name, _)| *name == kind).flat_map(|(_, keys)| *keys) {
        match held(key) {
            None => faults.required(format_args!("data[{key}]")),
            Some(value) if key.starts_with('.') => registry(&mut faults, key, &bytes(value)),
            Some(_) => {}
        }
    }
    if kind == "kubernetes.io/basic-auth" && held("username").is_none() && held("password").is_none() {
        faults.required("data[username]");
        faults.required("data[password]");
    }
    let account = at(secret, "metadata.annotations").get("kubernetes.io/service-account.name");
    if kind == "kubernetes.io/service-account-token" && account.is_none_or(|name| name == "") {
        faults.required("metadata.annotations[kubernetes.io/service-account.name]");
    }
    faults
}

/// Checks that a registry credential is JSON.
fn registry(faults: &mut Faults, key: &str, content: &[u8]) {
    let Err(error) = serde_json::from_slice::<Value>(content) else { return };
    let first = content.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    let detail = match first {
        Some(byte) if !error.is_eof() && error.column() <= 1 => {
            format!("invalid character '{}' looking for beginning of value", char::from(byte))
        }
        _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
        _ => error.to_string(),
    };
    faults.invalid(format_args!("data[{key}]"), "<secret contents redacted>", detail);
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

/// Refuses changes of an immutable object.
fn sealed(faults: &mut Faults, new: &Value, old: &Value) {
    if !flag(old, "immutable") {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !flag(new, "immutable") {
        faults.forbidden("immutable", detail);
    }
    for field in ["data", "binaryData"] {
        if at(new, field) != at(old, field) && (has(new, field) || has(old, field)) {
            faults.forbidden(field, detail);
        }
    }
}
