//! The name and version of an object, and its slim view.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;

use super::WatchEvent;
use super::json::{Cursor, JsonError};

/// The metadata of an object, found without decoding the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectHead<'a> {
    pub(super) namespace: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// The range of `managedFields`, which are often half of an object and not needed.
    managed: Option<Range<usize>>,
}

impl<'a> ObjectHead<'a> {
    /// Reads the metadata as far as it can be read.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let mut head = Self::default();
        // Fields before an error are kept.
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

/// Why an object cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectDecodeError(String);

/// Decodes the object at the start of `text`, without its `managedFields`.
pub(super) fn view<T: DeserializeOwned>(
    text: &[u8],
    head: &ObjectHead<'_>,
    scratch: &mut Vec<u8>,
) -> Result<T, ObjectDecodeError> {
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
    Cursor::new(text).value().map_err(|error| ObjectDecodeError(error.last()))
}
