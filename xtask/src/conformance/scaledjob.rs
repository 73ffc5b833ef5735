//! ScaledJobs: arithmetic of jobs, and whole polls (`scaledjob.jsonl`).

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use api::autoscaling::v2::MetricSpec;
use api::keda::{KedaProfile, ScaledJob, ScalingStrategy};
use api::provider::Compat;
use jiff::Timestamp;
use keda::OperationError;
use keda::jobs::{
    JobBounds, JobLoad, JobPodView, JobQueue, JobReading, JobTriggerResult, JobView, QueueEntry, aggregate,
    bounds, decide, demand, entry, gather, history, job, report,
};
use quantity::Quantity;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rounds::{compare, list, object, reported};
use super::{Difference, Outcome};

pub(crate) fn replay(records: &[Value]) -> Vec<Outcome> {
    records.iter().map(|record| Outcome::of(record, |compat| check(record, compat))).collect()
}

fn check(record: &Value, compat: Compat) -> anyhow::Result<Vec<Difference>> {
    let (input, out) = (record.get("in").context("no `in`")?, record.get("out").context("no `out`")?);
    let got = match record.get("group").and_then(Value::as_str) {
        Some("strategy") => strategy(&read(input)?),
        Some("queue") => queue(&read(input)?),
        Some("aggregate") => aggregated(&read(input)?),
        Some("bounds") => bounded(&read(input)?),
        Some("poll") => poll(&read(input)?, false, compat)?,
        Some("job") => poll(&read(input)?, true, compat)?,
        other => bail!("unknown group {other:?}"),
    };
    let mut differences = Vec::new();
    compare("", &as_floats(out), &as_floats(&got), &mut differences);
    Ok(differences)
}

fn read<T: for<'a> Deserialize<'a>>(input: &Value) -> anyhow::Result<T> {
    Ok(T::deserialize(input)?)
}

/// Recorded numbers may lack the decimal point that ours have.
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(values) => values.iter().map(as_floats).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), as_floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StrategyInput {
    #[serde(flatten)]
    strategy: ScalingStrategy,
    max_scale: i64,
    running: i64,
    pending: i64,
    max_replica_count: i64,
    scale_to: i64,
}

#[allow(clippy::cast_precision_loss)]
fn strategy(input: &StrategyInput) -> Value {
    let queue = JobQueue { active: true, length: input.scale_to, max_value: input.max_scale as f64 };
    let load = JobLoad { running: input.running, pending: input.pending, max: input.max_replica_count };
    let wish = demand(&input.strategy, &queue, load);
    json!({"effectiveMaxScale": wish.effective_max, "scaleTo": wish.scale_to})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueInput {
    metrics: Option<Vec<JobMetric>>,
    values: Option<Vec<Named>>,
    max_replica_count: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    metric_name: String,
    value: Quantity,
}

fn queue(input: &QueueInput) -> Value {
    let specs: Vec<MetricSpec> = input.metrics.iter().flatten().map(JobMetric::spec).collect();
    let values: Vec<_> =
        input.values.iter().flatten().map(|own| (own.metric_name.clone(), own.value.clone())).collect();
    let entry = entry(&specs, &values, input.max_replica_count, true);
    json!({"queueLength": entry.length, "maxValue": entry.max_value, "targetAverageValue": entry.target})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregateInput {
    multiple_scalers_calculation: String,
    min_replica_count: i64,
    max_replica_count: i64,
    scalers: Option<Vec<ScalerEntry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScalerEntry {
    is_active: bool,
    max_value: f64,
    queue_length: f64,
}

fn aggregated(input: &AggregateInput) -> Value {
    let entries = input.scalers.iter().flatten().map(|own| QueueEntry {
        length: own.queue_length,
        max_value: own.max_value,
        target: 0.0,
        active: own.is_active,
    });
    let entries: Vec<QueueEntry> = entries.collect();
    let bounds = JobBounds { min: input.min_replica_count, max: input.max_replica_count };
    let queue = aggregate(&input.multiple_scalers_calculation, bounds, &entries);
    json!({
        "isActive": queue.active, "queueLength": queue.length,
        "maxValue": queue.max_scale(), "maxFloatValue": queue.max_value,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BoundsInput {
    min_replica_count: Option<i32>,
    max_replica_count: Option<i32>,
}

fn bounded(input: &BoundsInput) -> Value {
    let JobBounds { min, max } = bounds(input.min_replica_count, input.max_replica_count);
    json!({"min": min, "max": max})
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobPollInput {
    now: Timestamp,
    scaled_job: ScaledJob,
    triggers: Option<Vec<JobTrigger>>,
    jobs: Option<Vec<Job>>,
    create_errors: Option<BTreeMap<String, String>>,
}

/// A scripted scaler. That the first instance failed makes no difference: it was built anew.
#[derive(Deserialize)]
struct JobTrigger {
    metrics: Option<Vec<JobMetric>>,
    resource: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobMetric {
    name: String,
    target_type: String,
    target: Quantity,
    values: Option<Vec<Quantity>>,
    active: bool,
    error: Option<String>,
}

impl JobMetric {
    fn spec(&self) -> MetricSpec {
        let place = if self.target_type == "Value" { "value" } else { "averageValue" };
        let target = json!({"type": self.target_type, place: self.target});
        let external = json!({"metric": {"name": self.name}, "target": target});
        MetricSpec::deserialize(json!({"type": "External", "external": external})).unwrap_or_default()
    }

    fn sample(&self) -> Result<JobReading, OperationError> {
        if let Some(error) = &self.error {
            return Err(error.as_str().into());
        }
        let values = self.values.iter().flatten().map(|value| (self.name.clone(), value.clone()));
        Ok(JobReading { values: values.collect(), active: self.active })
    }
}

impl JobTrigger {
    fn answer(&self) -> JobTriggerResult {
        let metrics = || self.metrics.iter().flatten();
        let specs = match (&self.resource, metrics().next()) {
            (Some(_), _) => Ok(Vec::new()),
            (None, None) => Err("got empty metric spec".into()),
            (None, Some(_)) => Ok(metrics().map(JobMetric::spec).collect()),
        };
        JobTriggerResult {
            specs,
            samples: metrics().map(|metric| (metric.name.clone(), metric.sample())).collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    name: String,
    state: String,
    completion_time: Option<Value>,
    #[serde(default)]
    foreign: bool,
    pods: Option<Vec<RecordedPod>>,
}

#[derive(Deserialize)]
struct RecordedPod {
    phase: String,
    conditions: Option<BTreeMap<String, String>>,
}

impl RecordedPod {
    fn view(&self) -> JobPodView {
        let conditions = self.conditions.iter().flatten();
        let conditions: Vec<Value> =
            conditions.map(|(type_, status)| json!({"type": type_, "status": status})).collect();
        JobPodView::read(&json!({"status": {"phase": self.phase, "conditions": conditions}}))
    }
}

impl Job {
    fn view(&self) -> anyhow::Result<JobView> {
        let condition = |type_: &str, status: &str| json!([{"type": type_, "status": status}]);
        let conditions = match self.state.as_str() {
            "active" => json!([]),
            "complete" => condition("Complete", "True"),
            "failed" => condition("Failed", "True"),
            "suspended" => condition("Suspended", "True"),
            "complete-false" => condition("Complete", "False"),
            other => bail!("unknown state {other:?}"),
        };
        let status = json!({"conditions": conditions, "completionTime": self.completion_time});
        let mut view = JobView::read(&json!({"metadata": {"name": self.name}, "status": status}));
        let pods = self.pods.iter().flatten().map(RecordedPod::view);
        view.pods = Some(pods.collect());
        Ok(view)
    }
}

fn poll(input: &JobPollInput, show_job: bool, compat: Compat) -> anyhow::Result<Value> {
    let scaled = &input.scaled_job;
    let jobs = input.jobs.iter().flatten().filter(|job| !job.foreign);
    let jobs: Vec<JobView> = jobs.map(Job::view).collect::<Result<_, _>>()?;
    let answers: Vec<JobTriggerResult> = input.triggers.iter().flatten().map(JobTrigger::answer).collect();
    let round = gather(scaled, &answers);
    let create = decide(scaled, &round, &jobs, compat);
    let fails = |index: i64| input.create_errors.as_ref().and_then(|errors| errors.get(&index.to_string()));
    let created: Vec<Result<(), OperationError>> =
        (0..create).map(|index| fails(index).map_or(Ok(()), |error| Err(error.as_str().into()))).collect();
    let report = report(scaled, &round, &created, input.now, compat, KedaProfile::V2_20);
    let deleted = history(scaled, &jobs).into_iter().map(|name| json!(format!("{name}/Background")));
    let first = if show_job { job(scaled, KedaProfile::V2_20).map(without_type) } else { None };
    Ok(object([
        ("created", Some(json!(created.iter().filter(|result| result.is_ok()).count()))),
        ("deleted", list(deleted.collect())),
        ("events", list(report.events.iter().map(reported).collect())),
        ("statusPatch", report.patch),
        ("job", first),
    ]))
}

/// As recorded: an object whose type is known.
fn without_type(mut job: Value) -> Value {
    if let Some(members) = job.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    job
}
