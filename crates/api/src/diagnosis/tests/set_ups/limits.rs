//! Set-ups in which a limit holds the count.

use engine::spec::{Behavior, ScalingPolicy, ScalingPolicyType, ScalingRules, SelectPolicy};
use engine::{RecordedError, RequestFailure, State};
use jiff::SignedDuration;

use super::super::test_facts::{TestFacts, at, failed, per_pod};
use super::{SetUp, set_up};

fn rules(window: i64, select: SelectPolicy, pods: i32) -> ScalingRules {
    let policy =
        ScalingPolicy { kind: ScalingPolicyType::Pods, value: pods, period: SignedDuration::from_secs(60) };
    ScalingRules {
        window: Some(SignedDuration::from_secs(window)),
        select,
        policies: vec![policy],
        tolerance: None,
    }
}

fn with_behavior(facts: TestFacts, up: ScalingRules, down: ScalingRules) -> TestFacts {
    let mut facts = facts;
    facts.spec.behavior = Some(Behavior { up, down });
    facts
}

/// A state with one recommendation.
fn recommended(value: i32, time: &str) -> State {
    serde_json::from_value(serde_json::json!({"recommendations": [{"value": value, "at": at(time)}]}))
        .unwrap()
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let free = || rules(0, SelectPolicy::Max, 100);
    let busy = || TestFacts::healthy().with_samples(per_pod(&[Some(300), Some(300)]));
    let calm = || TestFacts::healthy().with_samples(per_pod(&[Some(20), Some(20)]));
    let mut full = busy();
    full.spec.max = 3.into();
    full.since = Some(at("09:01:00"));
    let mut low = with_behavior(calm(), free(), free());
    low.spec.min = 2.into();
    let mut above = TestFacts::healthy().with_replicas(20);
    above.spec.max = 10.into();
    let mut below = TestFacts::healthy();
    below.spec.min = 4.into();
    let mut partial = with_behavior(calm(), free(), free());
    partial.spec.metrics.push(partial.spec.metrics[0].clone());
    partial.samples.push(Err(RecordedError::from("boom")));
    let mut outage = with_behavior(calm(), free(), free());
    outage.spec.metrics.push(outage.spec.metrics[0].clone());
    outage.samples.push(failed("said so", RequestFailure::Unavailable));
    vec![
        set_up("maxReplicas too low", "at-maximum", "at maximum 3 since 09:01:00; metrics propose 6", full),
        set_up("minReplicas too high", "at-minimum", "at minimum 2; metrics propose 1", low),
        set_up("a count above maxReplicas", "above-maximum", "the count was above maximum 10", above),
        set_up("a count below minReplicas", "below-minimum", "the count was below minimum 4", below),
        set_up(
            "a scale-down within the window",
            "scale-down-window",
            "the scale-down window holds 2 until 09:13:00",
            TestFacts { state: recommended(2, "09:08:00"), ..calm() },
        ),
        set_up(
            "a scale-up within the window",
            "scale-up-window",
            "the scale-up window holds 2 until 09:13:00",
            TestFacts {
                state: recommended(2, "09:08:00"),
                ..with_behavior(busy(), rules(300, SelectPolicy::Max, 100), free())
            },
        ),
        set_up(
            "a scale-up of more than the policy allows",
            "scale-up-rate",
            "the scale-up policy 1 pod in 60 s allows at most 3 until 09:11:00",
            with_behavior(busy(), rules(0, SelectPolicy::Max, 1), free()),
        ),
        set_up(
            "a scale-up without behavior to more than the double",
            "scale-up-rate",
            "the limit of one step without behavior allows at most 4",
            busy(),
        ),
        set_up(
            "a scale-down of more than the policy allows",
            "scale-down-rate",
            "the scale-down policy 1 pod in 60 s allows at least 5 until 09:11:00",
            with_behavior(
                TestFacts {
                    pods: (0..6)
                        .map(|n| {
                            let container = super::super::test_facts::container("app", Some("200m"));
                            super::super::test_facts::pod(&format!("web-{n}"), vec![container])
                        })
                        .collect(),
                    ..calm().with_replicas(6).with_samples(per_pod(&[Some(20); 6]))
                },
                free(),
                rules(0, SelectPolicy::Max, 1),
            ),
        ),
        set_up(
            "selectPolicy: Disabled of the scale-up",
            "scale-up-disabled",
            "scale-up is disabled by behavior",
            with_behavior(busy(), rules(0, SelectPolicy::Disabled, 1), free()),
        ),
        set_up(
            "selectPolicy: Disabled of the scale-down",
            "scale-down-disabled",
            "scale-down is disabled by behavior",
            with_behavior(calm(), free(), rules(0, SelectPolicy::Disabled, 1)),
        ),
        set_up(
            "a metric at its target",
            "within-tolerance",
            "cpu is within tolerance of its target",
            TestFacts::healthy(),
        ),
        set_up(
            "one of two metrics fails while load is low",
            "metrics-api-unavailable",
            "cpu cannot be read: metrics.k8s.io is not available",
            outage,
        ),
        set_up(
            "one of two metrics fails for an unknown reason",
            "metric-unreadable",
            "cpu cannot be read: failed to get cpu utilization: unable to get metrics for resource cpu: boom",
            partial,
        ),
    ]
}
