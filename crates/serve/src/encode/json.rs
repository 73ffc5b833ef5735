//! JSON as Go's `encoding/json` writes it, into one buffer.

use std::io::Write as _;

use jiff::Timestamp;
use quantity::Quantity;

/// Bytes that must be escaped. The first byte of U+2028 and U+2029 is one of them.
fn is_special(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2)
}

/// A quoted string.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    // No early exit, so that the compiler vectorizes the loop.
    if bytes.iter().fold(false, |found, byte| found | is_special(*byte)) {
        text.chars().for_each(|letter| escaped(out, letter));
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, letter: char) {
    match letter {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
            // Writing to a buffer cannot fail.
            let _ = write!(out, "\\u{:04x}", letter as u32);
        }
        _ => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// `"key":"text"`, after a comma unless it is the first.
pub(crate) fn field(out: &mut Vec<u8>, key: &str, text: &str) {
    comma(out);
    string(out, key);
    out.push(b':');
    string(out, text);
}

/// A comma, unless an object or array has just been opened.
pub(crate) fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[' | b':') | None) {
        out.push(b',');
    }
}

/// A quoted quantity; the text of a valid quantity needs no escapes.
pub(crate) fn quantity(out: &mut Vec<u8>, quantity: &Quantity) {
    out.push(b'"');
    amount(out, quantity);
    out.push(b'"');
}

/// The text of a quantity.
pub(crate) fn amount(out: &mut Vec<u8>, quantity: &Quantity) {
    let Some((number, unit)) = quantity.short() else {
        // Writing to a buffer cannot fail.
        let _ = write!(out, "{quantity}");
        return;
    };
    if number < 0 {
        out.push(b'-');
    }
    digits(out, number.unsigned_abs());
    out.extend_from_slice(unit.as_bytes());
}

/// Formats times and caches the texts: those of one list are mostly within one minute, unordered.
#[derive(Debug, Default)]
pub(crate) struct Instants {
    known: Vec<(i64, String)>,
}

/// How many texts are cached.
const CACHED_INSTANTS: usize = 64;

impl Instants {
    /// A quoted time in whole seconds, or `null`.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>, time: Option<Timestamp>) {
        let Some(time) = time else { return out.extend_from_slice(b"null") };
        // Truncated towards the past, also before 1970.
        let second = time.as_nanosecond().div_euclid(1_000_000_000) as i64;
        if self.known.is_empty() {
            self.known.resize(CACHED_INSTANTS, (i64::MIN, String::new()));
        }
        let Some((known, text)) = self.known.get_mut(second.rem_euclid(CACHED_INSTANTS as i64) as usize)
        else {
            return;
        };
        if *known != second {
            let cut = Timestamp::from_second(second).unwrap_or(time);
            (*known, *text) = (second, api::instant::format(cut));
        }
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }
}

/// The digits of a number.
pub(crate) fn digits(out: &mut Vec<u8>, mut number: u64) {
    let mut room = [b'0'; 20];
    let mut start = room.len();
    for place in room.iter_mut().rev() {
        *place += (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(room.get(start..).unwrap_or_default());
}

/// A duration as Go formats it: `15.013s`, `1m0s`, `999ms`.
pub(crate) fn duration(out: &mut Vec<u8>, nanoseconds: i64) {
    if nanoseconds == 0 {
        return out.extend_from_slice(b"0s");
    }
    if nanoseconds < 0 {
        out.push(b'-');
    }
    let all = nanoseconds.unsigned_abs();
    let (unit, name) = match all {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let mut whole = all / unit;
    if name == "s" {
        let (hours, minutes) = (whole / 3600, whole / 60 % 60);
        if hours > 0 {
            digits(out, hours);
            out.push(b'h');
        }
        if hours > 0 || minutes > 0 {
            digits(out, minutes);
            out.push(b'm');
        }
        whole %= 60;
    }
    digits(out, whole);
    if !all.is_multiple_of(unit) {
        // Leading zeros are written behind a `1`, which the point then replaces.
        let at = out.len();
        digits(out, unit + all % unit);
        if let Some(place) = out.get_mut(at) {
            *place = b'.';
        }
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    out.extend_from_slice(name.as_bytes());
}

/// Indents compact JSON by two spaces, without a final line break.
pub(crate) fn indented(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() * 2);
    let (mut depth, mut text, mut escape) = (0_usize, false, false);
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    let mut rest = compact.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if text {
            out.push(byte);
            text = escape || byte != b'"';
            escape = !escape && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => {
                text = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                out.push(byte);
                if let Some(end) = rest.next_if(|next| matches!(next, b'}' | b']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'\n' => {}
            _ => out.push(byte),
        }
    }
    out
}

/// Writes a JSON value as Go writes it.
pub(crate) fn value(out: &mut Vec<u8>, value: &serde_json::Value) {
    if let Ok(text) = api::gotext::json(value) {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        for text in ["plain", "a\"b\\c", "<a&b>", "\u{1}\n\t\u{8}", "é\u{2028}…", "\u{7f}"] {
            let mut out = Vec::new();
            string(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), api::gotext::json(text).unwrap());
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (999_000_000, "999ms"),
            (15_000_000_000, "15s"),
            (15_013_000_000, "15.013s"),
            (60_000_000_000, "1m0s"),
            (3_600_001_000_000, "1h0m0.001s"),
            (1_234_567_890_123, "20m34.567890123s"),
            (-1_500_000_000, "-1.5s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (nanoseconds, expected) in cases {
            let mut out = Vec::new();
            duration(&mut out, nanoseconds);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn lines_are_those_of_go() {
        let text = indented(br#"{"a":{},"b":[],"c":["x:,{\"",1],"d":null}"#);
        let expected =
            "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    \"x:,{\\\"\",\n    1\n  ],\n  \"d\": null\n}";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn instants_are_cut_to_seconds() {
        let mut out = Vec::new();
        let mut instants = Instants::default();
        // The last two share their place with the first.
        for time in [
            "2021-10-03T09:36:52.125Z",
            "1969-12-31T23:59:59.5Z",
            "2021-10-03T09:37:56Z",
            "2021-10-03T09:36:52.9Z",
        ] {
            instants.write(&mut out, Some(time.parse().unwrap()));
        }
        instants.write(&mut out, None);
        let expected = br#""2021-10-03T09:36:52Z""1969-12-31T23:59:59Z""2021-10-03T09:37:56Z""2021-10-03T09:36:52Z"null"#;
        assert_eq!(out, expected);
    }

    #[test]
    fn quantities_are_written_as_they_write_themselves() {
        let given = [
            "0",
            "-0",
            "1500m",
            "-3",
            "1.5Gi",
            "1023Ki",
            "1024",
            "1025",
            "5n",
            "12e6",
            "9223372036854775807",
            "0.1Ki",
        ];
        for text in given {
            let quantity = Quantity::parse(text).unwrap();
            let mut out = Vec::new();
            amount(&mut out, &quantity);
            assert_eq!(String::from_utf8(out).unwrap(), quantity.to_string());
        }
    }
}
