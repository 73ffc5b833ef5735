//! One decision and its effects (`executor.jsonl`).

use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::keda::ScaledObject;
use api::provider::Compat;
use jiff::Timestamp;
use keda::executor::{ExecutorInput, ScaleDecision, ScaleResult, decide};
use keda::status::merge;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cluster::{RoundsScale, Target, call, current};
use super::{Difference, compare, list, object, reported};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutorInputRecord {
    now: Timestamp,
    is_active: bool,
    is_error: bool,
    #[serde(default)]
    active_triggers: Vec<String>,
    push_metric: Option<String>,
    scaled_object: ScaledObject,
    target: Target,
    scale: RoundsScale,
    hpa: Option<Hpa>,
}

#[derive(Deserialize)]
struct Hpa {
    #[serde(default)]
    conditions: Vec<HorizontalPodAutoscalerCondition>,
}

pub(super) fn check(given: &ExecutorInputRecord, out: &Value, compat: Compat) -> Vec<Difference> {
    let stored = &given.scaled_object;
    let (was_scale_read, current) = current(stored, &given.target, &given.scale);
    let mut calls: Vec<Value> = was_scale_read.then(|| call(stored, None)).into_iter().collect();
    // The HPA has the name that objects have by default.
    let is_seen = stored.status.hpa_name == "keda-hpa-so";
    let decision = decide(
        &ExecutorInput {
            now: given.now,
            object: stored,
            active: given.is_active,
            error: given.is_error.then_some(""),
            active_triggers: &given.active_triggers,
            active_metrics: &given.active_triggers,
            push_metric: given.push_metric.as_deref(),
            current,
            hpa: given.hpa.as_ref().filter(|_| is_seen).map(|hpa| hpa.conditions.as_slice()),
        },
        compat,
    );
    let scaled = carry_out(stored, &decision, &given.scale, &mut calls);
    let error = decision.error.clone();
    let outcome = decision.finish(scaled.as_ref());
    let mut status = stored.status.clone();
    let patch = merge(&mut status, &outcome.changes);
    let changes = &outcome.changes;
    let ours = object([
        (
            "result",
            Some(object([
                ("conditions", Some(json!(changes.conditions))),
                ("triggersActivity", Some(json!(changes.activity))),
                ("lastActiveTime", changes.last_active_time.map(|time| json!(time))),
                ("error", error.map(Value::from)),
            ])),
        ),
        ("scaleCalls", list(calls)),
        ("events", list(outcome.events.iter().map(reported).collect())),
        ("patched", Some(json!(patch.is_some()))),
        // Not all patches were recorded.
        ("statusPatch", patch.filter(|_| out.get("statusPatch").is_some())),
    ]);
    let mut differences = Vec::new();
    compare("", out, &ours, &mut differences);
    differences
}

/// Applies the decision.
pub(super) fn carry_out(
    object: &ScaledObject,
    decision: &ScaleDecision,
    scale: &RoundsScale,
    calls: &mut Vec<Value>,
) -> Option<ScaleResult> {
    let change = decision.scale?;
    calls.push(call(object, None));
    if let Some(error) = &scale.get_error {
        return Some(ScaleResult::NotRead(error.clone()));
    }
    calls.push(call(object, Some(change.to)));
    Some(match &scale.update_error {
        Some(error) => ScaleResult::NotWritten { from: scale.replicas, error: error.clone() },
        None => ScaleResult::Written { from: scale.replicas },
    })
}
