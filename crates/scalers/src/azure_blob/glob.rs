//! Syntax of glob patterns, without IO.

use crate::ParseError;

/// Checks that brackets and braces are closed. KEDA 2.20 accepts an open brace.
pub(super) fn check(pattern: &str, is_strict: bool) -> Result<(), ParseError> {
    let (mut braces, mut letters) = (0_usize, pattern.chars());
    let mut open = None;
    while let Some(letter) = letters.next() {
        match letter {
            // The next letter stands for itself.
            '\\' if letters.next().is_none() => open = Some("unexpected end of input"),
            '[' if !letters.by_ref().any(|letter| letter == ']') => open = Some("unexpected end of input"),
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    if braces > 0 && is_strict {
        open = open.or(Some("unclosed `{`"));
    }
    match open {
        None => Ok(()),
        Some(why) if is_strict => Err(format!("glob: syntax error at {}: {why}", pattern.len()).into()),
        Some(why) => Err(why.into()),
    }
}
