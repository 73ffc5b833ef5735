//! `$(NAME)` in the value of a variable.

use std::collections::BTreeMap;

/// Expands `$(NAME)`; `$$` is one `$`, and unknown variables are kept.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    expand_within(text, variables, usize::MAX).unwrap_or_default()
}

/// Expands like [`expand`]; none if the result is longer than `max_bytes` bytes, because nested variables grow exponentially.
pub(super) fn expand_within(
    text: &str,
    variables: &BTreeMap<String, String>,
    max_bytes: usize,
) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            rest = escaped;
        } else if let Some((name, behind)) = after.strip_prefix('(').and_then(|after| after.split_once(')')) {
            match variables.get(name) {
                Some(value) => out.push_str(value),
                None => out.extend(["$(", name, ")"]),
            }
            rest = behind;
        } else {
            out.push('$');
            rest = after;
        }
        if out.len() > max_bytes {
            return None;
        }
    }
    out.push_str(rest);
    (out.len() <= max_bytes).then_some(out)
}
