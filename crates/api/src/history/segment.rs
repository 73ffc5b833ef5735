//! The file of a recording: passes of all autoscalers, in the order in which they were made.
//!
//! ```text
//! magic    name and version
//! frames   a byte for what it is, its length, its bytes:
//!          1  an autoscaler: its name as JSON; it gets the next number
//!          2  a shape; it gets the next number
//!          3  a text; it gets the next number
//!          4  a pass of version 1: the number of its autoscaler, and its difference to the pass of that autoscaler before it
//!          5  a pass: the number of its autoscaler, what it adds to the tables of its chunk, whether the pass before it was
//!             recorded, and its bytes in the chunk
//! ```
//!
//! A pass is encoded once, for the chunk in memory, and the same bytes are written: that is why an autoscaler begins a chunk in
//! every file. A frame is complete or ignored, so that a file that ends anywhere can be read up to its last complete pass.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunk::{AddedPass, ChunkBuilder};
use super::codec::{self, PassTime};
use super::document::PassDocument;
use super::prediction::LastPass;
use super::shape::{MAX_LEAVES, Shape, Tables};
use super::varint::{put, take_bytes, take_size};
use crate::decisions::{DecisionMeta, DecisionRecord};

/// The start of a file: name and version.
const MAGIC: &[u8] = b"plimsoll recording 2\n";
/// The start of a file of version 1.
const MAGIC_1: &[u8] = b"plimsoll recording 1\n";

const AUTOSCALER: u8 = 1;
const SHAPE: u8 = 2;
const TEXT: u8 = 3;
const PASS_1: u8 = 4;
const PASS: u8 = 5;

/// Why a file or its rest is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The file is not a recording, or one of another version.
    #[error("not a recording of passes of version 1 or 2; a newer plimsoll may have written it")]
    Version,
    /// A pass has so many values that no autoscaler has it.
    #[error("the rest of the file has a pass with {leaves} values, and plimsoll writes at most {max}", max = MAX_LEAVES)]
    TooManyValues {
        /// The number of values.
        leaves: usize,
    },
    /// A frame is complete and cannot be decoded. A file that ends within a frame was cut, as by `kill -9`, which is no error.
    #[error("its last {bytes} bytes are damaged")]
    Damaged {
        /// The bytes that are not read.
        bytes: usize,
    },
}

/// The autoscaler of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedAutoscaler {
    api_version: String,
    #[serde(flatten)]
    metadata: DecisionMeta,
}

/// Writes a segment.
#[derive(Debug, Default)]
pub struct SegmentWriter {
    /// The numbers of shapes and texts by two hashes of each: the writer keeps none of them in memory.
    shapes: HashMap<(u64, u64), usize>,
    texts: HashMap<(u64, u64), usize>,
    hashers: (RandomState, RandomState),
    autoscalers: usize,
    /// The content of the frame that is being written.
    content: Vec<u8>,
}

/// Reads a segment, oldest pass first.
#[derive(Debug)]
pub struct SegmentReader<'a> {
    input: &'a [u8],
    /// All shapes and texts of the file.
    tables: Tables,
    autoscalers: Vec<AutoscalerPasses>,
    /// The autoscaler of the current pass.
    current: usize,
    error: Option<SegmentError>,
}

/// The state in which the passes of an autoscaler are read.
#[derive(Debug)]
struct AutoscalerPasses {
    named: RecordedAutoscaler,
    /// Shapes and texts of the current chunk; those of the file if it has version 1.
    chunk: Option<Tables>,
    last: Option<LastPass>,
}

/// A pass of a recording.
#[derive(Clone, Debug)]
pub struct RecordedPass {
    /// Its time.
    pub time: PassTime,
    /// Its autoscaler.
    pub metadata: DecisionMeta,
}

impl SegmentWriter {
    /// Starts a segment: the first bytes go to `out`.
    pub fn new(out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(MAGIC);
        Self::default()
    }

    /// Appends an autoscaler to `out`. Returns its number; its next pass must be the first of a chunk.
    pub fn add_autoscaler(&mut self, out: &mut Vec<u8>, api_version: &str, metadata: DecisionMeta) -> usize {
        let named = RecordedAutoscaler { api_version: api_version.to_owned(), metadata };
        // Serializing strings cannot fail.
        frame(out, AUTOSCALER, &serde_json::to_vec(&named).unwrap_or_default());
        self.autoscalers += 1;
        self.autoscalers - 1
    }

    /// Appends the newest pass of a chunk to `out`. Every pass of the chunk must be appended. `has_previous` says whether the recording
    /// has the pass before it, which it may continue.
    pub fn push(&mut self, out: &mut Vec<u8>, autoscaler: usize, chunk: &ChunkBuilder, has_previous: bool) {
        let AddedPass { is_first, shapes, texts, bytes } = chunk.added();
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        put(&mut content, autoscaler as u128);
        let count = shapes.len() + texts.len();
        let head = count << 2 | usize::from(!has_previous) << 1 | usize::from(is_first);
        put(&mut content, head as u128);
        for shape in shapes {
            let id = self.id(shape.text());
            let number = number_of(&mut self.shapes, id, || frame(out, SHAPE, shape.text()));
            put(&mut content, (number << 1) as u128);
        }
        for text in texts {
            let id = self.id(text.as_bytes());
            let number = number_of(&mut self.texts, id, || frame(out, TEXT, text.as_bytes()));
            put(&mut content, (number << 1 | 1) as u128);
        }
        content.extend_from_slice(bytes);
        frame(out, PASS, &content);
        self.content = content;
    }

    /// The approximate memory in bytes.
    pub fn approximate_bytes(&self) -> usize {
        let entry = size_of::<((u64, u64), usize)>() + 1;
        (self.shapes.capacity() + self.texts.capacity()) * 8 / 7 * entry + self.content.capacity()
    }

    fn id(&self, bytes: &[u8]) -> (u64, u64) {
        (self.hashers.0.hash_one(bytes), self.hashers.1.hash_one(bytes))
    }
}

/// The number of a shape or text, which is written if it is new.
fn number_of(known: &mut HashMap<(u64, u64), usize>, id: (u64, u64), write: impl FnOnce()) -> usize {
    let next = known.len();
    *known.entry(id).or_insert_with(|| {
        write();
        next
    })
}

fn frame(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    out.push(kind);
    put(out, content.len() as u128);
    out.extend_from_slice(content);
}

impl<'a> SegmentReader<'a> {
    /// Reads the bytes of a file.
    pub fn new(bytes: &'a [u8]) -> Result<Self, SegmentError> {
        // A file that was cut within its first bytes has no pass.
        let input = if MAGIC.starts_with(bytes) || MAGIC_1.starts_with(bytes) {
            &[]
        } else {
            bytes.strip_prefix(MAGIC).or_else(|| bytes.strip_prefix(MAGIC_1)).ok_or(SegmentError::Version)?
        };
        Ok(Self { input, tables: Tables::default(), autoscalers: Vec::new(), current: 0, error: None })
    }

    /// Goes to the next pass. None at the end, or if the rest is not read because of an [`error`](Self::error).
    pub fn advance(&mut self) -> Option<RecordedPass> {
        loop {
            let mut rest = self.input;
            let kind = *take_bytes(&mut rest, 1)?.first()?;
            let length = take_size(&mut rest)?;
            let mut content = take_bytes(&mut rest, length)?;
            // Holds if this frame is not decoded.
            self.error = Some(SegmentError::Damaged { bytes: self.input.len() });
            match kind {
                AUTOSCALER => {
                    let named = serde_json::from_slice(content).ok()?;
                    self.autoscalers.push(AutoscalerPasses { named, chunk: None, last: None });
                }
                SHAPE => {
                    let shape = Shape::new(content);
                    let leaves = shape.holes().count();
                    if leaves > MAX_LEAVES {
                        self.error = Some(SegmentError::TooManyValues { leaves });
                        return None;
                    }
                    self.tables.shapes.push(Arc::new(shape));
                }
                TEXT => self.tables.texts.push(std::str::from_utf8(content).ok()?.into()),
                PASS_1 | PASS => {
                    let number = take_size(&mut content)?;
                    let passes = self.autoscalers.get_mut(number)?;
                    let has_previous =
                        kind == PASS_1 || passes.take_tables(&mut content, &self.tables)?.has_previous;
                    let AutoscalerPasses { named, chunk, last } = passes;
                    let mut time = codec::decode(&mut content, last, chunk.as_ref().unwrap_or(&self.tables))?;
                    time.continues &= has_previous;
                    let metadata = named.metadata.clone();
                    (self.input, self.current, self.error) = (rest, number, None);
                    return Some(RecordedPass { time, metadata });
                }
                // A frame of a later version.
                _ => {}
            }
            (self.input, self.error) = (rest, None);
        }
    }

    /// The JSON text of the current pass.
    pub fn json(&self) -> Option<Vec<u8>> {
        let AutoscalerPasses { chunk, last, .. } = self.autoscalers.get(self.current)?;
        let last = last.as_ref()?;
        last.shape.join(&last.leaves, &chunk.as_ref().unwrap_or(&self.tables).texts)
    }

    /// The record of the current pass.
    pub fn record(&self) -> Option<DecisionRecord> {
        let AutoscalerPasses { named, .. } = self.autoscalers.get(self.current)?;
        let document: PassDocument = serde_json::from_slice(&self.json()?).ok()?;
        Some(document.record(&named.api_version, named.metadata.clone()))
    }

    /// Why the rest is not read, if not because the file ends.
    pub fn error(&self) -> Option<SegmentError> {
        self.error
    }

    /// How many bytes follow: more than none at the end of a file that was not completed.
    pub fn rest(&self) -> usize {
        self.input.len()
    }
}

/// What precedes the bytes of a pass.
struct PassHead {
    /// Whether the recording has the pass before it.
    has_previous: bool,
}

impl AutoscalerPasses {
    /// Reads what a pass adds to the tables of its chunk. None if the bytes are damaged.
    fn take_tables(&mut self, content: &mut &[u8], file: &Tables) -> Option<PassHead> {
        let head = take_size(content)?;
        if head & 1 == 1 {
            (self.chunk, self.last) = (None, None);
        }
        let chunk = self.chunk.get_or_insert_default();
        for _ in 0..head >> 2 {
            let entry = take_size(content)?;
            if entry & 1 == 1 {
                chunk.texts.push(file.texts.get(entry >> 1)?.clone());
            } else {
                chunk.shapes.push(file.shapes.get(entry >> 1)?.clone());
            }
        }
        Some(PassHead { has_previous: head & 2 == 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::SharedTexts;

    #[test]
    fn damaged_frame_is_an_error_and_a_cut_one_is_not() {
        let mut bytes = MAGIC.to_vec();
        // The file has no autoscaler of this number.
        frame(&mut bytes, PASS, &[0, 0]);
        let read = |bytes: &[u8]| {
            let mut reader = SegmentReader::new(bytes).unwrap();
            assert!(reader.advance().is_none());
            reader.error()
        };
        assert_eq!(read(&bytes), Some(SegmentError::Damaged { bytes: bytes.len() - MAGIC.len() }));
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn pass_with_too_many_values_is_neither_read_nor_written() {
        let read = |leaves: usize| {
            let mut bytes = MAGIC.to_vec();
            frame(&mut bytes, SHAPE, &vec![1_u8; leaves]);
            let mut reader = SegmentReader::new(&bytes).unwrap();
            assert!(reader.advance().is_none());
            (reader.error(), reader.rest() == 0)
        };
        assert_eq!(read(MAX_LEAVES), (None, true));
        let leaves = MAX_LEAVES + 1;
        assert_eq!(read(leaves), (Some(SegmentError::TooManyValues { leaves }), false));

        let (mut chunk, mut shared) = (ChunkBuilder::default(), SharedTexts::default());
        let time = PassTime { at: jiff::Timestamp::UNIX_EPOCH, number: 1, continues: false };
        // The spec is a value too.
        let mut push = |values: usize| {
            let pass = serde_json::json!({"values": vec![0; values]});
            chunk.push(&mut shared, time, "{}", &pass)
        };
        assert!(push(MAX_LEAVES - 1));
        assert!(!push(MAX_LEAVES));
    }
}
