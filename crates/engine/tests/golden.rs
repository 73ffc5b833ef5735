//! The scenarios of docs/spec/hpa.md Appendix E: one step of `ns/h`, with status and events.
//!
//! Three ready pods that request 1 cpu each, one to ten replicas.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{
    Fixture, cpu, default_behavior, events, external, mk_state, object, readings, resource, secs, shown,
};
use engine::act::ScaleWriteError;
use engine::report::condition;
use engine::spec::MetricTarget;
use engine::{Decision, PodSelection, ScaleOutcome, ScaleReadError, ScaleWriteResult};

const CPU_ABOVE: &str = "cpu resource utilization (percentage of request) above target";

/// Final `AbleToScale / ScalingActive / ScalingLimited`; `-` if a condition does not exist.
fn conditions(decision: &Decision) -> String {
    let kinds = [condition::ABLE_TO_SCALE, condition::SCALING_ACTIVE, condition::SCALING_LIMITED];
    let reason =
        |kind| decision.status.condition(kind).map_or("-".to_owned(), |c| c.reason.clone().into_owned());
    kinds.map(reason).join(" / ")
}

/// Replicas before and after, as the status shows them.
fn replicas(decision: &Decision) -> (i32, i32) {
    (decision.status.current_replicas.get(), decision.status.desired_replicas.get())
}

fn written(decision: &Decision) -> Option<i32> {
    (decision.outcome == ScaleOutcome::Scaled).then_some(decision.desired.get())
}

/// A fixture with `desired` in the status of an earlier step.
fn after_earlier_pass(mut fixture: Fixture, desired: i32) -> Fixture {
    fixture.status.current_replicas = 3.into();
    fixture.status.desired_replicas = desired.into();
    fixture
}

/// Gate on, `replicas` of `min` to 10, scaled by `qlen` with a target of 10 per replica and this value.
fn from_queue(min: i32, replicas: i32, length: i64) -> Fixture {
    let mut fixture =
        Fixture::of_three([external(MetricTarget::AverageValue(10_000.into()))]).totals(&[length]);
    fixture.config.gates.scale_to_zero = true;
    fixture.spec.min = min.into();
    if let Ok(scale) = &mut fixture.scale {
        (scale.spec_replicas, scale.status_replicas) = (replicas.into(), replicas.into());
    }
    fixture
}

fn scaled_to_zero(mut fixture: Fixture) -> Fixture {
    fixture.status.set(fixture.now - secs(60), condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
    fixture
}

#[test]
fn e1_above_target() {
    let decision = Fixture::of_three([cpu(50)]).each(900).run();
    assert_eq!(written(&decision), Some(6));
    assert_eq!(conditions(&decision), "SucceededRescale / ValidMetricFound / DesiredWithinRange");
    assert_eq!(shown(&decision, "ScalingLimited"), "False DesiredWithinRange");
    assert_eq!(replicas(&decision), (3, 6));
    assert_eq!(readings(&decision), [Some("900m".to_owned())]);
    assert_eq!(decision.status.metrics.clone().unwrap()[0].clone().unwrap().average_utilization, Some(90));
    assert_eq!(decision.status.last_scale_time, Some(decision.at));
    assert_eq!(events(&decision), [format!("SuccessfulRescale: New size: 6; reason: {CPU_ABOVE}")]);
}

#[test]
fn e2_on_target() {
    let decision = Fixture::of_three([cpu(50)]).each(500).run();
    assert_eq!(written(&decision), None);
    assert_eq!(conditions(&decision), "ReadyForNewScale / ValidMetricFound / DesiredWithinRange");
    assert_eq!(replicas(&decision), (3, 3));
    assert!(decision.events.is_empty() && decision.error.is_none());
    assert_eq!(decision.status.last_scale_time, None);
}

#[test]
fn e3_no_metrics() {
    let fixture = Fixture::of_three([cpu(50)]).outage("no metrics returned from resource metrics API");
    let decision = after_earlier_pass(fixture, 7).run();
    assert_eq!(written(&decision), None);
    assert_eq!(conditions(&decision), "SucceededGetScale / FailedGetResourceMetric / -");
    assert_eq!(shown(&decision, "ScalingActive"), "False FailedGetResourceMetric");
    assert_eq!(replicas(&decision), (3, 7));
    assert_eq!(readings(&decision), [None]);
    let text = "failed to get cpu utilization: unable to get metrics for resource cpu: \
                no metrics returned from resource metrics API";
    let summary = format!(
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {text}"
    );
    assert_eq!(
        events(&decision),
        [format!("FailedGetResourceMetric: {text}"), format!("FailedComputeMetricsReplicas: {summary}")]
    );
    let error = decision.error.unwrap().text;
    let prefix = "failed to compute desired number of replicas based on listed metrics for Deployment/ns/d: ";
    assert_eq!(error, format!("{prefix}{summary}"));
}

#[test]
fn e4_one_of_two_metrics_fails_and_the_other_scales_up() {
    let decision =
        Fixture::of_three([cpu(50), external(MetricTarget::Value(1.into()))]).each(900).outage("boom").run();
    assert_eq!(written(&decision), Some(6));
    assert_eq!(conditions(&decision), "SucceededRescale / ValidMetricFound / DesiredWithinRange");
    assert_eq!(readings(&decision), [Some("900m".to_owned()), None]);
    let text = "unable to get external metric ns/qlen/nil: boom";
    assert_eq!(events(&decision)[0], format!("FailedGetExternalMetric: {text}"));
    assert!(events(&decision)[1].starts_with("SuccessfulRescale"));
    let prefix = "invalid metrics (1 invalid out of 2), first error is: \
                  failed to get qlen external metric value: failed to get external metric qlen: ";
    assert_eq!(decision.error.unwrap().text, format!("{prefix}{text}"));
}

#[test]
fn e5_one_of_two_metrics_fails_and_blocks_scale_down() {
    let fixture =
        Fixture::of_three([external(MetricTarget::Value(1.into())), cpu(50)]).outage("boom").each(100);
    let decision = after_earlier_pass(fixture, 5).run();
    assert_eq!(written(&decision), None);
    assert_eq!(conditions(&decision), "SucceededGetScale / FailedGetExternalMetric / -");
    assert_eq!(replicas(&decision), (3, 5));
    assert_eq!(readings(&decision), [None, Some("100m".to_owned())]);
    let reasons: Vec<_> = decision.events.iter().map(|e| e.reason.as_ref()).collect();
    assert_eq!(reasons, ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]);
}

#[test]
fn e6_zero_is_paused() {
    let mut fixture = from_queue(1, 0, 25_000);
    fixture.config.gates.scale_to_zero = false;
    let decision = scaled_to_zero(fixture).run();
    assert_eq!(written(&decision), None);
    assert_eq!(conditions(&decision), "SucceededGetScale / ScalingDisabled / -");
    assert_eq!(replicas(&decision), (0, 0));
    assert_eq!(decision.status.metrics, None);
    assert!(decision.status.condition(condition::SCALED_TO_ZERO).is_none(), "removed while the gate is off");
    assert!(decision.events.is_empty());
}

#[test]
fn e7_above_the_upper_bound() {
    let mut fixture = Fixture::of_three([cpu(50)]).each(900);
    fixture.spec.max = 2.into();
    let decision = fixture.run();
    assert_eq!(written(&decision), Some(2));
    assert_eq!(conditions(&decision), "SucceededRescale / - / -");
    assert_eq!((replicas(&decision), &decision.status.metrics), ((3, 2), &None));
    let reason = "Current number of replicas above Spec.MaxReplicas";
    assert_eq!(events(&decision), [format!("SuccessfulRescale: New size: 2; reason: {reason}")]);
}

#[test]
fn e8_e9_e10_no_scale() {
    let failures = [
        (ScaleReadError::InvalidApiVersion("unexpected GroupVersion string: a/b/c".into()), "spec"),
        (ScaleReadError::UnknownKind("no matches for kind \"Bar\" in group \"foo\"".into()), "internal"),
        (ScaleReadError::Query("deployments.apps \"d\" not found".into()), "internal"),
    ];
    for (failure, class) in failures {
        let text = failure.text().to_owned();
        let mut fixture = after_earlier_pass(Fixture::of_three([cpu(50)]).each(900), 7);
        fixture.scale = Err(failure);
        let decision = fixture.run();
        assert_eq!(written(&decision), None);
        assert_eq!(shown(&decision, "AbleToScale"), "False FailedGetScale");
        assert_eq!(replicas(&decision), (3, 7), "unchanged");
        assert_eq!(events(&decision), [format!("FailedGetScale: {text}")]);
        assert_eq!(decision.error_class(), class);
    }
}

#[test]
fn e11_the_write_fails() {
    let mut fixture = after_earlier_pass(Fixture::of_three([cpu(50)]).each(900), 4);
    let decision =
        fixture.step(ScaleWriteResult::Failed(ScaleWriteError { text: "boom".into(), conflict: false }));
    assert_eq!(decision.outcome, ScaleOutcome::WriteFailed("boom".into()));
    assert_eq!(conditions(&decision), "FailedUpdateScale / ValidMetricFound / DesiredWithinRange");
    assert_eq!(shown(&decision, "AbleToScale"), "False FailedUpdateScale");
    assert_eq!(replicas(&decision), (3, 4), "the previous desired count");
    assert_eq!(readings(&decision), [Some("900m".to_owned())]);
    assert_eq!(events(&decision), [format!("FailedRescale: New size: 6; reason: {CPU_ABOVE}; error: boom")]);
    assert_eq!(decision.error.unwrap().text, "failed to rescale Deployment/ns/d: boom");
}

#[test]
fn e12_no_selector() {
    let mut fixture = after_earlier_pass(Fixture::of_three([cpu(50)]).each(900), 4);
    fixture.scale.as_mut().unwrap().selector.clear();
    let decision = fixture.run();
    assert_eq!(written(&decision), None);
    assert_eq!(conditions(&decision), "SucceededGetScale / InvalidSelector / -");
    assert_eq!((replicas(&decision), &decision.status.metrics), ((3, 4), &None));
    let expected =
        ["SelectorRequired: selector is required", "FailedComputeMetricsReplicas: selector is required"];
    assert_eq!(events(&decision), expected);
}

#[test]
fn e13_two_autoscalers_select_the_same_pods() {
    let mut fixture = after_earlier_pass(Fixture::of_three([cpu(50)]).each(900), 4);
    fixture.selection = PodSelection::Shared(vec!["ns/h".into(), "ns/other".into()]);
    let decision = fixture.run();
    assert_eq!(conditions(&decision), "SucceededGetScale / AmbiguousSelector / -");
    assert_eq!((replicas(&decision), &decision.status.metrics), ((3, 4), &None));
    let text = "pods by selector app=d are controlled by multiple HPAs: [ns/h ns/other]";
    assert_eq!(
        events(&decision),
        [format!("AmbiguousSelector: {text}"), format!("FailedComputeMetricsReplicas: {text}")]
    );
}

#[test]
fn e14_series_are_added() {
    let decision = Fixture::of_three([external(MetricTarget::AverageValue(10_000.into()))])
        .totals(&[20_000, 21_000])
        .run();
    assert_eq!((written(&decision), replicas(&decision)), (Some(5), (3, 5)));
    assert_eq!(readings(&decision), [Some("13667m".to_owned())]);
    let active = decision.status.condition("ScalingActive").unwrap();
    let message = "the HPA was able to successfully calculate a replica count from external metric qlen(nil)";
    assert_eq!(active.message, message);
}

#[test]
fn e15_object_value() {
    let decision = Fixture::of_three([object(MetricTarget::Value(10_000.into()))]).totals(&[20_000]).run();
    assert_eq!(written(&decision), Some(6));
    assert_eq!(readings(&decision), [Some("20".to_owned())]);
    assert_eq!(
        events(&decision),
        ["SuccessfulRescale: New size: 6; reason: Ingress metric rps above target"]
    );
}

#[test]
fn e16_memory_is_shown_in_binary_units() {
    let target = MetricTarget::AverageValue((100 * 1024 * 1024 * 1000).into());
    let decision = Fixture::of_three([resource("memory", target)]).each(200 * 1024 * 1024 * 1000).run();
    assert_eq!(written(&decision), Some(6));
    assert_eq!(readings(&decision), [Some("200Mi".to_owned())]);
    assert_eq!(events(&decision), ["SuccessfulRescale: New size: 6; reason: memory resource above target"]);
}

#[test]
fn e17_to_zero() {
    let decision = from_queue(0, 3, 0).with_state(mk_state(&[(3, 301)], &[], &[])).run();
    assert_eq!((written(&decision), replicas(&decision)), (Some(0), (3, 0)));
    assert_eq!(conditions(&decision), "SucceededRescale / ValidMetricFound / DesiredWithinRange");
    assert_eq!(shown(&decision, "ScaledToZero"), "True ScaledToZero");
    assert_eq!(readings(&decision), [Some("0".to_owned())]);
    assert_eq!(events(&decision), ["SuccessfulRescale: New size: 0; reason: All metrics below target"]);
}

#[test]
fn e18_from_zero() {
    let decision = scaled_to_zero(from_queue(0, 0, 25_000)).run();
    assert_eq!((written(&decision), replicas(&decision)), (Some(3), (0, 3)));
    assert_eq!(shown(&decision, "ScaledToZero"), "False NotScaledToZero");
    assert_eq!(readings(&decision), [Some("-9223372036854775808m".to_owned())]);
    assert_eq!(
        events(&decision),
        ["SuccessfulRescale: New size: 3; reason: external metric qlen(nil) above target"]
    );
}

#[test]
fn e19_from_zero_to_the_lower_bound() {
    let mut fixture = scaled_to_zero(from_queue(2, 0, 0));
    fixture.spec.behavior = Some(default_behavior());
    let decision = fixture.run();
    assert_eq!((written(&decision), replicas(&decision)), (Some(2), (0, 2)));
    let reason = "Current number of replicas below Spec.MinReplicas";
    assert_eq!(events(&decision), [format!("SuccessfulRescale: New size: 2; reason: {reason}")]);
}

#[test]
fn e20_zero_set_by_another_client_stays() {
    let decision = from_queue(0, 0, 25_000).run();
    assert_eq!((written(&decision), replicas(&decision)), (None, (0, 0)));
    assert_eq!(conditions(&decision), "SucceededGetScale / ScalingDisabled / -");
    assert_eq!(decision.status.metrics, None);
}

/// An Autoscaler may have a lower bound of zero in every release, so it needs no gate to scale up again.
#[test]
fn autoscaler_returns_from_zero_without_the_gate() {
    let without_gate = |mut fixture: Fixture| {
        fixture.config.gates.scale_to_zero = false;
        fixture.spec.zero_without_gate = true;
        fixture
    };
    let asleep = without_gate(from_queue(0, 3, 0)).with_state(mk_state(&[(3, 301)], &[], &[])).run();
    assert_eq!(written(&asleep), Some(0));
    assert_eq!(shown(&asleep, "ScaledToZero"), "True ScaledToZero");

    for (min, replicas) in [(0, 3), (5, 5)] {
        let awake = without_gate(scaled_to_zero(from_queue(min, 0, 25_000))).run();
        assert_eq!(written(&awake), Some(replicas), "lower bound {min}");
        assert_eq!(shown(&awake, "ScaledToZero"), "False NotScaledToZero");
    }
    let paused = without_gate(from_queue(0, 0, 25_000)).run();
    assert_eq!(conditions(&paused), "SucceededGetScale / ScalingDisabled / -", "another client set zero");
    let above_zero = without_gate(from_queue(1, 3, 60_000)).run();
    assert_eq!((written(&above_zero), shown(&above_zero, "ScaledToZero")), (Some(6), String::new()));
}
