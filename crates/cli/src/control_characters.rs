//! Control characters in texts of a cluster, which its users choose.

use std::borrow::Cow;

/// The text with other control characters than line ends, tabs and those of colours replaced.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find(is_control).and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let colour = colour_bytes(from).and_then(|bytes| from.split_at_checked(bytes));
        let mut after = from.chars();
        after.next();
        let (shown, after) = colour.unwrap_or(("\u{FFFD}", after.as_str()));
        out.push_str(shown);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The length of the colour at the beginning of a text, such as `ESC[31m`.
fn colour_bytes(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters.get(end..)?.starts_with('m').then(|| text.len() - parameters.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_objects_do_not_control_the_terminal() {
        for plain in ["", "a\tb\nc é", "\u{1b}[1;31mred\u{1b}[0m"] {
            assert_eq!(without_controls(plain), plain);
        }
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\u{FFFD}[2Jb"),
            ("\u{1b}]0;title\u{7}x", "\u{FFFD}]0;title\u{FFFD}x"),
            ("\u{9b}31mred", "\u{FFFD}31mred"),
            ("fine\rbad\u{8}", "fine\u{FFFD}bad\u{FFFD}"),
            ("\u{1b}[0m\u{1b}[", "\u{1b}[0m\u{FFFD}["),
        ] {
            assert_eq!(without_controls(text), shown, "{text:?}");
        }
    }
}
