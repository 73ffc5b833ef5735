//! Decisions and objects for tests, made by the engine itself.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::decisions::{API_VERSION, DecisionMeta, DecisionMode, DecisionRecord};
use engine::pod::{ConditionStatus, Container, Pod, PodPhase, PodTemplate, ReadyCondition, Resources};
use engine::{
    ControllerConfig, MetricSamples, Observation, PodSamples, PodSelection, RecordedError, RequestFailure,
    Sample, Scale, ScaleWriteResult, State, Status,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// What is decided when `replicas` pods of 200m each use so much cpu.
pub(crate) fn record(now: &str, replicas: i32, usages: &[i64]) -> DecisionRecord {
    record_of("web", now, replicas, usages)
}

/// An HPA of that name.
pub(crate) fn hpa(name: &str) -> serde_json::Value {
    serde_json::json!({
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-05T09:00:00Z", "resourceVersion": "7"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": 1, "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]},
    })
}

/// The same for an HPA of that name; without any usage, metrics cannot be read.
pub(crate) fn record_of(name: &str, now: &str, replicas: i32, usages: &[i64]) -> DecisionRecord {
    let hpa: HorizontalPodAutoscaler = serde_json::from_value(hpa(name)).unwrap();
    let now = at(now);
    let spec = api::convert::spec_of_hpa(&hpa);
    let requests = vec![("cpu".to_owned(), quantity::Quantity::parse("200m").unwrap())];
    let container = Container {
        name: "app".into(),
        restarts: false,
        resources: Resources { requests, limits: Vec::new() },
    };
    let shape = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let since = now - SignedDuration::from_hours(1);
    let pod = |i: i32| Pod {
        name: format!("{name}-{i}").into(),
        phase: PodPhase::Running,
        deleting: false,
        started: Some(since),
        ready: Some(ReadyCondition { status: ConditionStatus::True, since }),
        shape: shape.clone(),
    };
    let period = SignedDuration::from_secs(15);
    let sample = |milli: &i64| Some(Sample { at: now, window: period, milli: (*milli).into() });
    let samples = if usages.is_empty() {
        let text = "unable to fetch metrics from resource metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)";
        Err(RecordedError::new(text, Some(RequestFailure::Unavailable)))
    } else {
        Ok(MetricSamples::PerPod(PodSamples {
            by_pod: usages.iter().map(sample).collect(),
            stray: Vec::new(),
        }))
    };
    let seen = Observation {
        config: Arc::new(ControllerConfig::default()),
        spec: Arc::new(spec.clone()),
        status: Status::default(),
        scale: Ok(Scale {
            spec_replicas: replicas.into(),
            status_replicas: replicas.into(),
            selector: format!("app={name}"),
        }),
        selection: PodSelection::Ours,
        pods: (0..replicas).map(pod).collect(),
        samples: vec![samples],
    };
    let mut state = State::default();
    let mut decision = state.step(now, &seen);
    state.settle(now, &seen, &mut decision, ScaleWriteResult::Done);
    decision.status_written(name, Ok(()));
    DecisionRecord {
        api_version: API_VERSION.into(),
        kind: "Decision".into(),
        metadata: DecisionMeta { name: format!("hpa.{name}"), namespace: "shop".into() },
        mode: DecisionMode::Active,
        first: now,
        last: now,
        times: 1,
        period,
        spec,
        decision,
        round: None,
    }
}
