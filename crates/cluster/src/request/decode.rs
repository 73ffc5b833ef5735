//! Answers become values, or client-go's text for those that cannot.
//!
//! Kubernetes' controller reads its APIs with three kinds of clients, and each complains in its own way.

use api::gotext::quote;
use serde::Deserialize;
use serde_json::Value;

use super::shape::{Shape, what};
use super::{Answer, ApiError, refusal};

/// Where Kubernetes' scheme of types was made; it is part of the message.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// The type that finds out what an object is.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// What an answer should be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Kinds and versions that will do.
    kinds: &'static [(&'static str, &'static str)],
    manner: Manner,
    shape: Option<&'static Shape>,
}

/// How the client that Kubernetes uses here reads answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It knows what it gets: no kind needed, but the content type matters.
    Typed,
    /// Likewise, and it does not even look at the kind.
    Lax,
    /// It reads anything, even YAML, so the kind must be told.
    Universal,
}

impl Expected {
    pub(crate) const fn typed(kinds: &'static [(&'static str, &'static str)], shape: &'static Shape) -> Self {
        Self { kinds, manner: Manner::Typed, shape: Some(shape) }
    }

    pub(crate) const fn lax(shape: &'static Shape) -> Self {
        Self { kinds: &[], manner: Manner::Lax, shape: Some(shape) }
    }

    pub(crate) const fn universal(
        kinds: &'static [(&'static str, &'static str)],
        shape: &'static Shape,
    ) -> Self {
        Self { kinds, manner: Manner::Universal, shape: Some(shape) }
    }

    /// Some JSON, whatever its kind.
    pub const fn anything() -> Self {
        Self { kinds: &[], manner: Manner::Lax, shape: None }
    }
}

#[derive(Deserialize)]
struct TypeMeta {
    kind: Option<String>,
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    status: Option<Value>,
    message: Option<Value>,
}

/// Reads an answer as JSON.
pub fn decode<'a, T: Deserialize<'a>>(answer: &'a Answer, expected: &Expected) -> Result<T, ApiError> {
    read(answer, expected).map_err(ApiError::unanswered)
}

fn read<'a, T: Deserialize<'a>>(answer: &'a Answer, expected: &Expected) -> Result<T, String> {
    let Answer { code, content_type, body, .. } = answer;
    let universal = expected.manner == Manner::Universal;
    if !universal && body.is_empty() {
        return Err(format!("0-length response with status code: {code} and content type: {content_type}"));
    }
    if !universal && !refusal::is_json(content_type) {
        return Err(format!("serializer for {content_type} doesn't exist"));
    }
    if universal && body.is_empty() {
        return Err("Object 'Kind' is missing in ''".to_owned());
    }
    let meta = meta(body, universal)?;
    if let Some(fault) = wrong_kind(&meta, expected, body) {
        return Err(fault);
    }
    serde_json::from_slice::<Option<T>>(body)
        .and_then(|value| match value {
            Some(value) => Ok(value),
            // Go reads `null` as an object with nothing in it.
            None => serde_json::from_slice(b"{}"),
        })
        .map_err(|e| complaint(body, expected.shape, &e))
}

fn meta(body: &[u8], universal: bool) -> Result<TypeMeta, String> {
    let parsed: Result<Option<TypeMeta>, _> = serde_json::from_slice(body);
    let trouble = match parsed {
        Ok(meta) => {
            let nothing = TypeMeta { kind: None, api_version: None, status: None, message: None };
            return Ok(meta.unwrap_or(nothing));
        }
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) if error.is_data() => match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(_)) => error.to_string(),
            Ok(value) => {
                format!("json: cannot unmarshal {} into Go value of type {TYPE_META}", what(&value, ""))
            }
            Err(error) => error.to_string(),
        },
        // Who reads YAML takes words for a string.
        Err(_) if universal && !body.trim_ascii_start().starts_with(b"{") => {
            format!("json: cannot unmarshal string into Go value of type {TYPE_META}")
        }
        Err(error) => unexpected(body, &error),
    };
    Err(format!("couldn't get version/kind; json parse error: {trouble}"))
}

/// Go's words for a character that should not be there; where it was is all that both parsers agree on.
fn unexpected(body: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.get(..error.column().saturating_sub(1)).unwrap_or_default();
    let Some(found) = line.get(before.len()..).and_then(|rest| rest.chars().next()) else {
        return error.to_string();
    };
    let place = if before.trim().is_empty() && error.line() <= 1 {
        "looking for beginning of value".to_owned()
    } else {
        format!("at line {} column {}", error.line(), error.column())
    };
    format!("invalid character '{found}' {place}")
}

fn wrong_kind(meta: &TypeMeta, expected: &Expected, body: &[u8]) -> Option<String> {
    if expected.manner == Manner::Lax {
        return None;
    }
    let version = meta.api_version.as_deref().unwrap_or_default();
    let Some(kind) = meta.kind.as_deref().filter(|kind| !kind.is_empty()) else {
        return (expected.manner == Manner::Universal)
            .then(|| format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body)));
    };
    if expected.kinds.contains(&(version, kind)) {
        return None;
    }
    if kind == "Status" && version == "v1" {
        let text =
            |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let failed = text(&meta.status) == "Failure";
        return match expected.manner {
            Manner::Universal if expected.kinds.iter().any(|(_, kind)| *kind == "MetricValueList") => Some(
                "the custom metrics API server didn't return MetricValueList, the type is *v1.Status"
                    .to_owned(),
            ),
            _ if failed => Some(text(&meta.message)),
            // A success that says no more is an answer with nothing in it.
            Manner::Typed => None,
            // Kubernetes panics here.
            _ => Some("the server answered with a Status where an object should be".to_owned()),
        };
    }
    Some(format!(
        "no kind {} is registered for version {} in scheme {}",
        quote(kind),
        quote(version),
        quote(SCHEME)
    ))
}

/// Why JSON that is well formed is not what we want.
fn complaint(body: &[u8], shape: Option<&Shape>, error: &serde_json::Error) -> String {
    let fault = shape.and_then(|shape| shape.complaint(&serde_json::from_slice(body).ok()?));
    fault.unwrap_or_else(|| {
        // Go does not tell the place.
        let text = error.to_string();
        text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
    })
}
