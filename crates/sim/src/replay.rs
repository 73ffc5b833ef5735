//! Replays what was recorded of one autoscaler with other fields, by the same engine.
//!
//! Recorded are times, counts and metric values. Modelled is how a value depends on the count: the demand, which is the recorded
//! average times the recorded count, is the same and is shared evenly by all replicas; new pods are ready at once; a target for
//! the whole workload (`Value`) has the recorded value at any count.

use std::sync::Arc;

use engine::pod::{ConditionStatus, Container, Pod, PodPhase, PodTemplate, ReadyCondition, Resources};
use engine::spec::{Metric, MetricSource, MetricTarget};
use engine::{
    ControllerConfig, MetricSamples, MilliValue, Observation, PodSamples, PodSelection, RecordedError,
    Sample, Scale, ScaleOutcome, ScaleWriteResult, Spec, State, Status,
};
use jiff::{SignedDuration, Timestamp};
use quantity::{Format, Quantity};

/// Requests and limits of a modelled container, in thousandths.
const REQUEST_MILLI: f64 = 1000.0;
/// Modelled pods have been ready for this long.
const READY_FOR: SignedDuration = SignedDuration::from_hours(1);
/// The container of pods whose containers no metric names.
const CONTAINER: &str = "app";

/// What was recorded of one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedPass {
    /// Time.
    pub at: Timestamp,
    /// The count before the decision.
    pub replicas: i32,
    /// The value of each metric in the unit of its target; absent if it could not be read.
    pub values: Vec<Option<f64>>,
}

/// What the engine decided in one pass of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayedPass {
    /// Time.
    pub at: Timestamp,
    /// The count after the decision.
    pub replicas: i32,
    /// The highest ratio of a metric to its target, at the count before the decision.
    pub ratio: Option<f64>,
}

/// A replay in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayTotals {
    /// Replicas times hours.
    pub pod_hours: f64,
    /// How long a metric was above its target by more than the tolerance.
    pub above_target: SignedDuration,
    /// Number of changes of the count.
    pub changes: u32,
    /// The longest time that a metric stayed above its target; absent if none was.
    pub worst_reaction: Option<SignedDuration>,
    /// The highest count.
    pub peak: i32,
}

/// Replays `passes`, which are sorted by time, with `spec`. The count starts with the recorded one.
pub fn replay(
    spec: &Arc<Spec>,
    config: &Arc<ControllerConfig>,
    passes: &[RecordedPass],
) -> Vec<ReplayedPass> {
    let Some(first) = passes.first() else { return Vec::new() };
    let template = template(spec);
    let since = first.at.checked_sub(READY_FOR).unwrap_or(Timestamp::MIN);
    let (mut state, mut replicas) = (State::default(), first.replicas.max(0));
    let mut seen = Observation {
        config: Arc::clone(config),
        spec: Arc::clone(spec),
        status: Status::default(),
        scale: Ok(scale(replicas)),
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    let mut replayed = Vec::with_capacity(passes.len());
    for pass in passes {
        seen.scale = Ok(scale(replicas));
        if seen.pods.len() != replicas as usize {
            seen.pods = (0..replicas).map(|index| pod(index, &template, since)).collect();
        }
        let values: Vec<Option<f64>> = modelled(spec, pass, replicas).collect();
        let samples = spec.metrics.iter().zip(&values);
        seen.samples =
            samples.map(|(metric, value)| sample(metric, *value, pass.at, replicas, &template)).collect();
        let mut decision = state.step(pass.at, &seen);
        if decision.write().is_some() {
            state.settle(pass.at, &seen, &mut decision, ScaleWriteResult::Done);
        }
        decision.status_written(&spec.name, Ok(()));
        if decision.outcome == ScaleOutcome::Scaled {
            replicas = decision.desired.get().max(0);
        }
        let ratios =
            spec.metrics.iter().zip(&values).filter_map(|(metric, value)| Some((*value)? / target(metric)?));
        let ratio = ratios.filter(|ratio| ratio.is_finite()).max_by(f64::total_cmp);
        replayed.push(ReplayedPass { at: pass.at, replicas, ratio });
        seen.status = decision.status;
    }
    replayed
}

/// The totals of a replay.
pub fn totals(config: &ControllerConfig, passes: &[ReplayedPass]) -> ReplayTotals {
    let mut totals = ReplayTotals {
        pod_hours: 0.0,
        above_target: SignedDuration::ZERO,
        changes: 0,
        worst_reaction: None,
        peak: passes.iter().map(|pass| pass.replicas).max().unwrap_or(0),
    };
    let mut above = SignedDuration::ZERO;
    for (pass, next) in passes.iter().zip(passes.iter().skip(1)) {
        let time = next.at.duration_since(pass.at);
        totals.pod_hours += f64::from(pass.replicas) * time.as_secs_f64() / 3600.0;
        totals.changes += u32::from(next.replicas != pass.replicas);
        if pass.ratio.is_some_and(|ratio| ratio > 1.0 + config.tolerance) {
            above += time;
            totals.above_target += time;
            totals.worst_reaction = totals.worst_reaction.max(Some(above));
        } else {
            above = SignedDuration::ZERO;
        }
    }
    totals
}

/// The values at another count.
fn modelled<'a>(
    spec: &'a Spec,
    pass: &'a RecordedPass,
    replicas: i32,
) -> impl Iterator<Item = Option<f64>> + 'a {
    let factor = f64::from(pass.replicas.max(1)) / f64::from(replicas.max(1));
    spec.metrics.iter().enumerate().map(move |(index, metric)| {
        let value = pass.values.get(index).copied().flatten()?;
        Some(if matches!(metric.target, MetricTarget::Value(_)) { value } else { value * factor })
    })
}

fn target(metric: &Metric) -> Option<f64> {
    match metric.target {
        MetricTarget::Utilization(percent) => Some(f64::from(percent)),
        MetricTarget::AverageValue(milli) | MetricTarget::Value(milli) => Some(milli.get() as f64 / 1000.0),
        MetricTarget::Missing => None,
    }
}

/// The answer of a metrics API that has this value.
fn sample(
    metric: &Metric,
    value: Option<f64>,
    at: Timestamp,
    replicas: i32,
    template: &PodTemplate,
) -> Result<MetricSamples, RecordedError> {
    let value = value.ok_or("no value was recorded")?;
    let milli = |value: f64| MilliValue::from(value.round() as i64);
    let of_pods = |value: f64| {
        let sample = Sample { at, window: SignedDuration::ZERO, milli: milli(value) };
        Ok(MetricSamples::PerPod(PodSamples {
            by_pod: vec![Some(sample); replicas.max(0) as usize],
            stray: Vec::new(),
        }))
    };
    match (&metric.source, metric.target) {
        (_, MetricTarget::Missing) | (MetricSource::Unknown(_), _) => Ok(MetricSamples::NotQueried),
        // A pod requests as much for each of its containers.
        (MetricSource::Resource { .. }, MetricTarget::Utilization(_)) => {
            of_pods(value / 100.0 * REQUEST_MILLI * template.containers.len() as f64)
        }
        (MetricSource::ContainerResource { .. }, MetricTarget::Utilization(_)) => {
            of_pods(value / 100.0 * REQUEST_MILLI)
        }
        (MetricSource::Object { .. } | MetricSource::External(_), MetricTarget::AverageValue(_)) => {
            Ok(MetricSamples::Totals(vec![milli(value * 1000.0 * f64::from(replicas.max(1)))]))
        }
        (MetricSource::Object { .. } | MetricSource::External(_), _) => {
            Ok(MetricSamples::Totals(vec![milli(value * 1000.0)]))
        }
        _ => of_pods(value * 1000.0),
    }
}

fn scale(replicas: i32) -> Scale {
    Scale {
        spec_replicas: replicas.into(),
        status_replicas: replicas.into(),
        selector: "app=replay".to_owned(),
    }
}

/// Pods with the containers and resources that metrics name.
fn template(spec: &Spec) -> Arc<PodTemplate> {
    let (mut containers, mut resources) = (Vec::new(), Vec::new());
    for metric in &spec.metrics {
        match &metric.source {
            MetricSource::Resource { name, .. } => resources.push(name.clone()),
            MetricSource::ContainerResource { name, container, .. } => {
                resources.push(name.clone());
                containers.push(container.clone());
            }
            _ => {}
        }
    }
    containers.sort_unstable();
    containers.dedup();
    resources.sort_unstable();
    resources.dedup();
    if containers.is_empty() {
        containers.push(CONTAINER.to_owned());
    }
    let one = |name: &String| (name.clone(), Quantity::new(1, Format::DecimalSi));
    let amounts: Vec<(String, Quantity)> = resources.iter().map(one).collect();
    let container = |name: String| Container {
        name,
        restarts: false,
        resources: Resources { requests: amounts.clone(), limits: amounts.clone() },
    };
    Arc::new(PodTemplate {
        containers: containers.into_iter().map(container).collect(),
        ..PodTemplate::default()
    })
}

fn pod(index: i32, template: &Arc<PodTemplate>, since: Timestamp) -> Pod {
    Pod {
        name: format!("replayed-{index}").into(),
        phase: PodPhase::Running,
        deleting: false,
        started: Some(since),
        ready: Some(ReadyCondition { status: ConditionStatus::True, since }),
        shape: Arc::clone(template),
    }
}

#[cfg(test)]
mod tests {
    use engine::spec::{MetricId, UtilizationBase};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_767_000_000 + seconds).unwrap()
    }

    fn metric(source: MetricSource, target: MetricTarget) -> Metric {
        Metric::new(source, target)
    }

    fn cpu(percent: i32) -> Metric {
        let source = MetricSource::Resource { name: "cpu".into(), of: UtilizationBase::Requests };
        metric(source, MetricTarget::Utilization(percent))
    }

    fn spec(metrics: Vec<Metric>) -> Arc<Spec> {
        Arc::new(Spec { name: "web".into(), min: 1.into(), max: 20.into(), metrics, ..Spec::default() })
    }

    fn passes(replicas: i32, values: &[Option<f64>]) -> Vec<RecordedPass> {
        let pass = |(index, value): (usize, &Option<f64>)| RecordedPass {
            at: at(index as i64 * 15),
            replicas,
            values: vec![*value],
        };
        values.iter().enumerate().map(pass).collect()
    }

    fn counts(spec: &Arc<Spec>, passes: &[RecordedPass]) -> Vec<i32> {
        replay(spec, &Arc::default(), passes).iter().map(|pass| pass.replicas).collect()
    }

    #[test]
    fn demand_is_shared_by_the_replayed_count() {
        // Four replicas at 100 % have a demand of 400 %: eight at a target of 50, four at 100.
        let recorded = passes(4, &[Some(100.0); 4]);
        assert_eq!(counts(&spec(vec![cpu(50)]), &recorded), [8, 8, 8, 8]);
        assert_eq!(counts(&spec(vec![cpu(100)]), &recorded), [4, 4, 4, 4]);
        let replayed = replay(&spec(vec![cpu(50)]), &Arc::default(), &recorded);
        let ratios: Vec<f64> = replayed.iter().filter_map(|pass| pass.ratio).collect();
        assert_eq!(ratios, [2.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn every_source_can_be_replayed() {
        let id = |name: &str| MetricId {
            name: name.into(),
            shown_selector: "nil".into(),
            selector: Ok(String::new()),
        };
        let container = MetricSource::ContainerResource {
            name: "cpu".into(),
            container: "app".into(),
            of: UtilizationBase::Requests,
        };
        for (metric, expected) in [
            (metric(container, MetricTarget::Utilization(50)), 8),
            (metric(MetricSource::Pods(id("rps")), MetricTarget::AverageValue(50_000.into())), 8),
            (metric(MetricSource::External(id("queue")), MetricTarget::AverageValue(50_000.into())), 8),
            (metric(MetricSource::External(id("queue")), MetricTarget::Value(50_000.into())), 8),
        ] {
            let found = counts(&spec(vec![metric.clone()]), &passes(4, &[Some(100.0)]));
            assert_eq!(found, [expected], "{metric:?}");
        }
    }

    #[test]
    fn missing_values_keep_the_count() {
        let recorded = passes(4, &[None, None]);
        assert_eq!(counts(&spec(vec![cpu(50)]), &recorded), [4, 4]);
        assert!(replay(&spec(vec![cpu(50)]), &Arc::default(), &[]).is_empty());
    }

    #[test]
    fn totals_count_hours_changes_and_reaction() {
        let pass = |seconds: i64, replicas: i32, ratio: f64| ReplayedPass {
            at: at(seconds),
            replicas,
            ratio: Some(ratio),
        };
        let found = totals(
            &ControllerConfig::default(),
            &[pass(0, 2, 1.5), pass(1800, 4, 1.2), pass(3600, 4, 1.05), pass(5400, 4, 1.5)],
        );
        assert_eq!(
            found,
            ReplayTotals {
                pod_hours: 5.0,
                above_target: SignedDuration::from_hours(1),
                changes: 1,
                worst_reaction: Some(SignedDuration::from_hours(1)),
                peak: 4,
            }
        );
    }
}
