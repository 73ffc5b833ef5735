//! Syntax of glob patterns, without IO.

use crate::ParseError;
use crate::parameters::KedaProfile;

/// Checks that brackets and braces are closed. KEDA 2.20 accepts an open brace.
pub(super) fn check(pattern: &str, profile: KedaProfile) -> Result<(), ParseError> {
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
    if braces > 0 && profile >= KedaProfile::V2_21 {
        open = open.or(Some("unclosed `{`"));
    }
    match (open, profile) {
        (None, _) => Ok(()),
        (Some(why), KedaProfile::V2_20) => Err(why.into()),
        (Some(why), KedaProfile::V2_21) => {
            Err(format!("glob: syntax error at {}: {why}", pattern.len()).into())
        }
    }
}
