//! Errors of serde with positions and plain texts.

use std::fmt::{self, Display};

use serde::de::{Expected, Unexpected};

use super::words::{describe, did_you_mean, listed, meant, range, unexpected, wanted, written};
use crate::yaml::problem::shortened;
use crate::yaml::{Diagnostic, Node, NodeValue, Span};

/// An error that is passed up to its node.
#[derive(Debug)]
pub(super) enum Fault {
    Floating(Box<FaultKind>),
    Placed(Box<PlacedFault>),
}

/// An error with the position of its node.
#[derive(Debug)]
pub(super) struct PlacedFault {
    pub(super) problem: Diagnostic,
    /// Address of the node that the next pass skips.
    pub(super) culprit: usize,
    /// Name of the missing field, if one is missing.
    pub(super) missing: Option<&'static str>,
    /// Whether it follows from a skipped node.
    pub(super) consequence: bool,
}

/// The kinds of errors.
#[derive(Debug)]
pub(super) enum FaultKind {
    /// Follows from a known error.
    Consequence,
    Custom(String),
    /// Wrong type.
    Type {
        found: String,
        expected: String,
    },
    /// Integer out of range.
    Range {
        found: String,
        expected: &'static str,
    },
    Missing(&'static str),
    Field {
        name: String,
        known: &'static [&'static str],
    },
    Variant {
        name: String,
        known: &'static [&'static str],
    },
}

impl Fault {
    fn new(kind: FaultKind) -> Self {
        Self::Floating(Box::new(kind))
    }

    pub(super) fn expected(expected: &str, found: &NodeValue) -> Self {
        Self::new(FaultKind::Type { found: describe(found), expected: expected.to_owned() })
    }

    pub(super) fn expected_one_of(known: &[&str], found: &NodeValue) -> Self {
        Self::new(FaultKind::Type { found: describe(found), expected: listed(known) })
    }

    pub(super) fn length(found: usize, expected: usize) -> Self {
        let found = format!("a list of {found}");
        Self::new(FaultKind::Type { found, expected: format!("a list of {expected}") })
    }

    /// Marks an error without a position as following from a known error.
    pub(super) fn consequence(self) -> Self {
        match self {
            Self::Floating(_) => Self::new(FaultKind::Consequence),
            placed @ Self::Placed(..) => placed,
        }
    }

    /// Sets the position, unless it has one.
    pub(super) fn placed(self, place: impl FnOnce(&FaultKind) -> PlacedFault) -> Self {
        match self {
            Self::Floating(kind) => Self::Placed(Box::new(place(&kind))),
            placed @ Self::Placed(..) => placed,
        }
    }
}

impl PlacedFault {
    /// Whether it follows from known problems: a misspelt field is also a missing one.
    pub(super) fn follows(&self, known: &[Diagnostic]) -> bool {
        let hint = self.missing.map(meant);
        let misspelt =
            |other: &Diagnostic| hint.is_some() && other.path == self.problem.path && other.hint == hint;
        self.consequence || known.iter().any(misspelt)
    }
}

impl FaultKind {
    pub(super) fn missing(&self) -> Option<&'static str> {
        if let Self::Missing(name) = self { Some(name) } else { None }
    }

    /// The field of the map that the error is about, if it is about one.
    pub(super) fn field(&self) -> Option<&str> {
        match self {
            Self::Missing(name) => Some(name),
            Self::Field { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The message for a node and its source text.
    pub(super) fn message(&self, node: &Node, raw: &str) -> String {
        match self {
            Self::Custom(message)
                if message.starts_with("data did not match any variant of untagged enum") =>
            {
                "the value has none of the forms that are accepted here".to_owned()
            }
            Self::Consequence => String::new(),
            Self::Custom(message) => message.clone(),
            Self::Type { found, expected } => {
                let found = written(&node.value, raw).unwrap_or_else(|| found.clone());
                format!("expected {expected}, found {found}")
            }
            Self::Range { found, expected } => format!("{found} is out of range: expected {expected}"),
            Self::Missing(name) if node.key(name).is_some() => format!("field `{name}` has no value"),
            Self::Missing(name) => format!("missing field `{name}`"),
            Self::Field { name, .. } => format!("unknown field `{}`", shortened(name)),
            Self::Variant { name, .. } => format!("unknown value `{}`", shortened(name)),
        }
    }

    /// The hint for a value and its source text.
    pub(super) fn hint(&self, found: &NodeValue, raw: &str) -> Option<String> {
        match (self, found) {
            (Self::Field { name, known }, _) => did_you_mean(name, known),
            (Self::Variant { name, known }, _) => {
                did_you_mean(name, known).or_else(|| Some(format!("expected {}", listed(known))))
            }
            (Self::Type { expected, .. }, NodeValue::Bool(_) | NodeValue::Int(_) | NodeValue::Float(_))
                if expected.contains("string") && !raw.is_empty() =>
            {
                Some(format!("quote it: \"{}\"", shortened(raw)))
            }
            (Self::Type { expected, .. }, NodeValue::String(text)) => {
                let meant = match expected.as_str() {
                    "an integer" => text.parse::<i64>().is_ok(),
                    "a number" => text.parse::<f64>().is_ok(),
                    "true or false" => matches!(text.as_str(), "true" | "false"),
                    _ => false,
                };
                (meant && raw.starts_with(['"', '\''])).then(|| "remove the quotes".to_owned())
            }
            _ => None,
        }
    }
}

impl std::error::Error for Fault {}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Floating(kind) => {
                let nowhere = Node { span: Span::default(), value: NodeValue::Null };
                f.write_str(&kind.message(&nowhere, ""))
            }
            Self::Placed(placed) => placed.problem.fmt(f),
        }
    }
}

impl serde::de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(FaultKind::Custom(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(FaultKind::Type { found: unexpected(found), expected: wanted(&expected.to_string()) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (unexpected(found), expected.to_string());
        Self::new(match range(&expected) {
            Some(expected) => FaultKind::Range { found, expected },
            None => FaultKind::Type { found, expected: wanted(&expected) },
        })
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let found = format!("a list of {length}");
        Self::new(FaultKind::Type { found, expected: wanted(&expected.to_string()) })
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(FaultKind::Variant { name: name.to_owned(), known })
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(FaultKind::Field { name: name.to_owned(), known })
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(FaultKind::Missing(name))
    }
}
