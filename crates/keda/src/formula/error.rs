//! Why a formula is refused or fails, and where.

use std::fmt;

/// What is wrong, and at which character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// The character, counted from zero; absent where no single one is to blame.
    pub at: Option<u32>,
    /// The place in words, and the line with a mark below it.
    shown: String,
}

impl Error {
    /// Something is wrong at a character.
    pub(super) fn new(at: u32, message: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(at), shown: String::new() }
    }

    /// Something is wrong with the whole of it.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), at: None, shown: String::new() }
    }

    /// The same with the line of `source` in which it is, as the original shows it.
    pub(super) fn shown_in(mut self, source: &str) -> Self {
        let Some(at) = self.at.filter(|_| self.shown.is_empty()) else {
            return self;
        };
        let before: String = source.chars().take(at as usize).collect();
        let line_number = before.matches('\n').count();
        let column = before.chars().rev().take_while(|c| *c != '\n').count();
        let line = source.split('\n').nth(line_number).unwrap_or_default();
        let marks = ".".repeat(column);
        self.shown = format!(" ({}:{})\n | {line}\n | {marks}^", line_number + 1, column + 1);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, self.shown)
    }
}

impl std::error::Error for Error {}
