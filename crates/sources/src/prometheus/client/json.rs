//! JSON cursor that borrows from the text and keeps numbers as written.
//!
//! serde_json is not used here for two reasons: sample times must be converted from their decimal digits as the
//! Prometheus library does, not by way of floating-point numbers, and series responses of many megabytes are parsed
//! element by element without building values.

use std::borrow::Cow;

use memchr::memchr2;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// Why the text is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct JsonError {
    pub(crate) what: &'static str,
}

/// Parses one value after the other.
#[derive(Clone, Debug)]
pub(crate) struct JsonCursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> JsonCursor<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[allow(clippy::unused_self, reason = "a method reads better at its many call sites")]
    pub(crate) fn wrong<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { what })
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let blank =
            self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += blank;
        self.rest().first().copied()
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            self.wrong(what)
        }
    }

    /// Consumes `null`, if it is next.
    pub(crate) fn null(&mut self) -> bool {
        self.peek();
        let found = self.rest().starts_with(b"null");
        if found {
            self.at += 4;
        }
        found
    }

    /// Parses a string.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.take(b'"', "expected a string")?;
        let rest = self.rest();
        match memchr2(b'"', b'\\', rest) {
            Some(end) if rest.get(end) == Some(&b'"') => {
                let text = rest.get(..end).unwrap_or_default();
                if text.iter().any(|byte| *byte < 0x20) {
                    return self.wrong("control character in a string");
                }
                self.at += end + 1;
                Ok(String::from_utf8_lossy(text))
            }
            Some(_) => self.escaped().map(Cow::Owned),
            None => self.wrong("string without end"),
        }
    }

    /// Parses the rest of a string with escapes.
    fn escaped(&mut self) -> Result<String, JsonError> {
        let mut bytes = Vec::new();
        loop {
            let rest = self.rest();
            let Some(end) = memchr2(b'"', b'\\', rest) else { return self.wrong("string without end") };
            let plain = rest.get(..end).unwrap_or_default();
            if plain.iter().any(|byte| *byte < 0x20) {
                return self.wrong("control character in a string");
            }
            bytes.extend_from_slice(plain);
            self.at += end + 1;
            if rest.get(end) == Some(&b'"') {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            let Some(&code) = self.rest().first() else { return self.wrong("string without end") };
            self.at += 1;
            let character = match code {
                b'"' | b'\\' | b'/' => char::from(code),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => return self.wrong("unknown escape in a string"),
            };
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Parses the digits after `\u`; unpaired surrogates become the replacement character.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        if (0xD800..0xDC00).contains(&first) && self.rest().starts_with(b"\\u") {
            let mut ahead = self.clone();
            ahead.at += 2;
            let second = ahead.four_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                self.at = ahead.at;
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.rest().get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits
            .filter(|digits| !digits.starts_with('+'))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.wrong("four hexadecimal digits expected"),
        }
    }

    /// Parses a number and returns its text.
    pub(crate) fn number(&mut self) -> Result<&'a str, JsonError> {
        self.peek();
        let rest = self.rest();
        let digits = |from: usize| {
            rest.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let start = usize::from(rest.first() == Some(&b'-'));
        let whole = digits(start);
        // Leading zeros are not allowed.
        if whole == 0 || (whole > 1 && rest.get(start) == Some(&b'0')) {
            return self.wrong("expected a number");
        }
        let mut end = start + whole;
        if rest.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            if fraction == 0 {
                return self.wrong("expected digits after the point");
            }
            end += 1 + fraction;
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent == 0 {
                return self.wrong("expected digits of an exponent");
            }
            end += 1 + sign + exponent;
        }
        self.at += end;
        let text = rest.get(..end).and_then(|text| std::str::from_utf8(text).ok());
        text.map_or_else(|| self.wrong("expected a number"), Ok)
    }

    /// Parses an object; `each` must consume the value of each member.
    pub(crate) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.take(b'{', "expected an object")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.peek();
            let key = self.string()?;
            self.take(b':', "expected a colon")?;
            each(self, key)?;
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(());
            }
            self.take(b',', "expected a comma")?;
        }
    }

    /// Parses an array; `each` must consume each element.
    pub(crate) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self, usize) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.take(b'[', "expected a list")?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        for index in 0.. {
            each(self, index)?;
            if self.peek() == Some(b']') {
                self.at += 1;
                break;
            }
            self.take(b',', "expected a comma")?;
        }
        Ok(())
    }

    /// Skips a value and returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'a [u8], JsonError> {
        self.peek();
        let start = self.at;
        self.pass(0)?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn pass(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return self.wrong("too deep");
        }
        match self.peek() {
            Some(b'"') => self.pass_string(),
            Some(b'{') => self.object(|cursor, _| cursor.pass(depth + 1)),
            Some(b'[') => self.array(|cursor, _| cursor.pass(depth + 1)),
            Some(b'-' | b'0'..=b'9') => self.number().map(|_| ()),
            Some(_) => {
                let word =
                    [&b"null"[..], b"true", b"false"].into_iter().find(|word| self.rest().starts_with(word));
                self.at += word.map_or(0, <[u8]>::len);
                if word.is_some() { Ok(()) } else { self.wrong("expected a value") }
            }
            None => self.wrong("unexpected end"),
        }
    }

    fn pass_string(&mut self) -> Result<(), JsonError> {
        self.string().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string(text: &str) -> Result<String, JsonError> {
        JsonCursor::new(text.as_bytes()).string().map(Cow::into_owned)
    }

    #[test]
    fn reads_strings() {
        assert_eq!(string(r#" "plain" "#).unwrap(), "plain");
        assert_eq!(string(r#""a\"b\\c\n\u00e4\ud83d\ude00\ud800x""#).unwrap(), "a\"b\\c\nä😀\u{fffd}x");
        assert!(string("\"open").is_err());
        assert!(string("\"a\\").is_err());
        assert!(string("\"a\\q\"").is_err());
        assert!(string("\"a\nb\"").is_err());
        assert!(string(r#""\u+123""#).is_err());
    }

    #[test]
    fn plain_strings_are_borrowed() {
        assert!(matches!(JsonCursor::new(br#""plain""#).string().unwrap(), Cow::Borrowed("plain")));
    }

    #[test]
    fn keeps_numbers_as_written() {
        for good in ["0", "-0", "12.50", "1.7672255905e9", "1E+3"] {
            assert_eq!(JsonCursor::new(good.as_bytes()).number().unwrap(), good);
        }
        for bad in ["", "-", "01", "1.", ".5", "1e", "+1", "NaN"] {
            assert!(JsonCursor::new(bad.as_bytes()).number().is_err(), "{bad}");
        }
    }

    #[test]
    fn rejects_deep_nesting() {
        let deep = "[".repeat(100_000);
        assert_eq!(JsonCursor::new(deep.as_bytes()).skip().unwrap_err().what, "too deep");
    }

    proptest! {
        #[test]
        fn agrees_with_serde(text in r#"[ \[\]{},:"a\\0-9.eE+tru\-nfals]{0,40}"#) {
            let ours = {
                let mut cursor = JsonCursor::new(text.as_bytes());
                cursor.skip().is_ok() && cursor.peek().is_none()
            };
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            // serde_json does not check escapes of skipped strings; this cursor does.
            prop_assert!(ours == theirs || (theirs && text.contains('\\')), "{}", text);
        }

        #[test]
        fn parses_what_serde_writes(text in ".*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(string(&json).unwrap(), text);
        }
    }
}
