//! An object's name and version, and its slim view.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;

use super::WatchEvent;
use super::json::{Cursor, JsonError};

/// What every object says of itself, found without reading the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectHead<'a> {
    pub(super) namespace: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// Where the record of who owns which field stands: often half of an object, and nothing we need.
    managed: Option<Range<usize>>,
}

impl<'a> ObjectHead<'a> {
    /// Reads as far as the metadata goes, and as much as can be read.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut head = Self::default();
        // What was found before the trouble is kept.
        let _ = head.read(&mut Cursor::new(text));
        head
    }

    fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<(), JsonError> {
        let mut first = true;
        if !cursor.enter()? {
            return Ok(());
        }
        while let Some(key) = cursor.key(&mut first)? {
            if key == "metadata" {
                return self.read_metadata(cursor);
            }
            cursor.skip()?;
        }
        Ok(())
    }

    fn read_metadata(&mut self, cursor: &mut Cursor<'a>) -> Result<(), JsonError> {
        let mut first = true;
        if !cursor.enter()? {
            return Ok(());
        }
        while let Some(key) = cursor.key(&mut first)? {
            match &*key {
                "name" => self.name = cursor.text()?,
                "namespace" => self.namespace = cursor.text()?,
                "resourceVersion" => self.version = cursor.text()?,
                "managedFields" => self.managed = Some(cursor.span()?),
                _ => cursor.skip()?,
            }
        }
        Ok(())
    }

    pub(super) fn deleted<T>(&self) -> WatchEvent<T> {
        WatchEvent::Deleted { namespace: self.namespace.to_string(), name: self.name.to_string() }
    }

    pub(super) fn unreadable<T>(&self, error: String) -> WatchEvent<T> {
        WatchEvent::Unreadable { namespace: self.namespace.to_string(), name: self.name.to_string(), error }
    }
}

/// Reads the object at the start of `text`, without who owns which field.
pub(super) fn view<T: DeserializeOwned>(
    text: &[u8],
    head: &ObjectHead<'_>,
    scratch: &mut Vec<u8>,
) -> Result<T, String> {
    let managed = head.managed.as_ref();
    let around = managed.and_then(|range| text.get(..range.start).zip(text.get(range.end..)));
    let text = match around {
        Some((before, after)) => {
            scratch.clear();
            for part in [before, b"null", after] {
                scratch.extend_from_slice(part);
            }
            scratch
        }
        None => text,
    };
    Cursor::new(text).value().map_err(JsonError::last)
}
