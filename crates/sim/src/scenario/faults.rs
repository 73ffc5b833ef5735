//! Collects the problems of a document with their positions.

use api::yaml::{Diagnostic, Document};

use crate::time::Millis;

/// The problems of one document.
pub(super) struct Faults<'a> {
    document: &'a Document,
    problems: &'a mut Vec<Diagnostic>,
}

impl<'a> Faults<'a> {
    /// Collects into `problems`.
    pub(super) fn new(document: &'a Document, problems: &'a mut Vec<Diagnostic>) -> Self {
        Self { document, problems }
    }

    /// The document.
    pub(super) fn document(&self) -> &'a Document {
        self.document
    }

    /// Adds a problem at a path.
    pub(super) fn add(&mut self, path: &str, message: impl AsRef<str>) {
        self.problems.push(self.document.problem(path, message));
    }

    /// Adds a problem at a path, with a hint.
    pub(super) fn add_with_hint(&mut self, path: &str, message: impl AsRef<str>, hint: Option<String>) {
        let problem = self.document.problem(path, message);
        self.problems.push(match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        });
    }

    /// Adds a problem of another file.
    pub(super) fn push(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    /// Returns the number if it is between `low` and `high`; otherwise adds a problem and returns `low`.
    pub(super) fn number(&mut self, path: &str, number: f64, low: f64, high: f64) -> f64 {
        if (low..=high).contains(&number) {
            return number;
        }
        let (low_text, high_text, found) = (shown(low), shown(high), shown(number));
        self.add(path, format!("`{}` must be from {low_text} to {high_text}, found {found}", field(path)));
        low
    }

    /// Returns the duration if it is between `low` and `high`; otherwise adds a problem and returns `low`.
    pub(super) fn length(&mut self, path: &str, length: Millis, low: Millis, high: Millis) -> Millis {
        if (low..=high).contains(&length) {
            return length;
        }
        self.add(path, format!("`{}` must be from {low} to {high}, found {length}", field(path)));
        low
    }
}

/// Formats a number with few digits.
fn shown(number: f64) -> String {
    if number.abs() < 1e12 { number.to_string() } else { format!("{number:e}") }
}

/// The last name of a path.
fn field(path: &str) -> &str {
    let name = path.rsplit('.').next().unwrap_or(path);
    name.split('[').next().unwrap_or(name)
}

/// The hint "did you mean …?", or a list of the known names.
pub(super) fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(nearest) = api::yaml::nearest(word, known.clone()) {
        return Some(format!("did you mean `{nearest}`?"));
    }
    let known: Vec<String> = known.into_iter().take(8).map(|name| format!("`{name}`")).collect();
    (!known.is_empty()).then(|| format!("there is {}", known.join(", ")))
}
