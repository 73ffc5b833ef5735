//! Decision records: the samples of each poll and its decision, for `plimsoll why`.

mod job;
mod unpolled;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricTarget;
use api::decisions::DecisionMode;
use api::diagnosis::{Diagnosis, DiagnosisFacts, diagnose};
use api::keda::{COMPOSITE_METRIC, ScaledObject, Trigger as Written};
use api::provider::Compat;
use api::text::truncated as truncate;
use cluster::{AutoscalerKey, AutoscalerKind};
use engine::spec::TargetRef;
use engine::trigger_poll::{Cooldown, FormulaResult, PolledTrigger, SampleRead, TriggerMetric, TriggerPoll};
use engine::{
    ActivationVerdict, Decision, MilliValue, Observation, PodSelection, RecordedError, Replicas,
    RequestFailure, Scale, ScaleOutcome, ScaleReadError, Spec, State, Status,
};
use jiff::{SignedDuration, Timestamp};
use keda::OperationError;
use keda::activity::{self, MetricQuery, MetricSample, TriggerResult};
use keda::executor::{self, ExecutorInput, ScaleResult};
use keda::fallback::{self, TargetFacts};

use super::cluster_reader::ReadError;
use super::context::OperatorContext;
use super::decide::object::ObjectPoll;
use super::id::{ResourceId, ResourceKind};
use super::object_state::ObjectEntry;
use super::retry::retry_delay;
use super::scaled_resource::poll_interval;
use super::scalers_cache::CachedScaler;
use super::trigger_failure::classify;
use crate::hpa::records::PassTimes;
pub(crate) use job::{JobRecord, job_triggers, keep_job};
pub(crate) use unpolled::{
    broken_formula, failed_triggers, keep_unpolled, keep_unpolled_job, refused, unlisted,
};

/// Metrics of one trigger in a record.
const MAX_RECORDED_METRICS: usize = 16;
/// Characters of an error in a record.
const MAX_ERROR_CHARS: usize = 300;
/// Characters of a formula in a record.
const MAX_FORMULA_CHARS: usize = 200;

/// Why an object that could not be reconciled keeps its count.
const NOT_POLLED: &str = "its triggers are not polled";

/// The input of a record.
#[derive(Clone, Copy)]
pub(crate) struct RoundRecord<'a> {
    now: Timestamp,
    object: &'a ScaledObject,
    samples: &'a [TriggerResult],
    facts: &'a TargetFacts,
    formula: activity::Formula<'a>,
    active: bool,
    compat: Compat,
}

impl<'a> RoundRecord<'a> {
    /// Records a poll, and whether the object is active after it.
    pub(crate) fn new(poll: &ObjectPoll<'a>, active: bool) -> Self {
        let ObjectPoll { now, object, samples, facts, formula, compat, .. } = *poll;
        Self { now, object, samples, facts, formula, active, compat }
    }
}

impl RoundRecord<'_> {
    /// The samples of all triggers, and why the last reconcile failed, as they are recorded.
    pub(crate) fn round(&self, entry: &ObjectEntry) -> TriggerPoll {
        let scalers = entry.scalers();
        let trigger = |result: &TriggerResult| {
            let written = self.object.spec.triggers.get(result.trigger)?;
            let scaler = scalers.as_deref().and_then(|scalers| scalers.scalers().get(result.trigger));
            let samples = result.samples().take(MAX_RECORDED_METRICS);
            let metrics = collect_exact(samples.map(|sample| self.metric(sample, scaler)));
            let failure =
                result.metrics.as_ref().err().map(|error| truncate(error.as_str(), MAX_ERROR_CHARS));
            let cause = result.metrics.as_ref().err().map(classify);
            Some(PolledTrigger { metrics, failure, cause, ..trigger(written) })
        };
        TriggerPoll {
            triggers: collect_exact(self.samples.iter().filter_map(trigger)),
            formula: self.composite(),
            cooldown: cooldown(self.object),
            hpa: None,
            pushed: false,
            jobs: None,
            reconcile: entry.state().reconcile_failure.as_deref().cloned(),
        }
    }

    fn metric(&self, sample: &MetricSample, scaler: Option<&CachedScaler>) -> TriggerMetric {
        let MetricSample { name, target, reading, .. } = sample;
        let (target, each) = target_value(target);
        let mut metric = TriggerMetric { metric: name.clone(), target, each, ..TriggerMetric::default() };
        match reading {
            Ok(reading) => {
                let sum = reading.values.iter().map(|value| value.value.milli_value());
                metric.value = sum.reduce(i64::saturating_add).map(MilliValue::new);
                metric.active = reading.active;
                metric.read = scaler.and_then(|scaler| sample_read(scaler, name, self.now));
            }
            Err(error) => {
                metric.failure = Some(truncate(error.as_str(), MAX_ERROR_CHARS));
                metric.cause = Some(classify(error));
                // The poll counts failures in the health; this copy, of one metric, only shows which fallback would be served.
                let known = self.object.status.health.get(name);
                let mut health = known.map(|known| (name.clone(), known.clone())).into_iter().collect();
                let served = fallback::serve(self.object, &mut health, sample, self.facts, self.compat);
                metric.fallback = served.ok().and_then(|served| served.replicas).map(Replicas::new);
                metric.active = metric.fallback.is_some_and(|replicas| replicas > 0);
            }
        }
        metric
    }

    fn composite(&self) -> Option<FormulaResult> {
        let modifiers = self.object.modifiers()?;
        let metric_query = MetricQuery {
            now: self.now,
            object: self.object,
            metric: COMPOSITE_METRIC,
            formula: self.formula,
        };
        let answer = activity::respond(&metric_query, self.samples, self.facts, self.compat);
        let values =
            answer.values.map_err(|error| RecordedError::from(truncate(&error.to_string(), MAX_ERROR_CHARS)));
        let value = values.and_then(|values| {
            let sum = values.iter().map(|value| value.value.milli_value()).reduce(i64::saturating_add);
            sum.map(MilliValue::new).ok_or_else(|| "no value".into())
        });
        Some(FormulaResult {
            text: truncate(&modifiers.formula, MAX_FORMULA_CHARS),
            value,
            target: truncate(&modifiers.target, MAX_FORMULA_CHARS),
            activation: truncate(&modifiers.activation_target, MAX_FORMULA_CHARS),
            active: self.active,
        })
    }
}

/// When and how a metric was last read by the scaler of its trigger.
fn sample_read(scaler: &CachedScaler, metric: &str, now: Timestamp) -> Option<SampleRead> {
    let origin = scaler.origin(Some(metric))?;
    // Finer times say nothing and take space in each record.
    let at = now.checked_sub(SignedDuration::try_from(origin.age).ok()?).ok()?;
    let at = Timestamp::from_millisecond(at.as_millisecond()).ok()?;
    let took = SignedDuration::from_micros(i64::try_from(origin.latency.as_micros()).ok()?);
    Some(SampleRead { at, took, shared: origin.is_shared })
}

/// Collects without spare capacity: most lists have one element, and a growing `Vec` reserves four.
fn collect_exact<T>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.collect::<Box<[T]>>().into_vec()
}

/// The record of a push.
pub(crate) fn pushed(object: &ScaledObject, metric: &str) -> TriggerPoll {
    let place = metric.strip_prefix('s').and_then(|rest| rest.split('-').next()?.parse::<usize>().ok());
    let written = place.and_then(|place| object.spec.triggers.get(place));
    let metric = TriggerMetric { metric: metric.to_owned(), active: true, ..TriggerMetric::default() };
    let trigger = written.map(|written| PolledTrigger { metrics: vec![metric], ..trigger(written) });
    TriggerPoll {
        triggers: trigger.into_iter().collect(),
        cooldown: cooldown(object),
        pushed: true,
        ..TriggerPoll::default()
    }
}

/// The time from a reconcile that fails to the next: triggers are not polled, and each retry comes later than the one before.
pub(crate) fn retry_interval(context: &OperatorContext, id: &ResourceId) -> Duration {
    // The failure that is being recorded is not counted yet.
    let failures = context.known_entry(id).map_or(0, |entry| entry.state().failures);
    retry_delay(failures.saturating_add(1))
}

/// Records a decision of the engine. The next one follows after `interval`.
pub(crate) fn keep(
    context: &OperatorContext,
    id: &ResourceId,
    interval: Duration,
    spec: &Arc<Spec>,
    decision: &Decision,
    round: TriggerPoll,
) {
    let key = key(id);
    let period = SignedDuration::try_from(interval).unwrap_or_default();
    let is_poll = !round.pushed && !round.triggers.is_empty();
    context.records.add_round(&key, DecisionMode::Active, period, spec, decision, Some(round));
    trace(context, id, decision, is_poll);
}

/// Exports the pass that was just kept as a trace. A poll began when its triggers were queried, everything else with the decision.
fn trace(context: &OperatorContext, id: &ResourceId, decision: &Decision, is_poll: bool) {
    context.records.trace(&key(id), || {
        let polled = context.known_entry(id).filter(|_| is_poll).and_then(|entry| entry.state().poll_began);
        let ended = context.clock.now().max(decision.at);
        PassTimes { began: polled.unwrap_or(decision.at).min(decision.at), written: ended, ended }
    });
}

/// Records an activation or deactivation, where an HPA scales in between; returns why the count was not read or written.
pub(crate) fn keep_activity(
    context: &OperatorContext,
    id: &ResourceId,
    input: &ExecutorInput<'_>,
    decided: &executor::ScaleDecision,
    scaled: Option<&ScaleResult>,
    round: TriggerPoll,
) -> Vec<Diagnosis> {
    // A push that changes nothing is not a decision.
    if round.pushed && decided.scale.is_none() {
        return Vec::new();
    }
    let object = input.object;
    let spec = Arc::new(spec_of(object));
    let decision = decision(context, &spec, input, decided, scaled);
    let hpa = Some(object.status.hpa_name.clone()).filter(|name| !name.is_empty());
    let round = TriggerPoll { hpa, ..round };
    let has_failed = input.current.is_err()
        || matches!(scaled, Some(ScaleResult::NotRead(_) | ScaleResult::NotWritten { .. }));
    let causes = if has_failed { causes(&spec, &decision, Some(&round)) } else { Vec::new() };
    keep(context, id, poll_interval(object.spec.polling_interval), &spec, &decision, round);
    causes
}

/// Records that the target of an object was not found, because of which its triggers are not polled; returns the causes.
pub(crate) fn keep_unresolved(
    context: &OperatorContext,
    id: &ResourceId,
    object: &ScaledObject,
    error: &ScaleReadError,
) -> Vec<Diagnosis> {
    let spec = Arc::new(spec_of(object));
    let seen = observation(context, &spec, Err(error.clone()));
    let mut decision = State::default().step(context.clock.now(), &seen);
    decision.status = Status::default();
    keep(context, id, retry_interval(context, id), &spec, &decision, TriggerPoll::default());
    causes(&spec, &decision, None)
}

/// The causes of a decision, without what is known of the cluster.
pub(crate) fn causes(spec: &Spec, decision: &Decision, poll: Option<&TriggerPoll>) -> Vec<Diagnosis> {
    let mode = DecisionMode::Active;
    diagnose(&DiagnosisFacts { spec, decision, poll, mode, since: None, cluster: None })
}

/// Removes the records of an object.
pub(crate) fn forget(context: &OperatorContext, id: &ResourceId) {
    context.records.forget(&key(id));
}

fn key(id: &ResourceId) -> AutoscalerKey {
    let kind = match id.kind {
        ResourceKind::Object => AutoscalerKind::ScaledObject,
        ResourceKind::Job => AutoscalerKind::ScaledJob,
    };
    AutoscalerKey { kind, namespace: id.namespace.clone(), name: id.name.clone() }
}

/// What a step without metrics sees.
fn observation(
    context: &OperatorContext,
    spec: &Arc<Spec>,
    scale: Result<Scale, ScaleReadError>,
) -> Observation {
    Observation {
        config: context.settings.config.clone(),
        spec: spec.clone(),
        status: Status::default(),
        scale,
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    }
}

fn decision(
    context: &OperatorContext,
    spec: &Arc<Spec>,
    input: &ExecutorInput<'_>,
    decided: &executor::ScaleDecision,
    scaled: Option<&ScaleResult>,
) -> Decision {
    let scale = match &input.current {
        Ok(current) => {
            let replicas = Replicas::new(*current);
            Ok(Scale { spec_replicas: replicas, status_replicas: replicas, selector: String::new() })
        }
        Err(error) => Err(unpolled::unread(error)),
    };
    let current = *input.current.as_ref().unwrap_or(&0);
    let seen = observation(context, spec, scale);
    let mut activation = keda::direct::activation(input, decided, current);
    if let (ActivationVerdict::Metrics, Some(_), false) = (&activation.verdict, input.error, input.active)
        && activation.rest < spec.min
    {
        activation.verdict =
            ActivationVerdict::Held("a trigger cannot be read, and an error never scales down".into());
    }
    let desired = decided.scale.map_or(current, |change| change.to);
    let mut decision = State::default().activity_step(input.now, &seen, activation, desired.into());
    match scaled {
        Some(ScaleResult::Written { .. }) if desired != current => decision.outcome = ScaleOutcome::Scaled,
        Some(ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. }) => {
            decision.outcome = ScaleOutcome::WriteFailed(truncate(error.as_str(), MAX_ERROR_CHARS));
        }
        _ => {}
    }
    // The status of the decision is that of an HPA, and this object has its own.
    decision.status = Status::default();
    decision
}

/// What a failed read of the target means, if the API server answered.
fn request_failure(error: &OperationError) -> Option<RequestFailure> {
    match error.source()?.downcast_ref()? {
        ReadError::Request(error) => Some(error.failure()),
        ReadError::WorkloadNotFound { .. } => Some(RequestFailure::NotFound),
        _ => None,
    }
}

/// The spec of a ScaledObject, as far as activation needs it.
fn spec_of(object: &ScaledObject) -> Spec {
    Spec {
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone(),
        target: TargetRef {
            kind: object.target_kind().to_owned(),
            name: object.spec.scale_target_ref.name.clone(),
        },
        min: object.hpa_min().into(),
        max: object.hpa_max().into(),
        metrics: Vec::new(),
        ..Spec::default()
    }
}

/// The cooldown; none if the object is never deactivated.
fn cooldown(object: &ScaledObject) -> Option<Cooldown> {
    let spec = &object.spec;
    let rest = spec.idle_replica_count.or(spec.min_replica_count).unwrap_or(0);
    if rest >= object.hpa_min() {
        return None;
    }
    let (since, period) = match object.status.last_active_time {
        Some(time) => (Some(time), spec.cooldown_period.unwrap_or(300)),
        None => match spec.initial_cooldown_period.filter(|period| *period > 0) {
            Some(period) => (object.metadata.creation_timestamp, period),
            None => (None, spec.cooldown_period.unwrap_or(300)),
        },
    };
    Some(Cooldown { period: SignedDuration::from_secs(period.into()), since })
}

/// The type and name of a trigger.
fn trigger(written: &Written) -> PolledTrigger {
    PolledTrigger {
        name: written.name.clone(),
        type_: written.type_.clone(),
        unit: unit(written).to_owned(),
        activation: activation_threshold(written),
        ..PolledTrigger::default()
    }
}

/// The activation threshold. All scalers name this parameter `activation…`.
fn activation_threshold(written: &Written) -> Option<MilliValue> {
    let own = |name: &str| name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("activation"));
    let value: f64 = written.metadata.iter().find(|(name, _)| own(name))?.1.trim().parse().ok()?;
    // The cast saturates.
    #[allow(clippy::cast_possible_truncation)]
    value.is_finite().then_some(MilliValue::new((value * 1000.0).round() as i64))
}

/// The unit of a trigger's values, if it is known.
fn unit(written: &Written) -> &str {
    scalers::table::find(&written.type_).map_or("", |scaler| (scaler.unit)(&written.metadata))
}

fn target_value(target: &MetricTarget) -> (Option<MilliValue>, bool) {
    let each = target.type_ != "Value";
    let quantity = if each { &target.average_value } else { &target.value };
    (quantity.as_ref().map(MilliValue::from), each)
}

#[cfg(test)]
mod tests;
