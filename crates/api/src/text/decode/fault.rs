//! What serde complains of, in words for people.

use std::fmt::{self, Display};

use serde::de::{Expected, Unexpected};

use crate::text::{Problem, Value, nearest};

/// Characters of a wrong text that are shown.
const SHOWN: usize = 40;
/// Alternatives that are listed.
const LISTED: usize = 8;

/// An error on its way up to the node that it is about.
#[derive(Debug)]
pub(super) enum Fault {
    Floating(Box<Kind>),
    Placed(Box<Problem>, Option<&'static str>),
}

/// The kinds of errors.
#[derive(Debug)]
pub(super) enum Kind {
    Custom(String),
    /// What was found and what was wanted.
    Type { found: String, expected: String },
    /// An integer beyond its type.
    Range { found: String, expected: &'static str },
    Missing(&'static str),
    Field { name: String, known: &'static [&'static str] },
    Variant { name: String, known: &'static [&'static str] },
}

impl Fault {
    fn new(kind: Kind) -> Self {
        Self::Floating(Box::new(kind))
    }

    pub(super) fn expected(expected: &str, found: &Value) -> Self {
        Self::new(Kind::Type { found: describe(found), expected: expected.to_owned() })
    }

    pub(super) fn expected_one_of(known: &[&str], found: &Value) -> Self {
        Self::new(Kind::Type { found: describe(found), expected: listed(known) })
    }

    pub(super) fn length(found: usize, expected: usize) -> Self {
        let found = format!("a list of {found}");
        Self::new(Kind::Type { found, expected: format!("a list of {expected}") })
    }

    /// Makes a problem of an error that is not one yet.
    pub(super) fn placed(self, place: impl FnOnce(&Kind) -> Problem) -> Self {
        match self {
            Self::Floating(kind) => {
                let missing = if let Kind::Missing(name) = *kind { Some(name) } else { None };
                Self::Placed(Box::new(place(&kind)), missing)
            }
            placed @ Self::Placed(..) => placed,
        }
    }

    /// The problem, unless it follows from one that is known: a misspelt field is also a missing one.
    pub(super) fn into_problem(self, known: &[Problem]) -> Option<Problem> {
        let Self::Placed(problem, missing) = self else { return None };
        let hint = missing.map(meant);
        let follows = known.iter().any(|other| hint.is_some() && other.path == problem.path && other.hint == hint);
        (!follows).then_some(*problem)
    }
}

impl Kind {
    /// The field of the map that the error is about, if it is about one.
    pub(super) fn field(&self) -> Option<&str> {
        match self {
            Self::Missing(name) => Some(name),
            Self::Field { name, .. } => Some(name),
            _ => None,
        }
    }

    /// What is wrong; a missing field may be there with nothing in it.
    pub(super) fn message(&self, empty: bool) -> String {
        match self {
            Self::Custom(message) if message.starts_with("data did not match any variant of untagged enum") => {
                "the value has none of the forms that are accepted here".to_owned()
            }
            Self::Custom(message) => message.clone(),
            Self::Type { found, expected } => format!("expected {expected}, found {found}"),
            Self::Range { found, expected } => format!("{found} is out of range: expected {expected}"),
            Self::Missing(name) if empty => format!("field `{name}` has no value"),
            Self::Missing(name) => format!("missing field `{name}`"),
            Self::Field { name, .. } => format!("unknown field `{name}`"),
            Self::Variant { name, .. } => format!("unknown value `{}`", shortened(name)),
        }
    }

    /// What to do, given what was found and how it is written.
    pub(super) fn hint(&self, found: &Value, raw: &str) -> Option<String> {
        match (self, found) {
            (Self::Field { name, known }, _) => did_you_mean(name, known),
            (Self::Variant { name, known }, _) => {
                did_you_mean(name, known).or_else(|| Some(format!("expected {}", listed(known))))
            }
            (Self::Type { expected, .. }, Value::Bool(_) | Value::Int(_) | Value::Float(_))
                if expected.contains("string") && !raw.is_empty() =>
            {
                Some(format!("quote it: \"{}\"", shortened(raw)))
            }
            (Self::Type { expected, .. }, Value::String(text)) => {
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
            Self::Floating(kind) => f.write_str(&kind.message(false)),
            Self::Placed(problem, _) => problem.fmt(f),
        }
    }
}

impl serde::de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(Kind::Custom(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Kind::Type { found: unexpected(found), expected: wanted(&expected.to_string()) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (unexpected(found), expected.to_string());
        Self::new(match range(&expected) {
            Some(expected) => Kind::Range { found, expected },
            None => Kind::Type { found, expected: wanted(&expected) },
        })
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let found = format!("a list of {length}");
        Self::new(Kind::Type { found, expected: wanted(&expected.to_string()) })
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::Variant { name: name.to_owned(), known })
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::Field { name: name.to_owned(), known })
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(Kind::Missing(name))
    }
}

/// The hint for a misspelt name.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    nearest(name, known.iter().copied()).map(meant)
}

fn meant(name: &str) -> String {
    format!("did you mean `{name}`?")
}

fn listed(known: &[&str]) -> String {
    let names: Vec<String> = known.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more = if known.len() > LISTED { ", …" } else { "" };
    format!("one of {}{more}", names.join(", "))
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(integer) => format!("the integer {integer}"),
        Value::Float(float) => format!("the number {float}"),
        Value::String(text) => format!("the string \"{}\"", shortened(text)),
        Value::Seq(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    }
}

fn unexpected(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(integer) => format!("the integer {integer}"),
        Unexpected::Signed(integer) => format!("the integer {integer}"),
        Unexpected::Float(float) => format!("the number {float}"),
        Unexpected::Str(text) => format!("the string \"{}\"", shortened(text)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        other => other.to_string(),
    }
}

/// The words of serde for what it wants, in those of a person who writes YAML.
fn wanted(expected: &str) -> String {
    let words = match expected {
        _ if range(expected).is_some() => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "unit" => "nothing",
        "variant identifier" | "field identifier" => "a name",
        _ if expected.starts_with("struct ") => "a map",
        _ if expected.starts_with("internally tagged enum ") => "a map",
        _ => expected,
    };
    match words.strip_prefix("a tuple of size ") {
        Some(length) => format!("a list of {length}"),
        None => words.to_owned(),
    }
}

fn range(integer: &str) -> Option<&'static str> {
    Some(match integer {
        "i8" => "-128 to 127",
        "i16" => "-32768 to 32767",
        "i32" => "-2147483648 to 2147483647",
        "i64" | "isize" => "-9223372036854775808 to 9223372036854775807",
        "u8" => "0 to 255",
        "u16" => "0 to 65535",
        "u32" => "0 to 4294967295",
        "u64" | "usize" => "0 to 18446744073709551615",
        _ => return None,
    })
}
