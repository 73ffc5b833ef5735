//! Texts of users on a terminal.

/// Escapes characters that could disturb a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c != '\n' && disturbs(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

/// Whether it is a control character or changes the text direction.
pub(super) fn disturbs(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
