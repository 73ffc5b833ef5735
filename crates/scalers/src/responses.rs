//! Decodes response bodies, without IO: JSON, numbers, and errors that quote the unexpected body.

use serde_json::Value;

use crate::ScalerError;

/// Length in characters of the part of an unexpected response body that an error quotes.
const MAX_EXCERPT_CHARS: usize = 200;

/// Decodes a response body as JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, ScalerError> {
    serde_json::from_slice(body)
        .map_err(|error| scaler_error!("the answer is not JSON ({error}): {}", excerpt(body)))
}

/// The beginning of a response body, on one line.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let head = body.get(..4 * MAX_EXCERPT_CHARS).unwrap_or(body);
    let text = String::from_utf8_lossy(head);
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|c| !c.is_control());
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None if line.is_empty() => "(nothing)".to_owned(),
        None => line,
    }
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
    fn html_body_is_quoted() {
        let error = json(b"<html>\n  <body>Sign in</body></html>").unwrap_err();
        assert!(error.message.contains("is not JSON"), "{error}");
        assert!(error.message.ends_with("<html> <body>Sign in</body></html>"), "{error}");
    }

    #[test]
    fn long_bodies_are_shortened() {
        assert_eq!(excerpt("ä".repeat(10_000).as_bytes()).chars().count(), MAX_EXCERPT_CHARS + 1);
        assert_eq!(excerpt(b""), "(nothing)");
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
