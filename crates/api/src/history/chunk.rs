//! Passes of one autoscaler that can be read without others.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::codec::{self, PassTime};
use super::document::PassDocument;
use super::leaf::Leaf;
use super::prediction::LastPass;
use super::shape::{MAX_LEAVES, Shape, SharedTexts, Tables};
use super::split::Splitter;

/// How many passes a chunk has at most. A chunk is evicted as a whole, so that it should be short; its first pass is not a
/// difference and takes a few hundred bytes, so that it should not be too short.
pub const MAX_CHUNK_PASSES: u32 = 64;
/// How many bytes a chunk may have before it is ended.
const MAX_CHUNK_BYTES: usize = 16 * 1024;
/// How much a growing chunk reserves at a time.
const GROWTH_BYTES: usize = 256;

/// Up to [`MAX_CHUNK_PASSES`] passes, oldest first.
#[derive(Clone, Debug)]
pub struct Chunk {
    tables: Tables,
    bytes: Box<[u8]>,
    passes: u32,
    first: Timestamp,
    last: Timestamp,
    /// The number of the newest pass.
    number: u64,
}

/// A chunk to which passes are added.
#[derive(Clone, Debug, Default)]
pub struct ChunkBuilder {
    tables: Tables,
    bytes: Vec<u8>,
    passes: u32,
    first: Timestamp,
    latest: Timestamp,
    number: u64,
    last: Option<LastPass>,
    /// Where the newest pass and what it added to the tables begin.
    newest: NewestStart,
}

/// How many bytes, shapes and texts there were before the newest pass.
#[derive(Clone, Copy, Debug, Default)]
struct NewestStart {
    bytes: usize,
    shapes: usize,
    texts: usize,
}

/// What the newest pass added to a chunk.
pub(super) struct AddedPass<'a> {
    /// Whether it is the first of the chunk.
    pub(super) is_first: bool,
    pub(super) shapes: &'a [Arc<Shape>],
    pub(super) texts: &'a [Arc<str>],
    pub(super) bytes: &'a [u8],
}

/// The newest pass of a chunk.
#[derive(Clone, Debug)]
pub struct NewestPass {
    pub(super) shape: Arc<Shape>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) texts: Vec<Arc<str>>,
}

impl NewestPass {
    /// The pass.
    pub fn document(&self) -> Option<PassDocument> {
        serde_json::from_slice(&self.shape.join(&self.leaves, &self.texts)?).ok()
    }
}

/// Reads the passes of a chunk, oldest first.
#[derive(Debug)]
pub struct PassReader<'a> {
    tables: &'a Tables,
    input: &'a [u8],
    left: u32,
    last: Option<LastPass>,
}

impl ChunkBuilder {
    /// Adds a pass. `spec` is the JSON text of the spec, `pass` the rest: a [`NewPass`](super::NewPass). False if it was not added,
    /// because its time does not fit into 64 bits of nanoseconds or it has more values than are read back.
    pub fn push(
        &mut self,
        shared: &mut SharedTexts,
        time: PassTime,
        spec: &str,
        pass: &impl Serialize,
    ) -> bool {
        let Self { tables, bytes, last, .. } = self;
        let newest =
            NewestStart { bytes: bytes.len(), shapes: tables.shapes.len(), texts: tables.texts.len() };
        let mut buffers = std::mem::take(&mut shared.buffers);
        let split = Splitter::new(&mut buffers, tables, shared, last.as_ref()).split(spec, pass);
        let fits = buffers.leaves.len() <= MAX_LEAVES;
        let shape = split.ok().filter(|()| fits).and_then(|()| tables.shape(shared, &buffers.shape));
        let added = shape.is_some_and(|shape| {
            if bytes.capacity() - bytes.len() < GROWTH_BYTES / 4 {
                bytes.reserve_exact(GROWTH_BYTES);
            }
            codec::encode(bytes, last, time, shape, &buffers.leaves).is_some()
        });
        shared.buffers = buffers;
        if added {
            if self.passes == 0 {
                self.first = time.at;
            }
            self.latest = time.at;
            self.number = time.number;
            self.passes += 1;
            self.newest = newest;
        } else {
            // A segment gets the table entries of added passes only, so those of a refused pass are removed.
            self.tables.shapes.truncate(newest.shapes);
            self.tables.texts.truncate(newest.texts);
            self.bytes.truncate(newest.bytes);
        }
        added
    }

    /// What the newest pass added.
    pub(super) fn added(&self) -> AddedPass<'_> {
        let Self { tables, bytes, newest, .. } = self;
        AddedPass {
            is_first: self.passes == 1,
            shapes: tables.shapes.get(newest.shapes..).unwrap_or_default(),
            texts: tables.texts.get(newest.texts..).unwrap_or_default(),
            bytes: bytes.get(newest.bytes..).unwrap_or_default(),
        }
    }

    /// Whether the next pass belongs into a new chunk.
    pub fn is_full(&self) -> bool {
        self.passes >= MAX_CHUNK_PASSES || self.bytes.len() >= MAX_CHUNK_BYTES
    }

    /// A copy of the newest pass, to be read later.
    pub fn newest_pass(&self) -> Option<NewestPass> {
        let last = self.last.as_ref()?;
        let (shape, leaves) = (last.shape.clone(), last.leaves.clone());
        Some(NewestPass { shape, leaves, texts: self.tables.texts.clone() })
    }

    /// The time of the newest pass.
    pub fn newest_at(&self) -> Option<Timestamp> {
        (self.passes > 0).then_some(self.latest)
    }

    /// The number of the newest pass.
    pub fn newest_number(&self) -> u64 {
        self.number
    }

    /// The number of passes.
    pub fn len(&self) -> u32 {
        self.passes
    }

    /// Whether there are no passes.
    pub fn is_empty(&self) -> bool {
        self.passes == 0
    }

    /// The passes so far.
    pub fn chunk(&self) -> Chunk {
        let Self { tables, bytes, passes, first, latest, number, .. } = self;
        Chunk {
            tables: tables.clone(),
            bytes: bytes.as_slice().into(),
            passes: *passes,
            first: *first,
            last: *latest,
            number: *number,
        }
    }

    /// Ends the chunk; the builder is empty afterwards.
    pub fn finish(&mut self) -> Chunk {
        let Self { mut tables, bytes, passes, first, latest, number, .. } = std::mem::take(self);
        tables.shapes.shrink_to_fit();
        tables.texts.shrink_to_fit();
        Chunk { tables, bytes: bytes.into(), passes, first, last: latest, number }
    }

    /// The approximate memory in bytes, without shared texts.
    pub fn approximate_bytes(&self) -> usize {
        let state = self.last.as_ref().map_or(0, |last| last.leaves.capacity() * 17 + 32);
        table_bytes(&self.tables) + self.bytes.capacity().next_multiple_of(16) + state
    }
}

impl Chunk {
    /// The time of the oldest pass.
    pub fn first(&self) -> Timestamp {
        self.first
    }

    /// The time of the newest pass.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// The number of the newest pass.
    pub fn newest_number(&self) -> u64 {
        self.number
    }

    /// The size of the packed passes.
    #[cfg(test)]
    pub(super) fn packed_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The approximate memory in bytes, without shared texts.
    pub fn approximate_bytes(&self) -> usize {
        table_bytes(&self.tables) + self.bytes.len().next_multiple_of(16)
    }

    /// Reads the passes.
    pub fn read(&self) -> PassReader<'_> {
        PassReader { tables: &self.tables, input: &self.bytes, left: self.passes, last: None }
    }
}

fn table_bytes(tables: &Tables) -> usize {
    (tables.shapes.capacity() * 8).next_multiple_of(16) + tables.texts.capacity() * 16
}

impl PassReader<'_> {
    /// Goes to the next pass. None after the last, or if the rest is damaged.
    pub fn advance(&mut self) -> Option<PassTime> {
        self.left = self.left.checked_sub(1)?;
        let time = codec::decode(&mut self.input, &mut self.last, self.tables);
        if time.is_none() {
            (self.left, self.last) = (0, None);
        }
        time
    }

    /// The JSON text of the current pass.
    pub fn json(&self) -> Option<Vec<u8>> {
        let last = self.last.as_ref()?;
        last.shape.join(&last.leaves, &self.tables.texts)
    }

    /// The current pass.
    pub fn document(&self) -> Option<PassDocument> {
        serde_json::from_slice(&self.json()?).ok()
    }

    /// The times of the passes that follow.
    pub fn times(mut self) -> impl Iterator<Item = PassTime> {
        std::iter::from_fn(move || self.advance())
    }
}

#[cfg(test)]
impl PassReader<'_> {
    pub(super) fn left_for_test(&self) -> u32 {
        self.left
    }
}
