//! Problems of a text, with position and hint.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::nearest::nearest;
use super::printable::{disturbs, printable};
use super::{SourceFile, Span};
use crate::text::truncated;

/// Maximum number of shown columns of the source line.
const MAX_EXCERPT_COLUMNS: usize = 120;
/// Number of columns before the position if the line is cropped.
const LEADING_COLUMNS: usize = 40;
/// Maximum number of characters of a user's text that a message quotes.
const MAX_QUOTED_CHARS: usize = 64;
/// Columns of a tab.
const TAB_COLUMNS: usize = 4;

/// One problem of a source, with the line to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The name of the source.
    pub file: Arc<str>,
    /// Position.
    pub span: Span,
    /// The field it concerns, such as `spec.metrics[0].resource`; empty for the whole document.
    pub path: String,
    /// Message.
    pub message: String,
    /// Hint how to fix it.
    pub hint: Option<String>,
    details: Box<ProblemDetails>,
}

/// Boxed, because problems are returned as errors.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProblemDetails {
    excerpt: Excerpt,
    unknown_field: Option<UnknownField>,
}

/// A field that an object of this type does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// Its name.
    pub name: String,
    /// The known field with the most similar name, if one is close enough.
    pub nearest: Option<&'static str>,
}

/// The printable line of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    indent: usize,
    carets: usize,
}

impl Diagnostic {
    /// A problem at a position, without a field.
    pub fn at(source: &SourceFile, span: Span, message: impl AsRef<str>) -> Self {
        Self {
            file: Arc::clone(&source.name),
            span,
            path: String::new(),
            message: printable(message.as_ref()),
            hint: None,
            details: Box::new(ProblemDetails { excerpt: excerpt(source, span), unknown_field: None }),
        }
    }

    /// Sets the path of the field.
    pub fn in_path(mut self, path: impl AsRef<str>) -> Self {
        self.path = printable(path.as_ref());
        self
    }

    /// Sets the hint.
    pub fn with_hint(self, hint: impl AsRef<str>) -> Self {
        self.maybe_hint(Some(hint))
    }

    /// Sets the hint, if there is one.
    pub(super) fn maybe_hint(mut self, hint: Option<impl AsRef<str>>) -> Self {
        self.hint = hint.map(|hint| printable(hint.as_ref()));
        self
    }

    /// Says that the problem is an unknown field.
    pub(super) fn with_unknown_field(mut self, name: &str, known: &'static [&'static str]) -> Self {
        let nearest = nearest(name, known.iter().copied());
        self.details.unknown_field = Some(UnknownField { name: name.to_owned(), nearest });
        self
    }

    /// The unknown field, if the problem is one.
    pub fn unknown_field(&self) -> Option<&UnknownField> {
        self.details.unknown_field.as_ref()
    }

    /// The message with its line and carets under the position, without a final newline.
    pub fn render(&self, colour: bool) -> String {
        let (red, blue, bold, plain) =
            if colour { ("\x1b[1;31m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m") } else { ("", "", "", "") };
        let Excerpt { line, indent, carets } = &self.details.excerpt;
        let number = self.span.line.to_string();
        let (margin, indent, carets) = (" ".repeat(number.len()), " ".repeat(*indent), "^".repeat(*carets));
        let mut out = format!("{red}error{plain}{bold}: {self}{plain}\n{blue}{margin} |{plain}\n");
        let _ = write!(out, "{blue}{number} |{plain} {line}\n{blue}{margin} |{plain} {indent}{red}{carets}");
        if let Some(hint) = &self.hint {
            let _ = write!(out, " {hint}");
        }
        out + plain
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.span.line, self.span.column, self.message)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " in {}", self.path) }
    }
}

impl std::error::Error for Diagnostic {}

/// The line of the problem. Reads no more of the source than is shown.
fn excerpt(source: &SourceFile, span: Span) -> Excerpt {
    let (before, after) = source.text.split_at_checked(span.start).unwrap_or((&source.text, ""));
    let mut lead: Vec<char> = line(before.chars().rev()).take(MAX_EXCERPT_COLUMNS + 1).collect();
    let mut tail: Vec<char> = line(after.chars()).take(MAX_EXCERPT_COLUMNS + 1).collect();
    if columns(&lead) + columns(&tail) > MAX_EXCERPT_COLUMNS {
        lead = crop(&lead, LEADING_COLUMNS);
        tail = crop(&tail, MAX_EXCERPT_COLUMNS.saturating_sub(columns(&lead)));
    }
    lead.reverse();
    let marked = line(source.slice(span).chars()).take(tail.len()).count();
    let carets = tail.get(..marked).map_or(0, columns).max(1);
    let line: String = lead.iter().chain(&tail).collect();
    Excerpt { indent: columns(&lead), carets, line: line.trim_end().to_owned() }
}

/// The characters up to the next line break, as they are shown.
fn line(characters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    characters.take_while(|c| !matches!(c, '\n' | '\r')).flat_map(|c| match c {
        '\t' => std::iter::repeat_n(' ', TAB_COLUMNS),
        c if disturbs(c) => std::iter::repeat_n(char::REPLACEMENT_CHARACTER, 1),
        c => std::iter::repeat_n(c, 1),
    })
}

/// The first characters that fit into `room` columns, with an ellipsis for the others.
fn crop(characters: &[char], room: usize) -> Vec<char> {
    let mut used = 0;
    let fits = characters.iter().take_while(|c| {
        used += width(**c);
        used <= room
    });
    let mut kept: Vec<char> = fits.copied().collect();
    if kept.len() < characters.len() {
        kept.push('…');
    }
    kept
}

fn columns(characters: &[char]) -> usize {
    characters.iter().map(|c| width(*c)).sum()
}

/// The columns of a character in a terminal: two for wide ones, none for combining ones.
fn width(character: char) -> usize {
    match u32::from(character) {
        0x0300..=0x036F | 0x200B..=0x200D | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// The first characters of a user's text.
pub(super) fn shortened(text: &str) -> String {
    truncated(text, MAX_QUOTED_CHARS)
}
