//! Field selectors: `metadata.name=web-0,metadata.namespace!=default`.

use std::fmt;

use crate::gotext;

/// Conditions on named fields of an object; all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field's path.
    pub field: String,
    /// The value compared with.
    pub value: String,
    /// Whether the field must differ from the value.
    pub differs: bool,
}

/// Why a text is not a field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole text.
        selector: String,
        /// The term at fault.
        term: String,
    },
    /// A backslash before something that needs none.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A `,` or `=` in a value without a backslash before it.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

/// A field the listed kind cannot be selected by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a known field selector: only {known}", gotext::quote(field))]
pub struct UnknownSelectorField {
    field: String,
    known: String,
}

impl FieldSelector {
    /// Reads the text form. Terms are sorted first, so the first fault in that order is reported.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, differs, value)) = split_term(part) else {
                return Err(FieldSelectorError::Term { selector: text.to_owned(), term: part.to_owned() });
            };
            let value = unescape(value)?;
            // A term without field and value restricts nothing.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(FieldTerm { field: field.to_owned(), value, differs });
            }
        }
        Ok(Self { terms })
    }

    /// The conditions in canonical order.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The first value a field must have exactly, if there is one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| !term.differs && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether an object is selected; `fields` gives a field's value, empty when it has none.
    pub fn matches<'a>(&self, fields: impl Fn(&str) -> &'a str) -> bool {
        self.terms.iter().all(|term| (fields(&term.field) == term.value) != term.differs)
    }

    /// Checks that only these fields are used.
    pub fn restricted_to(&self, known: &[&str]) -> Result<(), UnknownSelectorField> {
        match self.terms.iter().find(|term| !known.contains(&term.field.as_str())) {
            None => Ok(()),
            Some(term) => {
                let known: Vec<String> = known.iter().map(|field| gotext::quote(field)).collect();
                Err(UnknownSelectorField { field: term.field.clone(), known: known.join(", ") })
            }
        }
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let separator = if i > 0 { "," } else { "" };
            let operator = if term.differs { "!=" } else { "=" };
            let value = term.value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
            write!(f, "{separator}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}

/// Cuts at every comma that has no backslash before it.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == ',' {
            parts.push(text.get(start..i).unwrap_or_default());
            start = i + 1;
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// Cuts a term at its first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.char_indices().find(|(i, c)| {
        *c == '=' || (*c == '!' && term.get(i + 1..).is_some_and(|after| after.starts_with('=')))
    })?;
    let (field, rest) = term.split_at(at.0);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, true, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, false, value))
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(FieldSelectorError::Escape(format!("\\{c}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c)),
            c => out.push(c),
        }
    }
    Ok(out)
}
