//! A run of equal decisions.

use std::sync::Arc;

use api::decisions::{DecisionMeta, DecisionMode, DecisionRecord};
use cluster::AutoscalerKey;
use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::{Decision, Replicas, Spec, TriggerPoll};
use jiff::{SignedDuration, Timestamp};

/// A decision that was made once or more in a row.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) mode: DecisionMode,
    pub(super) first: Timestamp,
    pub(super) times: u64,
    pub(super) period: SignedDuration,
    pub(super) spec: Arc<Spec>,
    /// The last decision of the run.
    pub(super) decision: Decision,
    /// The trigger activity before the decision, if there are triggers.
    pub(super) round: Option<Box<TriggerPoll>>,
}

impl Run {
    pub(super) fn new(
        mode: DecisionMode,
        period: SignedDuration,
        spec: &Arc<Spec>,
        decision: &Decision,
        round: Option<Box<TriggerPoll>>,
    ) -> Self {
        let decision = decision.clone();
        Self { mode, first: decision.at, times: 1, period, spec: spec.clone(), decision, round }
    }

    /// Whether `decision` continues the run: measured values may differ, results may not.
    pub(super) fn goes_on(&self, mode: DecisionMode, spec: &Arc<Spec>, decision: &Decision) -> bool {
        let last = &self.decision;
        self.mode == mode
            && last.course == decision.course
            && last.outcome == decision.outcome
            && (last.current(), last.desired) == (decision.current(), decision.desired)
            && last.activation == decision.activation
            && wanted(last) == wanted(decision)
            && limited(last) == limited(decision)
            && last.reason == decision.reason
            && last.error == decision.error
            && (Arc::ptr_eq(&self.spec, spec) || self.spec == *spec)
    }

    /// Adds a decision to the run.
    pub(super) fn go_on(
        run: &mut Arc<Self>,
        period: SignedDuration,
        decision: &Decision,
        round: Option<Box<TriggerPoll>>,
    ) {
        let (mode, first, times) = (run.mode, run.first, run.times + 1);
        match Arc::get_mut(run) {
            Some(run) => {
                run.decision = decision.clone();
                (run.times, run.period, run.round) = (times, period, round);
            }
            // A reader still holds the old run.
            None => {
                let (spec, decision) = (run.spec.clone(), decision.clone());
                *run = Arc::new(Self { mode, first, times, period, spec, decision, round });
            }
        }
    }

    /// The record that the API serves.
    pub(super) fn record(&self, key: &AutoscalerKey) -> DecisionRecord {
        DecisionRecord {
            api_version: key.kind.decisions().to_owned(),
            kind: "Decision".to_owned(),
            metadata: DecisionMeta { name: super::name_of(key), namespace: key.namespace.to_string() },
            mode: self.mode,
            first: self.first,
            last: self.decision.at,
            times: self.times,
            period: self.period,
            spec: (*self.spec).clone(),
            decision: self.decision.clone(),
            round: self.round.as_deref().cloned(),
        }
    }
}

fn wanted(decision: &Decision) -> Option<(Replicas, Option<usize>)> {
    decision.recommendation.as_ref().map(|r| (r.replicas, r.winner))
}

fn limited(decision: &Decision) -> Option<(StabilizationHold, Replicas, ScalingLimit)> {
    let normalized = decision.normalized.as_ref()?;
    let stabilized = &normalized.stabilized;
    Some((stabilized.hold, stabilized.replicas, normalized.limited.limit))
}
