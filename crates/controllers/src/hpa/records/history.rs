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
        let mut text = self.text();
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        for _ in keep..=lines {
            let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1);
            text.drain(..end);
        }
        let kept = text.len();
        // What cannot be written is left out, without a trace of it.
        match serde_json::to_writer(&mut text, ended) {
            Ok(()) => text.push(b'\n'),
            Err(_) => text.truncate(kept),
        }
        self.packed = packer.pack(&text).unwrap_or_default();
        self.size = if self.packed.is_empty() { 0 } else { text.len() };
    }

    /// What was added, oldest first.
    pub(super) fn read(&self) -> Vec<DecisionRecord> {
        let text = self.text();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Bytes on the heap.
    pub(super) fn weight(&self) -> usize {
        super::weight::block(self.packed.len())
    }

    fn text(&self) -> Vec<u8> {
        if self.packed.is_empty() {
            return Vec::new();
        }
        let unpack = || Decompressor::with_dictionary(TYPICAL)?.decompress(&self.packed, self.size);
        unpack().unwrap_or_default()
    }
}

/// Packs texts. One for all: its tables are larger than what it packs.
#[derive(Default)]
pub(super) struct Packer(Option<Compressor<'static>>);

impl Packer {
    /// None only if there is no memory for the tables.
    fn pack(&mut self, text: &[u8]) -> Option<Box<[u8]>> {
        if self.0.is_none() {
            self.0 = Compressor::with_dictionary(LEVEL, TYPICAL).ok();
        }
        let packed = self.0.as_mut()?.compress(text).ok()?;
        Some(packed.into_boxed_slice())
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}
