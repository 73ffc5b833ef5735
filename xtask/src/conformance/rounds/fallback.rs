//! Queries in a row, some of which fail (`fallback.jsonl`).

use anyhow::Context as _;
use api::keda::{ScaledObject, types};
use api::provider::Compat;
use keda::activity::MetricSample;
use keda::fallback::{changes, serve};
use keda::status::merge;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cluster::{RoundsPod, RoundsScale, Target, facts, reading, target};
use super::{Difference, canonical, compare, object, served};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FallbackInput {
    scaled_object: ScaledObject,
    target: Target,
    scale: RoundsScale,
    #[serde(default)]
    pods: Vec<RoundsPod>,
    metrics: Vec<FallbackMetric>,
    steps: Vec<FallbackStep>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FallbackMetric {
    name: String,
    target_type: String,
    target: String,
}

#[derive(Deserialize)]
struct FallbackStep {
    #[serde(default)]
    metric: usize,
    values: Option<Vec<String>>,
    error: Option<String>,
}

pub(super) fn check(given: &FallbackInput, out: &Value, compat: Compat) -> anyhow::Result<Vec<Difference>> {
    let mut stored = given.scaled_object.clone();
    let mut differences = Vec::new();
    let recorded = out.get("steps").and_then(Value::as_array).context("no steps")?;
    for (number, (step, expected)) in given.steps.iter().zip(recorded).enumerate() {
        let metric = given.metrics.get(step.metric).context("no such metric")?;
        let sample = MetricSample {
            name: metric.name.clone(),
            target: target(&metric.target_type, &metric.target)?,
            reading: reading(&metric.name, step.values.as_deref(), false, step.error.as_deref())?,
            is_remembered: false,
            is_ignored: false,
        };
        let facts = facts(&stored, &given.target, &given.scale, &given.pods);
        let mut health = stored.status.health.clone();
        let result = serve(&stored, &mut health, &sample, &facts, compat);
        let changes = changes(&stored, &health, compat);
        let patch = merge(&mut stored.status, &changes);
        let status = &stored.status;
        let ours = object([
            (
                "values",
                result.as_ref().ok().map(|result| Value::Array(result.values.iter().map(served).collect())),
            ),
            ("fallbackActive", Some(json!(result.as_ref().is_ok_and(|result| result.replicas.is_some())))),
            ("error", result.as_ref().err().map(|error| json!(error.as_str()))),
            ("health", (!status.health.is_empty()).then(|| json!(status.health))),
            ("fallbackCondition", status.conditions.get(types::FALLBACK).map(|condition| json!(condition))),
            ("statusPatch", patch),
        ]);
        let mut expected = expected.clone();
        if let Some(values) = expected.get_mut("values") {
            *values = canonical(values)?;
        }
        compare(&format!("step {number}"), &expected, &ours, &mut differences);
    }
    Ok(differences)
}
