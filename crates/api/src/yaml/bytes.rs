//! The text of a file.

use std::sync::Arc;

use super::{Diagnostic, SourceFile};

impl SourceFile {
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
}
