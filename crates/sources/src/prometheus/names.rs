//! Series names and metric names: regular expressions and expansion (`$1`, `${name}`) of Go.

mod classes;
mod pattern;
#[cfg(test)]
mod tests;

pub use classes::RegexError;
pub use pattern::GoRegex;

use api::gotext::quote;

use super::config::{NameMapping, SeriesFilter};

/// Why a filter cannot be used, in the words of prometheus-adapter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Neither expression is given.
    #[error("must have either an `is` or `isNot` expression in a filter")]
    Empty,
    /// Both expressions are given.
    #[error("cannot have both an `is` ({is}) and `isNot` ({is_not}) expression in a single filter")]
    Both {
        /// `is`, quoted.
        is: String,
        /// `isNot`, quoted.
        is_not: String,
    },
    /// The expression is not valid.
    #[error("unable to compile series filter {text}: {source}")]
    Regex {
        /// The expression, quoted.
        text: String,
        /// The regular expression error.
        source: RegexError,
    },
}

/// Filter on series names.
#[derive(Clone, Debug)]
pub struct SeriesNameFilter {
    pattern: GoRegex,
    wanted: bool,
}

impl SeriesNameFilter {
    /// Compiles a filter.
    pub fn new(filter: &SeriesFilter) -> Result<Self, FilterError> {
        let (text, wanted) = match (filter.is.as_str(), filter.is_not.as_str()) {
            ("", "") => return Err(FilterError::Empty),
            (is, "") => (is, true),
            ("", is_not) => (is_not, false),
            (is, is_not) => {
                return Err(FilterError::Both { is: quote(is), is_not: quote(is_not) });
            }
        };
        let pattern =
            GoRegex::new(text).map_err(|source| FilterError::Regex { text: quote(text), source })?;
        Ok(Self { pattern, wanted })
    }

    /// Whether a series name passes.
    pub fn accepts(&self, name: &str) -> bool {
        self.pattern.is_match(name) == self.wanted
    }
}

/// Naming of metrics from series names.
#[derive(Clone, Debug)]
pub struct MetricNaming {
    pattern: GoRegex,
    layout: String,
}

/// Why a naming cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamingError {
    /// The regular expression is not valid.
    Pattern(RegexError),
    /// The expression has several groups, but there is no layout.
    NoLayout,
}

impl MetricNaming {
    pub(super) fn new(mapping: &NameMapping) -> Result<Self, NamingError> {
        let text = if mapping.matches.is_empty() { ".*" } else { &mapping.matches };
        let pattern = GoRegex::new(text).map_err(NamingError::Pattern)?;
        let layout = match (mapping.as_.as_str(), pattern.groups()) {
            ("", 0) => "$0",
            ("", 1) => "$1",
            ("", _) => return Err(NamingError::NoLayout),
            (layout, _) => layout,
        };
        Ok(Self { layout: layout.to_owned(), pattern })
    }

    /// Metric name of a series; `None` if the expression does not match.
    pub fn name(&self, series: &str) -> Option<String> {
        self.pattern.expand(series, &self.layout)
    }

    /// Layout of the name.
    pub fn layout(&self) -> &str {
        &self.layout
    }

    /// References of the layout to groups that the expression does not have; they expand to nothing.
    pub fn empty_references(&self) -> Vec<String> {
        let mut empty = Vec::new();
        let mut rest = self.layout.as_str();
        while let Some(at) = rest.find('$') {
            let behind = rest.get(at + 1..).unwrap_or_default();
            rest = match pattern::reference(behind) {
                Some((name, behind)) => {
                    if !self.pattern.has_group(name) {
                        empty.push(name.to_owned());
                    }
                    behind
                }
                None => behind.strip_prefix('$').unwrap_or(behind),
            };
        }
        empty
    }
}
