//! Texts of syntax errors.

use granit_parser::{ErrorKind, ScanError};

use super::{Diagnostic, SourceFile, Span};

/// Converts an error of the parser to a problem with its position.
pub(super) fn problem(source: &SourceFile, error: &ScanError) -> Diagnostic {
    let start = error.marker().byte_offset().unwrap_or(source.text.len()).min(source.text.len());
    let next = source.text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let span = Span {
        start,
        end: start + next,
        line: u32::try_from(error.marker().line()).unwrap_or(u32::MAX),
        column: u32::try_from(error.marker().col() + 1).unwrap_or(u32::MAX),
    };
    let (message, hint) = words(error.kind());
    Diagnostic::at(source, span, message).maybe_hint((!hint.is_empty()).then_some(hint))
}

pub(super) const TOO_DEEP: &str = "nested too deeply: expected at most 128 levels";
pub(super) const TAB: &str = "expected spaces, found a tab";
pub(super) const SPACES: &str = "YAML is indented with spaces only";
const QUOTE: &str = "put the whole text in quotes if this character belongs to it";
const CLOSE: &str = "is a closing quote missing?";
const ALIGN: &str = "align it with its neighbours";

fn words(kind: &ErrorKind) -> (String, &'static str) {
    use ErrorKind as E;
    let (message, hint) = match kind {
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabAtBlockScalarStart
        | E::TabInPlainScalar => (TAB, SPACES),
        E::MappingValueNotAllowed => ("expected a value, found a second `:`", QUOTE),
        E::SimpleKeyExpected | E::InvalidSimpleKey => ("expected `:` after this key", ""),
        E::ExpectedBlockMappingKey | E::MappingKeyNotAllowed => ("expected a key at this indentation", ALIGN),
        E::ExpectedBlockSequenceEntry => ("expected another `- ` item or the end of the list", ALIGN),
        E::BlockSequenceEntryNotAllowed => {
            ("a list cannot begin here", "put its first `- ` on a line of its own")
        }
        E::InvalidIndentation | E::InvalidBlockScalarIndent | E::InvalidFlowScalarIndent => {
            ("expected a different indentation", ALIGN)
        }
        E::ExpectedFlowMappingSeparator => ("expected `,` or `}`", ""),
        E::ExpectedFlowSequenceSeparator => ("expected `,` or `]`", ""),
        E::MisplacedFlowCollectionEnd => ("this bracket closes nothing", QUOTE),
        E::UnclosedFlowCollection { open } => {
            return (format!("expected `{}`: this `{open}` is never closed", closing(*open)), "");
        }
        E::MismatchedFlowCollectionEnd { open, close } => {
            return (format!("expected `{}`: this `{open}` is closed by `{close}`", closing(*open)), "");
        }
        E::UnclosedQuotedScalar => ("expected a closing quote", CLOSE),
        E::InvalidQuotedScalarIndent => ("expected the rest of a quoted text, indented further", CLOSE),
        E::DocumentIndicatorInQuotedScalar => {
            ("expected a closing quote, found the end of the document", CLOSE)
        }
        E::InvalidTrailingSingleQuotedScalar | E::InvalidTrailingDoubleQuotedScalar => (
            "expected the end of the line after the closing quote",
            "double or escape a quote inside the text",
        ),
        E::UnknownQuotedScalarEscape => ("unknown escape in double quotes", "write `\\\\` for a backslash"),
        E::UnexpectedCharacter { character } if character.is_control() => {
            ("expected text, found a control character", "write it as an escape in double quotes")
        }
        E::UnexpectedCharacter { character } => {
            return (format!("a text cannot begin with `{character}`"), "put it in quotes");
        }
        E::UnknownAnchor => {
            ("no anchor of this name is defined above", "an unquoted text cannot begin with `*`")
        }
        E::ExpectedDocumentStart => ("expected the end of the document or `---`", ""),
        E::RecursionLimitExceeded => (TOO_DEEP, ""),
        E::ExpectedNodeContent => ("expected a value", ""),
        other => return (other.to_string(), ""),
    };
    (message.to_owned(), hint)
}

fn closing(open: char) -> char {
    if open == '{' { '}' } else { ']' }
}
