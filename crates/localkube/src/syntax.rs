//! JSON syntax errors with the texts of the real server.

/// The beginning of a body: as text if it looks like JSON, otherwise in hexadecimal.
pub(crate) fn excerpt(body: &[u8]) -> String {
    const MAX_EXCERPT_BYTES: usize = 30;
    let head = body.get(..MAX_EXCERPT_BYTES).unwrap_or(body);
    let more = if body.len() > MAX_EXCERPT_BYTES { " ..." } else { "" };
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    if body.first() == Some(&b'{') {
        return format!("{}{more}", String::from_utf8_lossy(head));
    }
    let mut hex = String::new();
    for byte in head {
        hex.push_str(&format!("{byte:02x}"));
    }
    format!("{hex}{more}")
}

/// The first syntax error of a text that is not JSON.
pub(crate) fn explain(body: &[u8]) -> String {
    let mut reader = JsonScanner { rest: body, depth: 0 };
    let found = reader.value("looking for beginning of value").and_then(|()| {
        reader.space();
        reader.rest.first().map_or(Ok(()), |_| reader.unexpected("after top-level value"))
    });
    match found {
        Err(text) => text,
        // Other errors of the parser, such as a number out of range or half a surrogate pair.
        Ok(()) => "invalid JSON".to_owned(),
    }
}

struct JsonScanner<'a> {
    rest: &'a [u8],
    depth: usize,
}

/// The maximum nesting; valid JSON is never nested this deeply.
const MAX_NESTING: usize = 200;

type ScanResult = Result<(), String>;

impl JsonScanner<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The error at the next byte.
    fn unexpected(&self, place: &str) -> ScanResult {
        let Some(byte) = self.peek() else { return Err("unexpected end of JSON input".to_owned()) };
        let shown = match byte {
            b'\'' => "'\\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            b'\n' => "'\\n'".to_owned(),
            b'\t' => "'\\t'".to_owned(),
            b'\r' => "'\\r'".to_owned(),
            0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
            0x80..=0x9f | 0xad => format!("'\\u{byte:04x}'"),
            _ => format!("'{}'", char::from(byte)),
        };
        Err(format!("invalid character {shown} {place}"))
    }

    fn value(&mut self, place: &str) -> ScanResult {
        self.space();
        if self.depth > MAX_NESTING {
            return self.unexpected("exceeded max depth");
        }
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.unexpected(place),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> ScanResult) -> ScanResult {
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn object(&mut self) -> ScanResult {
        self.take();
        self.space();
        if self.peek() == Some(b'}') {
            self.take();
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.unexpected("looking for beginning of object key string");
            }
            self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.unexpected("after object key");
            }
            self.take();
            self.value("looking for beginning of value")?;
            self.space();
            match self.peek() {
                Some(b',') => self.take(),
                Some(b'}') => {
                    self.take();
                    return Ok(());
                }
                _ => return self.unexpected("after object key:value pair"),
            };
        }
    }

    fn array(&mut self) -> ScanResult {
        self.take();
        self.space();
        if self.peek() == Some(b']') {
            self.take();
            return Ok(());
        }
        loop {
            self.value("looking for beginning of value")?;
            self.space();
            match self.peek() {
                Some(b',') => self.take(),
                Some(b']') => {
                    self.take();
                    return Ok(());
                }
                _ => return self.unexpected("after array element"),
            };
        }
    }

    fn string(&mut self) -> ScanResult {
        self.take();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.take();
                    return Ok(());
                }
                Some(b'\\') => {
                    self.take();
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.take();
                        }
                        Some(b'u') => {
                            self.take();
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return self.unexpected("in \\u hexadecimal character escape");
                                }
                                self.take();
                            }
                        }
                        _ => return self.unexpected("in string escape code"),
                    }
                }
                Some(0..=0x1f) | None => return self.unexpected("in string literal"),
                Some(_) => {
                    self.take();
                }
            }
        }
    }

    fn literal(&mut self, word: &str) -> ScanResult {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.unexpected(&format!("in literal {word} (expecting '{}')", char::from(expected)));
            }
            self.take();
        }
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = self.rest.get(count..).unwrap_or_default();
        count
    }

    fn number(&mut self) -> ScanResult {
        if self.peek() == Some(b'-') {
            self.take();
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.unexpected("in numeric literal");
            }
        }
        if self.peek() == Some(b'0') {
            self.take();
        } else {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.take();
            if self.digits() == 0 {
                return self.unexpected("after decimal point in numeric literal");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.take();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.take();
            }
            if self.digits() == 0 {
                return self.unexpected("in exponent of numeric literal");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_have_the_texts_of_the_real_server() {
        for (text, expected) in [
            ("{", "unexpected end of JSON input"),
            ("{\"a\":}", "invalid character '}' looking for beginning of value"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\":tru}", "invalid character '}' in literal true (expecting 'e')"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{\"a\":\"\n\"}", "invalid character '\\n' in string literal"),
            ("{\"a\":01}", "invalid character '1' after object key:value pair"),
        ] {
            assert_eq!(explain(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        assert_eq!(explain("[".repeat(1_000_000).as_bytes()), "invalid character '[' exceeded max depth");
    }

    #[test]
    fn excerpts_are_text_or_hexadecimal() {
        assert_eq!(excerpt(b"[]"), "5b5d");
        assert_eq!(
            excerpt(b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}"),
            "{\"kind\":\"ConfigMap\",\"apiVersio ..."
        );
    }
}
