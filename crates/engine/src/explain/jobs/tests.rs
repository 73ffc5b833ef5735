//! The exact texts of `plimsoll why sj/NAME`.

use std::sync::Arc;

use super::super::{explain_trigger_poll, sentence_with_triggers, targets};
use super::*;
use crate::activation::{Activation, ActivationVerdict};
use crate::spec::TargetRef;
use crate::trigger_poll::{PolledTrigger, ReconcileFailure, TriggerMetric, TriggerPoll};
use crate::{ControllerConfig, Observation, PodSelection, Scale, State, Status};

const PERIOD: SignedDuration = SignedDuration::from_secs(5);

fn spec() -> Spec {
    Spec {
        namespace: "shop".into(),
        name: "mails".into(),
        target: TargetRef { kind: "Job".into(), name: "mails-*".into() },
        min: 0.into(),
        max: 5.into(),
        ..Spec::default()
    }
}

fn poll(waiting: Option<i64>, jobs: JobCounts) -> TriggerPoll {
    let metric = TriggerMetric {
        metric: "s0-queue".into(),
        value: waiting.map(|waiting| (waiting * 1000).into()),
        target: Some(10_000.into()),
        each: true,
        active: waiting.is_some_and(|waiting| waiting > 0),
        failure: waiting.is_none().then(|| "connection refused".to_owned()),
        ..TriggerMetric::default()
    };
    let trigger = PolledTrigger {
        name: "queue".into(),
        type_: "rabbitmq".into(),
        unit: "messages".into(),
        metrics: vec![metric],
        ..PolledTrigger::default()
    };
    TriggerPoll { triggers: vec![trigger], jobs: Some(jobs), ..TriggerPoll::default() }
}

fn decision(poll: &TriggerPoll, outcome: ScaleOutcome) -> Decision {
    let running = i32::try_from(poll.jobs.as_ref().unwrap().running).unwrap();
    let scale =
        Scale { spec_replicas: running.into(), status_replicas: running.into(), selector: String::new() };
    let seen = Observation {
        config: Arc::new(ControllerConfig::default()),
        spec: Arc::new(spec()),
        status: Status::default(),
        scale: Ok(scale),
        selection: PodSelection::Ours,
        pods: Vec::new(),
        samples: Vec::new(),
    };
    let activation = Activation { by: Vec::new(), rest: 0.into(), verdict: ActivationVerdict::Metrics };
    let now = "2026-01-01T09:15:02Z".parse().unwrap();
    Decision { outcome, ..State::default().activity_step(now, &seen, activation, running.into()) }
}

fn why(poll: &TriggerPoll, outcome: ScaleOutcome) -> (String, String) {
    let (spec, decision) = (spec(), decision(poll, outcome));
    let text = explain_trigger_poll("sj", &spec, &decision, poll, PERIOD).to_string();
    (text, sentence_with_triggers(&spec, &decision, Some(poll)))
}

#[test]
fn created_jobs_follow_from_queue_and_running_jobs() {
    let counts = JobCounts {
        active: true,
        queue: 30,
        max_scale: 3,
        strategy: "default".into(),
        running: 1,
        pending: 1,
        wanted: 2,
        created: 2,
        failure: None,
    };
    let poll = poll(Some(30), counts);
    let (text, sentence) = why(&poll, ScaleOutcome::Scaled);
    assert_eq!(
        text,
        "\
sj/mails in shop · 09:15:02 · created 2 jobs
triggers   queue (rabbitmq) has 30 messages, target 10 each: active
queue      length 30, work for 3 jobs
jobs       1 running, 1 of them pending; min 0, max 5
strategy   default: the less of work for 3 − 1 running, and the queue's 30: 2  ← this decided
outcome    created 2 jobs
next       in 5 s, polled again
"
    );
    assert_eq!(sentence, "queue has 30 messages; created 2 jobs");
    assert_eq!(targets(&poll, Some(3.into())), "queue: 30 in all/10 each");
}

#[test]
fn jobs_that_run_are_enough() {
    let counts =
        JobCounts { active: true, queue: 30, max_scale: 3, running: 3, pending: 2, ..JobCounts::default() };
    let (text, sentence) = why(&poll(Some(30), counts), ScaleOutcome::Kept);
    assert!(
        text.contains("strategy   default: the less of work for 3 − 3 running, and the queue's 30: 0"),
        "{text}"
    );
    assert_eq!(sentence, "queue has 30 messages; 3 of at most 5 jobs run, 2 pending");
}

#[test]
fn failed_creation_is_reported() {
    let counts = JobCounts {
        active: true,
        queue: 30,
        max_scale: 3,
        wanted: 3,
        created: 1,
        failure: Some("exceeded quota".into()),
        ..JobCounts::default()
    };
    let (text, sentence) = why(&poll(Some(30), counts), ScaleOutcome::Scaled);
    assert!(text.contains("outcome    created 1 job of 3: exceeded quota\n"), "{text}");
    assert_eq!(sentence, "queue has 30 messages; created 1 job of 3: exceeded quota");
}

#[test]
fn trigger_that_cannot_be_read_is_not_an_empty_queue() {
    let (text, sentence) = why(&poll(None, JobCounts::default()), ScaleOutcome::Failed);
    assert!(text.starts_with("sj/mails in shop · 09:15:02 · created no jobs\n"), "{text}");
    assert!(text.contains("triggers   queue (rabbitmq) cannot be read: connection refused\n"), "{text}");
    assert!(text.contains("queue      unknown: a trigger cannot be read, and no other is active"), "{text}");
    assert_eq!(sentence, "queue cannot be read: no jobs are created");
    let (text, sentence) = why(&poll(Some(0), JobCounts::default()), ScaleOutcome::Kept);
    assert!(text.contains("queue      nothing is active"), "{text}");
    assert_eq!(sentence, "nothing active: queue has 0 messages");
}

#[test]
fn triggers_that_were_not_polled_are_not_an_empty_queue() {
    let reconcile = Some(ReconcileFailure::InvalidSpec("no jobTargetRef".into()));
    let unpolled = TriggerPoll { jobs: Some(JobCounts::default()), reconcile, ..TriggerPoll::default() };
    let (text, sentence) = why(&unpolled, ScaleOutcome::Failed);
    let reported = "reconcile  failed: the spec is invalid: no jobTargetRef\nqueue      unknown: the triggers were not polled";
    assert!(text.contains(reported), "{text}");
    assert_eq!(sentence, "the triggers were not polled: no jobs are created");
}
