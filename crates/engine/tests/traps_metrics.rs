//! Cases of docs/spec/hpa.md 10 in which a plausible implementation differs from Kubernetes: samples, requests and metric
//! failures. Test names have the numbers of the spec.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{
    Fixture, cpu, external, metric, metric_id, mk_amounts, mk_container, mk_pod, mk_resources, mk_shape,
    mk_spec, never_ready, noon, object, pending, per_pod, pods_metric, proposal, readings, resource, sample,
    secs, shown,
};
use engine::pod::{ConditionStatus, ReadyCondition};
use engine::report::condition;
use engine::spec::{MetricSource, MetricTarget, UtilizationBase};
use engine::{MetricSamples, MilliValue, Pod, PodPhase, PodSamples, PodTemplate, ScaleOutcome};

#[test]
fn t13_samples_without_a_pod_inflate_the_second_calculation() {
    let mut samples = per_pod([Some(900), Some(900), None]);
    if let MetricSamples::PerPod(samples) = &mut samples {
        samples.stray = vec![sample(5), sample(7)];
    }
    let mut fixture = Fixture::of_three([cpu(50)]);
    fixture.samples = vec![Ok(samples.clone())];
    assert_eq!(proposal(&fixture.run()), Ok(6));
    // Plain averages include them: 1812 / 4 = 453 against 500 is inside 0.9 … 1.1.
    let mut fixture = Fixture::of_three([pods_metric(500)]);
    fixture.samples = vec![Ok(samples)];
    assert_eq!(readings(&fixture.run()), [Some("453m".to_owned())]);
}

#[test]
fn t14_requests_of_failed_pods_are_required() {
    let bare = Arc::new(mk_shape(&[]));
    let dead = [
        Pod { deleting: true, shape: bare.clone(), ..mk_pod("x") },
        Pod { phase: PodPhase::Failed, shape: bare.clone(), ..mk_pod("x") },
        Pod { shape: bare, ..pending("x") },
    ];
    for pod in dead {
        let decision = Fixture::of_three([cpu(50)]).pods(vec![(mk_pod("a"), Some(900)), (pod, None)]).run();
        let text = "failed to get cpu utilization: missing request for cpu in container c of Pod x";
        assert_eq!(proposal(&decision), Err(text));
    }
}

/// The cpu request of a pod with this template.
fn requested(shape: &PodTemplate) -> Result<i64, String> {
    shape
        .request("cpu", None, UtilizationBase::Requests, true)
        .map(MilliValue::get)
        .map_err(|e| format!("{e:?}"))
}

#[test]
fn t15_sidecars_count_and_plain_init_containers_do_not() {
    let init = mk_container("init", &[("cpu", "500m")]);
    let overhead = mk_amounts(&[("cpu", "30m")]);
    let plain = PodTemplate { init_containers: vec![init.clone()], overhead, ..mk_shape(&[("cpu", "100m")]) };
    assert_eq!(requested(&plain), Ok(100));
    let sidecar = |requests| engine::pod::Container { restarts: true, ..mk_container("side", requests) };
    let with = |side| PodTemplate { init_containers: vec![init.clone(), side], ..plain.clone() };
    assert_eq!(requested(&with(sidecar(&[("cpu", "50m")]))), Ok(150));
    assert_eq!(requested(&with(sidecar(&[]))), Err("Container(\"side\")".to_owned()));
}

#[test]
fn t16_any_request_of_the_pod_itself_switches_the_formula() {
    let containers = vec![mk_container("a", &[("cpu", "100m")]), mk_container("b", &[])];
    let shape = PodTemplate { containers, pod: mk_resources(&[("memory", "1Gi")]), ..PodTemplate::default() };
    let init = vec![mk_container("init", &[("cpu", "500m")])];
    assert_eq!(requested(&PodTemplate { init_containers: init, ..shape.clone() }), Ok(500));
    let overhead = mk_amounts(&[("cpu", "30m")]);
    assert_eq!(requested(&PodTemplate { overhead: overhead.clone(), ..shape.clone() }), Ok(130));
    let own = PodTemplate { pod: mk_resources(&[("cpu", "800m")]), overhead, ..shape.clone() };
    assert_eq!(requested(&own), Ok(830));
    assert_eq!(
        own.request("cpu", Some("a"), UtilizationBase::Requests, true),
        Ok(MilliValue::new(100)),
        "a named container ignores all this"
    );
    let nowhere = PodTemplate { containers: vec![mk_container("a", &[])], ..shape };
    let pod = Pod { shape: Arc::new(nowhere), ..mk_pod("p") };
    let decision = Fixture::of_three([cpu(50)]).pods(vec![(pod, Some(900))]).run();
    let text = "failed to get cpu utilization: missing pod-level request for cpu in Pod p";
    assert_eq!(proposal(&decision), Err(text));
}

#[test]
fn t17_zero_requests_are_a_failure() {
    let pod = Pod { shape: Arc::new(mk_shape(&[("cpu", "0")])), ..mk_pod("p") };
    let decision = Fixture::of_three([cpu(50)]).pods(vec![(pod, Some(900))]).run();
    assert_eq!(
        proposal(&decision),
        Err("failed to get cpu utilization: no metrics returned matched known pods")
    );
}

#[test]
fn t18_cpu_readiness() {
    let unready = |age: i64, ready: Option<ReadyCondition>, sample_age: i64| {
        let pod = Pod { started: Some(noon() - secs(age)), ready, ..mk_pod("p") };
        let mut fixture = Fixture::new(mk_spec([cpu(50)]), 1).pods(vec![(pod, Some(900))]);
        if let Ok(MetricSamples::PerPod(samples)) = &mut fixture.samples[0] {
            samples.by_pod[0].as_mut().unwrap().at = noon() - secs(sample_age);
        }
        proposal(&fixture.run()).is_err()
    };
    let since = |status, ago| Some(ReadyCondition { status, since: noon() - secs(ago) });
    let (yes, no, unknown) = (ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown);
    assert!(!unready(120, since(yes, 60), 10));
    assert!(unready(120, since(yes, 60), 40));
    assert!(!unready(120, since(yes, 60), 30), "a sample that begins with readiness counts");
    assert!(!unready(120, since(unknown, 60), 10));
    assert!(unready(120, since(no, 60), 10));
    assert!(unready(600, since(no, 590), 10), "never was ready");
    assert!(!unready(600, since(no, 570), 10));
    assert!(!unready(600, since(no, 60), 10), "was ready once");
    assert!(unready(600, None, 10));
    assert!(!unready(300, since(no, 60), 10), "exactly at the end of initialization");
    assert!(unready(299, since(no, 60), 10));
}

#[test]
fn t19_memory_ignores_readiness() {
    let pods = |milli| vec![(mk_pod("a"), Some(milli)), (never_ready("b"), Some(milli))];
    let gib = 1 << 30;
    let memory = Fixture::new(mk_spec([resource("memory", MetricTarget::Utilization(50))]), 2);
    assert_eq!(proposal(&memory.pods(pods(gib * 900)).run()), Ok(4));
    assert_eq!(proposal(&Fixture::new(mk_spec([cpu(50)]), 2).pods(pods(900)).run()), Ok(2));
}

#[test]
fn t21_partial_failure_compares_with_spec_replicas() {
    let two = || [external(MetricTarget::AverageValue(1000.into())), cpu(50)];
    let equal = Fixture::of_three(two()).totals(&[3000]).outage("down").run();
    assert_eq!(shown(&equal, "ScalingActive"), "True ValidMetricFound");
    assert_eq!((equal.events.len(), equal.error_class()), (1, "internal"));
    let lower = Fixture::of_three(two()).totals(&[2000]).outage("down").run();
    assert_eq!(shown(&lower, "ScalingActive"), "False FailedGetResourceMetric");
    assert_eq!(lower.outcome, ScaleOutcome::Failed);
    let mut from_zero = Fixture::new(mk_spec(two()), 0).totals(&[0]).outage("down");
    from_zero.spec.min = 0.into();
    from_zero.config.gates.scale_to_zero = true;
    from_zero.status.set(noon(), condition::SCALED_TO_ZERO, true, "ScaledToZero", "");
    assert_eq!(shown(&from_zero.run(), "ScalingActive"), "True ValidMetricFound");
}

#[test]
fn t22_error_text_of_objects() {
    let error = "unable to fetch metrics from custom metrics API: boom";
    let decision = Fixture::of_three([object(MetricTarget::Value(1.into()))]).outage(error).run();
    let text =
        "unable to get metric rps: Ingress on ns main/unable to fetch metrics from custom metrics API: boom";
    assert_eq!(proposal(&decision), Err(text));
}

#[test]
fn t23_object_averages_are_named_external() {
    let decision = Fixture::of_three([object(MetricTarget::AverageValue(1000.into()))]).totals(&[5000]).run();
    assert_eq!(decision.reason, "external metric rps(nil) above target");
}

#[test]
fn t24_object_without_a_usable_target() {
    let decision = Fixture::of_three([object(MetricTarget::Missing)]).totals(&[5000]).run();
    let text = "invalid object metric source: neither a value target nor an average value target was set";
    assert_eq!(proposal(&decision), Err(text));
}

#[test]
fn t46_averages_as_the_status_shows_them() {
    let shown = |name: &str, milli| {
        let fixture =
            Fixture::new(mk_spec([resource(name, MetricTarget::AverageValue(1000.into()))]), 1).each(milli);
        readings(&fixture.run())[0].clone().unwrap()
    };
    let cases = [
        ("memory", 104_857_600_000, "100Mi"),
        ("memory", 105_207_125_333, "105207125333m"),
        ("memory", 1_000_000, "1k"),
        ("memory", 1_024_000, "1Ki"),
        ("cpu", 104_857_600_000, "104857600"),
    ];
    for (name, milli, text) in cases {
        assert_eq!(shown(name, milli), text, "{milli} of {name}");
    }
}

/// Samples come by name: the last of a name counts, and those of unknown pods are kept apart (docs/spec/hpa.md 5.1).
#[test]
fn samples_are_joined_with_pods_by_name() {
    let named = |name: &str, milli| (Arc::from(name), sample(milli));
    let pods = [mk_pod("a"), mk_pod("b"), mk_pod("c")];
    let samples = vec![named("c", 1), named("a", 2), named("gone", 3), named("a", 4)];
    let joined = PodSamples::join(&pods, samples);
    assert_eq!(joined.by_pod, [Some(sample(4)), None, Some(sample(1))]);
    assert_eq!(joined.stray, [sample(3)]);
}

/// A type that only an object stored without validation can have (docs/spec/hpa.md 4.6).
#[test]
fn unknown_metric_types_are_spec_errors() {
    let decision =
        Fixture::of_three([metric(MetricSource::Unknown("Cheese".into()), MetricTarget::Missing)]).run();
    assert_eq!(proposal(&decision), Err("unknown metric source type \"Cheese\""));
    assert_eq!(shown(&decision, "ScalingActive"), "False InvalidMetricSourceType");
    let before = engine::Status::default();
    assert_eq!(decision.metric_labels(&before).collect::<Vec<_>>(), [("Cheese", "none", "spec")]);
    assert_eq!(decision.error_class(), "internal");
}

/// A selector that cannot be converted fails its metric only (docs/spec/hpa.md 4.3).
#[test]
fn bad_metric_selectors_fail_the_metric() {
    let mut id = metric_id("rps");
    id.selector = Err("\"Bogus\" is not a valid label selector operator".into());
    let decision = Fixture::of_three([metric(MetricSource::Pods(id), MetricTarget::AverageValue(1.into()))])
        .each(1)
        .run();
    assert_eq!(proposal(&decision), Err("\"Bogus\" is not a valid label selector operator"));
}
