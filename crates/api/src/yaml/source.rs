//! A named text and positions in it.

use std::sync::Arc;

use super::printable::printable;

/// A text of the user and its name; cheap to clone.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The file name as the user gave it, or `<stdin>`.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

/// A range of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// The line of the first byte, counted from 1.
    pub line: u32,
    /// The column of the first byte in characters, counted from 1.
    pub column: u32,
}

impl SourceFile {
    /// A text with its name.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { name: printable(&name.into()).into(), text: text.into() }
    }

    /// The span between two bytes, counting lines as YAML does.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let before = self.text.get(..start).unwrap_or(&self.text);
        let (mut line, mut column, mut carriage) = (1, 1, false);
        for character in before.chars() {
            match character {
                '\n' if carriage => {}
                '\n' | '\r' => (line, column) = (line + 1, 1),
                _ => column += 1,
            }
            carriage = character == '\r';
        }
        Span { start, end, line, column }
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }
}
