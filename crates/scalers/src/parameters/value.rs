//! Parsing of parameter values.

use std::collections::BTreeMap;
use std::time::Duration;

use api::gotext::quote;
use api::time::parse_go_duration;
use sources::http::Secret;

use crate::ParseError;

/// The type of a parameter. Its text is trimmed and not empty.
pub trait ParameterValue: Default {
    /// Description of the type for users, in one or two words.
    const KIND: &'static str;

    /// Parses a value; the error is KEDA's message.
    fn parse(text: &str, separator: char) -> Result<Self, ParseError>;
}

/// Numbers and ranges of numbers: `1-4,7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(pub Vec<i64>);

/// `k=v,k2=v2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(pub BTreeMap<String, String>);

/// `k=v&k2=v2`, as in URLs. Values are not printed, because they may be credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct QueryValues(pub Vec<(String, String)>);

/// A number that may be missing, also as `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NullableNumber(pub Option<f64>);

/// The type of removed parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed;

/// Maximum number of numbers in a list with ranges; more than any topic has partitions.
const MAX_NUMBERS: usize = 100_000;

impl ParameterValue for String {
    const KIND: &'static str = "text";

    fn parse(text: &str, _: char) -> Result<Self, ParseError> {
        Ok(text.to_owned())
    }
}

impl ParameterValue for Secret {
    const KIND: &'static str = "secret";

    fn parse(text: &str, _: char) -> Result<Self, ParseError> {
        Ok(Self::new(text))
    }
}

impl ParameterValue for bool {
    const KIND: &'static str = "true or false";

    fn parse(text: &str, _: char) -> Result<Self, ParseError> {
        match text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
            _ => {
                Err(format!("unable to parse boolean value {}: it is neither true nor false", quote(text))
                    .into())
            }
        }
    }
}

/// Numbers in JSON notation, as KEDA parses them (`05`, `+5` and `.5` are invalid).
macro_rules! numbers {
    ($($type:ty, $go:literal, $kind:literal, $like:literal;)*) => {$(
        impl ParameterValue for $type {
            const KIND: &'static str = $kind;

            fn parse(text: &str, _: char) -> Result<Self, ParseError> {
                // serde_json reads this as a fraction.
                let text = if text == "-0" { "0" } else { text };
                let number: Result<$type, _> = serde_json::from_str(text);
                number.map_err(|_| concat!("unable to unmarshal to field type ", $go, ": it is not ", $like).into())
            }
        }
    )*};
}

numbers! {
    i64, "int64", "whole number", "a whole number, such as 5";
    isize, "int", "whole number", "a whole number, such as 5";
    u32, "uint32", "whole number", "a whole number of at least 0, such as 5";
    f64, "float64", "number", "a number, such as 2.5";
}

impl ParameterValue for Duration {
    const KIND: &'static str = "duration";

    fn parse(text: &str, _: char) -> Result<Self, ParseError> {
        if let Ok(milliseconds) = text.parse::<i64>() {
            return u64::try_from(milliseconds)
                .map(Self::from_millis)
                .map_err(|_| format!("duration cannot be negative: {milliseconds} milliseconds").into());
        }
        let duration = parse_go_duration(text).ok_or_else(|| {
            let must = "must be either a duration string (e.g. '30s', '5m') or a number of milliseconds";
            format!("unable to parse duration value {}: {must}", quote(text))
        })?;
        Self::try_from(duration).map_err(|_| format!("duration cannot be negative: {}", quote(text)).into())
    }
}

impl ParameterValue for Vec<String> {
    const KIND: &'static str = "list";

    fn parse(text: &str, separator: char) -> Result<Self, ParseError> {
        Ok(text.split(separator).map(|item| item.trim().to_owned()).collect())
    }
}

impl ParameterValue for Ranges {
    const KIND: &'static str = "list of numbers";

    fn parse(text: &str, separator: char) -> Result<Self, ParseError> {
        let mut all = Vec::new();
        for (index, item) in text.split(separator).map(str::trim).enumerate() {
            let wrong = |why: String| format!("slice element {index}: {why}");
            let number = |text: &str, begin: &str| {
                serde_json::from_str::<i64>(text)
                    .map_err(|_| wrong(format!("{begin}: json: it is no whole number")))
            };
            let (first, last) = match item.split('-').collect::<Vec<_>>()[..] {
                [one] => {
                    let number = number(one, "unable to unmarshal to field type int")?;
                    (number, number)
                }
                [first, last] => (
                    number(first, &format!("unable to parse start value {}", quote(first)))?,
                    number(last, &format!("unable to parse end value {}", quote(last)))?,
                ),
                _ => return Err(wrong(format!("expected format start-end, got {}", quote(item))).into()),
            };
            if last.abs_diff(first) > MAX_NUMBERS.saturating_sub(all.len()) as u64 {
                return Err(wrong(format!("{item} is too long a range")).into());
            }
            all.extend(first..=last);
        }
        Ok(Self(all))
    }
}

impl ParameterValue for Pairs {
    const KIND: &'static str = "key=value list";

    fn parse(text: &str, separator: char) -> Result<Self, ParseError> {
        let pairs = text.split(separator).map(str::trim).map(|pair| match pair.split_once('=') {
            Some((key, value)) if !value.contains('=') => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(format!("expected format key=value, got {}", quote(pair)).into()),
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }
}

impl ParameterValue for QueryValues {
    const KIND: &'static str = "query string";

    fn parse(text: &str, _: char) -> Result<Self, ParseError> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            if pair.contains(';') {
                return Err("invalid semicolon separator in query".into());
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| crate::web::query_unescaped(text).ok_or("invalid URL escape");
            Ok((plain(key)?, plain(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }
}

impl std::fmt::Debug for QueryValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

impl ParameterValue for NullableNumber {
    const KIND: &'static str = "number or null";

    fn parse(text: &str, separator: char) -> Result<Self, ParseError> {
        if text == "null" {
            Ok(Self(None))
        } else {
            let wrong = |_| {
                ParseError::from(
                    "unable to unmarshal to field type *float64: it is not a number, such as 2.5",
                )
            };
            f64::parse(text, separator).map(|number| Self(Some(number))).map_err(wrong)
        }
    }
}

impl ParameterValue for Removed {
    const KIND: &'static str = "";

    fn parse(_: &str, _: char) -> Result<Self, ParseError> {
        Ok(Self)
    }
}

impl<T: ParameterValue> ParameterValue for Option<T> {
    const KIND: &'static str = T::KIND;

    fn parse(text: &str, separator: char) -> Result<Self, ParseError> {
        T::parse(text, separator).map(Some)
    }
}
