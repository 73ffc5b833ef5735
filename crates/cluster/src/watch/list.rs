//! Streams the items of a list: only bytes that are not yet decoded are buffered.

use bytes::{Buf as _, BytesMut};

use super::failure::{MAX_OBJECT_BYTES, WatchFailure};
use super::json::{Cursor, JsonError};
use super::version::Version;

/// A partially received list.
#[derive(Debug, Default)]
pub(super) struct List {
    buffer: BytesMut,
    phase: Phase,
    ended: bool,
    /// The next item cannot be complete before the buffer has so many bytes.
    enough: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum Phase {
    #[default]
    ObjectHead,
    Items {
        first: bool,
    },
    Tail,
}

/// The next piece of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListPiece {
    /// More bytes are needed.
    More,
    /// The list's version; items follow.
    Begin(Version),
    /// The text of an item.
    Item(BytesMut),
    /// The list is complete.
    End,
}

impl List {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// No more bytes will come.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> Result<ListPiece, WatchFailure> {
        if self.buffer.len() < self.enough && !self.ended {
            return Ok(ListPiece::More);
        }
        let found = match self.phase {
            Phase::ObjectHead => self.head(),
            Phase::Items { first } => self.item(first),
            Phase::Tail => self.tail(),
        };
        match found {
            Err(JsonError::Short) if !self.ended => {
                let long = self.buffer.len() > MAX_OBJECT_BYTES && matches!(self.phase, Phase::Items { .. });
                if long {
                    return Err(WatchFailure::too_long());
                }
                // Waits for half as much again, so that a large item is not scanned again for every packet.
                self.enough = self.buffer.len() + self.buffer.len() / 2 + 1;
                Ok(ListPiece::More)
            }
            Err(error) => Err(WatchFailure::undecodable(&format!("not a list: {}", error.last()))),
            Ok(piece) => {
                self.enough = 0;
                Ok(piece)
            }
        }
    }

    /// Finds the version and where the items begin.
    fn head(&mut self) -> Result<ListPiece, JsonError> {
        let mut cursor = Cursor::new(&self.buffer);
        let (mut version, mut items) = (None, None);
        let mut first = true;
        cursor.take(b'{')?;
        while version.is_none() || items.is_none() {
            let Some(key) = cursor.key(&mut first)? else { break };
            match &*key {
                "metadata" => version = version_of(&mut cursor)?,
                "items" => {
                    cursor.peek()?;
                    items = Some(cursor.clone());
                    // The version may follow the items.
                    if version.is_none() {
                        cursor.skip()?;
                    }
                }
                _ => cursor.skip()?,
            }
        }
        let missing = |what: &str| JsonError::Broken(format!("it has no {what}"));
        let version = version.ok_or_else(|| missing("metadata.resourceVersion"))?;
        let mut items = items.ok_or_else(|| missing("items"))?;
        if items.peek()? == b'[' {
            items.take(b'[')?;
            self.phase = Phase::Items { first: true };
        } else {
            // Go writes `null` for no items.
            items.value::<()>()?;
            self.phase = Phase::Tail;
        }
        let behind = items.at();
        self.buffer.advance(behind);
        Ok(ListPiece::Begin(version))
    }

    fn item(&mut self, first: bool) -> Result<ListPiece, JsonError> {
        let mut cursor = Cursor::new(&self.buffer);
        if cursor.peek()? == b']' {
            let behind = cursor.at() + 1;
            self.buffer.advance(behind);
            self.phase = Phase::Tail;
            return self.tail();
        }
        if !first {
            cursor.take(b',')?;
        }
        let range = cursor.span()?;
        // A number or word at the end of the buffer may continue in the next packet.
        if range.end == self.buffer.len() && !self.ended {
            return Err(JsonError::Short);
        }
        self.phase = Phase::Items { first: false };
        let mut item = self.buffer.split_to(range.end);
        item.advance(range.start);
        Ok(ListPiece::Item(item))
    }

    /// A list is complete only with its closing brace.
    fn tail(&self) -> Result<ListPiece, JsonError> {
        let mut cursor = Cursor::new(&self.buffer);
        let mut first = false;
        while cursor.key(&mut first)?.is_some() {
            cursor.skip()?;
        }
        Ok(ListPiece::End)
    }
}

fn version_of(cursor: &mut Cursor<'_>) -> Result<Option<Version>, JsonError> {
    let mut version = None;
    let mut first = true;
    if cursor.enter()? {
        while let Some(key) = cursor.key(&mut first)? {
            if key == "resourceVersion" {
                version = Version::new(&cursor.text()?);
            } else {
                cursor.skip()?;
            }
        }
    }
    Ok(version)
}
