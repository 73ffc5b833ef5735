//! Series names and metric names: regular expressions and expansion (`$1`, `${name}`) of Go.

mod classes;
mod pattern;
#[cfg(test)]
mod tests;

pub use pattern::GoRegex;

use super::config::{NameMapping, SeriesFilter};

/// Filter on series names.
#[derive(Clone, Debug)]
pub struct SeriesNameFilter {
    pattern: GoRegex,
    wanted: bool,
}

impl SeriesNameFilter {
    /// Compiles a filter.
    pub fn new(filter: &SeriesFilter) -> Result<Self, String> {
        let (text, wanted) = match (filter.is.as_str(), filter.is_not.as_str()) {
            ("", "") => return Err("must have either an `is` or `isNot` expression in a filter".to_owned()),
            (is, "") => (is, true),
            ("", is_not) => (is_not, false),
            (is, is_not) => {
                return Err(format!(
                    "cannot have both an `is` ({}) and `isNot` ({}) expression in a single filter",
                    api::gotext::quote(is),
                    api::gotext::quote(is_not)
                ));
            }
        };
        let pattern = GoRegex::new(text)
            .map_err(|why| format!("unable to compile series filter {}: {why}", api::gotext::quote(text)))?;
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
    Pattern(String),
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
