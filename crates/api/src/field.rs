//! Errors of single fields, with the texts of the API server.

use std::fmt;

use crate::gotext;

/// One error of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Dotted path with list indices, e.g. `spec.metrics[0].resource.name`.
    pub field: String,
    /// Kind of the error.
    pub kind: FieldErrorKind,
    /// The offending value as the API server prints it; empty where the kind shows none.
    pub value: String,
    /// The sentence after the value; may be empty.
    pub detail: String,
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorKind {
    /// A value is missing.
    Required,
    /// A value breaks a rule.
    Invalid,
    /// A value is not one of an enumeration.
    NotSupported,
    /// A field may not be set here.
    Forbidden,
    /// A value is longer than allowed.
    TooLong,
    /// A value is of another type or format.
    TypeInvalid,
    /// There are more values than allowed.
    TooMany,
    /// A value occurs twice.
    Duplicate,
    /// A value names an object that does not exist.
    NotFound,
}

impl FieldErrorKind {
    /// The machine-readable reason in the causes of an API error.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooMany => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
        }
    }
}

impl FieldError {
    /// A missing value.
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, String::new(), detail)
    }

    /// A value that breaks a rule.
    pub fn invalid(field: impl fmt::Display, value: impl FieldErrorValue, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value.shown(), detail)
    }

    /// A value outside an enumeration; `supported` is listed as given.
    pub fn not_supported(field: impl fmt::Display, value: impl FieldErrorValue, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|word| gotext::quote(word)).collect();
        let detail = format!("supported values: {}", list.join(", "));
        Self::new(FieldErrorKind::NotSupported, field, value.shown(), detail)
    }

    /// A field that may not be set.
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, String::new(), detail)
    }

    /// A value longer than `limit` bytes.
    pub fn too_long(field: impl fmt::Display, limit: usize) -> Self {
        Self::new(
            FieldErrorKind::TooLong,
            field,
            String::new(),
            format!("may not be more than {limit} bytes"),
        )
    }

    /// A value that occurs twice.
    pub fn duplicate(field: impl fmt::Display, value: impl FieldErrorValue) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value.shown(), "")
    }

    /// A value that names an object that does not exist.
    pub fn not_found(field: impl fmt::Display, value: impl FieldErrorValue) -> Self {
        Self::new(FieldErrorKind::NotFound, field, value.shown(), "")
    }

    fn new(kind: FieldErrorKind, field: impl fmt::Display, value: String, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), kind, value, detail: detail.into() }
    }

    /// The text without the path, as in the `message` of a cause.
    pub fn message(&self) -> String {
        let mut text = self.kind.words().to_owned();
        for part in [&self.value, &self.detail] {
            if !part.is_empty() {
                text.push_str(": ");
                text.push_str(part);
            }
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

impl std::error::Error for FieldError {}

/// A value as it is printed in an error: plain numbers, quoted strings, other values as JSON.
pub trait FieldErrorValue {
    /// The printed form.
    fn shown(self) -> String;
}

impl FieldErrorValue for i32 {
    fn shown(self) -> String {
        self.to_string()
    }
}

impl FieldErrorValue for i64 {
    fn shown(self) -> String {
        self.to_string()
    }
}

impl FieldErrorValue for &str {
    fn shown(self) -> String {
        gotext::quote(self)
    }
}

impl FieldErrorValue for &String {
    fn shown(self) -> String {
        gotext::quote(self)
    }
}

/// A value of one of Go's named string types, a quantity or a structure: printed as JSON.
pub struct AsJson<'a, T: ?Sized>(pub &'a T);

impl<T: serde::Serialize + ?Sized> FieldErrorValue for AsJson<'_, T> {
    fn shown(self) -> String {
        gotext::json(self.0).unwrap_or_default()
    }
}

/// An empty list is printed as `null`, as Go does for a nil slice.
impl FieldErrorValue for &[String] {
    fn shown(self) -> String {
        if self.is_empty() { "null".to_owned() } else { gotext::json(self).unwrap_or_default() }
    }
}

/// The text of the API error for an invalid object, e.g. `Kind.group "name" is invalid: …`.
pub fn invalid_object(kind: &str, group: &str, name: &str, faults: &[FieldError]) -> String {
    format!("{kind}.{group} {} is invalid: {}", gotext::quote(name), aggregate(faults))
}

/// Several errors in one line: one as it is, more in brackets, equal texts once.
pub fn aggregate<E: fmt::Display>(errors: &[E]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_texts_of_kubernetes() {
        assert_eq!(FieldError::required("a.b", "").to_string(), "a.b: Required value");
        assert_eq!(FieldError::required("a", "why").to_string(), "a: Required value: why");
        assert_eq!(FieldError::invalid("a", 3, "no").message(), "Invalid value: 3: no");
        assert_eq!(FieldError::invalid("a", "", "no").message(), "Invalid value: \"\": no");
        assert_eq!(
            FieldError::not_supported("a", "x", &["p", "q"]).message(),
            "Unsupported value: \"x\": supported values: \"p\", \"q\""
        );
        assert_eq!(FieldError::forbidden("a", "no").message(), "Forbidden: no");
        assert_eq!(FieldError::duplicate("a", "x").message(), "Duplicate value: \"x\"");
        assert_eq!(FieldError::not_found("a", "x").message(), "Not found: \"x\"");
        assert_eq!(FieldError::invalid("v", &[][..], "n").message(), "Invalid value: null: n");
        assert_eq!(
            FieldError::invalid("v", &["<".to_owned()][..], "n").message(),
            "Invalid value: [\"\\u003c\"]: n"
        );
    }

    #[test]
    fn equal_errors_are_listed_once() {
        assert_eq!(aggregate(&["a"]), "a");
        assert_eq!(aggregate(&["a", "a"]), "a");
        assert_eq!(aggregate(&["a", "b", "a"]), "[a, b]");
    }
}
