//! Quoted strings and JSON exactly as Go's standard library writes them.

use std::fmt::{self, Write as _};

/// A string quoted as Go's `%q` does.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c => push_escape(&mut out, c as u32),
        }
    }
    out.push('"');
    out
}

fn push_escape(out: &mut String, code: u32) {
    // Writing to a String cannot fail.
    let _ = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Whether a character is printable in Go.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // The debug escape knows the printable ranges; a letter in front keeps combining marks as they are.
    // Spaces other than the ASCII one are not printable to Go.
    !c.is_whitespace() && !['a', c].iter().collect::<String>().escape_debug().any(|escaped| escaped == '\\')
}

/// The JSON text of a value as Go's `json.Marshal` writes it: compact, with `<`, `>`, `&` and the two
/// JavaScript line separators escaped.
pub fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(128);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, GoFormatter);
    value.serialize(&mut serializer)?;
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

/// Writes what `json.Marshal` escapes beyond the JSON standard.
struct GoFormatter;

impl serde_json::ser::Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) =
            rest.char_indices().find(|(_, c)| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'))
        {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            write!(writer, "\\u{:04x}", c as u32)?;
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// A list joined the way Go prints `[]string` with `%v`: `[a b c]`.
pub struct Words<'a>(pub &'a [String]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (i, word) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_char(' ')?;
            }
            f.write_str(word)?;
        }
        f.write_char(']')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        let cases = [
            ("plain", r#""plain""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("tab\tnl\n", r#""tab\tnl\n""#),
            ("\u{1}\u{7f}", r#""\x01\x7f""#),
            ("é漢", r#""é漢""#),
            ("\u{a0}\u{200b}", r#""\u00a0\u200b""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{e0001}", r#""\U000e0001""#),
            ("it's", r#""it's""#),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
    }

    #[test]
    fn json_escapes_for_html() {
        assert_eq!(json("a<b>&\u{2028}c").unwrap(), r#""a\u003cb\u003e\u0026\u2028c""#);
        assert_eq!(json(&["x", "\u{8}\u{c}\n\u{1}\""]).unwrap(), r#"["x","\b\f\n\u0001\""]"#);
    }
}
