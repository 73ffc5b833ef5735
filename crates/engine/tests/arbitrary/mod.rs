//! Random autoscalers that the API would accept, and random changes of their targets.

use std::sync::Arc;

use engine::act::ScaleWriteError;
use engine::pod::{ConditionStatus, Container, ReadyCondition};
use engine::report::condition;
use engine::spec::{
    Aggregator, Behavior, FailurePolicy, Metric, MetricSource, MetricTarget, ScalingPolicy,
    ScalingPolicyType, ScalingRules, SelectPolicy, Spec, UtilizationBase,
};
use engine::{MetricSamples, Pod, PodPhase, PodSamples, Replicas, Sample, ScaleOutcome, ScaleWriteResult};
use jiff::SignedDuration;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{Fixture, metric_id, mk_shape, mk_spec, noon, secs};

/// Changes before one step.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// Time since the step before.
    pub(crate) after: i64,
    /// The pods with the sample of each metric.
    pub(crate) pods: Vec<(Pod, Vec<Option<Sample>>)>,
    /// Series of metrics without pods; the sum of no series is zero.
    pub(crate) series: Vec<Vec<i64>>,
    /// Metrics that cannot be read.
    pub(crate) down: Vec<bool>,
    /// Replicas that another client sets.
    pub(crate) manual: Option<i32>,
    /// Result of a write.
    pub(crate) written: ScaleWriteResult,
}

/// At most this many metrics.
const METRICS: usize = 4;

/// A scale write that the API server rejects.
pub(crate) fn refused() -> ScaleWriteResult {
    ScaleWriteResult::Failed(ScaleWriteError { text: "boom".into(), conflict: false })
}

pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    let bounds = (0..=8_i32, 0..=40_i32);
    let metrics = vec((source_and_target(), failure_policy()), 1..=METRICS);
    (bounds, metrics, proptest::option::of(behavior()), aggregator()).prop_map(
        |((min, more), metrics, behavior, aggregator)| {
            let metrics: Vec<_> = metrics
                .into_iter()
                .map(|((source, target), on_failure)| Metric { on_failure, ..Metric::new(source, target) })
                .collect();
            let spec = mk_spec(metrics);
            // The API accepts zero only with a metric that exists without pods.
            let min = if spec.can_leave_zero() { min } else { min.max(1) };
            Spec { min: min.into(), max: (min + more).max(1).into(), behavior, aggregator, ..spec }
        },
    )
}

/// Only fields of Kubernetes: no aggregator and no failure policy.
pub(crate) fn kubernetes_spec() -> impl Strategy<Value = Spec> {
    spec().prop_map(|mut spec| {
        spec.aggregator = Aggregator::Max;
        for metric in &mut spec.metrics {
            metric.on_failure = FailurePolicy::Kubernetes;
        }
        spec
    })
}

pub(crate) fn aggregator() -> impl Strategy<Value = Aggregator> {
    prop_oneof![Just(Aggregator::Max), Just(Aggregator::Min), Just(Aggregator::Average)]
}

pub(crate) fn failure_policy() -> impl Strategy<Value = FailurePolicy> {
    prop_oneof![
        3 => Just(FailurePolicy::Kubernetes),
        1 => Just(FailurePolicy::Hold),
        1 => Just(FailurePolicy::Ignore),
        1 => (0..600_i64).prop_map(|s| FailurePolicy::LastGood(secs(s))),
        1 => (0..50_i32).prop_map(|count| FailurePolicy::Static(count.into())),
    ]
}

fn source_and_target() -> impl Strategy<Value = (MetricSource, MetricTarget)> {
    let resource = prop_oneof![Just("cpu"), Just("memory")];
    let share = prop_oneof![3 => Just(UtilizationBase::Requests), 1 => Just(UtilizationBase::Limits)];
    let per_pod = prop_oneof![
        (1..300_i32).prop_map(MetricTarget::Utilization),
        (1..5000_i64).prop_map(|milli| MetricTarget::AverageValue(milli.into()))
    ];
    let total = prop_oneof![
        (1..50_000_i64).prop_map(|milli| MetricTarget::Value(milli.into())),
        (1..5000_i64).prop_map(|milli| MetricTarget::AverageValue(milli.into()))
    ];
    let object = || MetricSource::Object {
        kind: "Ingress".into(),
        name: "main".into(),
        api_version: None,
        metric: metric_id("rps"),
    };
    prop_oneof![
        (resource.clone(), share.clone(), per_pod.clone())
            .prop_map(|(name, of, target)| (MetricSource::Resource { name: name.into(), of }, target)),
        (resource, share, per_pod).prop_map(|(name, of, target)| {
            (MetricSource::ContainerResource { name: name.into(), container: "c".into(), of }, target)
        }),
        (1..5000_i64)
            .prop_map(|t| (MetricSource::Pods(metric_id("rps")), MetricTarget::AverageValue(t.into()))),
        total.clone().prop_map(move |target| (object(), target)),
        total.prop_map(|target| (MetricSource::External(metric_id("qlen")), target)),
    ]
}

pub(crate) fn behavior() -> impl Strategy<Value = Behavior> {
    (rules(), rules()).prop_map(|(up, down)| Behavior { up, down })
}

fn rules() -> impl Strategy<Value = ScalingRules> {
    let select = prop_oneof![3 => Just(SelectPolicy::Max), 1 => Just(SelectPolicy::Min), 1 => Just(SelectPolicy::Disabled)];
    let tolerance = proptest::option::of(0.0..0.5_f64);
    (proptest::option::of(0..=600_i64), select, vec(policy(), 1..=3), tolerance).prop_map(
        |(window, select, policies, tolerance)| ScalingRules {
            window: window.map(secs),
            select,
            policies,
            tolerance,
        },
    )
}

fn policy() -> impl Strategy<Value = ScalingPolicy> {
    let kind = prop_oneof![Just(ScalingPolicyType::Pods), Just(ScalingPolicyType::Percent)];
    // Mostly usual values, sometimes values that wrap (T32).
    let value = prop_oneof![9 => 1..200_i32, 1 => 1..=i32::MAX];
    (kind, value, 1..=1800_i64).prop_map(|(kind, value, period)| ScalingPolicy {
        kind,
        value,
        period: secs(period),
    })
}

pub(crate) fn ticks(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Tick>> {
    vec(tick(), range)
}

fn tick() -> impl Strategy<Value = Tick> {
    let pods = vec((pod(), vec(proptest::option::weighted(0.9, sample()), METRICS)), 0..10);
    let series = vec(vec(prop_oneof![20 => 0..100_000_i64, 1 => any::<i64>()], 1..3), METRICS);
    let down = vec(proptest::bool::weighted(0.2), METRICS);
    let manual = proptest::option::weighted(0.1, 0..60_i32);
    let written = prop_oneof![
        8 => Just(ScaleWriteResult::Done),
        1 => Just(ScaleWriteResult::DryRun),
        1 => Just(refused()),
    ];
    (1..400_i64, pods, series, down, manual, written).prop_map(
        |(after, pods, series, down, manual, written)| Tick { after, pods, series, down, manual, written },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    (-600..=0_i64, 0..90_i64, prop_oneof![20 => 0..5000_i64, 1 => any::<i64>()]).prop_map(
        |(at, window, milli)| Sample { at: noon() + secs(at), window: secs(window), milli: milli.into() },
    )
}

fn pod() -> impl Strategy<Value = Pod> {
    let phase = prop_oneof![
        8 => Just(PodPhase::Running), 1 => Just(PodPhase::Pending), 1 => Just(PodPhase::Failed), 1 => Just(PodPhase::Other),
    ];
    let truth = prop_oneof![8 => Just(ConditionStatus::True), 2 => Just(ConditionStatus::False), 1 => Just(ConditionStatus::Unknown)];
    let started = proptest::option::weighted(0.95, 0..1200_i64);
    let ready = proptest::option::weighted(0.95, (truth, 0..1200_i64));
    let amounts = proptest::option::weighted(0.97, 1..2000_i64);
    (phase, proptest::bool::weighted(0.1), started, ready, amounts).prop_map(
        |(phase, deleting, started, ready, milli)| Pod {
            name: format!("p{}", milli.unwrap_or_default()).into(),
            phase,
            deleting,
            started: started.map(|ago| noon() - secs(ago)),
            ready: ready.map(|(status, ago)| ReadyCondition { status, since: noon() - secs(ago) }),
            shape: Arc::new(shape(milli)),
        },
    )
}

/// One container; limits are twice the requests.
fn shape(milli: Option<i64>) -> engine::PodTemplate {
    let Some(milli) = milli else { return mk_shape(&[]) };
    let (request, limit) = (format!("{milli}m"), format!("{}m", milli * 2));
    let mut shape = mk_shape(&[("cpu", &request), ("memory", &request)]);
    for Container { resources, .. } in &mut shape.containers {
        resources.limits = crate::common::mk_amounts(&[("cpu", &limit), ("memory", &limit)]);
    }
    shape
}

impl Fixture {
    /// A target with this many replicas under `spec`.
    pub(crate) fn living(spec: Spec, replicas: i32, scale_to_zero: bool) -> Self {
        let mut fixture = Self::new(spec, replicas);
        fixture.config.gates.scale_to_zero = scale_to_zero;
        if replicas == 0 {
            fixture.status.set(noon(), condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
        }
        fixture
    }

    /// Applies the changes before the next step.
    pub(crate) fn pass(&mut self, tick: &Tick) {
        let since = SignedDuration::from_secs(tick.after);
        self.now += since;
        let moved = self.now.duration_since(noon());
        self.pods = tick
            .pods
            .iter()
            .map(|(pod, _)| {
                let mut pod = pod.clone();
                pod.started = pod.started.map(|at| at + moved);
                if let Some(ready) = &mut pod.ready {
                    ready.since += moved;
                }
                pod
            })
            .collect();
        if let Ok(scale) = &mut self.scale {
            scale.spec_replicas = tick.manual.map_or(scale.spec_replicas, Replicas::new);
            scale.status_replicas = Replicas::new(self.pods.len() as i32);
        }
        let answer = |(index, metric): (usize, &Metric)| {
            if tick.down[index] {
                return Err("no answer".into());
            }
            Ok(match metric.source {
                MetricSource::Object { .. } | MetricSource::External(_) => {
                    MetricSamples::Totals(tick.series[index].iter().map(|value| (*value).into()).collect())
                }
                _ => {
                    let shift = |s: Sample| Sample { at: s.at + moved, ..s };
                    let by_pod = tick.pods.iter().map(|(_, found)| found[index].map(shift)).collect();
                    MetricSamples::PerPod(PodSamples { by_pod, stray: Vec::new() })
                }
            })
        };
        self.samples = self.spec.metrics.iter().enumerate().map(answer).collect();
    }

    /// One step, and its changes.
    pub(crate) fn live(&mut self, tick: &Tick) -> engine::Decision {
        self.pass(tick);
        let decision = self.step(tick.written.clone());
        self.follow(&decision);
        decision
    }

    /// Stores status and replicas of a decision.
    pub(crate) fn follow(&mut self, decision: &engine::Decision) {
        self.status = decision.status.clone();
        if let (ScaleOutcome::Scaled, Ok(scale)) = (&decision.outcome, &mut self.scale) {
            scale.spec_replicas = decision.desired;
        }
    }
}
