//! Who watches a run.

use engine::{Decision, Observation};
use jiff::Timestamp;
use serde::Serialize;

use crate::time::Millis;

/// Watches a run. Every method has a default, so that a watcher implements what it cares for.
pub trait Observer {
    /// An autoscaler has decided, and what it decided has been done.
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        let _ = (due, seen, decision);
    }

    /// A workload was looked at; rates are means since the last time.
    fn sample(&mut self, at: Timestamp, workload: usize, sample: &WorkloadSample) {
        let _ = (at, workload, sample);
    }

    /// Whether the decision that is due should record every pod by name.
    fn wants_detail(&self, due: &DueDecision) -> bool {
        let _ = due;
        false
    }

    /// The run is over.
    fn end(&mut self, elapsed: Millis) {
        let _ = elapsed;
    }

    /// Whether to go on; asked after every moment at which something was decided or sampled.
    fn keep_going(&self) -> bool {
        true
    }
}

/// A decision that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDecision {
    /// When, on the wall clock of the scenario.
    pub at: Timestamp,
    /// When, from the start of the scenario.
    pub elapsed: Millis,
    /// When the same autoscaler will decide again, from the start of the scenario.
    pub next: Millis,
    /// Which autoscaler, by its place in the scenario.
    pub autoscaler: usize,
}

/// One look at a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSample {
    /// When, from the start of the scenario.
    pub at: Millis,
    /// Units of work per second that arrived.
    pub offered: f64,
    /// Units of work per second that were done.
    pub served: f64,
    /// Units of work per second that were lost.
    pub unserved: f64,
    /// Units of work that wait.
    pub backlog: f64,
    /// Units of work per second that ready pods can do; absent where that has no bound.
    pub capacity: Option<f64>,
    /// Pods that take work.
    pub ready: usize,
    /// Pods that exist.
    pub pods: usize,
    /// Replicas asked for.
    pub replicas: usize,
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {}

/// Keeps the decisions in force at one moment, complete, and ends the run once it has them.
#[derive(Clone, Debug)]
pub struct DecisionCapture {
    at: Millis,
    past: bool,
    /// Per autoscaler: what it saw and decided last before the moment, if it had decided by then.
    pub found: Vec<Option<(Observation, Decision)>>,
}

impl DecisionCapture {
    /// Looks at `at`, in a scenario with so many autoscalers.
    pub fn new(at: Millis, autoscalers: usize) -> Self {
        Self { at, past: false, found: vec![None; autoscalers] }
    }

    fn wants(&self, due: &DueDecision) -> bool {
        due.elapsed <= self.at && self.at < due.next
    }
}

impl Observer for DecisionCapture {
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        if self.wants(due)
            && let Some(slot) = self.found.get_mut(due.autoscaler)
        {
            *slot = Some((seen.clone(), decision.clone()));
        }
    }

    fn sample(&mut self, _: Timestamp, _: usize, sample: &WorkloadSample) {
        self.past = sample.at > self.at;
    }

    fn wants_detail(&self, due: &DueDecision) -> bool {
        self.wants(due)
    }

    fn keep_going(&self) -> bool {
        !self.past
    }
}
