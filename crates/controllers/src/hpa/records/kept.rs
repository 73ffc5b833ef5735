//! The passes of one autoscaler.

use std::collections::VecDeque;
use std::sync::Arc;

use api::decisions::{DecisionMeta, DecisionRecord};
use api::history::{Chunk, ChunkBuilder, NewPass, PassDocument, PassTime, SharedTexts};
use cluster::AutoscalerKey;
use engine::Spec;
use jiff::Timestamp;

use super::recording::{PendingPasses, RecordedPlace};
use super::run::RunLength;

/// The passes of one autoscaler, oldest first.
#[derive(Debug)]
pub(super) struct AutoscalerHistory {
    /// Full chunks.
    pub(super) sealed: VecDeque<Arc<SealedChunk>>,
    /// The bytes of the full chunks, so that they are not read for every pass.
    sealed_bytes: usize,
    /// The number of the oldest full chunk, counted from the first.
    pub(super) serial: u64,
    /// The newest passes; never empty.
    pub(super) open: ChunkBuilder,
    /// The run that the first pass of the open chunk may continue.
    open_start: RunLength,
    /// The newest run.
    pub(super) run: RunLength,
    fingerprint: u64,
    spec: Arc<Spec>,
    /// The JSON text of the spec.
    spec_text: Arc<str>,
    /// Where the recording has the newest pass; none if it does not have it.
    recorded: Option<RecordedPlace>,
}

/// A full chunk, and the run that its first pass may continue.
#[derive(Debug)]
pub(super) struct SealedChunk {
    chunk: Chunk,
    start: RunLength,
}

impl SealedChunk {
    fn weight(&self) -> usize {
        160 + self.chunk.approximate_bytes()
    }
}

/// A new pass and its number.
pub(super) struct NumberedPass<'a> {
    pub(super) number: u64,
    pub(super) fingerprint: u64,
    pub(super) pass: NewPass<'a>,
}

/// A copy of the passes of one autoscaler, to be read without the lock.
#[derive(Debug)]
pub(super) struct HistorySnapshot {
    key: AutoscalerKey,
    chunks: Vec<Arc<SealedChunk>>,
}

impl AutoscalerHistory {
    pub(super) fn new(spec: &Arc<Spec>, shared: &mut SharedTexts) -> Self {
        Self {
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            serial: 0,
            open: ChunkBuilder::default(),
            open_start: RunLength::NONE,
            run: RunLength::NONE,
            fingerprint: 0,
            spec: spec.clone(),
            spec_text: text(spec, shared),
            recorded: None,
        }
    }

    /// Adds a pass, also to the recording. True if a chunk was ended.
    pub(super) fn add(
        &mut self,
        shared: &mut SharedTexts,
        key: &AutoscalerKey,
        spec: &Arc<Spec>,
        pass: &NumberedPass<'_>,
        recording: Option<&mut PendingPasses>,
    ) -> bool {
        let at = pass.pass.decision.at;
        let mut continues = self.fingerprint == pass.fingerprint && self.run.times > 0;
        if !Arc::ptr_eq(&self.spec, spec) {
            // Each event about an object makes a new spec, which mostly equals the one before.
            if self.spec != *spec {
                let text = text(spec, shared);
                continues &= text == self.spec_text;
                self.spec_text = text;
            }
            self.spec = spec.clone();
        }
        let recording = recording.and_then(|recording| recording.segment(at));
        // A file can be read without the files before it.
        let begins_file = recording.as_ref().is_some_and(|segment| !segment.has(self.recorded));
        let ended = self.open.is_full() || (begins_file && !self.open.is_empty());
        if ended {
            let sealed = SealedChunk { chunk: self.open.finish(), start: self.open_start };
            self.sealed_bytes += sealed.weight();
            self.sealed.push_back(Arc::new(sealed));
            self.open_start = self.run;
        }
        let time = PassTime { at, number: pass.number, continues };
        let added = self.open.push(shared, time, &self.spec_text, &pass.pass);
        self.recorded = match recording {
            Some(mut segment) if added => Some(segment.push(self.recorded, key, &self.open)),
            _ => None,
        };
        if added {
            self.fingerprint = pass.fingerprint;
            self.run.add(at, continues);
        } else {
            tracing::warn!(
                namespace = &*key.namespace,
                name = key.record_name(),
                "a pass is not kept: it has too many values, or its time does not fit into 64 bits"
            );
        }
        ended
    }

    /// The number of the newest full chunk.
    pub(super) fn newest_sealed(&self) -> u64 {
        (self.serial + self.sealed.len() as u64).saturating_sub(1)
    }

    /// Removes the oldest full chunk. `evicted` becomes the newest number of a removed pass.
    pub(super) fn evict(&mut self, evicted: &mut u64) {
        if let Some(sealed) = self.sealed.pop_front() {
            *evicted = (*evicted).max(sealed.chunk.newest_number());
            self.sealed_bytes = self.sealed_bytes.saturating_sub(sealed.weight());
            self.serial += 1;
        }
    }

    /// Removes full chunks whose passes are all from before `limit`.
    pub(super) fn evict_before(&mut self, limit: Timestamp, evicted: &mut u64) {
        while self.sealed.front().is_some_and(|sealed| sealed.chunk.last() < limit) {
            self.evict(evicted);
        }
    }

    /// Drops the passes of the open chunk: an autoscaler that gets another pass makes room where there is nothing else to remove.
    pub(super) fn drop_open(&mut self, evicted: &mut u64) {
        *evicted = (*evicted).max(self.open.newest_number());
        self.open = ChunkBuilder::default();
        self.open_start = self.run;
    }

    /// Bytes on the heap, without shared texts.
    pub(super) fn weight(&self) -> usize {
        self.sealed_bytes + self.sealed.capacity() * 8 + self.open.approximate_bytes()
    }

    /// The number of the newest pass.
    pub(super) fn newest_number(&self) -> u64 {
        self.open.newest_number()
    }

    /// A copy of the chunks that have passes with a number above `after`.
    pub(super) fn snapshot(&self, key: &AutoscalerKey, after: u64) -> HistorySnapshot {
        let newer = self.sealed.iter().filter(|sealed| sealed.chunk.newest_number() > after);
        let mut chunks: Vec<Arc<SealedChunk>> = newer.cloned().collect();
        if !self.open.is_empty() && self.open.newest_number() > after {
            chunks.push(Arc::new(SealedChunk { chunk: self.open.chunk(), start: self.open_start }));
        }
        HistorySnapshot { key: key.clone(), chunks }
    }
}

fn text(spec: &Spec, shared: &mut SharedTexts) -> Arc<str> {
    // Serializing a spec cannot fail.
    shared.text(&serde_json::to_string(spec).unwrap_or_else(|_| "null".to_owned()))
}

impl HistorySnapshot {
    /// All kept passes in runs of equal ones, oldest first. A run has the numbers of its last pass.
    pub(super) fn runs(&self) -> Vec<DecisionRecord> {
        let times: Vec<PassTime> =
            self.chunks.iter().flat_map(|sealed| sealed.chunk.read().times()).collect();
        let mut run = self.chunks.first().map_or(RunLength::NONE, |sealed| sealed.start);
        let mut runs = Vec::new();
        let mut next = times.iter().skip(1);
        self.each(|time, pass| {
            run.add(time.at, time.continues);
            if !next.next().is_some_and(|next| next.continues)
                && let Some(document) = pass()
            {
                let RunLength { first, times } = run;
                runs.push(DecisionRecord { first, times, ..record(&self.key, document) });
            }
            true
        });
        runs
    }

    /// The newest pass that was made at a time or before it.
    pub(super) fn at(&self, at: Timestamp) -> Option<DecisionRecord> {
        let found = |sealed: &Arc<SealedChunk>| {
            let place =
                sealed.chunk.read().times().collect::<Vec<_>>().iter().rposition(|time| time.at <= at)?;
            let mut reader = sealed.chunk.read();
            for _ in 0..=place {
                reader.advance()?;
            }
            reader.document()
        };
        self.chunks.iter().rev().find_map(found).map(|document| record(&self.key, document))
    }

    /// The time of the oldest pass.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.chunks.first().map(|sealed| sealed.chunk.first())
    }

    /// Every pass in a span of time, oldest first.
    pub(super) fn between(&self, since: Timestamp, until: Timestamp) -> Vec<DecisionRecord> {
        let mut found = Vec::new();
        self.each(|time, pass| {
            if (since..=until).contains(&time.at)
                && let Some(document) = pass()
            {
                found.push(record(&self.key, document));
            }
            true
        });
        found
    }

    /// Calls `visit` with every pass, oldest first, until it returns false.
    pub(super) fn each(&self, mut visit: impl FnMut(PassTime, &dyn Fn() -> Option<PassDocument>) -> bool) {
        for sealed in &self.chunks {
            let mut reader = sealed.chunk.read();
            while let Some(time) = reader.advance() {
                if !visit(time, &|| reader.document()) {
                    return;
                }
            }
        }
    }

    pub(super) fn key(&self) -> &AutoscalerKey {
        &self.key
    }
}

/// The record of one pass.
pub(super) fn record(key: &AutoscalerKey, document: PassDocument) -> DecisionRecord {
    let metadata = DecisionMeta { name: super::name_of(key), namespace: key.namespace.to_string() };
    document.record(key.kind.decisions(), metadata)
}
