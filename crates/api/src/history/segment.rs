//! The file of a recording: passes of all autoscalers, in the order in which they were made.
//!
//! ```text
//! magic    name and version
//! frames   a byte for what it is, its length, its bytes:
//!          1  an autoscaler: its name as JSON; it gets the next number
//!          2  a shape; it gets the next number
//!          3  a text; it gets the next number
//!          4  a pass: the number of its autoscaler, and its difference to the pass of that autoscaler before it
//! ```
//!
//! A frame is complete or ignored, so that a file that ends anywhere can be read up to its last complete pass.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunk::NewestPass;
use super::codec::{self, LastPass, PassTime};
use super::document::PassDocument;
use super::leaf::Leaf;
use super::shape::{Shape, Tables};
use super::varint::{put, take_bytes, take_size};
use crate::decisions::{DecisionMeta, DecisionRecord};

/// The start of a file: name and version.
const MAGIC: &[u8] = b"plimsoll recording 1\n";

const AUTOSCALER: u8 = 1;
const SHAPE: u8 = 2;
const TEXT: u8 = 3;
const PASS: u8 = 4;

/// The file is not a recording, or one of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a recording of passes of version 1; a newer plimsoll may have written it")]
pub struct SegmentError;

/// The autoscaler of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedAutoscaler {
    api_version: String,
    #[serde(flatten)]
    metadata: DecisionMeta,
}

/// Writes a segment.
#[derive(Debug)]
pub struct SegmentWriter {
    tables: Tables,
    /// The numbers of shapes and of texts by their addresses, which no others get because the tables keep them.
    shapes: HashMap<usize, usize>,
    texts: HashMap<usize, u32>,
    autoscalers: HashMap<(String, String), (usize, Option<LastPass>)>,
}

/// Reads a segment, oldest pass first.
#[derive(Debug)]
pub struct SegmentReader<'a> {
    input: &'a [u8],
    tables: Tables,
    autoscalers: Vec<(RecordedAutoscaler, Option<LastPass>)>,
    /// The autoscaler of the current pass.
    current: usize,
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
        Self {
            tables: Tables::default(),
            shapes: HashMap::new(),
            texts: HashMap::new(),
            autoscalers: HashMap::new(),
        }
    }

    /// Appends a pass to `out`: the newest one of a [`ChunkBuilder`](super::ChunkBuilder), so that no pass is split twice.
    pub fn push(
        &mut self,
        out: &mut Vec<u8>,
        api_version: &str,
        metadata: &DecisionMeta,
        time: PassTime,
        pass: &NewestPass,
    ) {
        let index = self.shape(out, &pass.shape);
        let Some(leaves) =
            pass.leaves.iter().map(|leaf| self.leaf(out, *leaf, &pass.texts)).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let Self { autoscalers, .. } = self;
        let id = (metadata.namespace.clone(), metadata.name.clone());
        let count = autoscalers.len();
        let (number, last) = autoscalers.entry(id).or_insert_with(|| {
            let named =
                RecordedAutoscaler { api_version: api_version.to_owned(), metadata: metadata.clone() };
            // Serializing strings cannot fail.
            frame(out, AUTOSCALER, &serde_json::to_vec(&named).unwrap_or_default());
            (count, None)
        });
        let mut difference = Vec::with_capacity(64);
        put(&mut difference, *number as u128);
        if codec::encode(&mut difference, last, time, (index, pass.shape.clone()), &leaves).is_some() {
            frame(out, PASS, &difference);
        }
    }

    /// The number of a shape, which is written if it is new.
    fn shape(&mut self, out: &mut Vec<u8>, shape: &Arc<Shape>) -> usize {
        let known = &mut self.tables.shapes;
        *self.shapes.entry(Arc::as_ptr(shape).addr()).or_insert_with(|| {
            frame(out, SHAPE, shape.text());
            known.push(shape.clone());
            known.len() - 1
        })
    }

    /// A leaf of a pass as a leaf of the segment: a text has another number there.
    fn leaf(&mut self, out: &mut Vec<u8>, leaf: Leaf, texts: &[Arc<str>]) -> Option<Leaf> {
        let Leaf::Text(place) = leaf else { return Some(leaf) };
        let text = texts.get(place as usize)?;
        let known = &mut self.tables.texts;
        let number = *self.texts.entry(text.as_ptr().addr()).or_insert_with(|| {
            frame(out, TEXT, text.as_bytes());
            known.push(text.clone());
            known.len() as u32 - 1
        });
        Some(Leaf::Text(number))
    }
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
        let input =
            if MAGIC.starts_with(bytes) { &[] } else { bytes.strip_prefix(MAGIC).ok_or(SegmentError)? };
        Ok(Self { input, tables: Tables::default(), autoscalers: Vec::new(), current: 0 })
    }

    /// Goes to the next pass. None at the end, or where the file is damaged.
    pub fn advance(&mut self) -> Option<RecordedPass> {
        loop {
            let mut rest = self.input;
            let kind = *take_bytes(&mut rest, 1)?.first()?;
            let length = take_size(&mut rest)?;
            let mut content = take_bytes(&mut rest, length)?;
            match kind {
                AUTOSCALER => self.autoscalers.push((serde_json::from_slice(content).ok()?, None)),
                SHAPE => self.tables.shapes.push(Arc::new(Shape::new(content))),
                TEXT => self.tables.texts.push(std::str::from_utf8(content).ok()?.into()),
                PASS => {
                    let number = take_size(&mut content)?;
                    let (named, last) = self.autoscalers.get_mut(number)?;
                    let time = codec::decode(&mut content, last, &self.tables)?;
                    let metadata = named.metadata.clone();
                    (self.input, self.current) = (rest, number);
                    return Some(RecordedPass { time, metadata });
                }
                // A frame of a later version.
                _ => {}
            }
            self.input = rest;
        }
    }

    /// The JSON text of the current pass.
    pub fn json(&self) -> Option<Vec<u8>> {
        let (_, last) = self.autoscalers.get(self.current)?;
        let last = last.as_ref()?;
        last.shape.join(&last.leaves, &self.tables.texts)
    }

    /// The record of the current pass.
    pub fn record(&self) -> Option<DecisionRecord> {
        let (named, _) = self.autoscalers.get(self.current)?;
        let document: PassDocument = serde_json::from_slice(&self.json()?).ok()?;
        Some(document.record(&named.api_version, named.metadata.clone()))
    }

    /// How many bytes follow: more than none at the end of a file that was not completed.
    pub fn rest(&self) -> usize {
        self.input.len()
    }
}
