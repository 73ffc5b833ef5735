//! Finished runs, compressed.
//!
//! Neighbouring runs are similar, so they are compressed together, as lines of JSON: twenty runs of two kilobytes take about
//! one kilobyte. Adding a run compresses all again, which takes fifty microseconds and happens only after a change.

use std::fmt;

use api::decisions::DecisionRecord;
use zstd::bulk::{Compressor, Decompressor};

/// The compression dictionary: a typical record, so that the first run is small too. Its content does not affect
/// decompressed records.
pub(super) const TYPICAL: &[u8] = include_bytes!("typical.json");
/// The compression level; higher levels take many times as long and gain nothing.
const COMPRESSION_LEVEL: i32 = 3;

/// Finished runs.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Compressed lines of JSON, oldest first.
    packed: Box<[u8]>,
    /// The uncompressed size in bytes.
    size: usize,
}

impl History {
    /// Adds a finished run; the newest `keep` runs are kept.
    pub(super) fn push(&mut self, packer: &mut Packer, ended: &DecisionRecord, keep: usize) {
        if keep == 0 {
            return;
        }
        let Packer { tables, text, packed } = packer;
        text.clear();
        self.unpack(text);
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let surplus = (lines.clone().count() + 1).saturating_sub(keep);
        let start: usize = lines.take(surplus).map(<[u8]>::len).sum();
        text.drain(..start);
        let kept = text.len();
        match serde_json::to_writer(&mut *text, ended) {
            Ok(()) => text.push(b'\n'),
            // A run that cannot be serialized is left out.
            Err(_) => text.truncate(kept),
        }
        *self = match pack(tables, text, packed) {
            Some(bytes) => Self { packed: bytes.into(), size: text.len() },
            None => Self::default(),
        };
    }

    /// The runs, oldest first.
    pub(super) fn read(&self) -> Vec<DecisionRecord> {
        let mut text = Vec::new();
        self.unpack(&mut text);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Bytes on the heap.
    pub(super) fn weight(&self) -> usize {
        super::weight::block(self.packed.len())
    }

    /// Decompresses the lines into the empty `text`.
    fn unpack(&self, text: &mut Vec<u8>) {
        text.reserve(self.size);
        let unpacked = Decompressor::with_dictionary(TYPICAL)
            .and_then(|mut tables| tables.decompress_to_buffer(&self.packed, text));
        if self.packed.is_empty() || unpacked.is_err() {
            text.clear();
        }
    }
}

/// Compresses texts. One instance for all autoscalers: its tables and buffers are larger than the data, and allocating them
/// each time would fragment the heap.
#[derive(Default)]
pub(super) struct Packer {
    tables: Option<Compressor<'static>>,
    text: Vec<u8>,
    packed: Vec<u8>,
}

/// None if the tables cannot be allocated.
fn pack<'a>(
    tables: &mut Option<Compressor<'static>>,
    text: &[u8],
    packed: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    if tables.is_none() {
        *tables = Compressor::with_dictionary(COMPRESSION_LEVEL, TYPICAL).ok();
    }
    packed.clear();
    packed.reserve(zstd::zstd_safe::compress_bound(text.len()));
    tables.as_mut()?.compress_to_buffer(text, packed).ok()?;
    Some(packed)
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}
