//! Watches a run for a report: columns for the charts, and a sentence for every change and every limit.

use std::sync::Arc;

use engine::explain::sentence;
use engine::{Decision, Observation, ScaleOutcome, Spec};
use jiff::Timestamp;

use super::lane::Lane;
use super::page::{Limit, Mark};
use crate::observer::{DueDecision, Observer, WorkloadSample};
use crate::recording::{HoldReason, Recording};
use crate::scenario::Scenario;
use crate::time::Millis;

/// Rows per chart.
const ROWS: usize = 4000;

/// Watches a run for a report.
#[derive(Clone, Debug)]
pub struct ReportRecorder {
    pub(super) recording: Recording,
    /// Why each of the recording's changes was made, in the same order.
    pub(super) whys: Vec<String>,
    /// Per autoscaler.
    pub(super) tracks: Vec<Track>,
    end: f64,
}

/// What is seen of one autoscaler.
#[derive(Clone, Debug)]
pub(super) struct Track {
    spec: Arc<Spec>,
    /// When each limit applied.
    pub(super) lanes: [Lane; Limit::ALL.len()],
    /// Changes that the recording does not list, as many as can be drawn.
    pub(super) more_changes: Vec<Mark>,
}

impl ReportRecorder {
    /// Has seen nothing yet.
    pub fn new(scenario: &Scenario) -> Self {
        let track = |spec: &Arc<Spec>| Track {
            spec: Arc::clone(spec),
            lanes: Limit::ALL.map(Lane::new),
            more_changes: Vec::new(),
        };
        Self {
            recording: Recording::new(scenario, ROWS),
            whys: Vec::new(),
            tracks: scenario.autoscalers.iter().map(|plan| track(&plan.spec)).collect(),
            end: scenario.duration.as_secs_f64(),
        }
    }

    /// What it has recorded.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }
}

impl Track {
    fn note_limit(&mut self, from: f64, to: f64, decision: &Decision) {
        let Some(limit) = limit(HoldReason::of(decision)) else { return };
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.limit() == limit) {
            lane.add(from, to, || sentence(&self.spec, decision));
        }
    }

    /// One change up and one down for each bit of the chart that can be told from the next.
    fn note_unlisted(&mut self, at: f64, end: f64, decision: &Decision) {
        let mark = Mark { at, from: decision.current(), to: decision.desired };
        let place = |at: f64| (at / end * ROWS as f64).floor();
        let same = |other: &&Mark| (other.to > other.from) == (mark.to > mark.from);
        let last = self.more_changes.iter().rev().take(2).find(same);
        if last.is_none_or(|last| place(last.at) != place(at)) {
            self.more_changes.push(mark);
        }
    }
}

impl Observer for ReportRecorder {
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        self.recording.step(due, seen, decision);
        let Some(track) = self.tracks.get_mut(due.autoscaler) else { return };
        let at = due.elapsed.as_secs_f64();
        if self.recording.changes.len() > self.whys.len() {
            self.whys.push(sentence(&track.spec, decision));
        } else if matches!(decision.outcome, ScaleOutcome::Scaled | ScaleOutcome::DryRun) {
            track.note_unlisted(at, self.end, decision);
        }
        track.note_limit(at, due.next.as_secs_f64().min(self.end), decision);
    }

    fn sample(&mut self, at: Timestamp, workload: usize, sample: &WorkloadSample) {
        self.recording.sample(at, workload, sample);
    }

    fn end(&mut self, elapsed: Millis) {
        self.recording.end(elapsed);
    }
}

/// What a page calls it.
pub(super) fn limit(held: HoldReason) -> Option<Limit> {
    match held {
        HoldReason::Nothing => None,
        HoldReason::DownWindow | HoldReason::UpWindow => Some(Limit::Window),
        HoldReason::UpRate | HoldReason::DownRate => Some(Limit::Rate),
        HoldReason::Min => Some(Limit::Min),
        HoldReason::Max => Some(Limit::Max),
        HoldReason::Failure => Some(Limit::Metric),
        HoldReason::Paused => Some(Limit::Target),
    }
}
