//! Checks of map keys, and merge keys.

use std::collections::{HashMap, HashSet};

use super::problem::shortened;
use super::scalar::resolve;
use super::syntax::{SPACES, TAB};
use super::{Diagnostic, Node, NodeKey, NodeValue, SourceFile, Span};

/// Rejects an unquoted key that is not a string, unless it has the same text as a string.
pub(super) fn is_text(source: &SourceFile, word: &str, span: Span) -> Result<(), Diagnostic> {
    let (same, meaning) = match resolve(word) {
        NodeValue::Null => (false, "null"),
        NodeValue::Bool(truth) => (truth.to_string() == word, if truth { "true" } else { "false" }),
        NodeValue::Int(integer) => (integer.to_string() == word, "a number"),
        NodeValue::Float(float) => (float.to_string() == word, "a number"),
        _ => (true, ""),
    };
    if same {
        return Ok(());
    }
    if source.slice(span).is_empty() {
        return Err(Diagnostic::at(source, span, "expected a text as key, found nothing"));
    }
    let message = format!("expected a text as key, found `{word}`, which means {meaning}");
    Err(Diagnostic::at(source, span, message).with_hint(format!("quote it: \"{word}\"")))
}

/// Rejects a tab in the indentation, which the parser accepts at the start of a document.
pub(super) fn indented_by_spaces(source: &SourceFile, span: Span) -> Result<(), Diagnostic> {
    let before = source.text.get(..span.start).unwrap_or_default();
    let rest = before.trim_end_matches([' ', '\t']);
    let indents = rest.is_empty() || rest.ends_with(['\n', '\r', '\u{FEFF}']);
    let blank = before.get(rest.len()..).filter(|_| indents).unwrap_or_default();
    let Some(tab) = blank.find('\t') else { return Ok(()) };
    let start = rest.len() + tab;
    let place = Span { start, end: start + 1, line: span.line, column: tab as u32 + 1 };
    Err(Diagnostic::at(source, place, TAB).with_hint(SPACES))
}

/// Rejects duplicate keys.
pub(super) fn unique(source: &SourceFile, entries: &[(NodeKey, Node)]) -> Result<(), Diagnostic> {
    let mut seen: HashMap<&str, &NodeKey> = HashMap::with_capacity(entries.len());
    for (key, _) in entries {
        if let Some(first) = seen.insert(&key.name, key) {
            let problem =
                Diagnostic::at(source, key.span, format!("duplicate key `{}`", shortened(&key.name)));
            return Err(problem.with_hint(format!("first given in line {}", first.span.line)));
        }
    }
    Ok(())
}

/// Adds the entries of merge keys (`<<`) that do not exist yet. Of several maps the first wins.
pub(super) fn merge(
    source: &SourceFile,
    entries: &mut Vec<(NodeKey, Node)>,
    merged: Vec<(Span, Node)>,
) -> Result<(), Diagnostic> {
    if merged.is_empty() {
        return Ok(());
    }
    let mut names: HashSet<String> = entries.iter().map(|(key, _)| key.name.clone()).collect();
    for (span, node) in merged {
        let maps = match node.value {
            NodeValue::Seq(items) => items.into_iter().map(|item| item.value).collect(),
            value => vec![value],
        };
        for map in maps {
            let NodeValue::Map(others) = map else {
                return Err(Diagnostic::at(source, span, "expected a map or a list of maps to merge"));
            };
            entries.extend(others.into_iter().filter(|(key, _)| names.insert(key.name.clone())));
        }
    }
    Ok(())
}
