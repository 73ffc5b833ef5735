//! Decodes response bodies, without IO: JSON, numbers, and errors that quote no body.
//!
//! The address of a source is chosen by a tenant, and errors are shown in status, events and logs: a quoted body would let a tenant
//! read whatever the operator can reach. Only the error field of a protocol is quoted.

use api::text::truncated;
use serde_json::Value;

use crate::ScalerError;
use crate::tree::{self, TreeError};

/// Length in characters of the part of an error field that an error quotes.
const MAX_EXCERPT_CHARS: usize = 200;

/// Decodes a response body as JSON, into a tree of bounded size.
pub(crate) fn json(body: &[u8]) -> Result<Value, ScalerError> {
    tree::from_slice(body).map_err(|error| match error {
        TreeError::TooLarge(error) => ScalerError::new(error.to_string()),
        TreeError::Json(error) => ScalerError::new(no_json(&error, body)),
    })
}

/// Describes a body that is not JSON.
pub(crate) fn no_json(error: &serde_json::Error, body: &[u8]) -> String {
    format!("the answer is not JSON ({}): {}", problem(error), hidden(body))
}

/// Describes an error of serde_json without the value that has the wrong type.
pub(crate) fn problem(error: &serde_json::Error) -> String {
    match error.classify() {
        serde_json::error::Category::Data => {
            format!("a value of another type at line {} column {}", error.line(), error.column())
        }
        _ => error.to_string(),
    }
}

/// Stands for a response body in an error.
pub(crate) fn hidden(body: &[u8]) -> String {
    match body.len() {
        0 => "(nothing)".to_owned(),
        1 => "(1 byte, not shown)".to_owned(),
        length => format!("({length} bytes, not shown)"),
    }
}

/// The error field of a JSON response if there is one, else the size of the body.
pub(crate) fn error_field(body: &[u8], pointer: &str) -> String {
    let answer = tree::from_slice(body).ok();
    let text = answer.as_ref().and_then(|answer| answer.pointer(pointer)).and_then(Value::as_str);
    text.map_or_else(|| hidden(body), excerpt)
}

/// The beginning of an error field, on one line. Not for bodies.
pub(crate) fn excerpt(text: &str) -> String {
    let head = text.get(..text.floor_char_boundary(8 * MAX_EXCERPT_CHARS)).unwrap_or(text);
    let mut line: String = head.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|c| !c.is_control());
    if line.is_empty() { "(nothing)".to_owned() } else { truncated(&line, MAX_EXCERPT_CHARS) }
}

/// Describes the type of a JSON value, for errors.
pub(crate) fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a bool",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

/// The number at a JSON pointer; a string that holds a number is an error.
pub(crate) fn number(answer: &Value, pointer: &str) -> Result<f64, ScalerError> {
    let found = answer.pointer(pointer);
    found.and_then(Value::as_f64).filter(|number| number.is_finite()).ok_or_else(|| {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        scaler_error!("the answer has {} at {path} instead of a number", kind(found))
    })
}

/// Parses a finite number; none for `NaN` and infinities.
pub(crate) fn parsed(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_not_quoted() {
        let error = json(b"<html>\n  <body>Sign in</body></html>").unwrap_err();
        assert!(error.message.contains("is not JSON"), "{error}");
        assert!(error.message.ends_with("(36 bytes, not shown)"), "{error}");
        let error = serde_json::from_str::<u32>(r#""secret""#).unwrap_err();
        assert_eq!(problem(&error), "a value of another type at line 1 column 8");
        assert_eq!((&*hidden(b""), &*hidden(b"x")), ("(nothing)", "(1 byte, not shown)"));
        assert_eq!(error_field(br#"{"error": "no such metric"}"#, "/error"), "no such metric");
        assert_eq!(error_field(br#"{"other": "x"}"#, "/error"), "(14 bytes, not shown)");
    }

    #[test]
    fn long_error_fields_are_shortened() {
        assert_eq!(excerpt(&"ä".repeat(10_000)).chars().count(), MAX_EXCERPT_CHARS + 1);
        assert_eq!(excerpt(""), "(nothing)");
        assert_eq!(excerpt("two\nlines\u{7}"), "two lines");
    }

    #[test]
    fn deep_nesting_is_an_error() {
        assert!(json("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn only_numbers_are_numbers() {
        let answer = json(br#"{"a": {"b": 2.5, "c": "3", "d": null}}"#).unwrap();
        assert_eq!(number(&answer, "/a/b"), Ok(2.5));
        assert_eq!(
            number(&answer, "/a/c").unwrap_err().message,
            "the answer has a string at a.c instead of a number"
        );
        assert_eq!(
            number(&answer, "/a/d").unwrap_err().message,
            "the answer has null at a.d instead of a number"
        );
        assert_eq!(
            number(&answer, "/x").unwrap_err().message,
            "the answer has nothing at x instead of a number"
        );
        assert_eq!(parsed("NaN"), None);
        assert_eq!(parsed(" 1e3 "), Some(1000.0));
    }
}
