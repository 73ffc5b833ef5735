//! The passes of all autoscalers, within a number of bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use api::history::{NewPass, SharedTexts};
use cluster::AutoscalerKey;
use engine::Spec;
use jiff::SignedDuration;

use super::follow::Followers;
use super::kept::{AutoscalerHistory, NumberedPass};
use super::recording::PendingPasses;
use super::run::RunLength;
use super::spans::CopiedSpans;

/// Removed chunks between two removals of unreferenced texts.
const EVICTIONS_PER_SWEEP: u32 = 256;

/// How long and in how many bytes passes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Older passes are removed. Zero keeps no pass, unless a log or a recording needs the newest one.
    pub age: SignedDuration,
    /// The oldest passes are removed above this number of bytes. The newest pass of every autoscaler is always kept.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { age: SignedDuration::from_hours(1), bytes: 100 << 20 }
    }
}

#[derive(Debug, Default)]
pub(super) struct RecordTable {
    pub(super) kept: HashMap<AutoscalerKey, AutoscalerHistory>,
    pub(super) followers: Followers,
    shared: SharedTexts,
    /// The number of the newest pass.
    pub(super) number: u64,
    /// The newest number of a pass that was removed.
    pub(super) evicted: u64,
    /// Which passes were copied from other replicas, and from where.
    pub(super) spans: CopiedSpans,
    /// Bytes of all histories.
    bytes: usize,
    /// Full chunks in the order in which they became full: the autoscaler and the number of the chunk.
    sealed: VecDeque<(AutoscalerKey, u64)>,
    /// How many chunks were removed since unused texts were.
    unswept: u32,
}

impl RecordTable {
    /// Adds a pass, also to the recording. Returns the run to which it belongs.
    pub(super) fn add(
        &mut self,
        limits: &HistoryLimits,
        key: &AutoscalerKey,
        spec: &Arc<Spec>,
        (pass, fingerprint): (NewPass<'_>, u64),
        recording: Option<&mut PendingPasses>,
    ) -> RunLength {
        let at = pass.decision.at;
        self.number += 1;
        let Self { kept, shared, number, bytes, sealed, evicted, .. } = self;
        let history = match kept.get_mut(key) {
            Some(history) => history,
            None => {
                let new = AutoscalerHistory::new(spec, shared);
                *bytes += names(key) + new.weight();
                kept.entry(key.clone()).or_insert(new)
            }
        };
        let before = history.weight();
        if let Ok(limit) = at.checked_sub(limits.age) {
            history.evict_before(limit, evicted);
        }
        if *bytes + shared.approximate_bytes() > limits.bytes && sealed.is_empty() {
            history.drop_open(evicted);
        }
        let pass = NumberedPass { number: *number, fingerprint, pass };
        let ended = history.add(shared, key, spec, &pass, recording);
        if ended {
            sealed.push_back((key.clone(), history.newest_sealed()));
        }
        *bytes = (*bytes + history.weight()).saturating_sub(before);
        let run = history.run;
        // While everything fits, the oldest chunk is read only when there is a new one: it is hardly ever in the processor's cache.
        if ended || self.is_full(limits) {
            self.make_room(limits);
        }
        run
    }

    fn is_full(&self, limits: &HistoryLimits) -> bool {
        self.bytes + self.shared.approximate_bytes() > limits.bytes
    }

    /// Removes the oldest full chunks until the rest fits.
    fn make_room(&mut self, limits: &HistoryLimits) {
        while let Some((key, serial)) = self.sealed.front() {
            let full = self.is_full(limits);
            let history = self.kept.get_mut(key).filter(|history| history.serial <= *serial);
            match history {
                Some(_) if !full => break,
                Some(history) => {
                    let before = history.weight();
                    history.evict(&mut self.evicted);
                    self.bytes = (self.bytes + history.weight()).saturating_sub(before);
                    self.unswept += 1;
                    if self.unswept >= EVICTIONS_PER_SWEEP {
                        self.unswept = 0;
                        self.shared.remove_unused();
                    }
                }
                // Removed because of its age, or with its autoscaler.
                None => {}
            }
            self.sealed.pop_front();
        }
        // An autoscaler without new decisions keeps its chunks, and entries of removed chunks collect behind it in the queue.
        if self.sealed.len() > 1024 + 16 * self.kept.len() {
            let kept = &self.kept;
            self.sealed
                .retain(|(key, serial)| kept.get(key).is_some_and(|history| history.serial <= *serial));
        }
    }

    /// Forgets an autoscaler.
    pub(super) fn forget(&mut self, key: &AutoscalerKey) {
        if let Some(history) = self.kept.remove(key) {
            self.bytes = self.bytes.saturating_sub(names(key) + history.weight());
        }
        self.followers.end(key);
    }

    /// The approximate memory in bytes.
    pub(super) fn weight(&self) -> usize {
        let slots = self.kept.capacity() * 8 / 7 * (size_of::<(AutoscalerKey, AutoscalerHistory)>() + 1);
        let order = self.sealed.capacity() * size_of::<(AutoscalerKey, u64)>();
        slots + order + self.bytes + self.shared.approximate_bytes()
    }
}

/// The names in a key.
fn names(key: &AutoscalerKey) -> usize {
    (16 + key.namespace.len()).next_multiple_of(16) + (16 + key.name.len()).next_multiple_of(16)
}
