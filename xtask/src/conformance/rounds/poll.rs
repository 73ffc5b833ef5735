//! A whole poll, or one metric request, over scripted scalers (`poll.jsonl`).

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use api::keda::{ScaledObject, ScaledObjectStatus};
use api::provider::Compat;
use jiff::Timestamp;
use keda::activity::{
    CachedReading, Formula, MetricQuery, MetricSample, NeededMetrics, PollRound, TriggerMetric,
    TriggerResult, activity_state, respond,
};
use keda::executor::{ExecutorInput, decide};
use keda::modifiers::CompiledFormula;
use keda::status::merge;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cluster::{RoundsPod, RoundsScale, Target, current, facts, reading, target};
use super::executor::carry_out;
use super::{Difference, canonical, compare, list, object, reported, served};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PollInput {
    now: Timestamp,
    op: String,
    #[serde(default)]
    metric_name: String,
    scaled_object: ScaledObject,
    scalers: Vec<Scaler>,
    target: Target,
    scale: RoundsScale,
    #[serde(default)]
    pods: Vec<RoundsPod>,
    #[serde(default)]
    cached_records: BTreeMap<String, Cached>,
}

#[derive(Deserialize)]
struct Scaler {
    metrics: Option<Vec<ScriptedPoll>>,
    resource: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptedPoll {
    name: String,
    target_type: String,
    target: String,
    values: Option<Vec<String>>,
    active: bool,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cached {
    #[serde(default)]
    is_active: bool,
    value: Option<String>,
    error: Option<String>,
}

type Records = BTreeMap<String, CachedReading>;

pub(super) fn check(given: &PollInput, out: &Value, compat: Compat) -> anyhow::Result<Vec<Difference>> {
    let records = given.records()?;
    let compiled =
        given.scaled_object.modifiers().map(|_| CompiledFormula::new(&given.scaled_object, compat));
    let formula = compiled.as_ref().map(Result::as_ref);
    let ours = match given.op.as_str() {
        "poll" => given.poll(records, formula, compat)?,
        "query" => given.query(&records, formula, compat)?,
        other => bail!("unknown op {other:?}"),
    };
    let mut differences = Vec::new();
    compare("", &normalized(out)?, &normalized(&ours)?, &mut differences);
    Ok(differences)
}

impl PollInput {
    fn poll(&self, mut records: Records, formula: Formula<'_>, compat: Compat) -> anyhow::Result<Value> {
        let stored = &self.scaled_object;
        let reported_by_all = self.reported(&BTreeMap::new(), |_| true)?;
        let facts = facts(stored, &self.target, &self.scale, &self.pods);
        let round = PollRound { now: self.now, object: stored, formula };
        let state = activity_state(&round, &reported_by_all, &facts, compat);
        let mut status = stored.status.clone();
        let is_dropped = !state.rebuild.is_empty();
        let mut calls = Vec::new();
        let mut events = Vec::new();
        if state.skipped.is_some() {
            merge(&mut status, &state.changes);
        } else {
            let (_, current) = current(stored, &self.target, &self.scale);
            let decision =
                decide(&ExecutorInput::of_round(self.now, stored, &state).with(current, None), compat);
            let scaled = carry_out(stored, &decision, &self.scale, &mut calls);
            let outcome = decision.finish(scaled.as_ref());
            events = state.events.iter().chain(&outcome.events).map(reported).collect();
            merge(&mut status, &state.changes.then(outcome.changes));
            if stored.spec.triggers.iter().any(|trigger| trigger.use_cached_metrics) {
                records = state.records;
            }
        }
        let updates = calls.iter().filter_map(|call| call.get("replicas"));
        Ok(object([
            ("cacheDropped", Some(json!(is_dropped))),
            ("scaleUpdates", list(updates.map(|replicas| json!({"replicas": replicas})).collect())),
            ("events", list(events)),
            ("status", Some(shown(&status))),
            ("cachedRecords", kept(&records, is_dropped)),
        ]))
    }

    fn query(&self, records: &Records, formula: Formula<'_>, compat: Compat) -> anyhow::Result<Value> {
        let stored = &self.scaled_object;
        let metric = self.metric_name.as_str();
        let needed = NeededMetrics::of(stored, metric);
        let reported_by_all = self.reported(records, |name| needed.contains(name))?;
        let facts = facts(stored, &self.target, &self.scale, &self.pods);
        let question = MetricQuery { now: self.now, object: stored, metric, formula };
        let answer = respond(&question, &reported_by_all, &facts, compat);
        let mut status = stored.status.clone();
        merge(&mut status, &answer.changes);
        let is_dropped = !answer.rebuild.is_empty();
        Ok(object([
            ("cacheDropped", Some(json!(is_dropped))),
            (
                "values",
                answer.values.as_ref().ok().map(|values| Value::Array(values.iter().map(served).collect())),
            ),
            ("error", answer.values.as_ref().err().map(|error| json!(error.to_string()))),
            ("events", list(answer.events.iter().map(reported).collect())),
            ("status", Some(shown(&status))),
            ("cachedRecords", kept(records, is_dropped)),
        ]))
    }

    /// The values of the requested metrics from all scalers or from the cache.
    fn reported(
        &self,
        records: &Records,
        is_needed: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Vec<TriggerResult>> {
        let one = |(trigger, scaler): (usize, &Scaler)| {
            let spec = self.scaled_object.spec.triggers.get(trigger).context("a scaler without trigger")?;
            let metrics = scaler.metrics.as_deref().unwrap_or_default();
            if scaler.resource.is_some() {
                return Ok(TriggerResult { trigger, metrics: Ok(vec![TriggerMetric::Resource]) });
            }
            if metrics.is_empty() {
                return Ok(TriggerResult { trigger, metrics: Err("got empty metric spec".into()) });
            }
            let sample = |scripted: &ScriptedPoll| {
                let remembered = records.get(&scripted.name).filter(|_| spec.use_cached_metrics);
                Ok(TriggerMetric::External(MetricSample {
                    name: scripted.name.clone(),
                    target: target(&scripted.target_type, &scripted.target)?,
                    is_remembered: remembered.is_some(),
                    is_ignored: false,
                    reading: match remembered {
                        Some(record) => record.clone(),
                        None => scripted.reading()?,
                    },
                }))
            };
            let wanted = metrics.iter().filter(|metric| is_needed(&metric.name));
            Ok(TriggerResult { trigger, metrics: Ok(wanted.map(sample).collect::<anyhow::Result<_>>()?) })
        };
        self.scalers.iter().enumerate().map(one).collect()
    }

    fn records(&self) -> anyhow::Result<Records> {
        let one = |(name, cached): (&String, &Cached)| {
            let values: Option<Vec<String>> = cached.value.clone().map(|value| vec![value]);
            let record = reading(name, values.as_deref(), cached.is_active, cached.error.as_deref())?;
            Ok((name.clone(), record))
        };
        self.cached_records.iter().map(one).collect()
    }
}

impl ScriptedPoll {
    fn reading(&self) -> anyhow::Result<CachedReading> {
        reading(&self.name, self.values.as_deref(), self.active, self.error.as_deref())
    }
}

/// The part of the status that was recorded.
fn shown(status: &ScaledObjectStatus) -> Value {
    const FIELDS: [&str; 4] = ["conditions", "health", "triggersActivity", "lastActiveTime"];
    let Value::Object(mut all) = json!(status) else { return Value::Null };
    let part = FIELDS.iter().filter_map(|field| Some(((*field).to_owned(), all.remove(*field)?)));
    Value::Object(part.collect())
}

/// The cached values, which were not recorded where KEDA drops them.
fn kept(records: &Records, is_dropped: bool) -> Option<Value> {
    let one = |(name, record): (&String, &CachedReading)| {
        let record = match record {
            Ok(reading) => {
                let values: Vec<Value> = reading.values.iter().map(served).collect();
                json!({"isActive": reading.active, "values": values})
            }
            Err(error) => json!({"isActive": false, "values": [], "error": error.as_str()}),
        };
        (name.clone(), record)
    };
    let all: Map<String, Value> = records.iter().map(one).collect();
    (!is_dropped && !all.is_empty()).then_some(Value::Object(all))
}

/// The output in a fixed order and notation, because scalers answer in any order.
fn normalized(out: &Value) -> anyhow::Result<Value> {
    let mut out = out.clone();
    if let Some(Value::Array(events)) = out.get_mut("events") {
        events.iter_mut().for_each(sort_names);
        events.sort_by_key(Value::to_string);
    }
    if let Some(values) = out.get_mut("values") {
        *values = sorted(canonical(values)?);
    }
    for record in out.get_mut("cachedRecords").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(values) = record.1.get_mut("values") {
            *values = sorted(canonical(values)?);
        }
    }
    Ok(out)
}

fn sorted(values: Value) -> Value {
    let Value::Array(mut values) = values else { return values };
    values.sort_by_key(Value::to_string);
    Value::Array(values)
}

/// Sorts the triggers named as the cause of an activation.
fn sort_names(event: &mut Value) {
    const BEFORE: &str = ", triggered by ";
    let Some(Value::String(note)) = event.get_mut("note") else { return };
    if let Some((start, names)) = note.split_once(BEFORE) {
        let mut names: Vec<&str> = names.split(';').collect();
        names.sort_unstable();
        *note = format!("{start}{BEFORE}{}", names.join(";"));
    }
}
