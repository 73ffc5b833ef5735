//! Every pass of each autoscaler, for a time and within a number of bytes.
//!
//! Passes are packed as they are made ([`api::history`]). Equal decisions in a row are shown as one run with a first time, a last
//! time and a count; the passes of a run are kept all the same.

mod copy;
mod follow;
mod kept;
mod log;
mod passes;
mod recording;
mod run;
mod spans;
mod table;
#[cfg(test)]
pub(super) mod tests;
mod trace;

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use api::decisions::{DecisionMode, DecisionRecord};
use api::history::{NewPass, NewestPass};
use cluster::{AutoscalerKey, AutoscalerKind};
use engine::{Decision, Spec, TriggerPoll};
use futures::Stream;
use jiff::{SignedDuration, Timestamp};
use locks::MutexExt as _;
use runtime::exported_metrics::MetricsWriter;

pub use copy::{AutoscalerExists, FetchPasses, HistoryCopyError, HistoryFollower, LeaderHistory};
pub use follow::TooSlow;
pub use log::DecisionLog;
pub use recording::{Recording, RecordingError, RecordingLimits, for_each_pass};
pub use table::HistoryLimits;
pub use trace::DecisionTracer;
pub(crate) use trace::PassTimes;

use kept::{HistorySnapshot, record};
use recording::for_each_pass_since;
use run::RunLength;
use table::RecordTable;

/// Every pass of each autoscaler. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct Records {
    /// Recognizes cursors of this process.
    epoch: u64,
    limits: HistoryLimits,
    table: Arc<Mutex<RecordTable>>,
    log: Option<DecisionLog>,
    recording: Option<Recording>,
    tracer: Option<DecisionTracer>,
}

/// The pass that was in force at a time.
#[derive(Clone, Debug)]
pub enum PassAt {
    /// It is kept.
    Kept(Box<DecisionRecord>),
    /// It is not kept, or was never made. The oldest kept pass is from this time.
    NotKept(Timestamp),
}

impl Default for Records {
    fn default() -> Self {
        Self::new(HistoryLimits::default())
    }
}

impl Records {
    /// Keeps passes within these limits.
    pub fn new(limits: HistoryLimits) -> Self {
        // Each has other keys, so that this number differs between processes.
        let epoch = RandomState::new().hash_one(0);
        Self { epoch, limits, table: Arc::default(), log: None, recording: None, tracer: None }
    }

    /// Writes every new run, or with `all` every decision, to `file` as a line of JSON.
    pub fn with_log(self, file: &Path, all: bool) -> std::io::Result<Self> {
        Ok(Self { log: Some(DecisionLog::open(file, all)?), ..self })
    }

    /// Adds the passes of an earlier recording that are not older than the history, so that a restarted process has its past. Returns
    /// how many there are.
    pub fn restore(&self, recording: &Path, now: Timestamp) -> Result<usize, RecordingError> {
        let oldest = now.checked_sub(self.limits.age).unwrap_or(Timestamp::MIN);
        let mut count = 0;
        // One at a time: together, the decoded passes of an hour would take far more memory than the history may.
        let keep = |pass: DecisionRecord, _: bool| {
            let DecisionRecord { metadata, mode, period, spec, decision, round, .. } = pass;
            let Some(key) = key_of(&metadata.namespace, &metadata.name) else { return };
            let pass = NewPass { mode, period, decision: &decision, round: round.as_ref() };
            drop(self.keep(&key, &Arc::new(spec), pass, None));
            count += 1;
        };
        let skipped = match for_each_pass_since(recording, oldest, |_, at| (oldest..=now).contains(&at), keep)
        {
            Err(RecordingError::Empty { .. }) => return Ok(0),
            skipped => skipped?,
        };
        for error in skipped {
            tracing::warn!(%error, "a part of the recording is skipped");
        }
        Ok(count)
    }

    /// Also writes every pass to files.
    pub fn with_recording(self, recording: Recording) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// Also exports passes as traces.
    pub fn with_tracer(self, tracer: DecisionTracer) -> Self {
        Self { tracer: Some(tracer), ..self }
    }

    /// Exports the newest pass of an autoscaler as a trace, if traces are exported and it is one of those.
    pub(crate) fn trace(&self, key: &AutoscalerKey, times: impl FnOnce() -> PassTimes) {
        let Some(tracer) = &self.tracer else { return };
        let kept = {
            let table = self.lock();
            let wanted = table.kept.get(key).filter(|kept| tracer.accepts(kept.run));
            wanted.and_then(|kept| Some((kept.open.newest_pass()?, kept.run)))
        };
        if let Some((newest, run)) = kept {
            tracer.offer(key.clone(), newest, run, times());
        }
    }

    /// The recording, if there is one.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
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
        if self.limits.age.is_zero() && self.recording.is_none() && self.log.is_none() {
            return;
        }
        let pass = NewPass { mode, period, decision, round: round.as_ref() };
        let (mut table, run) = self.keep(key, spec, pass, self.recording.as_ref());
        let log = self.log.as_ref().filter(|log| run.times == 1 || log.logs_repeats());
        if log.is_none() && !table.followers.has(key) {
            return;
        }
        let RunLength { first, times } = run;
        let document = api::history::PassDocument {
            spec: (**spec).clone(),
            mode,
            period,
            decision: decision.clone(),
            round,
        };
        let record = Arc::new(DecisionRecord { first, times, ..record(key, document) });
        table.followers.publish(key, &record);
        if let Some(log) = log {
            log.write(&record);
        }
    }

    /// Keeps a pass in memory and adds it to the recording. Returns its run, and the table locked, so that its newest pass of the
    /// autoscaler is this one.
    fn keep(
        &self,
        key: &AutoscalerKey,
        spec: &Arc<Spec>,
        pass: NewPass<'_>,
        recording: Option<&Recording>,
    ) -> (MutexGuard<'_, RecordTable>, RunLength) {
        let fingerprint = run::fingerprint(pass.mode, pass.decision, pass.round);
        let mut table = self.lock();
        let mut pending = recording.map(Recording::pending);
        let run = table.add(&self.limits, key, spec, (pass, fingerprint), pending.as_deref_mut());
        drop(pending);
        (table, run)
    }

    /// The newest run of every autoscaler (in a namespace), by namespace, name and kind.
    pub fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        let wanted = |key: &AutoscalerKey| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let mut found: Vec<(AutoscalerKey, NewestPass, RunLength)> = {
            let table = self.lock();
            let wanted = table.kept.iter().filter(|(key, _)| wanted(key));
            wanted.filter_map(|(key, kept)| Some((key.clone(), kept.open.newest_pass()?, kept.run))).collect()
        };
        found.sort_by(|(a, ..), (b, ..)| {
            (&a.namespace, &a.name, a.kind).cmp(&(&b.namespace, &b.name, b.kind))
        });
        let read = |(key, newest, RunLength { first, times }): (AutoscalerKey, NewestPass, RunLength)| {
            Some(DecisionRecord { first, times, ..record(&key, newest.document()?) })
        };
        found.into_iter().filter_map(read).collect()
    }

    /// The kept passes of one autoscaler in runs of equal ones, oldest first. `name` is kind and name: `hpa.web`.
    pub fn of(&self, namespace: &str, name: &str) -> Vec<DecisionRecord> {
        self.snapshot(namespace, name).map(|kept| kept.runs()).unwrap_or_default()
    }

    /// Every kept pass of one autoscaler in a span of time, oldest first. None if nothing is kept of it.
    pub fn between(
        &self,
        namespace: &str,
        name: &str,
        since: Timestamp,
        until: Timestamp,
    ) -> Option<Vec<DecisionRecord>> {
        self.snapshot(namespace, name).map(|kept| kept.between(since, until))
    }

    /// The pass of one autoscaler that was in force at a time: the last that was made until then. None if nothing is kept of it.
    pub fn at(&self, namespace: &str, name: &str, at: Timestamp) -> Option<PassAt> {
        let kept = self.snapshot(namespace, name)?;
        match kept.at(at) {
            Some(found) => Some(PassAt::Kept(Box::new(found))),
            None => kept.oldest().map(PassAt::NotKept),
        }
    }

    /// The runs of one autoscaler after the one that began at `first`, oldest first; if it is not kept, those that began later. They
    /// are found by position, because the clock of the machine can be set back.
    pub fn after(&self, namespace: &str, name: &str, first: Option<Timestamp>) -> Vec<DecisionRecord> {
        let newest = |key| self.lock().kept.get(&key).map(|kept| kept.run.first);
        if first.is_some() && key_of(namespace, name).and_then(newest) == first {
            return Vec::new();
        }
        let mut runs = self.of(namespace, name);
        match runs.iter().rposition(|run| Some(run.first) == first) {
            Some(position) => runs.split_off(position + 1),
            None => {
                runs.retain(|run| first.is_none_or(|first| run.first > first));
                runs
            }
        }
    }

    fn snapshot(&self, namespace: &str, name: &str) -> Option<HistorySnapshot> {
        let key = key_of(namespace, name)?;
        let table = self.lock();
        Some(table.kept.get(&key)?.snapshot(&key, 0))
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

    /// Forgets an autoscaler.
    pub fn forget(&self, key: &AutoscalerKey) {
        self.lock().forget(key);
    }

    /// The approximate memory in bytes.
    pub fn approximate_bytes(&self) -> usize {
        let recording = self.recording.as_ref().map_or(0, Recording::approximate_bytes);
        self.lock().weight() + recording
    }

    /// Exports the memory of passes and the state of the recording, of the decision log and of traces.
    pub(crate) fn export(&self, writer: &mut MetricsWriter) {
        writer
            .family(
                "gauge",
                "plimsoll_record_bytes",
                "Memory used for passes that are kept and for their recording.",
            )
            .value(&[], self.approximate_bytes());
        if let Some(recording) = &self.recording {
            let help = "Whether recording has ended because a file could not be written.";
            writer
                .family("gauge", "plimsoll_recording_stopped", help)
                .value(&[], u8::from(recording.is_stopped()));
            let help = "Passes that were not recorded, because writing failed or was too slow.";
            writer
                .family("counter", "plimsoll_recording_lost_passes_total", help)
                .value(&[], recording.lost());
        }
        if let Some(log) = &self.log {
            let help =
                "Lines of the decision log that were not written, because writing failed or was too slow.";
            writer.family("counter", "plimsoll_decision_log_lost_lines_total", help).value(&[], log.lost());
        }
        if let Some(tracer) = &self.tracer {
            let help =
                "Traces of decisions that were not exported, because a request failed or the queue was full.";
            writer.family("counter", "plimsoll_otlp_dropped_traces_total", help).value(&[], tracer.dropped());
        }
    }

    fn lock(&self) -> MutexGuard<'_, RecordTable> {
        self.table.locked()
    }
}

/// The name of an autoscaler in records: `hpa.web`.
pub(super) fn name_of(key: &AutoscalerKey) -> String {
    key.record_name()
}

fn key_of(namespace: &str, name: &str) -> Option<AutoscalerKey> {
    let (kind, name) = name.split_once('.')?;
    let kind = AutoscalerKind::ALL.into_iter().find(|known| known.short() == kind)?;
    Some(AutoscalerKey { kind, namespace: namespace.into(), name: name.into() })
}
