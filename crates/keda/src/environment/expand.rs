//! `$(NAME)` in the value of a variable.

use std::collections::BTreeMap;

/// Puts variables in the place of `$(NAME)`; `$$` is one `$`, and what is unknown stays as it is.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    expand_within(text, variables, usize::MAX).unwrap_or_default()
}

/// The same; none if that is longer than `most`. Variables are made of variables, and few words can make a great many.
pub(super) fn expand_within(text: &str, variables: &BTreeMap<String, String>, most: usize) -> Option<String> {
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
        if out.len() > most {
            return None;
        }
    }
    out.push_str(rest);
    (out.len() <= most).then_some(out)
}
