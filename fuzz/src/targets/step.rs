//! Steps of the engine over everything that can be decoded as an observation.

use engine::explain::{explain, sentence};
use engine::{Decision, DecisionDetail, Observation, ScaleWriteResult, State};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The input: a state and the observations of the next steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepsInput {
    /// The time of the first step.
    pub at: Timestamp,
    /// The state before the first step.
    #[serde(default)]
    pub state: State,
    /// One observation for each step.
    #[serde(rename = "seen")]
    pub observations: Vec<Observation>,
}

/// The input is a [`StepsInput`] as JSON.
pub fn run(data: &[u8]) {
    let Ok(StepsInput { mut at, mut state, observations }) = serde_json::from_slice(data) else { return };
    for observation in observations.iter().take(8) {
        let mut copy = state.clone();
        let mut decision = state.step(at, observation);
        let detailed = copy.step_with(at, observation, DecisionDetail::Pods);
        assert_eq!(detailed.desired, decision.desired, "the detail of a decision does not change it");
        check_bounds(observation, &decision);
        state.settle(at, observation, &mut decision, ScaleWriteResult::Done);
        decision.status_written(&observation.spec.name, Err("conflict".into()));
        render_decision(observation, &decision);
        render_decision(observation, &detailed);
        at = at.checked_add(SignedDuration::from_secs(15)).unwrap_or(at);
    }
}

/// Checks that a write is within `minReplicas` and `maxReplicas`, if these are valid bounds.
fn check_bounds(observation: &Observation, decision: &Decision) {
    let (min, max) = (observation.spec.min.get(), observation.spec.max.get());
    if let Some(count) = decision.write().map(engine::Replicas::get)
        && (0..=max).contains(&min)
        && decision.current() >= 0
    {
        assert!((min..=max).contains(&count), "{count} is not within {min} and {max}");
    }
}

fn render_decision(observation: &Observation, decision: &Decision) {
    let explanation = explain("hpa", &observation.spec, decision, SignedDuration::from_secs(15));
    let _ = (explanation.to_string(), sentence(&observation.spec, decision), serde_json::to_string(decision));
    let _ = decision.metric_labels(&observation.status).count();
}
