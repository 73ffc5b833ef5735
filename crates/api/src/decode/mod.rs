//! Reading JSON values as Go's decoder does: lenient about unknown fields and `null`, with Go's error texts.
//!
//! Wrong types do not stop decoding; the first one is reported at the end. Errors of values with their own decoder, such as
//! quantities and times, stop decoding and so take precedence.

mod access;
mod types;

pub use types::kind_word;

use std::cell::RefCell;
use std::fmt;

use serde::de::{self, DeserializeOwned};
use serde_json::Value;

use access::{FieldPath, ValueDeserializer};

/// Why a value cannot be decoded, with the text of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl DecodeError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

/// How keys are matched with fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Exactly, as the API server reads objects.
    Exact,
    /// In any case, as Go's standard library reads the JSON in annotations.
    AnyCase,
}

/// State of one decoding.
struct Session<'a> {
    /// The Go package of the types read, for texts.
    package: &'a str,
    keys: Keys,
    first_mistake: RefCell<Option<DecodeError>>,
}

/// Reads a value; `package` is the Go package its types are named by in errors, e.g. `v2`.
pub fn from_value<T: DeserializeOwned>(value: &Value, package: &str, keys: Keys) -> Result<T, DecodeError> {
    let session = Session { package, keys, first_mistake: RefCell::new(None) };
    let read = T::deserialize(ValueDeserializer { value, place: &FieldPath::ROOT, session: &session })?;
    match session.first_mistake.into_inner() {
        Some(mistake) => Err(mistake),
        None => Ok(read),
    }
}

/// Reads a JSON text as Go's `json.Unmarshal` does.
pub fn from_json<T: DeserializeOwned>(text: &str, package: &str, keys: Keys) -> Result<T, DecodeError> {
    let value: Value = serde_json::from_str(text).map_err(|error| DecodeError(error.to_string()))?;
    from_value(&value, package, keys)
}

/// The kind and version of an object. The case of their keys does not matter.
pub fn kind_of(value: &Value) -> Result<(String, String), DecodeError> {
    let failed = |found: &str, what: &str| {
        let text = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go {what}"
        );
        Err(DecodeError(text))
    };
    let Some(object) = value.as_object() else {
        let what = r#"value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        return if value.is_null() { Ok(Default::default()) } else { failed(types::kind_word(value), what) };
    };
    let mut found = (String::new(), String::new());
    for (key, value) in object {
        for (name, slot) in [("kind", &mut found.1), ("apiVersion", &mut found.0)] {
            match value {
                _ if !access::same_folded(key, name) => {}
                Value::Null => {}
                Value::String(text) => slot.clone_from(text),
                other => {
                    return failed(types::kind_word(other), &format!("struct field .{name} of type string"));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
