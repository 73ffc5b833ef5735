//! What a step does differently by release of Kubernetes (docs/spec/hpa.md 11), each in all profiles.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Fixture, cpu, events, external, metric, mk_state, object, proposal, shown};
use engine::report::condition;
use engine::spec::{MetricSource, MetricTarget};
use engine::{ControllerConfig, Decision, KubernetesVersion, PodSelection, ScaleOutcome};

use KubernetesVersion::{V1_36, V1_37};

/// The fixture with the defaults of a release.
fn at(version: KubernetesVersion, mut fixture: Fixture) -> Fixture {
    fixture.config = ControllerConfig::of(version);
    fixture
}

fn conditions(decision: &Decision) -> Vec<String> {
    decision
        .status
        .conditions
        .iter()
        .map(|condition| format!("{}={}", condition.kind, condition.status))
        .collect()
}

#[test]
fn every_rescale_writes_scaled_to_zero_since_1_37() {
    let old = at(V1_36, Fixture::of_three([cpu(50)]).each(900)).run();
    assert_eq!(conditions(&old), ["AbleToScale=True", "ScalingActive=True", "ScalingLimited=False"]);
    let new = at(V1_37, Fixture::of_three([cpu(50)]).each(900)).run();
    assert_eq!(
        conditions(&new),
        ["AbleToScale=True", "ScalingActive=True", "ScalingLimited=False", "ScaledToZero=False"]
    );
    assert_eq!(shown(&new, "ScaledToZero"), "False NotScaledToZero");
    assert_eq!(
        new.status.condition("ScaledToZero").unwrap().message,
        "the HPA controller did not scale the workload to zero"
    );
    assert_eq!(old.desired, new.desired);
    let kept = at(V1_37, Fixture::of_three([cpu(50)]).each(500)).run();
    assert_eq!(conditions(&kept).len(), 3, "without a rescale there is no new condition");
}

#[test]
fn scaled_to_zero_is_removed_at_a_rescale_with_the_gate_off() {
    for version in KubernetesVersion::ALL {
        let mut fixture = at(version, Fixture::of_three([cpu(50)]).each(900));
        fixture.config.gates.scale_to_zero = false;
        fixture.status.set(fixture.now, condition::SCALED_TO_ZERO, false, "NotScaledToZero", "");
        assert_eq!(shown_or_none(&fixture.run()), None, "{version}");
    }
}

fn shown_or_none(decision: &Decision) -> Option<String> {
    decision.status.condition("ScaledToZero").map(|condition| condition.status.to_string())
}

#[test]
fn a_queue_takes_a_target_to_zero_and_back_by_default_since_1_37() {
    let queue = |version, replicas: i32, length| {
        let mut fixture =
            Fixture::of_three([external(MetricTarget::AverageValue(10_000.into()))]).totals(&[length]);
        fixture.spec.min = 0.into();
        let scale = fixture.scale.as_mut().unwrap();
        (scale.spec_replicas, scale.status_replicas) = (replicas.into(), replicas.into());
        at(version, fixture)
    };
    let down = queue(V1_37, 3, 0).with_state(mk_state(&[(0, 10)], &[], &[])).run();
    assert_eq!((down.outcome.clone(), down.desired.get()), (ScaleOutcome::Scaled, 0));
    assert_eq!(shown(&down, "ScaledToZero"), "True ScaledToZero");
    for (version, replicas) in [(V1_36, 0), (V1_37, 2)] {
        let mut up = queue(version, 0, 20_000);
        up.status = down.status.clone();
        assert_eq!(up.run().desired.get(), replicas, "{version}");
    }
    let by_hand = queue(V1_37, 0, 20_000).run();
    assert_eq!(shown(&by_hand, "ScalingActive"), "False ScalingDisabled");
}

#[test]
fn ambiguous_selectors_name_two_autoscalers_since_1_37() {
    let shared = |version, optimized: Option<bool>| {
        let mut fixture = at(version, Fixture::of_three([cpu(50)]).each(900));
        fixture.selection = PodSelection::Shared(vec!["ns/a".into(), "ns/h".into(), "ns/z".into()]);
        if let Some(on) = optimized {
            fixture.config.gates.optimized_selector_store = on;
        }
        let decision = fixture.run();
        let message = decision.status.condition("ScalingActive").unwrap().message.to_string();
        assert_eq!(
            events(&decision),
            [format!("AmbiguousSelector: {message}"), format!("FailedComputeMetricsReplicas: {message}")]
        );
        message
    };
    assert_eq!(
        shared(V1_36, None),
        "pods by selector app=d are controlled by multiple HPAs: [ns/a ns/h ns/z]"
    );
    assert_eq!(
        shared(V1_37, None),
        "pods by selector app=d are controlled by more than one HPA (e.g. [ns/a ns/h])"
    );
    assert_eq!(
        shared(V1_37, Some(false)),
        "pods by selector app=d are controlled by more than one HPA (e.g. [ns/a ns/h ns/z])"
    );
}

#[test]
fn failures_of_object_metrics_have_another_text_since_1_37() {
    let text = |version| {
        let decision =
            at(version, Fixture::of_three([object(MetricTarget::Value(1.into()))]).outage("boom")).run();
        proposal(&decision).unwrap_err().to_owned()
    };
    assert_eq!(text(V1_36), "unable to get metric rps: Ingress on ns main/boom");
    assert_eq!(text(V1_37), "unable to get metric rps on Ingress ns/main: boom");
}

#[test]
fn the_first_metric_that_fails_gives_the_class_since_1_37() {
    let unknown = || metric(MetricSource::Unknown("Cheese".into()), MetricTarget::Missing);
    let class = |version, metrics: [engine::spec::Metric; 2]| {
        at(version, Fixture::of_three(metrics).outage("down").outage("down")).run().error_class()
    };
    for (version, first) in [(V1_36, "internal"), (V1_37, "spec")] {
        assert_eq!(class(version, [unknown(), cpu(50)]), first, "{version}");
        assert_eq!(class(version, [cpu(50), unknown()]), "internal", "{version}");
        // The class is kept as well if the other metrics are enough to decide.
        let mut decided = at(version, Fixture::of_three([unknown(), cpu(50)]).outage("down"));
        decided = decided.each(900);
        let decision = decided.run();
        assert_eq!((decision.error_class(), decision.desired.get()), (first, 6), "{version}");
    }
}

#[test]
fn an_autoscaler_that_is_deleted_meanwhile_does_not_scale() {
    let mut fixture = at(V1_37, Fixture::of_three([cpu(50)]).each(900));
    fixture.selection = PodSelection::Deleted;
    let decision = fixture.run();
    assert_eq!(decision.write(), None);
    assert!(decision.status.condition("ScalingActive").is_none());
    let text = "HPA ns/h was deleted during reconciliation";
    assert_eq!(events(&decision), [format!("FailedComputeMetricsReplicas: {text}")]);
}
