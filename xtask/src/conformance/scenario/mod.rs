//! HPA scenarios: a controller played step by step against recorded inputs.

mod cluster;
mod compare;
mod record;

use serde::Deserialize;
use serde_json::Value;

use super::Difference;

/// Plays a scenario, and returns the differences.
pub(super) fn check(record: &Value) -> anyhow::Result<Vec<Difference>> {
    let scenario = record::RecordedScenario::deserialize(record)?;
    let mut cluster = cluster::ScenarioCluster::new(&scenario);
    let mut differences = Vec::new();
    let mut requests = Value::Array(Vec::new());
    for (number, step) in scenario.steps.iter().enumerate() {
        if let Some(changed) = step.expect.get("requests") {
            requests = changed.clone();
        }
        let played = cluster.play(step)?;
        compare::step(number, &step.expect, &requests, &played, &mut differences);
    }
    Ok(differences)
}
