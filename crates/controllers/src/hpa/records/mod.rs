//! The last decisions of each autoscaler.
//!
//! Equal decisions in a row are one [`Run`]: first time, last time, count. The newest run is not compressed, so that a steady
//! autoscaler costs a comparison and a copy per period; earlier runs are compressed.

mod follow;
mod history;
mod log;
mod run;
#[cfg(test)]
pub(super) mod tests;
mod weight;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::decisions::{DecisionMode, DecisionRecord};
use cluster::{AutoscalerKey, AutoscalerKind};
use engine::{Decision, Spec, TriggerPoll};
use futures::Stream;
use jiff::{SignedDuration, Timestamp};

pub use follow::TooSlow;
pub use log::DecisionLog;

use follow::Followers;
use history::{History, Packer};
use run::Run;

/// The default number of runs kept per autoscaler.
pub const DEFAULT_KEPT_RUNS: usize = 20;

/// The last decisions of each autoscaler. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct Records {
    keep: usize,
    table: Arc<Mutex<RecordTable>>,
    log: Option<DecisionLog>,
}

#[derive(Debug, Default)]
struct RecordTable {
    kept: HashMap<AutoscalerKey, AutoscalerHistory>,
    followers: Followers,
    packer: Packer,
}

/// The runs of one autoscaler.
#[derive(Debug)]
struct AutoscalerHistory {
    newest: Arc<Run>,
    older: History,
}

impl Default for Records {
    fn default() -> Self {
        Self::new(DEFAULT_KEPT_RUNS)
    }
}

impl Records {
    /// Keeps this many runs of each autoscaler, at least one.
    pub fn new(keep: usize) -> Self {
        Self { keep: keep.max(1), table: Arc::default(), log: None }
    }

    /// Writes every new run, or with `all` every decision, to `file` as a line of JSON.
    pub fn with_log(self, file: &Path, all: bool) -> std::io::Result<Self> {
        Ok(Self { log: Some(DecisionLog::open(file, all)?), ..self })
    }

    /// Adds a decision.
    pub fn add(
        &self,
        key: &AutoscalerKey,
        mode: DecisionMode,
        period: SignedDuration,
        spec: &Arc<Spec>,
        decision: &Decision,
    ) {
        self.add_round(key, mode, period, spec, decision, None);
    }

    /// Adds a decision with the trigger activity before it.
    pub fn add_round(
        &self,
        key: &AutoscalerKey,
        mode: DecisionMode,
        period: SignedDuration,
        spec: &Arc<Spec>,
        decision: &Decision,
        round: Option<TriggerPoll>,
    ) {
        let round = round.map(Box::new);
        let mut table = self.lock();
        let RecordTable { kept, followers, packer } = &mut *table;
        let (run, is_new) = match kept.get_mut(key) {
            Some(kept) if kept.newest.goes_on(mode, spec, decision) => {
                Run::go_on(&mut kept.newest, period, decision, round);
                (&kept.newest, false)
            }
            Some(kept) => {
                let new = Arc::new(Run::new(mode, period, spec, decision, round));
                let ended = std::mem::replace(&mut kept.newest, new);
                kept.older.push(packer, &ended.record(key), self.keep - 1);
                (&kept.newest, true)
            }
            None => {
                let newest = Arc::new(Run::new(mode, period, spec, decision, round));
                let new = AutoscalerHistory { newest, older: History::default() };
                (&kept.entry(key.clone()).or_insert(new).newest, true)
            }
        };
        followers.tell(key, run);
        if let Some(log) = self.log.as_ref().filter(|log| is_new || log.wants_all()) {
            log.write(key, run);
        }
    }

    /// The newest run of every autoscaler (in a namespace), by namespace, name and kind.
    pub fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        let wanted = |key: &AutoscalerKey| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let mut found: Vec<(AutoscalerKey, Arc<Run>)> = {
            let table = self.lock();
            let wanted = table.kept.iter().filter(|(key, _)| wanted(key));
            wanted.map(|(key, kept)| (key.clone(), kept.newest.clone())).collect()
        };
        found.sort_by(|(a, _), (b, _)| (&a.namespace, &a.name, a.kind).cmp(&(&b.namespace, &b.name, b.kind)));
        found.into_iter().map(|(key, run)| run.record(&key)).collect()
    }

    /// The runs of one autoscaler, oldest first. `name` is kind and name: `hpa.web`.
    pub fn of(&self, namespace: &str, name: &str) -> Vec<DecisionRecord> {
        let Some(key) = key_of(namespace, name) else { return Vec::new() };
        let (older, newest) = {
            let table = self.lock();
            let Some(kept) = table.kept.get(&key) else { return Vec::new() };
            (kept.older.clone(), kept.newest.clone())
        };
        older.read().into_iter().chain([newest.record(&key)]).collect()
    }

    /// The runs of one autoscaler after the one that began at `first`, oldest first; all if it is not kept. They are found by
    /// position, because the clock of the machine can be set back.
    pub fn after(&self, namespace: &str, name: &str, first: Option<Timestamp>) -> Vec<DecisionRecord> {
        let newest = |key| self.lock().kept.get(&key).map(|kept| kept.newest.first);
        if first.is_some() && key_of(namespace, name).and_then(newest) == first {
            return Vec::new();
        }
        let mut runs = self.of(namespace, name);
        let position = runs.iter().rposition(|run| Some(run.first) == first);
        runs.split_off(position.map_or(0, |position| position + 1))
    }

    /// Subscribes to decisions, each with its current run. The stream ends when the autoscaler is forgotten, or after
    /// [`TooSlow`]. Subscribe before calling [`Records::of`], and no decision is missed.
    pub fn follow(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Stream<Item = Result<Arc<DecisionRecord>, TooSlow>> + Send + use<> {
        let receiver = key_of(namespace, name).map(|key| self.lock().followers.add(key));
        follow::stream(receiver)
    }

    /// Forgets all autoscalers.
    pub fn forget_all(&self) {
        let mut table = self.lock();
        let RecordTable { kept, followers, .. } = &mut *table;
        for key in kept.keys() {
            followers.end(key);
        }
        kept.clear();
    }

    /// Forgets an autoscaler.
    pub fn forget(&self, key: &AutoscalerKey) {
        let mut table = self.lock();
        table.kept.remove(key);
        table.followers.end(key);
    }

    /// The approximate memory in bytes.
    pub fn approximate_bytes(&self) -> usize {
        self.lock().weight()
    }

    /// The number of lines that were not written to the log, because of errors or a full queue.
    pub fn lost_lines(&self) -> u64 {
        self.log.as_ref().map_or(0, DecisionLog::lost)
    }

    fn lock(&self) -> MutexGuard<'_, RecordTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of an autoscaler in records: `hpa.web`.
pub(super) fn name_of(key: &AutoscalerKey) -> String {
    format!("{}.{}", key.kind.short(), key.name)
}

fn key_of(namespace: &str, name: &str) -> Option<AutoscalerKey> {
    let (kind, name) = name.split_once('.')?;
    let kind = AutoscalerKind::ALL.into_iter().find(|known| known.short() == kind)?;
    Some(AutoscalerKey { kind, namespace: namespace.into(), name: name.into() })
}
