//! Runs of equal decisions. They are a form of display: every pass is kept.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem::discriminant;

use api::decisions::DecisionMode;
use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::trigger_poll::{PolledTrigger, ReconcileFailure};
use engine::{Course, Decision, Replicas, ScaleOutcome, TriggerPoll};
use jiff::Timestamp;

/// How long the current run is.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLength {
    pub(super) first: Timestamp,
    pub(super) times: u64,
}

impl RunLength {
    /// The run before the first pass.
    pub(super) const NONE: Self = Self { first: Timestamp::UNIX_EPOCH, times: 0 };

    /// Adds a pass.
    pub(super) fn add(&mut self, at: Timestamp, continues: bool) {
        if continues && self.times > 0 {
            self.times += 1;
        } else {
            *self = Self { first: at, times: 1 };
        }
    }
}

/// Hashes what is written to it.
struct HashedText(DefaultHasher);

impl fmt::Write for HashedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// A hash of what makes a decision equal to the one before it: measured values may differ, results and causes of failures may
/// not. The spec is compared by the caller.
pub(super) fn fingerprint(mode: DecisionMode, decision: &Decision, round: Option<&TriggerPoll>) -> u64 {
    let Decision { course, outcome, desired, activation, reason, error, .. } = decision;
    let mut text = HashedText(DefaultHasher::new());
    (discriminant(&mode), discriminant(course), discriminant(outcome)).hash(&mut text.0);
    (decision.current(), desired, wanted(decision), limited(decision), reason).hash(&mut text.0);
    // Most decisions have none of these; hashing does not fail.
    if let Course::NoScale(error) = course {
        let _ = write!(text, "{error:?}");
    }
    if let ScaleOutcome::WriteFailed(error) = outcome {
        error.hash(&mut text.0);
    }
    if activation.is_some() || error.is_some() {
        let _ = write!(text, "{:?}", (activation, error));
    }
    if let Some(round) = round {
        let _ = write_failures(&mut text, round);
    }
    text.0.finish()
}

/// Writes what failed in a poll. Of errors of other programs it writes the class, because their texts may differ each time.
fn write_failures(text: &mut HashedText, round: &TriggerPoll) -> fmt::Result {
    match &round.reconcile {
        Some(ReconcileFailure::InvalidSpec(error)) => write!(text, "{error:?}")?,
        Some(ReconcileFailure::Request { object, error }) => write!(text, "{:?}", (object, error.failure()))?,
        None => {}
    }
    for trigger in &round.triggers {
        let PolledTrigger { metrics, failure, cause, .. } = trigger;
        if failure.is_some() {
            write!(text, "{:?}", (trigger.label(), cause))?;
        }
        for metric in metrics.iter().filter(|metric| metric.failure.is_some()) {
            write!(text, "{:?}", (trigger.label(), &metric.metric, metric.cause, metric.fallback))?;
        }
    }
    match &round.formula {
        Some(formula) if formula.value.is_err() => text.write_str("formula"),
        _ => Ok(()),
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

#[cfg(test)]
mod tests {
    use engine::RecordedError;
    use engine::failure::{RequestFailure, TriggerFailure};
    use engine::trigger_poll::TriggerMetric;

    use super::super::tests::{mk_spec, once};
    use super::*;

    fn hash_of(round: &TriggerPoll) -> u64 {
        fingerprint(DecisionMode::Active, &once(0, &mk_spec("web"), Some(250)), Some(round))
    }

    #[test]
    fn changed_cause_of_a_trigger_begins_a_run() {
        let hash = |cause, text: &str| {
            let failure = Some(text.to_owned());
            let failed = TriggerMetric { failure, cause: Some(cause), ..TriggerMetric::default() };
            let trigger = PolledTrigger { metrics: vec![failed], ..PolledTrigger::default() };
            hash_of(&TriggerPoll { triggers: vec![trigger], ..TriggerPoll::default() })
        };
        let refused = hash(TriggerFailure::Refused, "connection refused (port 40001)");
        assert_eq!(refused, hash(TriggerFailure::Refused, "connection refused (port 40002)"));
        assert_ne!(refused, hash(TriggerFailure::Authentication, "401"));
        assert_ne!(refused, hash_of(&TriggerPoll::default()));
    }

    #[test]
    fn changed_cause_of_a_reconcile_begins_a_run() {
        let hash = |failure| hash_of(&TriggerPoll { reconcile: Some(failure), ..TriggerPoll::default() });
        let request = |text: &str, failure| ReconcileFailure::Request {
            object: "HPA keda-hpa-web".into(),
            error: RecordedError::new(text, Some(failure)),
        };
        let limited = hash(request("retry after 1 s", RequestFailure::TooManyRequests));
        assert_eq!(limited, hash(request("retry after 2 s", RequestFailure::TooManyRequests)));
        assert_ne!(limited, hash(request("retry after 1 s", RequestFailure::Unreachable)));
        let invalid = |text: &str| hash(ReconcileFailure::InvalidSpec(text.into()));
        assert_ne!(invalid("no name"), invalid("no triggers"));
    }
}
