//! Label selectors as text and as objects, and field selectors (docs/spec/hpa.md Appendix B).

mod fields;
mod lexer;
mod object;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

pub use fields::{FieldSelector, FieldSelectorError, FieldTerm, UnknownSelectorField};
pub use object::{LabelSelector, LabelSelectorRequirement, NotALabelSelector};
pub use parse::SelectorParseError;

use crate::field::{self, FieldError};
use crate::names;

/// A label selector: a list of requirements that must all hold, or one that selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted; a value given twice is kept twice, since Kubernetes prints it so.
    values: Vec<String>,
}

/// How a requirement compares the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `k=v`
    Equals,
    /// `k==v`
    DoubleEquals,
    /// `k!=v`
    NotEquals,
    /// `k in (a,b)`
    In,
    /// `k notin (a,b)`
    NotIn,
    /// `k`
    Exists,
    /// `!k`
    DoesNotExist,
    /// `k>n`
    GreaterThan,
    /// `k<n`
    LessThan,
}

impl Operator {
    /// The operator's name as Kubernetes prints it in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
            Self::GreaterThan => "gt",
            Self::LessThan => "lt",
        }
    }
}

impl Selector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects no object; its text is empty, too.
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// All of the given requirements, sorted by key; those of one key in the order given.
    pub fn all_of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements, nothing: false }
    }

    /// Reads the text form, e.g. `app=web,tier in (a,b)`.
    pub fn parse(text: &str) -> Result<Self, SelectorParseError> {
        parse::parse(text).map(Self::all_of)
    }

    /// The requirements in canonical order.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether no object can be selected because the selector was absent.
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// Whether an object with these labels is selected; `labels` finds the value of a key.
    pub fn matches<'a>(&self, labels: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing
            && self.requirements.iter().all(|requirement| requirement.accepts(labels(&requirement.key)))
    }

    /// Whether an object with this map of labels is selected.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }
}

impl fmt::Display for Selector {
    /// The canonical text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_char(',')?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Selector {
    type Err = SelectorParseError;

    fn from_str(text: &str) -> Result<Self, SelectorParseError> {
        Self::parse(text)
    }
}

impl Requirement {
    /// A requirement whose key, values and number of values were checked.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, InvalidRequirement> {
        let faults = requirement_faults(key, operator, &values);
        if !faults.is_empty() {
            return Err(InvalidRequirement { faults });
        }
        values.sort_unstable();
        Ok(Self { key: key.to_owned(), operator, values })
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The comparison.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values compared with, sorted, each once.
    pub fn values(&self) -> Vec<&str> {
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.dedup();
        values
    }

    /// Whether a label with this value, or its absence, satisfies the requirement.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => {
                value.is_some_and(|value| self.lists(value))
            }
            Operator::NotEquals | Operator::NotIn => value.is_none_or(|value| !self.lists(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.bound(value).is_some_and(|(value, bound)| value > bound),
            Operator::LessThan => self.bound(value).is_some_and(|(value, bound)| value < bound),
        }
    }

    fn lists(&self, value: &str) -> bool {
        self.values.iter().any(|listed| listed == value)
    }

    fn bound(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self.operator {
            Operator::DoesNotExist => return write!(f, "!{}", self.key),
            Operator::Exists => return f.write_str(&self.key),
            Operator::Equals => ("=", ""),
            Operator::DoubleEquals => ("==", ""),
            Operator::NotEquals => ("!=", ""),
            Operator::GreaterThan => (">", ""),
            Operator::LessThan => ("<", ""),
            Operator::In => (" in (", ")"),
            Operator::NotIn => (" notin (", ")"),
        };
        write!(f, "{}{before}{}{after}", self.key, self.values.join(","))
    }
}

/// Why a requirement cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", field::aggregate(faults))]
pub struct InvalidRequirement {
    /// Every fault, in the order of checking.
    pub faults: Vec<FieldError>,
}

fn requirement_faults(key: &str, operator: Operator, values: &[String]) -> Vec<FieldError> {
    let mut faults = Vec::new();
    faults.extend(key_fault("key", key));
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            faults.push(FieldError::invalid(
                "values",
                values,
                "for 'in', 'notin' operators, values set can't be empty",
            ));
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
            faults.push(FieldError::invalid(
                "values",
                values,
                "exact-match compatibility requires one single value",
            ));
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            faults.push(FieldError::invalid(
                "values",
                values,
                "values set must be empty for exists and does not exist",
            ));
        }
        Operator::GreaterThan | Operator::LessThan => {
            if values.len() != 1 {
                let detail = "for 'Gt', 'Lt' operators, exactly one value is required";
                faults.push(FieldError::invalid("values", values, detail));
            }
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                faults.push(FieldError::invalid(format_args!("values[{i}]"), value, detail));
            }
        }
        _ => {}
    }
    for (i, value) in values.iter().enumerate() {
        let wrong = names::label_value_faults(value);
        if !wrong.is_empty() {
            faults.push(FieldError::invalid(format_args!("values[{i}][{key}]"), value, wrong.join("; ")));
        }
    }
    faults
}

fn key_fault(path: &str, key: &str) -> Option<FieldError> {
    let wrong = names::label_key_faults(key);
    (!wrong.is_empty()).then(|| FieldError::invalid(path, key, wrong.join("; ")))
}
