//! What each round said and what followed from it, kept for people who ask why.

use std::sync::Arc;

use api::autoscaling::v2::MetricTarget;
use api::decisions::DecisionMode;
use api::keda::{COMPOSITE_METRIC, PolledTrigger as Written, ScaledObject};
use api::provider::Compat;
use cluster::{AutoscalerKey, AutoscalerKind};
use engine::round::{Cooldown, FormulaResult, PolledTrigger, TriggerMetric, TriggerPoll};
use engine::spec::{Aggregator, TargetRef};
use engine::{
    ActivationVerdict, Decision, Observation, PodSelection, Scale, ScaleOutcome, ScaleReadError, Spec, State,
    Status,
};
use jiff::{SignedDuration, Timestamp};
use keda::activity::{self, MetricQuery, MetricSample, TriggerResult};
use keda::executor::{self, ExecutorInput, ScaleResult};
use keda::fallback::{self, TargetFacts};

use super::context::OperatorContext;
use super::id::Id;
use super::scalers_cache::interval;

/// So many metrics of one trigger are kept.
const MOST_METRICS: usize = 16;
/// So much of an error is kept.
const LONGEST_ERROR: usize = 300;
/// So much of a formula is kept.
const LONGEST_FORMULA: usize = 200;

/// What a round is made of.
#[derive(Clone, Copy)]
pub(crate) struct RoundRecord<'a> {
    pub(crate) now: Timestamp,
    pub(crate) object: &'a ScaledObject,
    pub(crate) told: &'a [TriggerResult],
    pub(crate) facts: &'a TargetFacts,
    pub(crate) formula: activity::FormulaResult<'a>,
    pub(crate) active: bool,
    pub(crate) compat: Compat,
}

impl RoundRecord<'_> {
    /// What triggers said, as it is kept.
    pub(crate) fn round(&self) -> TriggerPoll {
        let trigger = |told: &TriggerResult| {
            let written = self.object.spec.triggers.get(told.trigger)?;
            let metrics = exactly(told.samples().take(MOST_METRICS).map(|sample| self.heard(sample)));
            let failure = told.metrics.as_ref().err().map(|error| cut(error, LONGEST_ERROR));
            Some(PolledTrigger { metrics, failure, ..trigger(written) })
        };
        TriggerPoll {
            triggers: exactly(self.told.iter().filter_map(trigger)),
            formula: self.composite(),
            cooldown: cooldown(self.object),
            hpa: None,
            pushed: false,
        }
    }

    fn heard(&self, sample: &MetricSample) -> TriggerMetric {
        let MetricSample { name, target, reading, .. } = sample;
        let (target, each) = goal(target);
        let mut heard = TriggerMetric { metric: name.clone(), target, each, ..TriggerMetric::default() };
        match reading {
            Ok(reading) => {
                let sum = reading.values.iter().map(|value| value.value.milli_value());
                heard.value = sum.reduce(i64::saturating_add);
                heard.active = reading.active;
            }
            Err(error) => {
                heard.failure = Some(cut(error, LONGEST_ERROR));
                // Health is counted by who decides; here it is only asked what would be served.
                let mut health = self.object.status.health.clone();
                let served = fallback::serve(self.object, &mut health, sample, self.facts, self.compat);
                heard.fallback = served.ok().and_then(|served| served.replicas);
                heard.active = heard.fallback.is_some_and(|replicas| replicas > 0);
            }
        }
        heard
    }

    fn composite(&self) -> Option<FormulaResult> {
        let modifiers = self.object.modifiers()?;
        let question = MetricQuery {
            now: self.now,
            object: self.object,
            metric: COMPOSITE_METRIC,
            formula: self.formula,
        };
        let answer = activity::respond(&question, self.told, self.facts, self.compat);
        let value = answer.values.map_err(|error| cut(&error, LONGEST_ERROR)).and_then(|values| {
            let sum = values.iter().map(|value| value.value.milli_value()).reduce(i64::saturating_add);
            sum.ok_or_else(|| "no value".to_owned())
        });
        Some(FormulaResult {
            text: cut(&modifiers.formula, LONGEST_FORMULA),
            value,
            target: cut(&modifiers.target, LONGEST_FORMULA),
            activation: cut(&modifiers.activation_target, LONGEST_FORMULA),
            active: self.active,
        })
    }
}

/// Without room for more: most have one, and a list that grows by itself has room for four.
fn exactly<T>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.collect::<Box<[T]>>().into_vec()
}

/// What is kept of a source that told of activity by itself.
pub(crate) fn pushed(object: &ScaledObject, metric: &str) -> TriggerPoll {
    let place = metric.strip_prefix('s').and_then(|rest| rest.split('-').next()?.parse::<usize>().ok());
    let written = place.and_then(|place| object.spec.triggers.get(place));
    let heard = TriggerMetric { metric: metric.to_owned(), active: true, ..TriggerMetric::default() };
    let trigger = written.map(|written| PolledTrigger { metrics: vec![heard], ..trigger(written) });
    TriggerPoll {
        triggers: trigger.into_iter().collect(),
        cooldown: cooldown(object),
        pushed: true,
        ..TriggerPoll::default()
    }
}

/// Keeps what was decided with our own engine.
pub(crate) fn keep(
    context: &OperatorContext,
    id: &Id,
    object: &ScaledObject,
    spec: &Arc<Spec>,
    decision: &Decision,
    round: TriggerPoll,
) {
    let key = key(id);
    let period = SignedDuration::try_from(interval(object.spec.polling_interval)).unwrap_or_default();
    context.records.add_round(&key, DecisionMode::Active, period, spec, decision, Some(round));
}

/// Keeps what was decided about rest and work, where an HPA does what is between them.
pub(crate) fn keep_activity(
    context: &OperatorContext,
    id: &Id,
    input: &ExecutorInput<'_>,
    decided: &executor::ScaleDecision,
    scaled: Option<&ScaleResult>,
    round: TriggerPoll,
) {
    // A source that tells the same again and again decides nothing.
    if round.pushed && decided.scale.is_none() {
        return;
    }
    let object = input.object;
    let spec = Arc::new(spec_of(object));
    let decision = decision(context, &spec, input, decided, scaled);
    let hpa = Some(object.status.hpa_name.clone()).filter(|name| !name.is_empty());
    keep(context, id, object, &spec, &decision, TriggerPoll { hpa, ..round });
}

/// Forgets an object.
pub(crate) fn forget(context: &OperatorContext, id: &Id) {
    context.records.forget(&key(id));
}

fn key(id: &Id) -> AutoscalerKey {
    AutoscalerKey {
        kind: AutoscalerKind::ScaledObject,
        namespace: id.namespace.clone(),
        name: id.name.clone(),
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
            Ok(Scale { spec_replicas: *current, status_replicas: *current, selector: String::new() })
        }
        Err(error) => Err(ScaleReadError::Query(cut(error, LONGEST_ERROR))),
    };
    let current = *input.current.as_ref().unwrap_or(&0);
    let seen = Observation {
        config: context.settings.config.clone(),
        spec: spec.clone(),
        status: Status::default(),
        scale,
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    let mut activation = keda::direct::activation(input, decided, current);
    if let (ActivationVerdict::Metrics, Some(_), false) = (&activation.verdict, input.error, input.active)
        && activation.rest < spec.min
    {
        activation.verdict =
            ActivationVerdict::Held("a trigger cannot be read, and an error never scales down".into());
    }
    let desired = decided.scale.map_or(current, |change| change.to);
    let mut decision = State::default().activity_step(input.now, &seen, activation, desired);
    match scaled {
        Some(ScaleResult::Written { .. }) if desired != current => decision.outcome = ScaleOutcome::Scaled,
        Some(ScaleResult::NotRead(error) | ScaleResult::NotWritten { error, .. }) => {
            decision.outcome = ScaleOutcome::WriteFailed(cut(error, LONGEST_ERROR));
        }
        _ => {}
    }
    // What is told of the object is its own status, not that of an HPA.
    decision.status = Status::default();
    decision
}

/// A ScaledObject as far as rest and work go.
fn spec_of(object: &ScaledObject) -> Spec {
    Spec {
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone(),
        target: TargetRef {
            kind: object.target_kind().to_owned(),
            name: object.spec.scale_target_ref.name.clone(),
        },
        min: object.hpa_min(),
        max: object.hpa_max(),
        metrics: Vec::new(),
        behavior: None,
        aggregator: Aggregator::Max,
    }
}

/// When there may be rest: nothing where there is none.
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

/// A trigger as it is written.
fn trigger(written: &Written) -> PolledTrigger {
    PolledTrigger {
        name: written.name.clone(),
        type_: written.type_.clone(),
        unit: unit(written).to_owned(),
        activation: limit(written),
        ..PolledTrigger::default()
    }
}

/// Above what a trigger is active: all scalers call it `activation…`.
fn limit(written: &Written) -> Option<i64> {
    let own = |name: &str| name.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("activation"));
    let value: f64 = written.metadata.iter().find(|(name, _)| own(name))?.1.trim().parse().ok()?;
    // Beyond the range the cast stays at its end.
    #[allow(clippy::cast_possible_truncation)]
    value.is_finite().then_some((value * 1000.0).round() as i64)
}

/// The unit of a trigger's values, if it is known.
fn unit(written: &Written) -> &str {
    scalers::table::find(&written.type_).map_or("", |scaler| (scaler.unit)(&written.metadata))
}

fn goal(target: &MetricTarget) -> (Option<i64>, bool) {
    let each = target.type_ != "Value";
    let quantity = if each { &target.average_value } else { &target.value };
    (quantity.as_ref().map(quantity::Quantity::milli_value), each)
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
