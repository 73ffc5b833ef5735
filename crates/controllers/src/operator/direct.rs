//! 0 ↔ N without an HPA: our own engine decides, in the same rounds, from the same samples.

use std::sync::Arc;

use api::autoscaling::v2::MetricSpec;
use api::keda::ScaledObject;
use api::selector::Selector;
use cluster::index::{PodIndex, TargetKind};
use cluster::metrics::MetricScope;
use engine::act::ScaleWriteError;
use engine::spec::{Metric, MetricSource, MetricTarget};
use engine::{
    DecisionDetail, MetricSamples, Observation, PodSelection, Scale, ScaleReadError, ScaleWriteResult, Status,
};
use keda::activity::{self, Formula, MetricQuery, TriggerResult};
use keda::direct::{external_samples, needs_pods, plan, step};
use keda::executor::{ExecutorInput, ScaleResult};
use keda::fallback::TargetFacts;

use super::context::{ObjectEntry, OperatorContext};
use super::event_recorder::EventSubject;
use super::id::Id;
use super::poll::{decide_and_write, report};
use super::record::{self, RoundRecord};

/// What is remembered of an object that has no HPA.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    state: engine::State,
    status: Status,
}

/// What a round found out.
pub(crate) struct Round<'a> {
    pub(crate) object: &'a ScaledObject,
    pub(crate) told: &'a [TriggerResult],
    pub(crate) facts: &'a TargetFacts,
    pub(crate) formula: Formula<'a>,
    /// The metrics of all triggers; those of one that cannot tell now are those it told last.
    pub(crate) specs: &'a [Vec<MetricSpec>],
    pub(crate) state: &'a activity::ActivityState,
}

/// Decides after a round. Whoever calls holds the object's gate.
pub(crate) async fn round(context: &OperatorContext, id: &Id, entry: &ObjectEntry, round: Round<'_>) {
    let object = round.object;
    let now = context.clock.now();
    let compat = context.settings.compat;
    let input = ExecutorInput::of_round(now, object, round.state);
    let (told, facts, formula, active) = (round.told, round.facts, round.formula, round.state.active);
    let said = RoundRecord { now, object, told, facts, formula, active, compat }.round();
    let plan = match plan(object, round.specs, compat) {
        Ok(plan) => plan,
        Err(error) => {
            // Without metrics there is only rest and work.
            tracing::debug!(object = %id, %error, "nothing is known to scale by");
            return decide_and_write(context, id, object, input, round.state.changes.clone(), said).await;
        }
    };
    let mut memory = entry.state().direct.take().unwrap_or_default();
    let mut seen = Observation {
        config: context.settings.config.clone(),
        spec: Arc::new(plan.spec),
        status: std::mem::take(&mut memory.status),
        scale: scale(context, object).await,
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    let looked = complete(context, &round, &input, &mut seen).await;
    let step = step(&mut memory.state, &seen, &input, compat, DecisionDetail::Counts);
    let written = match step.write() {
        Some(to) => Some(write(context, id, object, &seen, to).await),
        None => None,
    };
    let mut settled = step.settle(&mut memory.state, context.clock.now(), &seen, written);
    if !looked {
        // PodIndex that nobody looked for are not none.
        settled.decision.selected = None;
    }
    for event in &settled.outcome.events {
        context.events.record_poll(EventSubject::Object, &object.metadata, event);
    }
    for event in &settled.decision.events {
        context.events.record_engine(&object.metadata, event);
    }
    memory.status = settled.decision.status.clone();
    record::keep(context, id, object, &seen.spec, &settled.decision, said);
    entry.state().direct = Some(memory);
    report(context, id, &round.state.changes.clone().then(settled.outcome.changes)).await;
}

async fn scale(context: &OperatorContext, object: &ScaledObject) -> Result<Scale, ScaleReadError> {
    let Some(target) = &object.status.scale_target_gvkr else {
        return Err(ScaleReadError::Query(keda::executor::TARGET_NOT_RESOLVED.to_owned()));
    };
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    if context.reader.cached(&target.group, &target.kind, namespace, name).is_some()
        && let Some(kind) = TargetKind::of(&target.group, &target.kind)
        && let Some(cached) = context.store().scale(kind, namespace, name)
    {
        return Ok(cached.scale);
    }
    let asked = context.client.scale(namespace, name, target).await;
    asked.map(|held| held.scale).map_err(|error| ScaleReadError::Query(error.message))
}

/// MetricSamples, and pods where somebody looks at them; whether somebody does.
async fn complete(
    context: &OperatorContext,
    round: &Round<'_>,
    input: &ExecutorInput<'_>,
    seen: &mut Observation,
) -> bool {
    let Ok(scale) = &seen.scale else { return false };
    let object = round.object;
    let compat = context.settings.compat;
    let read = |metric: &str| {
        let question = MetricQuery { now: input.now, object, metric, formula: round.formula };
        let answer = activity::respond(&question, round.told, round.facts, compat);
        Some(answer.values.map(|values| values.into_iter().map(|value| value.value).collect()))
    };
    let external = external_samples(&seen.spec, read);
    let outside = |metric: &Metric| {
        matches!((&metric.source, &metric.goal), (MetricSource::External(_), MetricTarget::AverageValue(_)))
    };
    let wants_pods = !seen.spec.metrics.iter().all(outside) && needs_pods(input, scale.spec_replicas, compat);
    if wants_pods {
        match context.reader.pods_of(&object.metadata.namespace, &scale.selector).await {
            Ok(pods) => seen.pods = pods,
            Err(error) => seen.selection = PodSelection::Invalid(error),
        }
    }
    let asker = MetricScope {
        namespace: &object.metadata.namespace,
        selector: &scale.selector,
        pods: &seen.pods,
        shared: false,
    };
    let mut samples: Vec<Result<MetricSamples, String>> = Vec::new();
    for (metric, external) in seen.spec.metrics.iter().zip(external) {
        samples.push(match (external, &context.samples) {
            (Some(sample), _) => sample,
            (None, Some(metrics)) => metrics.samples(asker, metric).await,
            (None, None) => Err("nobody was told whom to ask for metrics of pods".to_owned()),
        });
    }
    seen.samples = samples;
    wants_pods
}

async fn write(
    context: &OperatorContext,
    id: &Id,
    object: &ScaledObject,
    seen: &Observation,
    to: i32,
) -> ScaleWriteResult {
    let failed = |text: String| ScaleWriteResult::Failed(ScaleWriteError { text, conflict: false });
    let Some(target) = &object.status.scale_target_gvkr else {
        return failed(keda::executor::TARGET_NOT_RESOLVED.to_owned());
    };
    let from = seen.scale.as_ref().ok().map(|scale| scale.spec_replicas);
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    match context.client.scale_from(namespace, name, target, from, to).await {
        ScaleResult::Written { .. } => {
            tracing::info!(object = %id, to, "scaled");
            ScaleWriteResult::Done
        }
        ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. } => {
            tracing::warn!(object = %id, to, error, "failed to scale a target");
            failed(error)
        }
    }
}

/// The pods of a list, as the engine sees them.
pub(crate) fn engine_pods(namespace: &str, selector: &Selector, list: &[api::pod::Pod]) -> Vec<engine::Pod> {
    let mut pods = PodIndex::default();
    for pod in list {
        pods.apply(pod);
    }
    pods.matching(namespace, selector)
}
