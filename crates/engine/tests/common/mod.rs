//! Builders for tests: a healthy fixture that each test changes.

// Every test binary uses a part of this module.
#![allow(dead_code)]

use std::sync::Arc;

use engine::pod::{ConditionStatus, Container, ReadyCondition, Resources};
use engine::spec::{
    Behavior, Metric, MetricId, MetricSource, MetricTarget, ScalingPolicy, ScalingPolicyType, ScalingRules,
    SelectPolicy, TargetRef, UtilizationBase,
};
use engine::{
    ControllerConfig, Decision, MetricSamples, Observation, Pod, PodPhase, PodSamples, PodSelection,
    PodTemplate, RecordedError, Sample, Scale, ScaleReadError, ScaleWriteResult, Spec, State, Status,
};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

/// Input and state of a step.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) now: Timestamp,
    pub(crate) config: ControllerConfig,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
    pub(crate) scale: Result<Scale, ScaleReadError>,
    pub(crate) selection: PodSelection,
    pub(crate) pods: Vec<Pod>,
    pub(crate) samples: Vec<Result<MetricSamples, RecordedError>>,
    pub(crate) state: State,
}

/// Noon of some day.
pub(crate) fn noon() -> Timestamp {
    Timestamp::from_second(1_767_268_800).unwrap()
}

pub(crate) fn secs(n: i64) -> SignedDuration {
    SignedDuration::from_secs(n)
}

pub(crate) fn mins(n: i64) -> SignedDuration {
    SignedDuration::from_mins(n)
}

/// `ns/h` on Deployment `d`, one to ten replicas, no behavior.
pub(crate) fn mk_spec(metrics: impl Into<Vec<Metric>>) -> Spec {
    Spec {
        namespace: "ns".into(),
        name: "h".into(),
        target: TargetRef { kind: "Deployment".into(), name: "d".into() },
        min: 1.into(),
        max: 10.into(),
        metrics: metrics.into(),
        ..Spec::default()
    }
}

/// An old, ready pod whose one container `c` requests 1 cpu and 1Gi.
pub(crate) fn mk_pod(name: &str) -> Pod {
    let started = noon() - mins(60);
    Pod {
        name: name.into(),
        phase: PodPhase::Running,
        deleting: false,
        started: Some(started),
        ready: Some(ReadyCondition { status: ConditionStatus::True, since: started + secs(10) }),
        shape: Arc::new(mk_shape(&[("cpu", "1"), ("memory", "1Gi")])),
    }
}

/// One container `c` with these requests.
pub(crate) fn mk_shape(requests: &[(&str, &str)]) -> PodTemplate {
    PodTemplate { containers: vec![mk_container("c", requests)], ..PodTemplate::default() }
}

pub(crate) fn mk_container(name: &str, requests: &[(&str, &str)]) -> Container {
    Container { name: name.into(), restarts: false, resources: mk_resources(requests) }
}

pub(crate) fn mk_resources(requests: &[(&str, &str)]) -> Resources {
    Resources { requests: mk_amounts(requests), limits: Vec::new() }
}

pub(crate) fn mk_amounts(amounts: &[(&str, &str)]) -> Vec<(String, Quantity)> {
    amounts.iter().map(|(name, text)| ((*name).to_owned(), Quantity::parse(text).unwrap())).collect()
}

/// A pod that has been unready since ten seconds after its start.
pub(crate) fn never_ready(name: &str) -> Pod {
    let pod = mk_pod(name);
    let since = pod.started.unwrap() + secs(10);
    Pod { ready: Some(ReadyCondition { status: ConditionStatus::False, since }), ..pod }
}

pub(crate) fn pending(name: &str) -> Pod {
    Pod { phase: PodPhase::Pending, started: None, ready: None, ..mk_pod(name) }
}

pub(crate) fn metric(source: MetricSource, target: MetricTarget) -> Metric {
    Metric::new(source, target)
}

/// A cpu metric with this target utilization.
pub(crate) fn cpu(percent: i32) -> Metric {
    resource("cpu", MetricTarget::Utilization(percent))
}

pub(crate) fn resource(name: &str, target: MetricTarget) -> Metric {
    metric(MetricSource::Resource { name: name.into(), of: UtilizationBase::Requests }, target)
}

pub(crate) fn metric_id(name: &str) -> MetricId {
    MetricId { name: name.into(), shown_selector: "nil".into(), selector: Ok(String::new()) }
}

/// Pods metric `rps` with this target average, in thousandths.
pub(crate) fn pods_metric(target: i64) -> Metric {
    metric(MetricSource::Pods(metric_id("rps")), MetricTarget::AverageValue(target.into()))
}

/// Object metric `rps` of Ingress `main`.
pub(crate) fn object(target: MetricTarget) -> Metric {
    let source = MetricSource::Object {
        kind: "Ingress".into(),
        name: "main".into(),
        api_version: Some("networking.k8s.io/v1".into()),
        metric: metric_id("rps"),
    };
    metric(source, target)
}

/// External metric `qlen`.
pub(crate) fn external(target: MetricTarget) -> Metric {
    metric(MetricSource::External(metric_id("qlen")), target)
}

/// Scaling rules without a window; the highest policy wins.
pub(crate) fn mk_rules(policies: &[(ScalingPolicyType, i32, i64)]) -> ScalingRules {
    let policy = |&(kind, value, period): &(ScalingPolicyType, i32, i64)| ScalingPolicy {
        kind,
        value,
        period: secs(period),
    };
    ScalingRules {
        window: Some(SignedDuration::ZERO),
        select: SelectPolicy::Max,
        policies: policies.iter().map(policy).collect(),
        tolerance: None,
    }
}

/// The defaults of `behavior: {}`.
pub(crate) fn default_behavior() -> Behavior {
    let up = mk_rules(&[(ScalingPolicyType::Pods, 4, 15), (ScalingPolicyType::Percent, 100, 15)]);
    let down = ScalingRules { window: None, ..mk_rules(&[(ScalingPolicyType::Percent, 100, 15)]) };
    Behavior { up, down }
}

/// A sample of half a minute that ended just now.
pub(crate) fn sample(milli: i64) -> Sample {
    Sample { at: noon(), window: secs(30), milli: milli.into() }
}

/// Samples of pods; `None` for a pod without a sample.
pub(crate) fn per_pod(values: impl IntoIterator<Item = Option<i64>>) -> MetricSamples {
    MetricSamples::PerPod(PodSamples {
        by_pod: values.into_iter().map(|v| v.map(sample)).collect(),
        stray: Vec::new(),
    })
}

/// A state with these recommendations and changes, each as `[count, seconds ago]`.
pub(crate) fn mk_state(recommended: &[(i32, i64)], ups: &[(i32, i64)], downs: &[(i32, i64)]) -> State {
    let at = |ago: i64| noon() - secs(ago);
    let stamped = |&(value, ago): &(i32, i64)| serde_json::json!({"value": value, "at": at(ago)});
    let change = |&(by, ago): &(i32, i64)| serde_json::json!({"by": by, "at": at(ago)});
    serde_json::from_value(serde_json::json!({
        "recommendations": recommended.iter().map(stamped).collect::<Vec<_>>(),
        "ups": ups.iter().map(change).collect::<Vec<_>>(),
        "downs": downs.iter().map(change).collect::<Vec<_>>(),
    }))
    .unwrap()
}

impl Fixture {
    /// `replicas` healthy pods under `spec`, without samples.
    pub(crate) fn new(spec: Spec, replicas: i32) -> Self {
        Self {
            now: noon(),
            config: ControllerConfig::default(),
            spec,
            status: Status::default(),
            scale: Ok(Scale {
                spec_replicas: replicas.into(),
                status_replicas: replicas.into(),
                selector: "app=d".into(),
            }),
            selection: PodSelection::Ours,
            pods: (0..replicas).map(|i| mk_pod(&format!("p{i}"))).collect(),
            samples: Vec::new(),
            state: State::default(),
        }
    }

    /// Three healthy pods.
    pub(crate) fn of_three(metrics: impl Into<Vec<Metric>>) -> Self {
        Self::new(mk_spec(metrics), 3)
    }

    /// These pods with these samples of the only metric.
    pub(crate) fn pods(mut self, pods: Vec<(Pod, Option<i64>)>) -> Self {
        let (pods, values): (Vec<_>, Vec<_>) = pods.into_iter().unzip();
        self.pods = pods;
        self.samples = vec![Ok(per_pod(values))];
        self
    }

    /// Adds the samples of the next metric: the same value for every pod.
    pub(crate) fn each(mut self, milli: i64) -> Self {
        self.samples.push(Ok(per_pod(self.pods.iter().map(|_| Some(milli)))));
        self
    }

    /// Adds the samples of the next metric: series without pods.
    pub(crate) fn totals(mut self, series: &[i64]) -> Self {
        self.samples.push(Ok(MetricSamples::Totals(series.iter().map(|value| (*value).into()).collect())));
        self
    }

    /// The next metric cannot be read.
    pub(crate) fn outage(mut self, text: &str) -> Self {
        self.samples.push(Err(text.into()));
        self
    }

    /// Sets the existing replicas, if they differ from the desired ones.
    pub(crate) fn existing(mut self, replicas: i32) -> Self {
        if let Ok(scale) = &mut self.scale {
            scale.status_replicas = replicas.into();
        }
        self
    }

    pub(crate) fn with_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    pub(crate) fn observation(&self) -> Observation {
        Observation {
            config: Arc::new(self.config.clone()),
            spec: Arc::new(self.spec.clone()),
            status: self.status.clone(),
            scale: self.scale.clone(),
            selection: self.selection.clone(),
            pods: self.pods.clone(),
            samples: self.samples.clone(),
        }
    }

    /// One step with this result of its write, if any.
    pub(crate) fn step(&mut self, written: ScaleWriteResult) -> Decision {
        let seen = self.observation();
        let mut decision = self.state.step(self.now, &seen);
        self.state.settle(self.now, &seen, &mut decision, written);
        decision.status_written(&self.spec.name, Ok(()));
        decision
    }

    /// One step with a successful write, if any.
    pub(crate) fn run(mut self) -> Decision {
        self.step(ScaleWriteResult::Done)
    }
}

/// The proposal of the only metric, or its error text.
pub(crate) fn proposal(decision: &Decision) -> Result<i32, &str> {
    match &decision.evaluations[0].result {
        Ok(proposal) => Ok(proposal.replicas.get()),
        Err(failure) => Err(&failure.text),
    }
}

/// Status and reason of a condition: `True ReadyForNewScale`; empty if it does not exist.
pub(crate) fn shown(decision: &Decision, kind: &str) -> String {
    decision.status.condition(kind).map(|c| format!("{} {}", c.status, c.reason)).unwrap_or_default()
}

/// Events as `Reason: message`.
pub(crate) fn events(decision: &Decision) -> Vec<String> {
    decision.events.iter().map(|e| format!("{}: {}", e.reason, e.message)).collect()
}

/// The current value of each metric in the status: `average_value`, else `value`.
pub(crate) fn readings(decision: &Decision) -> Vec<Option<String>> {
    let slots = decision.status.metrics.clone().unwrap_or_default();
    let text = |r: engine::report::CurrentMetricValue| r.average_value.or(r.value).map(|q| q.to_string());
    slots.into_iter().map(|slot| slot.and_then(text)).collect()
}
