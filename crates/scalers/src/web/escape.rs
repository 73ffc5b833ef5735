//! Escapes of URLs.

use std::fmt::Write as _;

/// Escapes a query value like Go's `url.QueryEscape`.
pub fn escaped(text: &str) -> String {
    escape(text, |byte| matches!(byte, b'-' | b'_' | b'.' | b'~'), true)
}

/// Escapes a path segment like Go's `url.PathEscape`.
pub fn path_escaped(text: &str) -> String {
    let plain = |byte| matches!(byte, b'-' | b'_' | b'.' | b'~' | b'$' | b'&' | b'+' | b'=' | b':' | b'@');
    escape(text, plain, false)
}

fn escape(text: &str, plain: impl Fn(u8) -> bool, plus: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain(byte) {
            out.push(char::from(byte));
        } else if plus && byte == b' ' {
            out.push('+');
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
