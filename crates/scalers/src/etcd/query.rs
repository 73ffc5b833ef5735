//! Requests to the JSON gateway and their responses. Keys and values are base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, json as read, kind, parsed};

/// The request body for one key.
pub(super) fn range(key: &str) -> String {
    json!({"key": STANDARD.encode(key)}).to_string()
}

/// The request body for a watch of one key.
pub(super) fn watch(key: &str) -> String {
    json!({"create_request": {"key": STANDARD.encode(key)}}).to_string()
}

/// The request body for a token.
pub(super) fn credentials(user: &str, password: &str) -> String {
    json!({"name": user, "password": password}).to_string()
}

/// The token in a response; errors do not quote the body, because it may contain the token.
pub(super) fn token(status: u16, body: &[u8]) -> Result<String, ScalerError> {
    let answer = successful(status, body)?;
    let token = answer.get("token").and_then(Value::as_str);
    token.map(str::to_owned).ok_or_else(|| scaler_error!("etcd answered without a token"))
}

/// The number stored under a key.
pub(super) fn value(status: u16, body: &[u8], key: &str) -> Result<f64, ScalerError> {
    let answer = successful(status, body)?;
    let Some(pair) = answer.pointer("/kvs/0") else {
        bail!("watchKey {key} doesn't exist");
    };
    // The gateway omits empty values.
    let coded = pair.get("value").and_then(Value::as_str).unwrap_or_default();
    let text = STANDARD.decode(coded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let number = text.as_deref().and_then(parsed);
    number.ok_or_else(|| scaler_error!("the value of watchKey {key} is not a number"))
}

fn successful(status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    if status == 200 {
        let answer = read(body)?;
        if answer.is_object() {
            return Ok(answer);
        }
        bail!("etcd answered {} instead of an object", kind(Some(&answer)));
    }
    // The field has another name since etcd 3.6.
    let has_error = read(body).is_ok_and(|answer| answer.get("error").is_some());
    let message = error_field(body, if has_error { "/error" } else { "/message" });
    Err(scaler_error!("etcd returned {status}: {message}"))
}
