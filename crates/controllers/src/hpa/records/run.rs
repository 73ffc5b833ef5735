//! Runs of equal decisions. They are a form of display: every pass is kept.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};

use api::decisions::DecisionMode;
use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::{Decision, Replicas};
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

/// A hash of what makes a decision equal to the one before it: measured values may differ, results may not. The spec is compared
/// by the caller.
pub(super) fn fingerprint(mode: DecisionMode, decision: &Decision) -> u64 {
    struct HashedText(DefaultHasher);
    impl fmt::Write for HashedText {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let Decision { course, outcome, desired, activation, reason, error, .. } = decision;
    let mut text = HashedText(DefaultHasher::new());
    // Hashing does not fail.
    let _ = write!(
        text,
        "{:?}",
        (
            mode,
            course,
            outcome,
            decision.current(),
            desired,
            activation,
            wanted(decision),
            limited(decision),
            reason,
            error
        )
    );
    text.0.finish()
}

fn wanted(decision: &Decision) -> Option<(Replicas, Option<usize>)> {
    decision.recommendation.as_ref().map(|r| (r.replicas, r.winner))
}

fn limited(decision: &Decision) -> Option<(StabilizationHold, Replicas, ScalingLimit)> {
    let normalized = decision.normalized.as_ref()?;
    let stabilized = &normalized.stabilized;
    Some((stabilized.hold, stabilized.replicas, normalized.limited.limit))
}
