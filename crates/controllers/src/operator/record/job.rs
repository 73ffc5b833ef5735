//! Decision records of ScaledJobs: triggers, queue and jobs of each poll.

use std::sync::Arc;

use api::decisions::DecisionMode;
use api::keda::ScaledJob;
use engine::decision::{ErrorClass, StepError};
use engine::spec::TargetRef;
use engine::trigger_poll::{JobCounts, PolledTrigger, ReconcileFailure, TriggerMetric, TriggerPoll};
use engine::{
    Activation, ActivationVerdict, Decision, MilliValue, Replicas, Scale, ScaleOutcome, Spec, State, Status,
};
use jiff::{SignedDuration, Timestamp};
use keda::OperationError;
use keda::jobs::{self, JobPoll, JobReading, JobTriggerResult, JobView};

use super::{
    MAX_ERROR_CHARS, MAX_RECORDED_METRICS, NOT_POLLED, collect_exact, key, observation, retry_interval,
    sample_read, target_value, trace, trigger, truncate,
};
use crate::operator::context::OperatorContext;
use crate::operator::id::ResourceId;
use crate::operator::scaled_resource::poll_interval;
use crate::operator::scalers_cache::{CachedScaler, ScalersCache};
use crate::operator::trigger_failure::classify;

/// One poll of a ScaledJob.
pub(crate) struct JobRecord<'a> {
    pub(crate) now: Timestamp,
    pub(crate) job: &'a ScaledJob,
    /// See [`job_triggers`].
    pub(crate) triggers: Vec<PolledTrigger>,
    /// Why the last reconcile failed.
    pub(crate) reconcile: Option<ReconcileFailure>,
    pub(crate) round: &'a JobPoll,
    /// Whether the triggers were polled.
    pub(crate) is_polled: bool,
    /// The jobs before the poll.
    pub(crate) jobs: &'a [JobView],
    /// How many jobs were to be created.
    pub(crate) wanted: usize,
    pub(crate) created: &'a [Result<(), OperationError>],
}

/// The results of all triggers, as they are recorded.
pub(crate) fn job_triggers(
    job: &ScaledJob,
    results: &[JobTriggerResult],
    scalers: &ScalersCache,
    now: Timestamp,
) -> Vec<PolledTrigger> {
    let one = |((written, result), scaler): ((_, &JobTriggerResult), &CachedScaler)| {
        let samples = result.samples.iter().take(MAX_RECORDED_METRICS);
        let metrics = samples.map(|(name, reading)| {
            let read = reading.as_ref().ok().and_then(|_| sample_read(scaler, name, now));
            TriggerMetric { read, ..metric(result, name, reading) }
        });
        let failure = result.specs.as_ref().err();
        PolledTrigger {
            metrics: collect_exact(metrics),
            cause: failure.map(classify),
            failure: failure.map(error_text),
            ..trigger(written)
        }
    };
    collect_exact(job.spec.triggers.iter().zip(results).zip(scalers.scalers()).map(one))
}

fn metric(
    result: &JobTriggerResult,
    name: &str,
    reading: &Result<JobReading, OperationError>,
) -> TriggerMetric {
    let mut specs = result.specs.iter().flatten().filter_map(|spec| spec.external.as_ref());
    let target = specs.find(|external| external.metric.name == name);
    let (target, each) = target.map_or((None, false), |external| target_value(&external.target));
    let mut metric = TriggerMetric { metric: name.to_owned(), target, each, ..TriggerMetric::default() };
    match reading {
        Ok(reading) => {
            let sum = reading.values.iter().map(|(_, value)| value.milli_value());
            metric.value = sum.reduce(i64::saturating_add).map(MilliValue::new);
            metric.active = reading.active;
        }
        Err(error) => {
            metric.failure = Some(error_text(error));
            metric.cause = Some(classify(error));
        }
    }
    metric
}

/// Records a poll of a ScaledJob: its jobs that have not finished are the count that changes.
pub(crate) fn keep_job(context: &OperatorContext, id: &ResourceId, record: JobRecord<'_>) {
    let counts = record.counts();
    let spec = Arc::new(spec_of(record.job));
    let mut decision = record.decision(context, &spec, &counts);
    // The status of the decision is that of an HPA, and this object has its own.
    decision.status = Status::default();
    let interval = if record.is_polled {
        poll_interval(record.job.spec.polling_interval)
    } else {
        retry_interval(context, id)
    };
    let period = SignedDuration::try_from(interval).unwrap_or_default();
    let JobRecord { triggers, reconcile, .. } = record;
    let round = TriggerPoll { triggers, jobs: Some(counts), reconcile, ..TriggerPoll::default() };
    context.records.add_round(&key(id), DecisionMode::Active, period, &spec, &decision, Some(round));
    trace(context, id, &decision, true);
}

impl JobRecord<'_> {
    fn counts(&self) -> JobCounts {
        let (running, pending) = jobs::running(self.job, self.jobs);
        let created = self.created.iter().filter(|one| one.is_ok()).count();
        let failure = self.created.iter().find_map(|one| one.as_ref().err()).map(error_text);
        JobCounts {
            active: self.round.queue.active,
            queue: self.round.queue.length,
            max_scale: self.round.queue.max_scale(),
            strategy: jobs::strategy_name(&self.job.spec.scaling_strategy).to_owned(),
            running,
            pending,
            wanted: number(self.wanted),
            created: number(created),
            failure: failure
                .or_else(|| (created < self.wanted).then(|| "the creation was not carried out".to_owned())),
        }
    }

    fn decision(&self, context: &OperatorContext, spec: &Arc<Spec>, counts: &JobCounts) -> Decision {
        let running = replicas(counts.running);
        let scale = Scale { spec_replicas: running, status_replicas: running, selector: String::new() };
        let verdict = match (counts.active, &self.round.cause) {
            (true, _) => ActivationVerdict::Metrics,
            (false, Some(_)) if self.is_polled => {
                ActivationVerdict::Held("a trigger cannot be read".to_owned())
            }
            (false, Some(_)) => ActivationVerdict::Held(NOT_POLLED.to_owned()),
            (false, None) => ActivationVerdict::Resting,
        };
        let active = self.triggers.iter().flat_map(|trigger| &trigger.metrics).filter(|metric| metric.active);
        let by = active.map(|metric| metric.metric.clone()).collect();
        let activation = Activation { by, rest: spec.min, verdict };
        let desired = replicas(counts.running.saturating_add(counts.created));
        let seen = observation(context, spec, Ok(scale));
        let mut decision = State::default().activity_step(self.now, &seen, activation, desired);
        let error = counts.failure.as_ref().or(self.round.cause.as_ref());
        let text = error.map(|error| truncate(error, MAX_ERROR_CHARS));
        decision.error = text.map(|text| StepError { text, class: ErrorClass::Internal });
        if counts.created > 0 {
            decision.outcome = ScaleOutcome::Scaled;
        } else if counts.wanted > 0 || (!counts.active && self.round.cause.is_some()) {
            decision.outcome = ScaleOutcome::Failed;
        }
        decision
    }
}

fn spec_of(job: &ScaledJob) -> Spec {
    let bounds = jobs::bounds(job.spec.min_replica_count, job.spec.max_replica_count);
    Spec {
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        target: TargetRef { kind: "Job".to_owned(), name: format!("{}-*", job.metadata.name) },
        min: replicas(bounds.min),
        max: replicas(bounds.min.saturating_add(bounds.max)),
        metrics: Vec::new(),
        ..Spec::default()
    }
}

fn error_text(error: &OperationError) -> String {
    truncate(error.as_str(), MAX_ERROR_CHARS)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn replicas(count: i64) -> Replicas {
    Replicas::new(i32::try_from(count).unwrap_or(i32::MAX))
}
