//! Decodes responses, with client-go's texts for those that cannot be decoded.
//!
//! Kubernetes' controller uses three kinds of clients, each with error texts of its own.

use api::gotext::quote;
use serde::Deserialize;
use serde_json::Value;

use super::shape::{GoStruct, what};
use super::{Answer, ApiError, refusal};

/// The source line of Kubernetes' type scheme, which is part of the message.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// The Go type that reads `kind` and `apiVersion`.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// What a response should contain.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The accepted versions and kinds.
    kinds: &'static [(&'static str, &'static str)],
    decoder: DecoderKind,
    shape: Option<&'static GoStruct>,
}

/// How the client that Kubernetes uses here decodes responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecoderKind {
    /// A typed client: the kind may be missing, but the content type matters.
    Typed,
    /// As `Typed`, and the kind is ignored.
    Lax,
    /// The universal decoder: it reads JSON and YAML, so that the kind is required.
    Universal,
}

impl Expected {
    pub(crate) const fn typed(
        kinds: &'static [(&'static str, &'static str)],
        shape: &'static GoStruct,
    ) -> Self {
        Self { kinds, decoder: DecoderKind::Typed, shape: Some(shape) }
    }

    pub(crate) const fn lax(shape: &'static GoStruct) -> Self {
        Self { kinds: &[], decoder: DecoderKind::Lax, shape: Some(shape) }
    }

    pub(crate) const fn universal(
        kinds: &'static [(&'static str, &'static str)],
        shape: &'static GoStruct,
    ) -> Self {
        Self { kinds, decoder: DecoderKind::Universal, shape: Some(shape) }
    }

    /// JSON of any kind.
    pub const fn anything() -> Self {
        Self { kinds: &[], decoder: DecoderKind::Lax, shape: None }
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

/// Decodes a response.
pub fn decode<'a, T: Deserialize<'a>>(answer: &'a Answer, expected: &Expected) -> Result<T, ApiError> {
    read(answer, expected).map_err(ApiError::unanswered)
}

fn read<'a, T: Deserialize<'a>>(answer: &'a Answer, expected: &Expected) -> Result<T, String> {
    let Answer { code, content_type, body, .. } = answer;
    let universal = expected.decoder == DecoderKind::Universal;
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
            // Go decodes `null` as an empty object.
            None => serde_json::from_slice(b"{}"),
        })
        .map_err(|e| mismatch(body, expected.shape, &e))
}

fn meta(body: &[u8], universal: bool) -> Result<TypeMeta, String> {
    let parsed: Result<Option<TypeMeta>, _> = serde_json::from_slice(body);
    let problem = match parsed {
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
        // A YAML parser takes plain words for a string.
        Err(_) if universal && !body.trim_ascii_start().starts_with(b"{") => {
            format!("json: cannot unmarshal string into Go value of type {TYPE_META}")
        }
        Err(error) => unexpected(body, &error),
    };
    Err(format!("couldn't get version/kind; json parse error: {problem}"))
}

/// Go's text for an unexpected character; both parsers agree on its position.
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
    if expected.decoder == DecoderKind::Lax {
        return None;
    }
    let version = meta.api_version.as_deref().unwrap_or_default();
    let Some(kind) = meta.kind.as_deref().filter(|kind| !kind.is_empty()) else {
        return (expected.decoder == DecoderKind::Universal)
            .then(|| format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body)));
    };
    if expected.kinds.contains(&(version, kind)) {
        return None;
    }
    if kind == "Status" && version == "v1" {
        let text =
            |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let failed = text(&meta.status) == "Failure";
        return match expected.decoder {
            DecoderKind::Universal if expected.kinds.iter().any(|(_, kind)| *kind == "MetricValueList") => {
                Some(
                    "the custom metrics API server didn't return MetricValueList, the type is *v1.Status"
                        .to_owned(),
                )
            }
            _ if failed => Some(text(&meta.message)),
            // A Status of success is decoded as an empty object.
            DecoderKind::Typed => None,
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

/// Why well-formed JSON does not have the expected shape.
fn mismatch(body: &[u8], shape: Option<&GoStruct>, error: &serde_json::Error) -> String {
    let fault = shape.and_then(|shape| shape.mismatch(&serde_json::from_slice(body).ok()?));
    fault.unwrap_or_else(|| {
        // Go's text has no position.
        let text = error.to_string();
        text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
    })
}
