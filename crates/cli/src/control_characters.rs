//! Control characters in texts of a cluster, which its users choose.

use std::borrow::Cow;

/// What [`Page`](crate::live::page::Page), problems in files and logs are painted with: normal, bold, dim, italic and six colours of
/// letters. Others could hide what follows a text of a cluster, such as letters in the colour of the background.
const OUR_STYLES: [&str; 10] = ["0", "1", "2", "3", "31", "32", "33", "34", "35", "36"];

/// The text with other control characters than line ends, tabs and our styles replaced.
pub(crate) fn without_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find(is_control).and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let style = style_bytes(from).and_then(|bytes| from.split_at_checked(bytes));
        let mut after = from.chars();
        after.next();
        let (shown, after) = style.unwrap_or(("\u{FFFD}", after.as_str()));
        out.push_str(shown);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The length of one of our styles at the beginning of a text, such as `ESC[31m`.
fn style_bytes(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let (parameters, rest) = rest.split_at_checked(end)?;
    let is_ours = rest.starts_with('m') && parameters.split(';').all(|style| OUR_STYLES.contains(&style));
    is_ours.then_some("\u{1b}[m".len() + parameters.len())
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
            ("\u{1b}[8mhidden", "\u{FFFD}[8mhidden"),
            ("\u{1b}[1;30;40mhidden\u{1b}[m", "\u{FFFD}[1;30;40mhidden\u{FFFD}[m"),
        ] {
            assert_eq!(without_controls(text), shown, "{text:?}");
        }
    }
}
