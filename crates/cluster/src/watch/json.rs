//! A cursor in a JSON text.
//!
//! `serde_json` decodes each value. The cursor adds what its interface does not have: to stop within an object whose rest was not
//! received yet, and to try again from the same place when more bytes are there. So a list is decoded item by item while it arrives.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Why the cursor cannot advance.
#[derive(Debug)]
pub(super) enum JsonError {
    /// The text is incomplete.
    Short,
    /// The text is not valid JSON, or not the expected value.
    Broken(String),
}

/// A cursor in a JSON text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// A text without escapes is borrowed.
#[derive(Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The position in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is not white space.
    pub(super) fn peek(&mut self) -> Result<u8, JsonError> {
        let blank = self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blank;
        self.rest().first().copied().ok_or(JsonError::Short)
    }

    pub(super) fn take(&mut self, expected: u8) -> Result<(), JsonError> {
        let found = self.peek()?;
        if found != expected {
            return Err(JsonError::Broken(format!(
                "expected {:?}, found {:?}",
                expected as char, found as char
            )));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a value; does not move if that fails.
    pub(super) fn value<T: Deserialize<'a>>(&mut self) -> Result<T, JsonError> {
        let mut values = serde_json::Deserializer::from_slice(self.rest()).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) if error.is_eof() => Err(JsonError::Short),
            Some(Err(error)) => Err(JsonError::Broken(error.to_string())),
            None => Err(JsonError::Short),
        }
    }

    /// Skips a value.
    pub(super) fn skip(&mut self) -> Result<(), JsonError> {
        self.value::<IgnoredAny>().map(|_| ())
    }

    /// Skips a value and returns its range.
    pub(super) fn span(&mut self) -> Result<Range<usize>, JsonError> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(start..self.at)
    }

    /// Reads a string; skips any other value.
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, JsonError> {
        if self.peek()? == b'"' {
            return self.value::<JsonText<'a>>().map(|text| text.0);
        }
        self.skip().map(|()| Cow::Borrowed(""))
    }

    /// Enters an object; skips any other value.
    pub(super) fn enter(&mut self) -> Result<bool, JsonError> {
        if self.peek()? == b'{' {
            self.at += 1;
            return Ok(true);
        }
        self.skip().map(|()| false)
    }

    /// The next key of the current object, up to its colon; none at its end. `first` is true before the first key.
    pub(super) fn key(&mut self, first: &mut bool) -> Result<Option<Cow<'a, str>>, JsonError> {
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(None);
        }
        if !std::mem::take(first) {
            self.take(b',')?;
        }
        let key = self.value::<JsonText<'a>>()?.0;
        self.take(b':')?;
        Ok(Some(key))
    }
}

impl JsonError {
    /// The error text if the text is complete.
    pub(super) fn last(self) -> String {
        match self {
            Self::Short => "it is cut off".to_owned(),
            Self::Broken(why) => why,
        }
    }
}
