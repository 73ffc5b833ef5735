//! Decides again with the readings that the acting controller has written into its status.
//!
//! Both controllers read metrics at different moments, so under a moving load their counts differ although they follow the same
//! rules. A decision with the readings of the acting controller, and with windows that were built from its readings only, shows
//! whether a difference remains: then it is one of logic, otherwise one of timing.

use engine::report::CurrentMetricValue;
use engine::spec::{Metric, MetricSource, MetricTarget, UtilizationBase};
use engine::{
    Decision, MetricSamples, MilliValue, Observation, Pod, PodSamples, Replicas, Sample, ScaleWriteResult,
    State,
};
use jiff::Timestamp;

/// The most pods that are copied for a decision that is made again. Any replica count can be set, also one of which few pods exist.
const MAX_COPIED_PODS: usize = 65_536;

/// The windows and scale events of the acting controller, built from its own history.
#[derive(Debug, Default)]
pub(super) struct Replay {
    state: State,
    /// The replica count that was last seen.
    replicas: Option<Replicas>,
}

/// The end of the interval of values that a rounded reading stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundingEnd {
    Lowest,
    Highest,
}

impl Replay {
    /// The decisions that follow from `readings`; none if they cannot be made. A reading is rounded, so there is one decision for each
    /// end of the interval that it stands for.
    pub(super) fn decide(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        readings: &[Option<CurrentMetricValue>],
    ) -> Vec<Decision> {
        if let Ok(scale) = &seen.scale
            && let Some(before) = self.replicas.replace(scale.spec_replicas)
            && before != scale.spec_replicas
        {
            self.state.observed_change(now, &seen.spec, before, scale.spec_replicas);
        }
        let lowest = replayed(seen, readings, RoundingEnd::Lowest);
        let Some(highest) = replayed(seen, readings, RoundingEnd::Highest) else { return Vec::new() };
        let mut decisions = Vec::new();
        // The state keeps one recommendation per decision.
        if let Some(lowest) = lowest.filter(|lowest| lowest.samples != highest.samples) {
            decisions.push(decide(&mut self.state.clone(), now, &lowest));
        }
        decisions.push(decide(&mut self.state, now, &highest));
        decisions
    }
}

fn decide(state: &mut State, now: Timestamp, seen: &Observation) -> Decision {
    let mut decision = state.step(now, seen);
    state.settle(now, seen, &mut decision, ScaleWriteResult::DryRun);
    decision
}

/// The observation with the readings and the replica count of the acting controller instead of ours; none if the two sides did not
/// read the same metrics, which is a difference of its own.
fn replayed(
    seen: &Observation,
    readings: &[Option<CurrentMetricValue>],
    end: RoundingEnd,
) -> Option<Observation> {
    if readings.len() != seen.samples.len() || readings.len() != seen.spec.metrics.len() {
        return None;
    }
    let mut replayed = seen.clone();
    let scale = replayed.scale.as_mut().ok()?;
    // Its status has the count before its last change.
    if scale.spec_replicas == scale.status_replicas {
        scale.status_replicas = seen.status.current_replicas;
    }
    scale.spec_replicas = seen.status.current_replicas;
    let existing = scale.status_replicas;
    let count = usize::try_from(seen.status.current_replicas.get()).ok()?;
    for ((metric, samples), reading) in seen.spec.metrics.iter().zip(&mut replayed.samples).zip(readings) {
        match (samples.as_ref(), reading) {
            (Err(_), None) => {}
            (Ok(own), Some(reading)) => {
                *samples = Ok(read_as(seen, metric, own, reading, existing, end)?);
            }
            _ => return None,
        }
    }
    if seen
        .scale
        .as_ref()
        .is_ok_and(|scale| usize::try_from(scale.spec_replicas.get()) == Ok(seen.pods.len()))
    {
        if count.saturating_sub(seen.pods.len()) > MAX_COPIED_PODS {
            return None;
        }
        resize(&mut replayed, count);
    }
    Some(replayed)
}

/// As many pods as the acting controller saw: those that came after its decision are left out, and those that went are like the
/// first one.
fn resize(seen: &mut Observation, count: usize) {
    let mut order: Vec<usize> = (0..seen.pods.len()).collect();
    order.sort_by_key(|index| seen.pods.get(*index).and_then(|pod| pod.started).unwrap_or(Timestamp::MAX));
    let Some(first) = order.first().copied() else { return };
    order.resize(count, first);
    let pick = |index: &usize| seen.pods.get(*index).cloned();
    let pods: Vec<Pod> = order.iter().filter_map(pick).collect();
    for samples in &mut seen.samples {
        if let Ok(MetricSamples::PerPod(samples)) = samples {
            let pick = |index: &usize| samples.by_pod.get(*index).copied().flatten();
            samples.by_pod = order.iter().map(pick).collect();
        }
    }
    seen.pods = pods;
}

/// Samples like `own` whose evaluation gives `reading`.
fn read_as(
    seen: &Observation,
    metric: &Metric,
    own: &MetricSamples,
    reading: &CurrentMetricValue,
    existing: Replicas,
    end: RoundingEnd,
) -> Option<MetricSamples> {
    match own {
        MetricSamples::PerPod(own) => {
            let value = |pod: &Pod| match metric.target {
                MetricTarget::Utilization(_) => {
                    used(seen, metric, pod, i64::from(reading.average_utilization?))
                }
                _ => reading.average_value.as_ref().map(MilliValue::from),
            };
            let sample = |(pod, sample): (&Pod, &Option<Sample>)| match sample {
                None => Some(None),
                Some(sample) => Some(Some(Sample { milli: value(pod)?, ..*sample })),
            };
            let by_pod: Option<Vec<_>> = seen.pods.iter().zip(&own.by_pod).map(sample).collect();
            Some(MetricSamples::PerPod(PodSamples { by_pod: by_pod?, stray: Vec::new() }))
        }
        MetricSamples::Totals(_) => {
            let total = match (&reading.value, &reading.average_value) {
                (Some(value), _) => MilliValue::from(value),
                (None, Some(average)) => total(MilliValue::from(average), existing, end)?,
                (None, None) => return None,
            };
            Some(MetricSamples::Totals(vec![total]))
        }
        MetricSamples::NotQueried => Some(MetricSamples::NotQueried),
    }
}

/// The usage of a pod whose utilization is `percent`, rounded up, because utilization is cut to whole percents.
fn used(seen: &Observation, metric: &Metric, pod: &Pod, percent: i64) -> Option<MilliValue> {
    let (resource, container, of): (&str, Option<&str>, UtilizationBase) = match &metric.source {
        MetricSource::Resource { name, of } => (name, None, *of),
        MetricSource::ContainerResource { name, container, of } => (name, Some(container), *of),
        _ => return None,
    };
    let pod_level = seen.config.gates.pod_level_resources;
    let request = i128::from(pod.shape.request(resource, container, of, pod_level).ok()?.get());
    let used = (request * i128::from(percent) + 99).div_euclid(100);
    i64::try_from(used).ok().map(MilliValue::new)
}

/// The total whose average over `existing` replicas, rounded up, is `average`.
fn total(average: MilliValue, existing: Replicas, end: RoundingEnd) -> Option<MilliValue> {
    let count = i64::from(existing.get());
    if count < 1 {
        return None;
    }
    let highest = average.get().checked_mul(count)?;
    Some(MilliValue::new(match end {
        RoundingEnd::Highest => highest,
        RoundingEnd::Lowest => highest.checked_sub(count - 1)?,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster::AutoscalerKey;
    use engine::pod::{ConditionStatus, Container, ReadyCondition, Resources};
    use engine::{ControllerConfig, PodPhase, PodSelection, PodTemplate, Scale, Status};
    use jiff::SignedDuration;
    use quantity::Quantity;

    use super::super::Shadow;
    use super::*;
    use crate::hpa::records::tests::{PERIOD, at, mk_spec};

    /// A target whose pods request 500m of cpu, the controller that acts, and shadow mode beside it.
    struct ActingController {
        now: i64,
        replicas: i32,
        config: ControllerConfig,
        acting: State,
        status: Status,
        own: State,
        shadow: Shadow,
    }

    impl ActingController {
        fn new(config: ControllerConfig) -> Self {
            Self {
                now: 0,
                replicas: 10,
                config,
                acting: State::default(),
                status: Status::default(),
                own: State::default(),
                shadow: Shadow::default(),
            }
        }

        fn observe(&self, config: &ControllerConfig, milli: i64) -> Observation {
            let requests = vec![("cpu".to_owned(), Quantity::parse("500m").unwrap())];
            let resources = Resources { requests, limits: Vec::new() };
            let container = Container { name: "app".into(), restarts: false, resources };
            let shape = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
            let since = at(0) - SignedDuration::from_hours(1);
            let pod = |n: i32| Pod {
                name: format!("web-{n}").into(),
                phase: PodPhase::Running,
                deleting: false,
                started: Some(since),
                ready: Some(ReadyCondition { status: ConditionStatus::True, since }),
                shape: shape.clone(),
            };
            let sample =
                Sample { at: at(self.now), window: SignedDuration::from_secs(15), milli: milli.into() };
            let by_pod = (0..self.replicas).map(|_| Some(sample)).collect();
            Observation {
                config: Arc::new(config.clone()),
                spec: Arc::new(mk_spec("web")),
                status: self.status.clone(),
                scale: Ok(Scale {
                    spec_replicas: self.replicas.into(),
                    status_replicas: self.replicas.into(),
                    selector: "app=web".into(),
                }),
                selection: PodSelection::Ours,
                pods: (0..self.replicas).map(pod).collect(),
                samples: vec![Ok(MetricSamples::PerPod(PodSamples { by_pod, stray: Vec::new() }))],
            }
        }

        /// The controller that acts reads `theirs` per pod and scales; seven seconds later shadow mode reads `ours`. Returns the
        /// fields in which a difference of logic begins.
        fn pass(&mut self, theirs: i64, ours: i64) -> Vec<String> {
            let seen = self.observe(&self.config, theirs);
            let mut decision = self.acting.step(at(self.now), &seen);
            self.acting.settle(at(self.now), &seen, &mut decision, ScaleWriteResult::Done);
            self.replicas = decision.desired.get();
            self.status = decision.status.clone();
            self.now += 7;
            let seen = self.observe(&ControllerConfig::default(), ours);
            let own = decide(&mut self.own, at(self.now), &seen);
            let key = AutoscalerKey::hpa("shop", "web");
            let readings = self.status.metrics.clone().unwrap();
            let replayed = self.shadow.replay(at(self.now), &key, &seen, &readings);
            let (now, spec) = (at(self.now), seen.spec.clone());
            let begun = self.shadow.compare(now, &key, &self.status, &spec, &own, &replayed, PERIOD);
            self.now += 8;
            begun.into_iter().map(|record| record.field).collect()
        }
    }

    #[test]
    fn readings_of_another_moment_are_timing() {
        let mut acting = ActingController::new(ControllerConfig::default());
        for _ in 0..6 {
            // 50 % when they look, 80 % when we do.
            assert_eq!(acting.pass(250, 400), Vec::<String>::new());
        }
        let counts = acting.shadow.counts();
        assert_eq!((counts.differences, counts.timing[0]), ([0; 4], 1));
        assert_eq!((acting.shadow.report(None).timing, acting.shadow.differing()), (1, 0));
        assert_eq!(acting.shadow.report(Some("shop")).timing, 1);
    }

    #[test]
    fn a_peak_that_only_they_saw_is_timing() {
        let mut acting = ActingController::new(ControllerConfig::default());
        acting.pass(250, 250);
        acting.pass(400, 156);
        assert_eq!(acting.replicas, 16);
        for _ in 0..10 {
            // Their window holds 16; ours has never seen more than ten.
            assert_eq!(acting.pass(156, 156), Vec::<String>::new());
        }
        assert_eq!(acting.replicas, 16);
        let counts = acting.shadow.counts();
        assert_eq!((counts.differences, counts.timing[0]), ([0; 4], 1));
    }

    #[test]
    fn another_rule_is_a_difference_of_logic() {
        let mut acting =
            ActingController::new(ControllerConfig { tolerance: 0.5, ..ControllerConfig::default() });
        let begun: Vec<String> = (0..4).flat_map(|_| acting.pass(350, 350)).collect();
        assert_eq!(begun, ["desiredReplicas"], "70 % of 50 % is within their tolerance only");
        assert_eq!(acting.shadow.counts().timing[0], 0);
    }

    #[test]
    fn a_metric_that_only_one_side_reads_is_not_replayed() {
        let acting = ActingController::new(ControllerConfig::default());
        let mut seen = acting.observe(&ControllerConfig::default(), 250);
        seen.status.current_replicas = 10.into();
        let reading = CurrentMetricValue { average_utilization: Some(50), ..CurrentMetricValue::default() };
        assert_eq!(Replay::default().decide(at(0), &seen, &[Some(reading.clone())]).len(), 1);
        assert!(Replay::default().decide(at(0), &seen, &[None]).is_empty());
        assert!(Replay::default().decide(at(0), &seen, &[]).is_empty());
        seen.samples = vec![Err("no answer".into())];
        assert!(Replay::default().decide(at(0), &seen, &[Some(reading)]).is_empty());
    }

    /// A pod for each replica in the status would need more memory than the machine has.
    #[test]
    fn a_count_far_beyond_the_pods_is_not_replayed() {
        let acting = ActingController::new(ControllerConfig::default());
        let mut seen = acting.observe(&ControllerConfig::default(), 250);
        seen.status.current_replicas = i32::MAX.into();
        let reading = CurrentMetricValue { average_utilization: Some(50), ..CurrentMetricValue::default() };
        assert!(Replay::default().decide(at(0), &seen, &[Some(reading)]).is_empty());
    }

    #[test]
    fn a_target_with_many_pods_is_replayed() {
        let mut acting = ActingController::new(ControllerConfig::default());
        acting.replicas = MAX_COPIED_PODS as i32 + 1;
        let mut seen = acting.observe(&ControllerConfig::default(), 250);
        seen.status.current_replicas = (acting.replicas + 1).into();
        let reading = CurrentMetricValue { average_utilization: Some(50), ..CurrentMetricValue::default() };
        assert_eq!(Replay::default().decide(at(0), &seen, &[Some(reading)]).len(), 1);
    }

    #[test]
    fn totals_are_rebuilt_from_rounded_averages() {
        for (total_milli, count) in [(40_000, 3), (39_999, 3), (1, 7), (70_000, 7)] {
            let average = MilliValue::new((total_milli + count - 1) / count);
            let ends = [RoundingEnd::Lowest, RoundingEnd::Highest]
                .map(|end| total(average, Replicas::new(count as i32), end).unwrap().get());
            assert!((ends[0]..=ends[1]).contains(&total_milli), "{total_milli} of {count}: {ends:?}");
        }
        assert_eq!(total(MilliValue::MAX, 2.into(), RoundingEnd::Highest), None);
        assert_eq!(total(MilliValue::MIN, Replicas::ZERO, RoundingEnd::Highest), None);
    }
}
