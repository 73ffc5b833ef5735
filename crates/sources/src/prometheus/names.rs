//! Names of series and what becomes of them: Go's regular expressions and its way to expand `$1` and `${name}`.

mod classes;
mod pattern;
#[cfg(test)]
mod tests;

pub use pattern::Pattern;

use super::config::{NameMapping, SeriesFilter};

/// A condition on the name of a series.
#[derive(Clone, Debug)]
pub struct Filter {
    pattern: Pattern,
    wanted: bool,
}

impl Filter {
    /// A filter as it is written.
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
        let pattern = Pattern::new(text)
            .map_err(|why| format!("unable to compile series filter {}: {why}", api::gotext::quote(text)))?;
        Ok(Self { pattern, wanted })
    }

    /// Whether a series of this name passes.
    pub fn accepts(&self, name: &str) -> bool {
        self.pattern.is_match(name) == self.wanted
    }
}

/// How names of series become names of metrics.
#[derive(Clone, Debug)]
pub struct Naming {
    pattern: Pattern,
    layout: String,
}

/// Why a naming cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamingError {
    /// The expression is wrong.
    Pattern(String),
    /// There are several groups and nothing says which to take.
    NoLayout,
}

impl Naming {
    pub(super) fn new(mapping: &NameMapping) -> Result<Self, NamingError> {
        let text = if mapping.matches.is_empty() { ".*" } else { &mapping.matches };
        let pattern = Pattern::new(text).map_err(NamingError::Pattern)?;
        let layout = match (mapping.as_.as_str(), pattern.groups()) {
            ("", 0) => "$0",
            ("", 1) => "$1",
            ("", _) => return Err(NamingError::NoLayout),
            (layout, _) => layout,
        };
        Ok(Self { layout: layout.to_owned(), pattern })
    }

    /// The name of the metric; nothing if the expression does not match.
    pub fn name(&self, series: &str) -> Option<String> {
        self.pattern.expand(series, &self.layout)
    }

    /// What is put together.
    pub fn layout(&self) -> &str {
        &self.layout
    }

    /// References of the layout to groups that the expression does not have, which become nothing.
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
