//! Steps over whatever can be written down as an observation.

use engine::explain::{explain, sentence};
use engine::{Decision, DecisionDetail, Observation, ScaleWriteResult, State};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A memory and what is seen next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Life {
    /// When the first step is.
    pub at: Timestamp,
    /// What is remembered.
    #[serde(default)]
    pub state: State,
    /// What each step sees.
    pub seen: Vec<Observation>,
}

/// A [`Life`] as JSON.
pub fn run(data: &[u8]) {
    let Ok(Life { mut at, mut state, seen }) = serde_json::from_slice(data) else { return };
    for seen in seen.iter().take(8) {
        let mut copy = state.clone();
        let mut decision = state.step(at, seen);
        let detailed = copy.step_with(at, seen, DecisionDetail::Pods);
        assert_eq!(detailed.desired, decision.desired, "detail changes nothing");
        within_bounds(seen, &decision);
        state.settle(at, seen, &mut decision, ScaleWriteResult::Done);
        decision.status_written(&seen.spec.name, Err("conflict".into()));
        reported(seen, &decision);
        reported(seen, &detailed);
        at = at.checked_add(SignedDuration::from_secs(15)).unwrap_or(at);
    }
}

/// Where the bounds make sense, a write keeps them.
fn within_bounds(seen: &Observation, decision: &Decision) {
    let (min, max) = (seen.spec.min.get(), seen.spec.max.get());
    if let Some(count) = decision.write().map(engine::Replicas::get)
        && (0..=max).contains(&min)
        && decision.current() >= 0
    {
        assert!((min..=max).contains(&count), "{count} is not within {min} and {max}");
    }
}

fn reported(seen: &Observation, decision: &Decision) {
    let words = explain("hpa", &seen.spec, decision, SignedDuration::from_secs(15));
    let _ = (words.to_string(), sentence(&seen.spec, decision), serde_json::to_string(decision));
    let _ = decision.metric_labels(&seen.status).count();
}
