//! The poll of a ScaledObject in scaling mode `direct`: reads the target, its pods and their metrics, and applies the decision.

use std::collections::HashMap;
use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;
use api::keda::ScaledObject;
use cluster::index::TargetKind;
use cluster::metrics::MetricScope;
use engine::provenance::ResponseSharing;
use engine::spec::{Metric, MetricSource, MetricTarget};
use engine::{
    Decision, MetricSamples, Observation, PodSelection, Provenance, RecordedError, Scale, ScaleReadError,
    Spec, TriggerPoll,
};
use jiff::{SignedDuration, Timestamp};
use keda::OperationError;
use keda::activity::{self, AllMetricValues, MetricQuery, TriggerResult};
use keda::direct::{external_samples, needs_pods, plan};
use keda::executor::{ExecutorInput, TARGET_NOT_RESOLVED};
use tokio::time::Instant;

use super::scale::{MAX_SCALE_ATTEMPTS, decide_and_scale};
use crate::operator::apply::{Applied, Applier, ScaleOutcome};
use crate::operator::context::OperatorContext;
use crate::operator::decide::direct::{conclude, decide, scale_effect, written};
use crate::operator::decide::object::ObjectPoll;
use crate::operator::effect::Effect;
use crate::operator::object_state::{DirectState, ObjectEntry};
use crate::operator::record::{self, RoundRecord};
use crate::operator::scaled_resource::poll_interval;

/// Decides and applies after a poll. The caller holds the object's lock. `specs` are the metrics of each trigger; a trigger that
/// does not list them now has those that it listed last.
pub(super) async fn decide_directly(
    applier: Applier<'_>,
    entry: &ObjectEntry,
    poll: ObjectPoll<'_>,
    state: &activity::ActivityState,
    specs: &[Vec<MetricSpec>],
) {
    let (context, id, object) = (applier.context, applier.id, poll.object);
    let (now, compat) = (context.clock.now(), context.settings.compat);
    let input = ExecutorInput::of_round(now, object, state);
    let record = RoundRecord::new(&ObjectPoll { now, ..poll }, state.active).round(entry);
    let plan = match plan(object, specs, compat) {
        Ok(plan) => plan,
        Err(error) => {
            // Without metrics the target is only activated and deactivated.
            tracing::debug!(
                namespace = &*id.namespace, name = id.record_name(), %error,
                "no metric to scale by is known"
            );
            return decide_and_scale(applier, object, input, state.changes.clone(), record).await;
        }
    };
    let jumped = context.clock.jumped();
    let mut direct = TakenDirectState::take(entry);
    let mut observation = Observation {
        config: context.settings.config.clone(),
        spec: Arc::new(plan.spec),
        status: std::mem::take(&mut direct.state.status),
        scale: scale(context, object).await,
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    let before = direct.state.engine.clone();
    let mut attempt = 1;
    let ((looked_at_pods, provenance), step, result) = loop {
        let read = complete(context, entry, &poll, &input, &mut observation).await;
        let step = decide(&mut direct.state.engine, &observation, &input, compat);
        let step = step.in_profile(context.settings.profile);
        let effect = match scale_effect(object, &observation, &step) {
            None => break (read, step, None),
            Some(Err(failed)) => break (read, step, Some(failed)),
            Some(Ok(effect)) => effect,
        };
        let Ok(Applied::Scaled(outcome)) = applier.apply(Effect::Scale(effect)).await else {
            break (read, step, None);
        };
        match (outcome, &mut observation.scale) {
            // The cached count was old: the decision is made again from the count that was found.
            (ScaleOutcome::Moved { to }, Ok(scale)) if attempt < MAX_SCALE_ATTEMPTS => {
                scale.spec_replicas = to.into();
                direct.state.engine = before.clone();
                attempt += 1;
            }
            (outcome, _) => {
                break (read, step, Some(written(outcome.into_scaled())));
            }
        }
    };
    let mut settled = step.settle(&mut direct.state.engine, context.clock.now(), &observation, result);
    if !looked_at_pods {
        // Pods that were not listed must not be reported as zero pods.
        settled.decision.selected = None;
    }
    settled.decision.provenance = provenance;
    direct.state.status = settled.decision.status.clone();
    // A jump of the clock while this state was taken out has not shifted it.
    direct.state.engine.shift(context.clock.jumped().saturating_sub(jumped));
    let effects =
        with_causes(conclude(&settled, state.changes.clone()), &observation.spec, &settled.decision, &record);
    let (status, events): (Vec<_>, Vec<_>) =
        effects.into_iter().partition(|effect| matches!(effect, Effect::MergeStatus(_)));
    applier.log_failed_status(applier.apply_all(events).await);
    let interval = poll_interval(object.spec.polling_interval);
    record::keep(context, id, interval, &observation.spec, &settled.decision, record);
    drop(direct);
    applier.log_failed_status(applier.apply_all(status).await);
}

/// Adds the causes of a decision to its warnings.
fn with_causes(effects: Vec<Effect>, spec: &Spec, decision: &Decision, poll: &TriggerPoll) -> Vec<Effect> {
    if !effects.iter().any(Effect::is_warning) {
        return effects;
    }
    let causes = record::causes(spec, decision, Some(poll));
    effects.into_iter().map(|effect| effect.because(&causes)).collect()
}

/// The engine's state of an object, taken out for a poll. It is put back when this is dropped, also when the poll panics, so that
/// stabilization windows are not lost.
struct TakenDirectState<'a> {
    entry: &'a ObjectEntry,
    state: Box<DirectState>,
}

impl<'a> TakenDirectState<'a> {
    fn take(entry: &'a ObjectEntry) -> Self {
        let state = entry.state().direct.take().unwrap_or_default();
        Self { entry, state }
    }
}

impl Drop for TakenDirectState<'_> {
    fn drop(&mut self) {
        self.entry.state().direct = Some(std::mem::take(&mut self.state));
    }
}

async fn scale(context: &OperatorContext, object: &ScaledObject) -> Result<Scale, ScaleReadError> {
    let Some(target) = &object.status.scale_target_gvkr else {
        return Err(ScaleReadError::Query(TARGET_NOT_RESOLVED.into()));
    };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    if context.reader.cached(&target.group, &target.kind, namespace, name).is_some()
        && let Some(kind) = TargetKind::of(&target.group, &target.kind)
        && let Some(cached) = context.store().scale(kind, namespace, name)
    {
        return Ok(cached.scale);
    }
    let read = context.client.scale(namespace, name, target).await;
    read.map(|held| held.scale).map_err(|error| {
        ScaleReadError::Query(RecordedError::new(error.message.clone(), Some(error.failure())))
    })
}

/// Reads samples, and pods where a metric needs them; returns whether pods were listed, and where the samples came from.
async fn complete(
    context: &OperatorContext,
    entry: &ObjectEntry,
    poll: &ObjectPoll<'_>,
    input: &ExecutorInput<'_>,
    observation: &mut Observation,
) -> (bool, Vec<Provenance>) {
    let Ok(scale) = &observation.scale else { return (false, Vec::new()) };
    let (object, compat) = (poll.object, context.settings.compat);
    let external = external_values(poll, input.now, &observation.spec);
    let is_external_average = |metric: &Metric| {
        matches!((&metric.source, &metric.target), (MetricSource::External(_), MetricTarget::AverageValue(_)))
    };
    let lists_pods = !observation.spec.metrics.iter().all(is_external_average)
        && needs_pods(input, scale.spec_replicas.get(), compat);
    if lists_pods {
        match context.reader.pods_of(&object.metadata.namespace, &scale.selector).await {
            Ok(pods) => observation.pods = pods,
            Err(error) => observation.selection = PodSelection::Invalid(error.to_string()),
        }
    }
    let scope = MetricScope {
        namespace: &object.metadata.namespace,
        selector: &scale.selector,
        pods: &observation.pods,
        shared: false,
    };
    let mut samples: Vec<Result<MetricSamples, RecordedError>> = Vec::new();
    let mut provenance = Vec::with_capacity(observation.spec.metrics.len());
    let triggers = triggers_of(poll.samples);
    for (metric, external) in observation.spec.metrics.iter().zip(external) {
        let (mut from, began) = (Provenance::default(), Instant::now());
        samples.push(match (external, &context.samples) {
            (Some(sample), _) => {
                from = of_trigger(entry, &triggers, metric, sample.as_ref().ok(), input.now);
                sample.map_err(|error| error.to_string().into())
            }
            (None, Some(metrics)) => {
                let samples = metrics.samples_from(scope, metric, &mut from).await;
                from.decided(input.now, SignedDuration::try_from(began.elapsed()).unwrap_or_default());
                samples.map_err(Into::into)
            }
            (None, None) => Err("no source of pod metrics is configured".into()),
        });
        provenance.push(from);
    }
    observation.samples = samples;
    (lists_pods, provenance)
}

/// The values of the external metrics of a spec, in order; none for pod metrics.
fn external_values(
    poll: &ObjectPoll<'_>,
    now: Timestamp,
    spec: &Spec,
) -> Vec<Option<Result<MetricSamples, OperationError>>> {
    let ObjectPoll { object, samples, facts, formula, compat, .. } = *poll;
    let is_single = object.modifiers().is_some() || compat.is_strict();
    let all = (!is_single).then(|| AllMetricValues::of(object, samples, facts));
    external_samples(spec, |metric| {
        let values = match &all {
            Some(all) => all.of_metric(metric),
            None => {
                let metric_query = MetricQuery { now, object, metric, formula };
                activity::respond(&metric_query, samples, facts, compat).values
            }
        };
        let values = values.map(|values| values.into_iter().map(|value| value.value).collect());
        Some(values.map_err(OperationError::from_error))
    })
}

/// The trigger of each metric.
fn triggers_of(samples: &[TriggerResult]) -> HashMap<&str, usize> {
    let metrics = samples.iter().flat_map(|result| result.samples().map(move |sample| (result, sample)));
    metrics.map(|(result, sample)| (sample.name.as_str(), result.trigger)).collect()
}

/// Where the values of a trigger's metric came from. `triggers` has the trigger of each metric; that of a formula has none.
fn of_trigger(
    entry: &ObjectEntry,
    triggers: &HashMap<&str, usize>,
    metric: &Metric,
    samples: Option<&MetricSamples>,
    now: Timestamp,
) -> Provenance {
    let mut from = Provenance { api: "trigger".into(), ..Provenance::default() };
    if let Some(MetricSamples::Totals(values)) = samples {
        from.samples = values.len();
    }
    let MetricSource::External(id) = &metric.source else { return from };
    let origin = entry.scalers().and_then(|scalers| match triggers.get(&*id.name) {
        Some(trigger) => scalers.scalers().get(*trigger)?.origin(Some(&*id.name)),
        None => scalers.origin(&id.name),
    });
    let Some(origin) = origin else { return from };
    from.source = Some(origin.source().into());
    if origin.is_shared {
        from.response = ResponseSharing::Cached;
    }
    if from.samples > 0 {
        let age = SignedDuration::try_from(origin.age).unwrap_or_default();
        from.oldest = now.checked_sub(age).ok();
        from.newest = from.oldest;
    }
    from.decided(now, SignedDuration::try_from(origin.latency).unwrap_or_default());
    from
}
