//! Runs that are over, packed.
//!
//! Neighbouring runs say nearly the same, so they are packed together, as lines of JSON: twenty runs of two kilobytes
//! take about one. Adding one packs all anew, which takes fifty microseconds and only happens when something changed.

use std::fmt;

use api::decisions::DecisionRecord;
use zstd::bulk::{Compressor, Decompressor};

/// A typical record, so that the first run is small too. It is only a dictionary: whatever it says, records are read as
/// they were.
pub(super) const TYPICAL: &[u8] = include_bytes!("typical.json");
/// A higher one takes many times as long and gains nothing.
const LEVEL: i32 = 3;

/// Runs that are over.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Lines of JSON, oldest first, packed.
    packed: Box<[u8]>,
    /// Bytes of the lines.
    size: usize,
}

impl History {
    /// Adds a run that has just ended; of all, the newest `keep` stay.
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
            // What cannot be written is left out, without a trace of it.
            Err(_) => text.truncate(kept),
        }
        *self = match pack(tables, text, packed) {
            Some(bytes) => Self { packed: bytes.into(), size: text.len() },
            None => Self::default(),
        };
    }

    /// What was added, oldest first.
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

    /// Puts the lines into `text`, which is empty.
    fn unpack(&self, text: &mut Vec<u8>) {
        text.reserve(self.size);
        let unpacked = Decompressor::with_dictionary(TYPICAL)
            .and_then(|mut tables| tables.decompress_to_buffer(&self.packed, text));
        if self.packed.is_empty() || unpacked.is_err() {
            text.clear();
        }
    }
}

/// Packs texts. One for all: its tables and buffers are larger than what is kept, and making them anew each time would
/// leave memory in pieces.
#[derive(Default)]
pub(super) struct Packer {
    tables: Option<Compressor<'static>>,
    text: Vec<u8>,
    packed: Vec<u8>,
}

/// None only if there is no memory for the tables.
fn pack<'a>(
    tables: &mut Option<Compressor<'static>>,
    text: &[u8],
    packed: &'a mut Vec<u8>,
) -> Option<&'a [u8]> {
    if tables.is_none() {
        *tables = Compressor::with_dictionary(LEVEL, TYPICAL).ok();
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
