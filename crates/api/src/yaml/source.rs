//! A named text and positions in it.

use std::sync::Arc;

use super::Diagnostic;
use super::problem::printable;

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

    /// Decodes the bytes of a file: UTF-8, or UTF-16 with a byte order mark, which Windows tools write.
    pub fn from_bytes(name: impl Into<Arc<str>>, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let (unit, rest): (fn([u8; 2]) -> u16, _) = match bytes {
            [0xFF, 0xFE, rest @ ..] => (u16::from_le_bytes, rest),
            [0xFE, 0xFF, rest @ ..] => (u16::from_be_bytes, rest),
            _ => return Self::from_utf8(name.into(), bytes),
        };
        let (pairs, _) = rest.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        let source = Self::new(name, String::from_utf16_lossy(&units));
        match source.text.find(char::REPLACEMENT_CHARACTER) {
            None => Ok(source),
            Some(byte) => Err(source.not_text(byte)),
        }
    }

    fn from_utf8(name: Arc<str>, bytes: &[u8]) -> Result<Self, Diagnostic> {
        match str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => Err(Self::new(name, String::from_utf8_lossy(bytes)).not_text(error.valid_up_to())),
        }
    }

    fn not_text(&self, byte: usize) -> Diagnostic {
        Diagnostic::at(self, self.span(byte, byte), "expected text, found a byte that is not UTF-8")
            .with_hint("save the file as UTF-8")
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
