//! Observers of a simulation run.

use engine::{Decision, Observation};
use jiff::Timestamp;
use serde::Serialize;

use crate::time::Millis;

/// Observes a run. Every method has a default implementation.
pub trait Observer {
    /// An autoscaler has decided, and its decision has been carried out.
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        let _ = (due, seen, decision);
    }

    /// A workload was sampled. Rates are means since the previous sample.
    fn sample(&mut self, at: Timestamp, workload: usize, sample: &WorkloadSample) {
        let _ = (at, workload, sample);
    }

    /// Whether the next decision records every pod by name.
    fn needs_pod_detail(&self, due: &DueDecision) -> bool {
        let _ = due;
        false
    }

    /// The run has ended.
    fn end(&mut self, elapsed: Millis) {
        let _ = elapsed;
    }

    /// Whether the run continues; called after every decision and sample.
    fn keep_going(&self) -> bool {
        true
    }
}

/// A decision that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDecision {
    /// Time on the wall clock of the scenario.
    pub at: Timestamp,
    /// Time from the start of the scenario.
    pub elapsed: Millis,
    /// When the same autoscaler will decide again, from the start of the scenario.
    pub next: Millis,
    /// Index of the autoscaler in the scenario.
    pub autoscaler: usize,
}

/// One sample of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSample {
    /// Time from the start of the scenario.
    pub at: Millis,
    /// Units of work per second that arrived.
    pub offered: f64,
    /// Units of work per second that were done.
    pub served: f64,
    /// Units of work per second that were lost.
    pub unserved: f64,
    /// Units of work that wait.
    pub backlog: f64,
    /// Units of work per second that ready pods can do; absent if it is unlimited.
    pub capacity: Option<f64>,
    /// Pods that take work.
    pub ready: usize,
    /// Pods that exist.
    pub pods: usize,
    /// Desired replicas.
    pub replicas: usize,
}

/// An observer that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {}

/// Keeps the decisions in force at one time with all detail, and ends the run when it has them.
#[derive(Clone, Debug)]
pub struct DecisionCapture {
    at: Millis,
    past: bool,
    /// For each autoscaler, the last observation and decision before that time, if any.
    pub found: Vec<Option<(Observation, Decision)>>,
}

impl DecisionCapture {
    /// Captures the decisions at `at` of this many autoscalers.
    pub fn new(at: Millis, autoscalers: usize) -> Self {
        Self { at, past: false, found: vec![None; autoscalers] }
    }

    fn captures(&self, due: &DueDecision) -> bool {
        due.elapsed <= self.at && self.at < due.next
    }
}

impl Observer for DecisionCapture {
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        if self.captures(due)
            && let Some(slot) = self.found.get_mut(due.autoscaler)
        {
            *slot = Some((seen.clone(), decision.clone()));
        }
    }

    fn sample(&mut self, _: Timestamp, _: usize, sample: &WorkloadSample) {
        self.past = sample.at > self.at;
    }

    fn needs_pod_detail(&self, due: &DueDecision) -> bool {
        self.captures(due)
    }

    fn keep_going(&self) -> bool {
        !self.past
    }
}
