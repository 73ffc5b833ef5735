//! The exact texts of `plimsoll why so/NAME`.

use std::sync::Arc;

use super::*;
use crate::spec::{Metric, MetricId, MetricTarget, TargetRef};
use crate::trigger_poll::{Cooldown, ReconcileFailure, SampleRead};
use crate::{
    ControllerConfig, DecisionDetail, MetricSamples, Observation, PodSelection, Replicas, Scale,
    ScaleWriteResult, State, Status,
};

const PERIOD: SignedDuration = SignedDuration::from_secs(5);

fn at(text: &str) -> Timestamp {
    format!("2026-01-01T{text}Z").parse().unwrap()
}

fn spec(metrics: Vec<Metric>) -> Spec {
    Spec {
        namespace: "default".into(),
        name: "orders-worker".into(),
        target: TargetRef { kind: "Deployment".into(), name: "orders-worker".into() },
        min: 1.into(),
        max: 30.into(),
        metrics,
        ..Spec::default()
    }
}

fn metric() -> Metric {
    let id = MetricId {
        name: "s0-metric-api-messages".into(),
        shown_selector: "nil".into(),
        selector: Ok(String::new()),
    };
    let (source, target) = (MetricSource::External(id), MetricTarget::AverageValue(20_000.into()));
    Metric::new(source, target)
}

fn seen(spec: Spec, replicas: i32, waiting: i64) -> Observation {
    let selector = "app=orders-worker".to_owned();
    let samples =
        spec.metrics.iter().map(|_| Ok(MetricSamples::Totals(vec![(waiting * 1000).into()]))).collect();
    Observation {
        config: Arc::new(ControllerConfig::default()),
        spec: Arc::new(spec),
        status: Status::default(),
        scale: Ok(Scale { spec_replicas: replicas.into(), status_replicas: replicas.into(), selector }),
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples,
    }
}

/// A poll of a queue with this many messages and an activation threshold of 5.
fn poll(waiting: i64) -> TriggerPoll {
    let metric = TriggerMetric {
        metric: "s0-metric-api-messages".into(),
        value: Some((waiting * 1000).into()),
        target: Some(20_000.into()),
        each: true,
        active: waiting > 5,
        ..TriggerMetric::default()
    };
    let trigger = PolledTrigger {
        name: "queue".into(),
        type_: "metrics-api".into(),
        unit: "messages".into(),
        activation: Some(5000.into()),
        metrics: vec![metric],
        failure: None,
        cause: None,
    };
    let cooldown = Cooldown { period: SignedDuration::from_secs(30), since: Some(at("09:14:50")) };
    TriggerPoll { triggers: vec![trigger], cooldown: Some(cooldown), ..TriggerPoll::default() }
}

fn activation(poll: &TriggerPoll, verdict: ActivationVerdict) -> Activation {
    let by =
        metrics(poll).filter(|(_, metric)| metric.active).map(|(_, metric)| metric.metric.clone()).collect();
    Activation { by, rest: Replicas::ZERO, verdict }
}

fn why(spec: &Spec, decision: &Decision, poll: &TriggerPoll) -> String {
    explain_trigger_poll("so", spec, decision, poll, PERIOD).to_string()
}

fn activity(from: i32, to: i32, poll: &TriggerPoll, verdict: ActivationVerdict) -> (Spec, Decision) {
    let now = at("09:15:02");
    let seen = seen(spec(Vec::new()), from, 0);
    let mut state = State::default();
    let mut decision = state.activity_step(now, &seen, activation(poll, verdict), to.into());
    if from != to {
        state.settle(now, &seen, &mut decision, ScaleWriteResult::Done);
    }
    (spec(Vec::new()), decision)
}

#[test]
fn a_value_below_activation_keeps_the_idle_count() {
    let poll = poll(3);
    let (spec, decision) = activity(0, 0, &poll, ActivationVerdict::Resting);
    assert_eq!(
        why(&spec, &decision, &poll),
        "\
so/orders-worker in default · 09:15:02 · stayed at 0
target     Deployment/orders-worker, 0 replicas
triggers   queue (metrics-api) has 3 messages, target 20 each, activation 5: not active
activity   nothing is active: 0 stays  ← this decided
outcome    replicas stay at 0
next       in 5 s, polled again; wakes when queue has more than 5 messages
"
    );
    assert_eq!(
        sentence_with_triggers(&spec, &decision, Some(&poll)),
        "at rest: queue has 3 messages (activation 5)"
    );
    assert_eq!(targets(&poll, None), "queue: 3 in all/20 each");
    assert_eq!(targets(&poll, Some(Replicas::ZERO)), "queue: 3 in all/20 each");
    assert_eq!(targets(&poll, Some(Replicas::new(1))), "queue: 3/20 each");
    assert_eq!(targets(&poll, Some(Replicas::new(2))), "queue: 1.5/20 each (3 in all)");
    let one = self::poll(1);
    assert_eq!(
        sentence_with_triggers(&spec, &decision, Some(&one)),
        "at rest: queue has 1 message (activation 5)"
    );
    assert_eq!(["messages", "entries", "work"].map(singular), ["message", "entry", "work"]);
}

#[test]
fn activation_scales_to_the_count_that_metrics_propose() {
    let (now, poll) = (at("09:15:02"), poll(33));
    let seen = seen(spec(vec![metric()]), 0, 33);
    let mut state = State::default();
    let activation = activation(&poll, ActivationVerdict::Wakes);
    let mut decision = state.waking_step(now, &seen, activation, 1.into(), DecisionDetail::Counts);
    state.settle(now, &seen, &mut decision, ScaleWriteResult::Done);
    let text = why(&seen.spec, &decision, &poll);
    assert!(text.starts_with("so/orders-worker in default · 09:15:02 · scaled 0 → 2\n"), "{text}");
    for line in [
        "triggers   queue (metrics-api) has 33 messages, target 20 each, activation 5: active\n",
        "cooldown   30 s, counted from the last activity\n",
        "activity   queue is active: 0 is left\n",
        "33 ÷ 20 = 1.65, rounded up: 2\n",
        "proposal   2, from queue (the only metric)",
        "           0 once nothing has been active for 30 s\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let sentence = sentence_with_triggers(&seen.spec, &decision, Some(&poll));
    assert_eq!(sentence, "queue has 33 messages (activation 5); queue 33 for 0 replicas, target 20 each");
}

#[test]
fn activation_scales_to_one_if_an_hpa_decides() {
    let poll = TriggerPoll { hpa: Some("keda-hpa-orders-worker".into()), ..poll(12) };
    let (spec, decision) = activity(0, 1, &poll, ActivationVerdict::Wakes);
    assert_eq!(sentence_with_triggers(&spec, &decision, Some(&poll)), "queue has 12 messages (activation 5)");
    let text = why(&spec, &decision, &poll);
    assert!(
        text.ends_with(
            "next       hpa/keda-hpa-orders-worker decides between 1 and 30
           0 once nothing has been active for 30 s\n"
        ),
        "{text}"
    );
    let (spec, decision) = activity(4, 4, &poll, ActivationVerdict::Metrics);
    let text = why(&spec, &decision, &poll);
    assert!(
        text.contains("activity   queue is active: hpa/keda-hpa-orders-worker decides  ← this decided\n"),
        "{text}"
    );
    assert_eq!(
        sentence_with_triggers(&spec, &decision, Some(&poll)),
        "queue has 12 messages (activation 5); hpa/keda-hpa-orders-worker decides"
    );
}

#[test]
fn cooldown_names_its_end() {
    let poll = TriggerPoll { hpa: Some("keda-hpa-orders-worker".into()), ..poll(0) };
    let (spec, decision) = activity(3, 3, &poll, ActivationVerdict::Cooling { until: at("09:15:20") });
    let text = why(&spec, &decision, &poll);
    for line in [
        "cooldown   30 s after the last activity (09:14:50): until 09:15:20, 18 s left\n",
        "activity   nothing is active; cooldown until 09:15:20, then 0  ← this decided\n",
        "next       0 after 09:15:20, if nothing becomes active before\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert_eq!(
        sentence_with_triggers(&spec, &decision, Some(&poll)),
        "nothing active; cooldown until 09:15:20"
    );
    let (spec, decision) = activity(3, 0, &poll, ActivationVerdict::Rests { since: Some(at("09:14:50")) });
    let text = why(&spec, &decision, &poll);
    for line in [
        "· scaled 3 → 0\n",
        "activity   nothing is active, and nothing was since 09:14:50: 3 goes to 0  ← this decided\n",
        "next       stays at 0; wakes when queue has more than 5 messages\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert_eq!(sentence_with_triggers(&spec, &decision, Some(&poll)), "nothing active since 09:14:50");
}

#[test]
fn failures_fallbacks_formulas_and_pushes_are_explained() {
    let mut failing = poll(0);
    failing.triggers[0].metrics[0].value = None;
    failing.triggers[0].metrics[0].failure = Some("connection refused".into());
    let held = ActivationVerdict::Held("a trigger cannot be read, and an error never scales down".into());
    let (spec, decision) = activity(3, 3, &failing, held.clone());
    let text = why(&spec, &decision, &failing);
    assert!(text.contains("triggers   queue (metrics-api) cannot be read: connection refused\n"), "{text}");
    let sentence = sentence_with_triggers(&spec, &decision, Some(&failing));
    assert_eq!(sentence, "held: a trigger cannot be read, and an error never scales down");

    failing.triggers[0].metrics[0].fallback = Some(6.into());
    failing.triggers[0].metrics[0].active = true;
    let (spec, decision) = activity(0, 1, &failing, ActivationVerdict::Wakes);
    assert_eq!(
        sentence_with_triggers(&spec, &decision, Some(&failing)),
        "6 replicas replace queue (fallback)"
    );
    let text = why(&spec, &decision, &failing);
    assert!(text.contains("refused; it failed too often, so 6 replicas are used (fallback)\n"), "{text}");

    let formula = FormulaResult {
        text: "queue / 2".into(),
        value: Ok(6000.into()),
        target: "10".into(),
        activation: "4".into(),
        active: true,
    };
    let mut composed = TriggerPoll { formula: Some(formula), ..poll(12) };
    let (spec, decision) = activity(0, 1, &composed, ActivationVerdict::Wakes);
    let text = why(&spec, &decision, &composed);
    assert!(text.contains("formula    queue / 2 = 6, target 10, activation 4: active\n"), "{text}");
    let sentence = sentence_with_triggers(&spec, &decision, Some(&composed));
    assert_eq!(sentence, "queue / 2 = 6, target 10, activation 4: active");
    composed.formula.as_mut().unwrap().value = Err("queue is not known".into());
    assert_eq!(targets(&composed, None), "formula: <unknown>/10");

    let pushed = TriggerPoll { pushed: true, ..poll(12) };
    let (spec, decision) = activity(0, 1, &pushed, ActivationVerdict::Wakes);
    assert_eq!(sentence_with_triggers(&spec, &decision, Some(&pushed)), "queue reported activity (push)");
    assert!(
        why(&spec, &decision, &pushed).contains("triggers   queue (metrics-api) reported activity (push)\n")
    );
}

#[test]
fn failed_reconcile_is_shown_before_the_triggers() {
    let failure = ReconcileFailure::Request { object: "HPA keda-hpa-x".into(), error: "denied".into() };
    let unpolled = TriggerPoll { reconcile: Some(failure), ..TriggerPoll::default() };
    let verdict = ActivationVerdict::Held("its triggers are not polled".into());
    let (spec, decision) = activity(2, 2, &unpolled, verdict);
    let text = why(&spec, &decision, &unpolled);
    assert!(
        text.contains("\nreconcile  failed: the operator cannot manage HPA keda-hpa-x: denied\n"),
        "{text}"
    );
    let sentence = sentence_with_triggers(&spec, &decision, Some(&unpolled));
    assert_eq!(sentence, "held: its triggers are not polled");
}

#[test]
fn read_of_a_value_is_reported() {
    let mut polled = poll(3);
    let took = SignedDuration::from_millis(4);
    polled.triggers[0].metrics[0].read = Some(SampleRead { at: at("09:15:02"), took, shared: false });
    let (spec, decision) = activity(0, 0, &polled, ActivationVerdict::Resting);
    let text = why(&spec, &decision, &polled);
    assert!(
        text.contains("activation 5: not active\n           read 09:15:02, in 4 ms\nactivity "),
        "{text}"
    );
    polled.triggers[0].metrics[0].read = Some(SampleRead { at: at("09:14:50"), took, shared: true });
    let text = why(&spec, &decision, &polled);
    let reported = "read 09:14:50, 12 s old, in 4 ms, with the response to an earlier query\n";
    assert!(text.contains(reported), "{text}");
}

#[test]
fn triggers_with_the_same_name_are_shown_with_their_metrics() {
    let mut two = poll(12);
    let mut other = two.triggers[0].clone();
    other.metrics[0].metric = "s1-metric-api-messages".into();
    two.triggers.push(other);
    assert_eq!(two.label("s0-metric-api-messages"), None);
    let (spec, decision) = activity(0, 1, &two, ActivationVerdict::Wakes);
    let text = why(&spec, &decision, &two);
    assert!(text.contains("queue (metrics-api) s1-metric-api-messages has 12 messages"), "{text}");
    assert!(text.contains("s0-metric-api-messages, s1-metric-api-messages are active"), "{text}");
}

#[test]
fn a_decision_without_a_poll_names_no_triggers() {
    let poll = poll(3);
    let (spec, decision) = activity(0, 0, &poll, ActivationVerdict::Resting);
    assert_eq!(sentence_with_triggers(&spec, &decision, None), "at rest: nothing active");
}
