//! Passes that are not written yet.

use api::decisions::DecisionMeta;
use api::history::{ChunkBuilder, SegmentWriter};
use cluster::AutoscalerKey;
use jiff::Timestamp;

use super::RecordingLimits;
use crate::hpa::records::name_of;

/// How many bytes may wait for the disk; while there are more, passes are lost and counted.
const MAX_PENDING_BYTES: usize = 16 << 20;
/// The largest buffer that is used again.
const MAX_SPARE_BYTES: usize = 1 << 20;

/// The bytes of passes that are not written yet, and what the current file has.
#[derive(Debug)]
pub(in crate::hpa::records) struct PendingPasses {
    limits: RecordingLimits,
    /// What is to be written, oldest first.
    parts: Vec<PendingBytes>,
    /// The bytes of the parts, also while they are being written.
    waiting: usize,
    /// A buffer that was written.
    spare: Vec<u8>,
    file: Option<CurrentFile>,
    /// How many files were begun.
    files: u64,
    /// How many passes are in the parts, also while they are being written.
    unwritten: u64,
    is_closed: bool,
    is_stopped: bool,
    lost: u64,
}

/// Bytes for one file.
#[derive(Debug)]
pub(super) struct PendingBytes {
    /// The time of the first pass of a file, if a file begins with these bytes.
    pub(super) begins_file: Option<Timestamp>,
    pub(super) bytes: Vec<u8>,
    passes: u64,
}

#[derive(Debug)]
struct CurrentFile {
    writer: SegmentWriter,
    began: Timestamp,
    bytes: u64,
}

/// Where an autoscaler is in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hpa::records) struct RecordedPlace {
    file: u64,
    /// The number of the autoscaler in the file.
    autoscaler: usize,
}

/// The file that takes the next pass.
pub(in crate::hpa::records) struct OpenSegment<'a> {
    number: u64,
    file: &'a mut CurrentFile,
    part: &'a mut PendingBytes,
    waiting: &'a mut usize,
    unwritten: &'a mut u64,
}

impl PendingPasses {
    pub(super) fn new(limits: RecordingLimits) -> Self {
        Self {
            limits,
            parts: Vec::new(),
            waiting: 0,
            spare: Vec::new(),
            file: None,
            files: 0,
            unwritten: 0,
            is_closed: false,
            is_stopped: false,
            lost: 0,
        }
    }

    /// The file that takes a pass of this time. None if the pass is lost, because writing has failed or the disk is too slow.
    pub(in crate::hpa::records) fn segment(&mut self, at: Timestamp) -> Option<OpenSegment<'_>> {
        if self.is_stopped || self.waiting >= MAX_PENDING_BYTES {
            self.lost += 1;
            return None;
        }
        let RecordingLimits { segment_bytes, segment_age, .. } = self.limits;
        // A clock that was set back ends a file, too: otherwise its age would end none until the clock is there again.
        let is_full = |file: &CurrentFile| {
            file.bytes >= segment_bytes || at.duration_since(file.began).abs() >= segment_age
        };
        if self.file.as_ref().is_none_or(is_full) {
            self.begin_file(at);
        } else if self.parts.is_empty() {
            let bytes = std::mem::take(&mut self.spare);
            self.parts.push(PendingBytes { begins_file: None, bytes, passes: 0 });
        }
        let Self { parts, waiting, file, files, unwritten, .. } = self;
        Some(OpenSegment {
            number: *files,
            file: file.as_mut()?,
            part: parts.last_mut()?,
            waiting,
            unwritten,
        })
    }

    fn begin_file(&mut self, at: Timestamp) {
        let mut bytes = std::mem::take(&mut self.spare);
        let writer = SegmentWriter::new(&mut bytes);
        self.waiting += bytes.len();
        self.file = Some(CurrentFile { writer, began: at, bytes: bytes.len() as u64 });
        self.files += 1;
        self.parts.push(PendingBytes { begins_file: Some(at), bytes, passes: 0 });
    }

    /// What is to be written, oldest first.
    pub(super) fn take(&mut self) -> Vec<PendingBytes> {
        std::mem::take(&mut self.parts)
    }

    /// Takes back a part that was written, to use its buffer again.
    pub(super) fn written(&mut self, part: PendingBytes) {
        let PendingBytes { mut bytes, passes, .. } = part;
        self.unwritten = self.unwritten.saturating_sub(passes);
        self.waiting = self.waiting.saturating_sub(bytes.len());
        if bytes.capacity() <= MAX_SPARE_BYTES {
            bytes.clear();
            self.spare = bytes;
        }
    }

    /// Recording ends because of an error. What was to be written is lost.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.lost += std::mem::take(&mut self.unwritten);
        self.waiting = 0;
        (self.parts, self.spare, self.file) = (Vec::new(), Vec::new(), None);
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// The approximate memory in bytes.
    pub(super) fn approximate_bytes(&self) -> usize {
        let file = self.file.as_ref().map_or(0, |file| file.writer.approximate_bytes());
        self.waiting + self.spare.capacity() + file
    }
}

impl OpenSegment<'_> {
    /// Whether the file has the pass that was recorded there.
    pub(in crate::hpa::records) fn has(&self, recorded: Option<RecordedPlace>) -> bool {
        recorded.is_some_and(|recorded| recorded.file == self.number)
    }

    /// Adds the newest pass of a chunk. An autoscaler whose pass before this one is not in the file begins a chunk with this one.
    pub(in crate::hpa::records) fn push(
        &mut self,
        recorded: Option<RecordedPlace>,
        key: &AutoscalerKey,
        chunk: &ChunkBuilder,
    ) -> RecordedPlace {
        let out = &mut self.part.bytes;
        let before = out.len();
        let known = recorded.filter(|recorded| recorded.file == self.number);
        let place = known.unwrap_or_else(|| {
            let metadata = DecisionMeta { name: name_of(key), namespace: key.namespace.to_string() };
            let autoscaler = self.file.writer.add_autoscaler(out, key.kind.decisions(), metadata);
            RecordedPlace { file: self.number, autoscaler }
        });
        self.file.writer.push(out, place.autoscaler, chunk, recorded.is_some());
        let added = out.len() - before;
        self.part.passes += 1;
        *self.unwritten += 1;
        self.file.bytes += added as u64;
        *self.waiting += added;
        place
    }
}
