//! Glob patterns, without IO.

use regex::Regex;

use crate::patterns::{check_length, compiled};
use crate::{ParseError, ScalerError};

/// Checks that brackets and braces are closed, and that brackets are not empty. KEDA 2.20 accepts an open brace.
pub(super) fn check(pattern: &str, is_strict: bool) -> Result<(), ParseError> {
    let wrong = |at: usize, why: &str| -> Result<(), ParseError> {
        Err(if is_strict { format!("glob: syntax error at {at}: {why}").into() } else { why.into() })
    };
    let (mut braces, mut letters) = (0_usize, pattern.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            // The next letter stands for itself.
            '\\' if letters.next().is_none() => return wrong(pattern.len(), "unexpected end of input"),
            '[' => {
                let Some((end, _)) = letters.by_ref().find(|(_, letter)| *letter == ']') else {
                    return wrong(pattern.len(), "unexpected end of input");
                };
                if matches!(pattern.get(at + 1..end), Some("" | "!")) {
                    return wrong(end + 1, "could not parse range");
                }
            }
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    if braces > 0 && is_strict {
        return wrong(pattern.len(), "unclosed `{`");
    }
    Ok(())
}

/// Compiles a pattern that must match whole names. As in KEDA, `*` also matches slashes, and a slash at the beginning is ignored,
/// because no name of a blob has one.
pub(super) fn compile(pattern: &str) -> Result<Regex, ScalerError> {
    check_length("globPattern", pattern).map_err(ScalerError::new)?;
    let (mut text, mut braces) = ("(?s)^".to_owned(), 0_usize);
    let mut letters = pattern.strip_prefix('/').unwrap_or(pattern).chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => {
                while letters.next_if_eq(&'*').is_some() {}
                text.push_str(".*");
            }
            '?' => text.push('.'),
            '[' => {
                let class: Vec<char> = letters.by_ref().take_while(|letter| *letter != ']').collect();
                text.push_str(&class_of(&class));
            }
            '{' => {
                braces += 1;
                text.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                text.push(')');
            }
            ',' if braces > 0 => text.push('|'),
            '\\' => text.push_str(&literal(letters.next().unwrap_or(letter))),
            other => text.push_str(&literal(other)),
        }
    }
    // KEDA 2.20 accepts an open brace, which then ends with the pattern.
    text.push_str(&")".repeat(braces));
    text.push('$');
    compiled(&text).map_err(|_| {
        scaler_error!("globPattern cannot be used: it is too large, or has an empty or inverted range")
    })
}

/// A character class; `!` negates it.
fn class_of(letters: &[char]) -> String {
    let (negation, mut rest) = match letters {
        ['!', rest @ ..] => ("^", rest),
        rest => ("", rest),
    };
    let mut text = format!("[{negation}");
    loop {
        match rest {
            [low, '-', high, more @ ..] => {
                text.push_str(&format!("{}-{}", literal(*low), literal(*high)));
                rest = more;
            }
            [one, more @ ..] => {
                text.push_str(&literal(*one));
                rest = more;
            }
            [] => break,
        }
    }
    text.push(']');
    text
}

fn literal(letter: char) -> String {
    regex::escape(letter.encode_utf8(&mut [0; 4]))
}
