//! What a set-up consists of, and the decision that the engine makes in it.

use std::sync::Arc;

use engine::act::ScaleWriteError;
use engine::explain::{explain, explain_trigger_poll};
use engine::pod::{ConditionStatus, Container, Pod, PodPhase, PodTemplate, ReadyCondition, Resources};
use engine::spec::{Metric, MetricId, MetricSource, MetricTarget, Spec, TargetRef, UtilizationBase};
use engine::{
    Activation, ControllerConfig, Decision, DecisionDetail, MetricSamples, Observation, PodSamples,
    PodSelection, RecordedError, RequestFailure, Sample, Scale, ScaleReadError, ScaleWriteResult, State,
    Status, TriggerPoll,
};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use crate::decisions::DecisionMode;
use crate::diagnosis::{ClusterFacts, Diagnosis, DiagnosisFacts, with_causes};

const PERIOD: SignedDuration = SignedDuration::from_secs(15);

/// Everything that one decision depends on.
pub(super) struct TestFacts {
    pub(super) spec: Spec,
    pub(super) scale: Result<Scale, ScaleReadError>,
    pub(super) selection: PodSelection,
    pub(super) pods: Vec<Pod>,
    pub(super) samples: Vec<Result<MetricSamples, RecordedError>>,
    pub(super) state: State,
    pub(super) written: ScaleWriteResult,
    pub(super) mode: DecisionMode,
    pub(super) since: Option<Timestamp>,
    pub(super) activation: Option<Activation>,
    pub(super) poll: Option<TriggerPoll>,
    pub(super) cluster: Option<ClusterFacts>,
}

/// The time of the decision.
pub(super) fn now() -> Timestamp {
    at("09:10:00")
}

pub(super) fn at(time: &str) -> Timestamp {
    format!("2026-01-05T{time}Z").parse().unwrap()
}

pub(super) fn cpu() -> Metric {
    metric(
        MetricSource::Resource { name: "cpu".into(), of: UtilizationBase::Requests },
        MetricTarget::Utilization(50),
    )
}

pub(super) fn metric(source: MetricSource, target: MetricTarget) -> Metric {
    Metric::new(source, target)
}

pub(super) fn named(name: &str) -> MetricId {
    MetricId { name: name.into(), shown_selector: "nil".into(), selector: Ok(String::new()) }
}

pub(super) fn container(name: &str, cpu: Option<&str>) -> Container {
    let requests = cpu.map(|cpu| ("cpu".to_owned(), Quantity::parse(cpu).unwrap())).into_iter().collect();
    Container { name: name.into(), restarts: false, resources: Resources { requests, limits: Vec::new() } }
}

pub(super) fn pod(name: &str, containers: Vec<Container>) -> Pod {
    let since = now() - SignedDuration::from_hours(1);
    Pod {
        name: name.into(),
        phase: PodPhase::Running,
        deleting: false,
        started: Some(since),
        ready: Some(ReadyCondition { status: ConditionStatus::True, since }),
        shape: Arc::new(PodTemplate { containers, ..PodTemplate::default() }),
    }
}

/// A sample of each pod; `None` for a pod without one.
pub(super) fn per_pod(values: &[Option<i64>]) -> Result<MetricSamples, RecordedError> {
    per_pod_at(now(), values)
}

#[allow(clippy::unnecessary_wraps, reason = "an observation has results")]
pub(super) fn per_pod_at(at: Timestamp, values: &[Option<i64>]) -> Result<MetricSamples, RecordedError> {
    let sample = |milli: i64| Sample { at, window: PERIOD, milli: milli.into() };
    let by_pod = values.iter().map(|value| value.map(sample)).collect();
    Ok(MetricSamples::PerPod(PodSamples { by_pod, stray: Vec::new() }))
}

pub(super) fn failed(text: &str, failure: RequestFailure) -> Result<MetricSamples, RecordedError> {
    Err(RecordedError::new(text, Some(failure)))
}

impl TestFacts {
    /// Two healthy pods of `Deployment web` with `container app`, at their cpu target.
    pub(super) fn healthy() -> Self {
        let spec = Spec {
            namespace: "shop".into(),
            name: "web".into(),
            target: TargetRef { kind: "Deployment".into(), name: "web".into() },
            min: 1.into(),
            max: 10.into(),
            metrics: vec![cpu()],
            ..Spec::default()
        };
        Self {
            spec,
            scale: Ok(Scale {
                spec_replicas: 2.into(),
                status_replicas: 2.into(),
                selector: "app=web".into(),
            }),
            selection: PodSelection::Ours,
            pods: ["web-0", "web-1"].map(|name| pod(name, vec![container("app", Some("200m"))])).into(),
            samples: vec![per_pod(&[Some(100), Some(100)])],
            state: State::default(),
            written: ScaleWriteResult::Done,
            mode: DecisionMode::Active,
            since: None,
            activation: None,
            poll: None,
            cluster: None,
        }
    }

    /// With this metric and its samples instead of cpu.
    pub(super) fn with_metric(self, metric: Metric, samples: Result<MetricSamples, RecordedError>) -> Self {
        let mut facts = self;
        facts.spec.metrics = vec![metric];
        facts.samples = vec![samples];
        facts
    }

    pub(super) fn with_samples(self, samples: Result<MetricSamples, RecordedError>) -> Self {
        Self { samples: vec![samples], ..self }
    }

    pub(super) fn without_scale(self, error: ScaleReadError) -> Self {
        Self { scale: Err(error), ..self }
    }

    pub(super) fn with_replicas(self, count: i32) -> Self {
        let scale =
            Scale { spec_replicas: count.into(), status_replicas: count.into(), selector: "app=web".into() };
        Self { scale: Ok(scale), ..self }
    }

    pub(super) fn with_cluster(self, cluster: ClusterFacts) -> Self {
        Self { cluster: Some(cluster), ..self }
    }

    pub(super) fn refusing_writes(self, text: &str) -> Self {
        let written = ScaleWriteResult::Failed(ScaleWriteError { text: text.into(), conflict: false });
        Self { written, ..self }
    }

    fn decide(&self) -> Decision {
        let seen = Observation {
            config: Arc::new(ControllerConfig::default()),
            spec: Arc::new(self.spec.clone()),
            status: Status::default(),
            scale: self.scale.clone(),
            selection: self.selection.clone(),
            pods: self.pods.clone(),
            samples: self.samples.clone(),
        };
        let mut state = self.state.clone();
        if let Some(activation) = &self.activation {
            let current = self.scale.as_ref().map_or(0.into(), |scale| scale.spec_replicas);
            return state.activity_step(now(), &seen, activation.clone(), current);
        }
        let mut decision = state.step_with(now(), &seen, DecisionDetail::Uncounted);
        state.settle(now(), &seen, &mut decision, self.written.clone());
        decision.status_written("web", Ok(()));
        decision
    }

    fn facts<'a>(&'a self, decision: &'a Decision) -> DiagnosisFacts<'a> {
        DiagnosisFacts {
            spec: &self.spec,
            decision,
            poll: self.poll.as_ref(),
            mode: self.mode,
            since: self.since,
            cluster: self.cluster.as_ref(),
        }
    }

    pub(super) fn diagnose(
        &self,
        diagnose: impl Fn(&DiagnosisFacts<'_>) -> Vec<Diagnosis>,
    ) -> Vec<Diagnosis> {
        let decision = self.decide();
        diagnose(&self.facts(&decision))
    }

    /// What `plimsoll why` prints.
    pub(super) fn why(&self) -> String {
        let decision = self.decide();
        let explanation = match &self.poll {
            Some(poll) => explain_trigger_poll("so", &self.spec, &decision, poll, PERIOD),
            None => explain("hpa", &self.spec, &decision, PERIOD),
        };
        with_causes(explanation, &self.facts(&decision)).to_string()
    }
}
