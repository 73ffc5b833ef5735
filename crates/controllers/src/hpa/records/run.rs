//! Decisions that are alike, one after the other.

use std::sync::Arc;

use api::decisions::{DecisionMeta, DecisionMode, DecisionRecord};
use cluster::AutoscalerKey;
use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::{Decision, Spec, TriggerPoll};
use jiff::{SignedDuration, Timestamp};

/// A decision that was made once or several times in a row.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) mode: DecisionMode,
    pub(super) first: Timestamp,
    pub(super) times: u64,
    pub(super) period: SignedDuration,
    pub(super) spec: Arc<Spec>,
    /// As it was last made.
    pub(super) decision: Decision,
    /// What triggers said before it, where there are any.
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

    /// Whether `decision` is the same once more. What was measured may differ, what came of it may not.
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

    /// The same once more.
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
            // Somebody reads the old one.
            None => {
                let (spec, decision) = (run.spec.clone(), decision.clone());
                *run = Arc::new(Self { mode, first, times, period, spec, decision, round });
            }
        }
    }

    /// As it is served.
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

fn wanted(decision: &Decision) -> Option<(i32, Option<usize>)> {
    decision.recommendation.as_ref().map(|r| (r.replicas, r.winner))
}

fn limited(decision: &Decision) -> Option<(StabilizationHold, i32, ScalingLimit)> {
    let normalized = decision.normalized.as_ref()?;
    let stabilized = &normalized.stabilized;
    Some((stabilized.hold, stabilized.replicas, normalized.limited.limit))
}
