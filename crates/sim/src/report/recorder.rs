//! Records a run for a report: columns for the charts, and a sentence for every change and every limit.

use std::sync::Arc;

use engine::explain::sentence;
use engine::{Decision, Observation, ScaleOutcome, Spec};
use jiff::Timestamp;

use super::limit_spans::LimitSpans;
use super::page::{Limit, Mark};
use crate::observer::{DueDecision, Observer, WorkloadSample};
use crate::recording::{HoldReason, Recording};
use crate::scenario::Scenario;
use crate::time::Millis;

/// Maximum rows per chart.
const MAX_CHART_ROWS: usize = 4000;

/// Records a run for a report.
#[derive(Clone, Debug)]
pub struct ReportRecorder {
    pub(super) recording: Recording,
    /// The reason of each change of the recording, in the same order.
    pub(super) whys: Vec<String>,
    /// One track for each autoscaler.
    pub(super) tracks: Vec<LimitTrack>,
    end: f64,
}

/// Limits and further changes of one autoscaler.
#[derive(Clone, Debug)]
pub(super) struct LimitTrack {
    spec: Arc<Spec>,
    /// When each limit applied.
    pub(super) limit_spans: [LimitSpans; Limit::ALL.len()],
    /// Changes that the recording does not list, at most as many as can be drawn.
    pub(super) more_changes: Vec<Mark>,
}

impl ReportRecorder {
    /// An empty recorder.
    pub fn new(scenario: &Scenario) -> Self {
        let track = |spec: &Arc<Spec>| LimitTrack {
            spec: Arc::clone(spec),
            limit_spans: Limit::ALL.map(LimitSpans::new),
            more_changes: Vec::new(),
        };
        Self {
            recording: Recording::new(scenario, MAX_CHART_ROWS),
            whys: Vec::new(),
            tracks: scenario.autoscalers.iter().map(|plan| track(&plan.spec)).collect(),
            end: scenario.duration.as_secs_f64(),
        }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }
}

impl LimitTrack {
    fn note_limit(&mut self, from: f64, to: f64, decision: &Decision) {
        let Some(limit) = limit(HoldReason::of(decision)) else { return };
        if let Some(spans) = self.limit_spans.iter_mut().find(|spans| spans.limit() == limit) {
            spans.add(from, to, || sentence(&self.spec, decision));
        }
    }

    /// Keeps one scale-up and one scale-down for each visible column of the chart.
    fn note_unlisted(&mut self, at: f64, end: f64, decision: &Decision) {
        let mark = Mark { at, from: decision.current().get(), to: decision.desired.get() };
        let place = |at: f64| (at / end * MAX_CHART_ROWS as f64).floor();
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

/// The limit as the page names it.
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
