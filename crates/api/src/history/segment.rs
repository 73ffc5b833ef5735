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

use super::codec::{self, LastPass, PassTime};
use super::document::PassDocument;
use super::shape::{Shape, SharedTexts, Split, Tables};
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
    shared: SharedTexts,
    /// How many shapes and texts are written.
    written: (usize, usize),
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
        let (tables, shared) = (Tables::indexed(), SharedTexts::default());
        Self { tables, shared, written: (0, 0), autoscalers: HashMap::new() }
    }

    /// Appends a pass to `out`. `spec` is the JSON text of the spec, `document` that of the rest ([`super::write_document`]).
    pub fn push(
        &mut self,
        out: &mut Vec<u8>,
        api_version: &str,
        metadata: &DecisionMeta,
        time: PassTime,
        (spec, document): (&str, &[u8]),
    ) {
        let Self { tables, shared, written, autoscalers } = self;
        let split = Split::of_pass(spec, document, tables, shared);
        let index = tables.shape(shared, &split.shape);
        let Some(shape) = tables.shapes.get(index).cloned() else { return };
        let id = (metadata.namespace.clone(), metadata.name.clone());
        let count = autoscalers.len();
        let (number, last) = autoscalers.entry(id).or_insert_with(|| {
            let named =
                RecordedAutoscaler { api_version: api_version.to_owned(), metadata: metadata.clone() };
            // Serializing strings cannot fail.
            frame(out, AUTOSCALER, &serde_json::to_vec(&named).unwrap_or_default());
            (count, None)
        });
        for shape in tables.shapes.iter().skip(written.0) {
            frame(out, SHAPE, shape.text());
        }
        for text in tables.texts.iter().skip(written.1) {
            frame(out, TEXT, text.as_bytes());
        }
        *written = (tables.shapes.len(), tables.texts.len());
        let mut pass = Vec::with_capacity(64);
        put(&mut pass, *number as u128);
        if codec::encode(&mut pass, last, time, (index, shape), &split.leaves).is_some() {
            frame(out, PASS, &pass);
        }
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
