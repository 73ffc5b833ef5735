//! The exact texts of `plimsoll why`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use super::{explain, sentence};
use crate::evaluate::PodGroup;
use crate::pod::{ConditionStatus, Container, Pod, PodPhase, PodTemplate, ReadyCondition, Resources};
use crate::spec::{
    Behavior, Metric, MetricId, MetricSource, MetricTarget, ScalingPolicy, ScalingPolicyType, ScalingRules,
    SelectPolicy, Spec, TargetRef, UtilizationBase,
};
use crate::{
    ControllerConfig, Decision, DecisionDetail, MetricSamples, Observation, PodSamples, PodSelection,
    RecordedError, Sample, Scale, ScaleWriteResult, State, Status,
};

const PERIOD: SignedDuration = SignedDuration::from_secs(15);

fn at(text: &str) -> Timestamp {
    format!("2026-01-01T{text}Z").parse().unwrap()
}

pub(super) fn cpu(percent: i32) -> Metric {
    let source = MetricSource::Resource { name: "cpu".into(), of: UtilizationBase::Requests };
    Metric::new(source, MetricTarget::Utilization(percent))
}

fn queue(each: i64) -> Metric {
    let id =
        MetricId { name: "queue_length".into(), shown_selector: "nil".into(), selector: Ok(String::new()) };
    let target = MetricTarget::AverageValue(each.into());
    Metric::new(MetricSource::External(id), target)
}

fn spec(metrics: Vec<Metric>) -> Spec {
    Spec {
        namespace: "default".into(),
        name: "php-apache".into(),
        target: TargetRef { kind: "Deployment".into(), name: "php-apache".into() },
        min: 1.into(),
        max: 10.into(),
        metrics,
        ..Spec::default()
    }
}

fn pods(count: usize, now: Timestamp) -> Vec<Pod> {
    let requests = vec![("cpu".to_owned(), Quantity::parse("200m").unwrap())];
    let resources = Resources { requests, limits: Vec::new() };
    let container = Container { name: "php-apache".into(), restarts: false, resources };
    let shape = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let since = now - SignedDuration::from_hours(1);
    (0..count)
        .map(|i| Pod {
            name: format!("php-apache-{i}").into(),
            phase: PodPhase::Running,
            deleting: false,
            started: Some(since),
            ready: Some(ReadyCondition { status: ConditionStatus::True, since }),
            shape: shape.clone(),
        })
        .collect()
}

/// A cpu answer with one usage per pod; `None` is a pod without a sample.
fn usages(now: Timestamp, usages: &[Option<i64>]) -> MetricSamples {
    let sample = |milli: i64| Sample { at: now, window: PERIOD, milli: milli.into() };
    let by_pod = usages.iter().map(|u| u.map(sample)).collect();
    MetricSamples::PerPod(PodSamples { by_pod, stray: Vec::new() })
}

fn seen(
    spec: Spec,
    now: Timestamp,
    replicas: i32,
    samples: Vec<Result<MetricSamples, RecordedError>>,
) -> Observation {
    let selector = "run=php-apache".to_owned();
    Observation {
        config: Arc::new(ControllerConfig::default()),
        spec: Arc::new(spec),
        status: Status::default(),
        scale: Ok(Scale { spec_replicas: replicas.into(), status_replicas: replicas.into(), selector }),
        selection: PodSelection::Ours,
        pods: pods(replicas as usize, now),
        samples,
    }
}

fn decide(state: &mut State, now: Timestamp, seen: &Observation) -> Decision {
    let mut decision = state.step(now, seen);
    state.settle(now, seen, &mut decision, ScaleWriteResult::Done);
    decision.status_written("php-apache", Ok(()));
    decision
}

fn why(seen: &Observation, decision: &Decision) -> String {
    explain("hpa", &seen.spec, decision, PERIOD).to_string()
}

#[test]
fn scale_up_is_limited_without_behavior() {
    let now = at("09:14:45");
    let seen = seen(spec(vec![cpu(50)]), now, 1, vec![Ok(usages(now, &[Some(610)]))]);
    let decision = decide(&mut State::default(), now, &seen);
    assert_eq!(
        why(&seen, &decision),
        "\
hpa/php-apache in default · 09:14:45 · scaled 1 → 4 (wanted 7)
target     Deployment/php-apache, 1 replica; selector run=php-apache matches 1 pod
pods       1 counted · 0 not yet ready · 0 without metrics · 0 ignored (failed or terminating)
cpu        610m used of 200m requested = 305 %, target 50 %
           305 ÷ 50 = 6.10, outside 0.90 … 1.10, so it counts
           6.10 × 1 pod = 6.10, rounded up: 7
proposal   7, from cpu (the only metric)
limits     scale-down window 300 s: not used when growing
           no behavior set: at most max(2 × 1, 4) = 4 in one step  ← this decided
           min 1, max 10: 4 stays
outcome    replicas 1 → 4; ScalingLimited=True (ScaleUpLimit)
next       in 15 s, 4 → 7 if the proposal stays 7
"
    );
    assert_eq!(sentence(&seen.spec, &decision), "cpu wants 7; scale-up limit is 4 this time");
}

#[test]
fn scale_down_waits_for_the_stabilization_window() {
    let mut state = State::default();
    let earlier = at("09:16:30");
    let busy = seen(spec(vec![cpu(50)]), earlier, 6, vec![Ok(usages(earlier, &[Some(100); 6]))]);
    decide(&mut state, earlier, &busy);
    let now = at("09:20:15");
    let calm = seen(spec(vec![cpu(50)]), now, 6, vec![Ok(usages(now, &[Some(45); 6]))]);
    let decision = decide(&mut state, now, &calm);
    let text = why(&calm, &decision);
    assert!(
        text.starts_with("hpa/php-apache in default · 09:20:15 · stayed at 6 although cpu proposes 3\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "scale-down window 300 s: the highest proposal in it is 6 (09:16:30): 6 holds  ← this decided"
        ),
        "{text}"
    );
    assert!(text.contains("270m used of 1200m requested = 22.5 %, cut to 22 %, target 50 %"), "{text}");
    assert!(text.ends_with("next       6 stays until 09:21:30, then 3, if the proposal stays 3\n"), "{text}");
    assert_eq!(sentence(&calm.spec, &decision), "cpu wants 3; window holds 6 until 09:21:30");
    // The search for the next change was left out.
    let mut unknown = decision;
    let normalized = unknown.normalized.as_mut().unwrap();
    (normalized.next, normalized.next_unknown) = (None, true);
    let text = why(&calm, &unknown);
    assert!(text.contains("next       in 15 s, decided again; too many policies and "), "{text}");
}

#[test]
fn a_ratio_within_tolerance_names_the_tolerance_band() {
    let now = at("10:00:00");
    let seen = seen(spec(vec![cpu(50)]), now, 2, vec![Ok(usages(now, &[Some(105), Some(105)]))]);
    let text = why(&seen, &decide(&mut State::default(), now, &seen));
    assert!(
        text.contains("52 ÷ 50 = 1.04, inside 0.90 … 1.10: close enough, 2 stays  ← this decided"),
        "{text}"
    );
    assert!(text.contains("next       in 15 s; cpu counts again below 45 % or above 55 %"), "{text}");
}

#[test]
fn pods_without_metrics_count_as_fully_used_before_a_scale_down() {
    let now = at("10:00:00");
    let samples = usages(now, &[Some(20), Some(20), None, None]);
    let seen = seen(spec(vec![cpu(50)]), now, 4, vec![Ok(samples)]);
    let text = why(&seen, &decide(&mut State::default(), now, &seen));
    assert!(text.contains("2 counted · 0 not yet ready · 2 without metrics"), "{text}");
    assert!(text.contains("2 pods without metrics: counted as fully used (400m together)"), "{text}");
    assert!(
        text.contains("55 ÷ 50 = 1.10, inside 0.90 … 1.10: close enough, 4 stays  ← this decided"),
        "{text}"
    );
}

#[test]
fn a_failed_metric_names_its_error() {
    let now = at("10:00:00");
    let samples = vec![
        Err("no metrics returned from external metrics API".into()),
        Ok(usages(now, &[Some(10), Some(10)])),
    ];
    let seen = seen(spec(vec![queue(5000), cpu(50)]), now, 2, samples);
    let decision = decide(&mut State::default(), now, &seen);
    let text = why(&seen, &decision);
    assert!(text.contains("stayed at 2: metrics could not decide"), "{text}");
    assert!(
        text.contains("queue_length  unable to get external metric default/queue_length/nil: no metrics returned from external metrics API  ← this decided"),
        "{text}"
    );
    assert!(text.contains("so the target is not scaled down"), "{text}");
    assert_eq!(sentence(&seen.spec, &decision), "held: queue_length cannot be read");
}

#[test]
fn several_metrics_name_the_winner_and_the_rule() {
    let now = at("10:00:00");
    let samples =
        vec![Ok(MetricSamples::Totals(vec![20_000.into()])), Ok(usages(now, &[Some(200), Some(200)]))];
    let mut spec = spec(vec![queue(5000), cpu(50)]);
    spec.behavior = Some(Behavior {
        up: rules(&[(ScalingPolicyType::Pods, 4, 15), (ScalingPolicyType::Percent, 100, 15)]),
        down: rules(&[(ScalingPolicyType::Percent, 100, 15)]),
    });
    let seen = seen(spec, now, 2, samples);
    let text = why(&seen, &decide(&mut State::default(), now, &seen));
    assert!(text.contains("queue_length  20 over 2 replicas = 10 each, target 5"), "{text}");
    assert!(
        text.contains(
            "proposal      4, from queue_length (queue_length 4, cpu 4; the highest wins)  ← this decided"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "scaleUp 4 pods in 15 s (the most generous of 2 policies), from 2: at most 6: 4 passes"
        ),
        "{text}"
    );
}

fn rules(policies: &[(ScalingPolicyType, i32, i64)]) -> ScalingRules {
    let policies = policies
        .iter()
        .map(|&(kind, value, period)| ScalingPolicy {
            kind,
            value,
            period: SignedDuration::from_secs(period),
        })
        .collect();
    ScalingRules { window: Some(SignedDuration::ZERO), select: SelectPolicy::Max, policies, tolerance: None }
}

#[test]
fn pods_are_recorded_only_with_detail() {
    let now = at("10:00:00");
    let seen = seen(spec(vec![cpu(50)]), now, 2, vec![Ok(usages(now, &[Some(105), None]))]);
    let sum = |detail| match State::default()
        .step_with(now, &seen, detail)
        .evaluations
        .remove(0)
        .result
        .unwrap()
        .sum
    {
        crate::evaluate::Arithmetic::PerPod(sum) => sum,
        other => panic!("{other:?}"),
    };
    assert!(sum(DecisionDetail::Counts).detail.is_none());
    let detail = sum(DecisionDetail::Pods).detail.unwrap();
    assert_eq!(detail[0].group, PodGroup::Ready);
    assert_eq!(
        (detail[1].group, detail[1].usage, detail[1].request),
        (PodGroup::Missing, None, Some(200.into()))
    );
}

#[test]
fn sentence_names_the_pods_that_leave_the_count_uncertain() {
    let now = at("09:14:45");
    let sentence_for = |usages_of: &[Option<i64>], unready: bool| {
        let samples = vec![Ok(usages(now, usages_of))];
        let mut seen = seen(spec(vec![cpu(50)]), now, usages_of.len() as i32, samples);
        if let Some(pod) = seen.pods.last_mut().filter(|_| unready) {
            let since = now - SignedDuration::from_secs(10);
            (pod.started, pod.ready) =
                (Some(since), Some(ReadyCondition { status: ConditionStatus::False, since }));
        }
        let decision = decide(&mut State::default(), now, &seen);
        sentence(&seen.spec, &decision)
    };
    assert_eq!(sentence_for(&[Some(100), Some(100)], false), "cpu 50 % of 50 %: close enough");
    assert_eq!(
        sentence_for(&[Some(200), Some(0)], true),
        "cpu 100 % of 50 %; close enough with 1 pod not yet ready counted as idle"
    );
    assert_eq!(
        sentence_for(&[Some(200), None], false),
        "cpu 100 % of 50 %; close enough with 1 pod without metrics"
    );
    assert_eq!(
        sentence_for(&[Some(140), None], false),
        "cpu 70 % of 50 %; the direction is not certain with 1 pod without metrics"
    );
}
