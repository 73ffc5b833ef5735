//! Finds fields in a JSON text without decoding it. Only the form that API servers write is known: without white space between tokens.

use memchr::{memchr, memchr2};

/// The text has another form, so that it must be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JSON is not written as API servers write it")]
pub(super) struct OtherForm;

/// A position in a JSON text. Values are not checked: they are compared or decoded afterwards.
pub(super) struct SkimCursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> SkimCursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Enters an object.
    pub(super) fn enter(&mut self) -> Result<(), OtherForm> {
        self.take(b'{')
    }

    /// The name of the next field of the current object, whose value follows; none at the end of the object, which is then left.
    pub(super) fn key(&mut self) -> Result<Option<&'a [u8]>, OtherForm> {
        if self.take(b'}').is_ok() {
            return Ok(None);
        }
        // The first field has no comma.
        let _ = self.take(b',');
        // An escaped name could be one that the caller searches.
        let name = unquoted(self.value()?).filter(|name| memchr(b'\\', name).is_none()).ok_or(OtherForm)?;
        self.take(b':')?;
        Ok(Some(name))
    }

    /// The text of the value at this position, which is then skipped.
    pub(super) fn value(&mut self) -> Result<&'a [u8], OtherForm> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let value = value_length(rest).and_then(|length| rest.get(..length)).ok_or(OtherForm)?;
        self.at += value.len();
        Ok(value)
    }

    /// The string at this position, if nothing in it is escaped.
    pub(super) fn string(&mut self) -> Result<&'a str, OtherForm> {
        let text = unquoted(self.value()?).and_then(|text| std::str::from_utf8(text).ok());
        text.filter(|text| !text.contains('\\')).ok_or(OtherForm)
    }

    /// The number at this position.
    pub(super) fn number(&mut self) -> Result<i32, OtherForm> {
        let text = std::str::from_utf8(self.value()?).map_err(|_| OtherForm)?;
        text.parse().map_err(|_| OtherForm)
    }

    fn take(&mut self, expected: u8) -> Result<(), OtherForm> {
        if self.text.get(self.at) != Some(&expected) {
            return Err(OtherForm);
        }
        self.at += 1;
        Ok(())
    }
}

fn unquoted(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

fn value_length(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' => string_length(text),
        b'{' | b'[' => nested_length(text),
        b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
            text.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))
        }
        _ => None,
    }
}

/// The length of the string at the start of a text, with its quotes.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        // The character after a backslash does not end the string.
        at = found + 2;
    }
}

/// The length of the object or list at the start of a text.
fn nested_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let length = match text.get(at)? {
            b'"' => string_length(text.get(at..)?)?,
            b'{' | b'[' => {
                depth += 1;
                1
            }
            b'}' | b']' => {
                depth -= 1;
                1
            }
            _ => 1,
        };
        at += length;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and values of the fields of an object.
    fn fields(text: &str) -> Result<Vec<(String, String)>, OtherForm> {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut cursor = SkimCursor::new(text.as_bytes());
        cursor.enter()?;
        let mut found = Vec::new();
        while let Some(name) = cursor.key()? {
            found.push((lossy(name), lossy(cursor.value()?)));
        }
        Ok(found)
    }

    #[test]
    fn delimiters_in_strings_and_nested_values_do_not_end_a_value() {
        let text = r#"{"a":1,"b":"x\"}\\","c":{"d":[{"e":"]"},null]},"f":[],"g":-1.5e3}}"#;
        let expected = [
            ("a", "1"),
            ("b", r#""x\"}\\""#),
            ("c", r#"{"d":[{"e":"]"},null]}"#),
            ("f", "[]"),
            ("g", "-1.5e3"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields(text), Ok(expected.to_vec()));
        assert_eq!(fields("{}"), Ok(Vec::new()));
    }

    #[test]
    fn another_form_is_not_read() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"a""#,
            r#"{"a":"#,
            r#"{"a":"b"#,
            r#"{"a":"b\"#,
            r#"{"a":{"b":1}"#,
            r#"{"a" :1}"#,
            "{1:2}",
            r#"{"sp\u0065c":{}}"#,
        ] {
            assert_eq!(fields(text), Err(OtherForm), "{text}");
        }
    }

    #[test]
    fn strings_and_numbers_are_plain() {
        assert_eq!(SkimCursor::new(br#""web","#).string(), Ok("web"));
        assert_eq!(SkimCursor::new(br#""a\n","#).string(), Err(OtherForm));
        assert_eq!(SkimCursor::new(b"12,").string(), Err(OtherForm));
        assert_eq!(SkimCursor::new(b"12,").number(), Ok(12));
        assert_eq!(SkimCursor::new(b"null,").number(), Err(OtherForm));
        assert_eq!(SkimCursor::new(b" 12,").value(), Err(OtherForm));
    }
}
