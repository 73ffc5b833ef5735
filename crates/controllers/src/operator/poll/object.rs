//! One poll of a ScaledObject: query, decide, apply, report (docs/spec/keda.md 3.2).

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use api::diagnosis::poll_causes;
use api::keda::{ConditionStatus, ScaledObject, types};
use keda::OperationError;
use keda::activity::{self, HpaObservations, MetricSample, TriggerMetric, TriggerResult};
use keda::event::Event;
use keda::executor::ExecutorInput;
use keda::fallback;
use tokio::time::Instant;

use super::scale::decide_and_scale;
use super::{PollOutcome, SHARED_SAMPLE_MAX_AGE, direct};
use crate::operator::apply::Applier;
use crate::operator::context::OperatorContext;
use crate::operator::decide::object::{
    Evaluation, NextStep, ObjectPoll, PollSkip, evaluate, is_hpa_stale, skip,
};
use crate::operator::effect::Effect;
use crate::operator::id::{NamespacedName, ResourceId, ResourceKind};
use crate::operator::object_state::{ObjectEntry, PolledMetrics};
use crate::operator::raw_metrics::MetricRequester;
use crate::operator::record::{RoundRecord, failed_triggers, keep_unpolled};
use crate::operator::scaled_resource::{ScaledResource, poll_interval};
use crate::operator::scalers_cache::{
    CachedScaler, SampleQuery, ScalersCache, TriggerSamples, WokenTriggers, build_error, object_samples,
};
use crate::operator::settings::ScalingMode;

/// Maximum age of an observation of the HPA that a poll uses. An HPA requests its metrics every 15 s.
const OBSERVATION_MAX_AGE: Duration = Duration::from_mins(1);

/// Whether a poll uses samples that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleAge {
    /// Samples that were requested recently are used.
    Shared,
    /// All sources are queried.
    New,
    /// The sources that woke the object are queried.
    Woken(WokenTriggers),
}

/// Maximum age of the samples of triggers that did not wake the object: a wake-up of other triggers does not query them again.
pub(super) fn max_age_of_others(owner: &ScaledResource) -> Duration {
    owner.interval().min(Duration::from_secs(30))
}

impl SampleAge {
    /// The triggers that woke the object.
    pub(super) fn woken(self) -> WokenTriggers {
        match self {
            Self::Woken(woken) => woken,
            Self::Shared | Self::New => WokenTriggers::default(),
        }
    }
}

/// Polls a ScaledObject.
pub(super) async fn poll_object(context: &OperatorContext, id: &ResourceId, age: SampleAge) -> PollOutcome {
    let Some(object) = context.store().object(id) else { return PollOutcome::default() };
    let entry = context.entry(id);
    let owner = ScaledResource::Object(Arc::clone(&object));
    let scalers = context.scalers(&entry, &owner);
    let queried_at = context.clock.now();
    entry.state().poll_began = Some(queried_at);
    // The object is not locked while sources are queried: others may act on it.
    let observed = observed(context, &entry, &object);
    let samples = query(context, &entry, &owner, &scalers, age, &observed).await;
    context.raw_metrics.publish(MetricRequester::Poll, context.clock.now(), id, &scalers, &samples);
    let compat = context.settings.compat;
    let specs = |(scaler, samples): (&CachedScaler, &TriggerSamples)| {
        samples.specs.clone().unwrap_or_else(|_| last_specs(&object, scaler))
    };
    let specs: Vec<Vec<MetricSpec>> = scalers.scalers().iter().zip(&samples).map(specs).collect();
    let build_error = build_error(&samples);
    let mut samples = object_samples(samples, compat);
    if !counts_failures(&entry, &owner, age, &samples) {
        ignore_failures(&mut samples);
    }

    let _lock = entry.decision_lock.lock().await;
    let Some(object) = context.store().object(id) else { return PollOutcome::default() };
    if !scalers.are_of(&ScaledResource::Object(Arc::clone(&object))) {
        return PollOutcome::default();
    }
    let applier = Applier { context, id, metadata: &object.metadata };
    let (formula, build_error) = (scalers.formula(), build_error.as_ref().map(OperationError::as_str));
    let target_missing = entry.state().target_missing;
    match skip(&object, formula, build_error, target_missing, compat) {
        Some(PollSkip::Silent) => return PollOutcome::default(),
        Some(PollSkip::ScalerFailed(event)) => {
            report_failed_scaler(applier, &object, &samples, event).await;
            return PollOutcome::default();
        }
        None => {}
    }
    let facts = context.reader.facts(&object, fallback::needs(&object, &samples, compat)).await;
    let (last_active, created) = {
        let state = entry.state();
        (state.last_active, state.creation_time(&object.metadata))
    };
    let poll = ObjectPoll {
        now: context.clock.now(),
        queried_at,
        object: &object,
        samples: &samples,
        observed: &observed,
        facts: &facts,
        formula,
        build_error,
        last_active,
        created,
        compat,
    };
    let Evaluation { activity, effects, next } = evaluate(&poll);
    keep_assumed_activity(&entry, &object, &next);
    record_poll(context, &entry, &object, &samples, &activity);
    if compat.is_strict() && !activity.rebuild.is_empty() {
        // KEDA builds all scalers anew as soon as one fails. Otherwise the failed one is built anew while it is queried.
        entry.drop_scalers();
    }
    if let Some(error) = &activity.skipped {
        tracing::warn!(
            namespace = &*id.namespace,
            name = id.record_name(),
            error,
            "nothing is decided in this poll"
        );
    }
    let causes = if effects.iter().any(Effect::is_warning) {
        poll_causes(&RoundRecord::new(&poll, activity.active).round(&entry))
    } else {
        Vec::new()
    };
    let effects = effects.into_iter().map(|effect| effect.because(&causes)).collect();
    applier.log_failed_status(applier.apply_all(effects).await);
    let NextStep::Scale(object) = next else { return PollOutcome::default() };
    let activated = activity.active && object.status.conditions.state(types::ACTIVE) != ConditionStatus::True;
    let poll = ObjectPoll { object: &object, ..poll };
    if context.scaling_mode(&object) == ScalingMode::Direct {
        // In a box, because it is larger than the rest of a poll.
        Box::pin(direct::decide_directly(applier, &entry, poll, &activity, &specs)).await;
    } else {
        let input = ExecutorInput::of_round(poll.now, &object, &activity);
        let record = RoundRecord::new(&poll, activity.active).round(&entry);
        decide_and_scale(applier, &object, input, activity.changes.clone(), record).await;
    }
    PollOutcome { hpa_is_stale: is_hpa_stale(&object, &samples), activated }
}

/// Reports a scaler that could not be built, which ends the poll.
async fn report_failed_scaler(
    applier: Applier<'_>,
    object: &ScaledObject,
    samples: &[TriggerResult],
    event: Event,
) {
    let Applier { context, id, .. } = applier;
    let round = failed_triggers(object, samples);
    let event = Effect::Event(event).because(&poll_causes(&round));
    applier.log_failed_status(applier.apply(event).await);
    context.counters.count_build_failure(ResourceKind::Object, &object.metadata);
    keep_unpolled(context, id, poll_interval(object.spec.polling_interval), object, round).await;
}

/// Keeps the time of last activity that a new leader assumes because the status says that the object was active. It is not in the
/// status, and this poll may write that the object is inactive, so that the next poll could not assume it again.
fn keep_assumed_activity(entry: &ObjectEntry, object: &ScaledObject, next: &NextStep) {
    if let NextStep::Scale(evaluated) = next
        && evaluated.status.last_active_time != object.status.last_active_time
    {
        let mut state = entry.state();
        state.last_active = state.last_active.max(evaluated.status.last_active_time);
    }
}

/// What requests of the HPA found out, if this poll may use it: the HPA is there, and it says that it scales by its metrics.
fn observed(context: &OperatorContext, entry: &ObjectEntry, object: &ScaledObject) -> HpaObservations {
    let settings = &context.settings;
    if !settings.profile.behavior().operator.reuses_hpa_observations
        || object.status.hpa_name.is_empty()
        || !activity::uses_hpa_observations(object)
    {
        return HpaObservations::new();
    }
    let name = NamespacedName::new(&object.metadata.namespace, &object.status.hpa_name);
    let condition = context.store().hpas.get(&name).and_then(|hpa| hpa.scaling_active.clone());
    if condition.is_none_or(|condition| condition.status != "True") {
        return HpaObservations::new();
    }
    // In KEDA observations have no age limit, so that a status never changes again once requests stop.
    let max_age = if settings.compat.is_strict() { Duration::MAX } else { OBSERVATION_MAX_AGE };
    entry.state().observed.of(object.metadata.generation, max_age)
}

async fn query(
    context: &OperatorContext,
    entry: &ObjectEntry,
    owner: &ScaledResource,
    scalers: &ScalersCache,
    age: SampleAge,
    observed: &HpaObservations,
) -> Vec<TriggerSamples> {
    let (max_age, max_failure_age) = match age {
        SampleAge::Shared => (
            context.settings.max_age(max_sample_age(context, entry, owner, scalers)),
            context.settings.max_age(SHARED_SAMPLE_MAX_AGE),
        ),
        SampleAge::New => (Duration::ZERO, Duration::ZERO),
        SampleAge::Woken(_) => {
            let max_age = context.settings.max_age(max_age_of_others(owner));
            (max_age, max_age)
        }
    };
    let query = SampleQuery {
        max_age,
        max_failure_age,
        // A response as old as one poll must not answer the next one.
        max_shared_age: context.builder.backends.web.settings().fresh.min(owner.interval() / 2),
        not_before: None,
        deadline: context.settings.source_deadline,
        wanted: &|_| true,
        records: None,
        observed: Some(observed),
        woken: age.woken(),
    };
    let samples = scalers.query(&context.builder, owner, query).await;
    entry.state().poll_queried_at = Some(Instant::now());
    samples
}

/// Whether failures of a poll count for the fallback. KEDA has no polls but those of the schedule, so that of the polls between
/// them at most one per interval counts: the first that has a new failure.
fn counts_failures(
    entry: &ObjectEntry,
    owner: &ScaledResource,
    age: SampleAge,
    samples: &[TriggerResult],
) -> bool {
    let is_scheduled = age == SampleAge::Shared;
    let mut state = entry.state();
    let is_due = state.failures_counted_at.is_none_or(|at| at.elapsed() >= owner.interval());
    let is_new = |sample: &MetricSample| sample.reading.is_err() && !sample.is_remembered;
    if is_scheduled || (is_due && samples.iter().flat_map(TriggerResult::samples).any(is_new)) {
        state.failures_counted_at = Some(Instant::now());
    }
    is_scheduled || is_due
}

/// Treats failures like those of an earlier poll, which are not counted again.
fn ignore_failures(samples: &mut [TriggerResult]) {
    for metric in samples.iter_mut().filter_map(|result| result.metrics.as_mut().ok()).flatten() {
        if let TriggerMetric::External(sample) = metric
            && sample.reading.is_err()
        {
            (sample.is_remembered, sample.is_ignored) = (true, true);
        }
    }
}

/// How old a sample may be that a poll uses. The HPA of an active target requests metrics more often than polls do, so a sample
/// since the last poll is used again. Push triggers report activity themselves, so only a very recent sample will do.
fn max_sample_age(
    context: &OperatorContext,
    entry: &ObjectEntry,
    owner: &ScaledResource,
    scalers: &ScalersCache,
) -> Duration {
    if scalers.are_pushed() {
        return SHARED_SAMPLE_MAX_AGE;
    }
    let since = entry.state().poll_queried_at.map_or(Duration::ZERO, |at| at.elapsed());
    context.settings.sample_age.min(owner.interval() / 2).min(since).max(SHARED_SAMPLE_MAX_AGE)
}

/// Remembers what the next poll and exported metrics need.
fn record_poll(
    context: &OperatorContext,
    entry: &ObjectEntry,
    object: &ScaledObject,
    samples: &[TriggerResult],
    activity: &activity::ActivityState,
) {
    let failed = samples.iter().filter(|samples| match &samples.metrics {
        Err(_) => true,
        Ok(metrics) => {
            metrics.iter().any(|m| matches!(m, TriggerMetric::External(sample) if sample.reading.is_err()))
        }
    });
    let failed = failed.count();
    let mut state = entry.state();
    if !object.spec.triggers.iter().any(|trigger| trigger.use_cached_metrics) {
        state.records = PolledMetrics::default();
    } else if activity.skipped.is_none() {
        state.records = PolledMetrics::new(object.metadata.generation, activity.records.clone());
    }
    state.formula_active = object.modifiers().map(|_| activity.active);
    state.formula_value = activity.composite.as_ref().map(quantity::Quantity::as_f64);
    *state.errors.get_or_insert(0) += failed as u64;
    drop(state);
    context.counters.count_poll();
}

/// The metrics that a trigger listed last; if that was before this process started, those that the status names.
fn last_specs(object: &ScaledObject, scaler: &CachedScaler) -> Vec<MetricSpec> {
    let specs = scaler.last_specs();
    if specs.is_empty() { keda::hpa::metrics_from_status(object, scaler.index()) } else { specs }
}
