#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Instant;

use api::decisions::{API_VERSION, DecisionMode, DecisionRecord};
use cluster::AutoscalerKey;
use engine::pod::{ConditionStatus, Container, ReadyCondition, Resources};
use engine::spec::{Metric, MetricSource, MetricTarget, TargetRef, UtilizationBase};
use engine::{
    ControllerConfig, Decision, MetricSamples, Observation, Pod, PodPhase, PodSamples, PodSelection,
    PodTemplate, Replicas, Sample, Scale, ScaleWriteResult, Spec, State, Status,
};
use futures::{FutureExt, StreamExt};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use super::{HistoryLimits, PassAt, Records, TooSlow};

pub(in crate::hpa) const PERIOD: SignedDuration = SignedDuration::from_secs(15);

/// So many seconds after noon.
pub(in crate::hpa) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_268_800 + second).unwrap()
}

/// cpu at 50 % of requests, one to a hundred replicas.
pub(in crate::hpa) fn mk_spec(name: &str) -> Spec {
    let source = MetricSource::Resource { name: "cpu".into(), of: UtilizationBase::Requests };
    Spec {
        namespace: "shop".into(),
        name: name.into(),
        target: TargetRef { kind: "Deployment".into(), name: name.into() },
        min: 1.into(),
        max: 100.into(),
        metrics: vec![Metric::new(source, MetricTarget::Utilization(50))],
        ..Spec::default()
    }
}

/// A decision about `replicas` pods that started an hour ago, request 500m, and use so many millicores each (`None`: unknown).
pub(in crate::hpa) fn decide(
    state: &mut State,
    now: Timestamp,
    spec: &Spec,
    status: &Status,
    (replicas, milli): (i32, Option<i64>),
    written: ScaleWriteResult,
) -> Decision {
    let requests = vec![("cpu".to_owned(), Quantity::parse("500m").unwrap())];
    let resources = Resources { requests, limits: Vec::new() };
    let container = Container { name: "app".into(), restarts: false, resources };
    let shape = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let started = now - SignedDuration::from_hours(1);
    let pod = |n| Pod {
        name: format!("{}-7d4b9c-{n}", spec.name).into(),
        phase: PodPhase::Running,
        deleting: false,
        started: Some(started),
        ready: Some(ReadyCondition { status: ConditionStatus::True, since: started }),
        shape: shape.clone(),
    };
    let sample = |milli: i64| Sample { at: now, window: SignedDuration::from_secs(30), milli: milli.into() };
    let samples = milli.map(|milli| {
        let by_pod = (0..replicas).map(|_| Some(sample(milli))).collect();
        MetricSamples::PerPod(PodSamples { by_pod, stray: Vec::new() })
    });
    let seen = Observation {
        config: Arc::new(ControllerConfig::default()),
        spec: Arc::new(spec.clone()),
        status: status.clone(),
        scale: Ok(Scale {
            spec_replicas: replicas.into(),
            status_replicas: replicas.into(),
            selector: format!("app={}", spec.name),
        }),
        selection: PodSelection::Ours,
        pods: (0..replicas).map(pod).collect(),
        samples: vec![samples.ok_or_else(|| "no answer".into())],
    };
    let mut decision = state.step(now, &seen);
    state.settle(now, &seen, &mut decision, written);
    decision.status_written(&spec.name, Ok(()));
    decision
}

/// One decision on ten pods, with nothing remembered.
pub(in crate::hpa) fn once(second: i64, spec: &Spec, milli: Option<i64>) -> Decision {
    decide(&mut State::default(), at(second), spec, &Status::default(), (10, milli), ScaleWriteResult::DryRun)
}

pub(in crate::hpa) fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

fn add(records: &Records, spec: &Arc<Spec>, decision: &Decision) {
    records.add(&AutoscalerKey::hpa("shop", &spec.name), DecisionMode::Active, PERIOD, spec, decision);
}

fn add_all(records: &Records, spec: &Arc<Spec>, decisions: &[Decision]) {
    for decision in decisions {
        add(records, spec, decision);
    }
}

/// Decisions each of which differs from the one before.
fn restless(spec: &Spec, count: i64) -> Vec<Decision> {
    (0..count).map(|n| once(n * 15, spec, Some(100 + n * 17 % 100 + n % 2 * 200))).collect()
}

fn times(records: &[DecisionRecord]) -> Vec<u64> {
    records.iter().map(|r| r.times).collect()
}

#[test]
fn decisions_that_are_alike_are_one_run() {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    // 250m is on target; 240m is close enough, so nothing else comes of it.
    for (second, milli) in [(0, 250), (15, 250), (30, 240), (45, 400), (60, 401), (75, 250)] {
        add(&records, &spec, &once(second, &spec, Some(milli)));
    }
    let kept = records.of("shop", "hpa.web");
    assert_eq!(times(&kept), [3, 2, 1]);
    assert_eq!((kept[0].first, kept[0].last), (at(0), at(30)));
    assert_eq!(json(&kept[0].decision), json(&once(30, &spec, Some(240))), "the newest of the run");
    assert_eq!(json(&kept[1].decision), json(&once(60, &spec, Some(401))));
    assert_eq!((&*kept[0].metadata.name, &*kept[0].metadata.namespace), ("hpa.web", "shop"));
    assert_eq!((&*kept[0].api_version, &*kept[0].kind), (API_VERSION, "Decision"));
    assert_eq!(json(&kept[0].spec), json(&*spec));
}

#[test]
fn pass_that_is_not_kept_does_not_count_in_its_run() {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    let kept = once(0, &spec, Some(250));
    add(&records, &spec, &kept);
    // Times are kept as nanoseconds in 64 bits, which end in the year 2262.
    let mut late = kept;
    late.at = Timestamp::MAX;
    add(&records, &spec, &late);
    let newest = records.latest(None);
    assert_eq!((times(&newest), newest[0].last), (vec![1], at(0)));
    add(&records, &spec, &once(15, &spec, Some(250)));
    let newest = records.latest(None);
    assert_eq!((times(&newest), newest[0].last), (vec![2], at(15)));
}

#[test]
fn runs_after_a_shown_one_are_complete_when_the_clock_is_set_back() {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    for (second, milli) in [(60, 250), (75, 400), (15, 250), (30, 400)] {
        add(&records, &spec, &once(second, &spec, Some(milli)));
    }
    let after = |first: Option<i64>| -> Vec<Timestamp> {
        records.after("shop", "hpa.web", first.map(at)).iter().map(|run| run.first).collect()
    };
    assert_eq!(after(None), [at(60), at(75), at(15), at(30)]);
    assert_eq!(after(Some(60)), [at(75), at(15), at(30)]);
    assert_eq!(after(Some(75)), [at(15), at(30)]);
    assert_eq!(after(Some(30)), []);
    assert_eq!(after(Some(0)), [at(60), at(75), at(15), at(30)], "a run that is not kept");
    assert!(records.after("shop", "hpa.other", None).is_empty());
}

#[test]
fn what_makes_a_run_end() {
    let spec = Arc::new(mk_spec("web"));
    let same = once(0, &spec, Some(250));
    let changed = |change: &dyn Fn(&mut Decision)| {
        let mut decision = same.clone();
        change(&mut decision);
        decision
    };
    let next = |count: Replicas| Replicas::new(count.get() + 1);
    let cases: [(&str, Decision); 6] = [
        ("desired", changed(&|d| d.desired = next(d.desired))),
        (
            "current",
            changed(&|d| {
                let scale = d.scale.as_mut().unwrap();
                scale.spec_replicas = next(scale.spec_replicas);
            }),
        ),
        (
            "recommendation",
            changed(&|d| {
                let recommendation = d.recommendation.as_mut().unwrap();
                recommendation.replicas = next(recommendation.replicas);
            }),
        ),
        ("reason", changed(&|d| d.reason = "other".into())),
        ("outcome", changed(&|d| d.outcome = engine::ScaleOutcome::Scaled)),
        ("error", once(0, &spec, None)),
    ];
    for (what, decision) in cases {
        let records = Records::default();
        add(&records, &spec, &same);
        add(&records, &spec, &decision);
        assert_eq!(times(&records.of("shop", "hpa.web")), [1, 1], "{what}");
    }
    let records = Records::default();
    add(&records, &spec, &same);
    add(&records, &Arc::new((*spec).clone()), &same);
    assert_eq!(times(&records.of("shop", "hpa.web")), [2], "a spec that says the same is the same");
    add(&records, &Arc::new(Spec { max: 99.into(), ..(*spec).clone() }), &same);
    records.add(&AutoscalerKey::hpa("shop", "web"), DecisionMode::Shadow, PERIOD, &spec, &same);
    assert_eq!(times(&records.of("shop", "hpa.web")), [2, 1, 1], "another spec, another mode");
}

#[test]
fn every_pass_is_kept_for_the_time_of_the_history() {
    let spec = Arc::new(mk_spec("web"));
    // Decisions of which many are equal, so that runs are longer than chunks.
    let milli = |n: i64| if n % 100 < 80 { 240 + n % 20 } else { 410 + n % 7 };
    let decisions: Vec<Decision> = (0..600).map(|n| once(n * 15, &spec, Some(milli(n)))).collect();
    let limits = HistoryLimits { age: SignedDuration::from_mins(30), ..HistoryLimits::default() };
    let records = Records::new(limits);
    add_all(&records, &spec, &decisions);
    let end = decisions.last().unwrap().at;
    for (n, decision) in decisions.iter().enumerate() {
        let found = records.at("shop", "hpa.web", decision.at).unwrap();
        match found {
            PassAt::Kept(found) => {
                assert_eq!(json(&found.decision), json(decision), "pass {n}");
                assert_eq!((found.first, found.last, found.times), (decision.at, decision.at, 1));
                let until = decisions.get(n + 1).map_or(end, |next| next.at - SignedDuration::from_millis(1));
                let Some(PassAt::Kept(later)) = records.at("shop", "hpa.web", until) else {
                    panic!("pass {n}")
                };
                assert_eq!(later.decision.at, decision.at, "in force until the next");
            }
            PassAt::NotKept(oldest) => {
                assert!(decision.at < end - limits.age, "pass {n} is not kept");
                assert!(oldest > decision.at);
            }
        }
    }
    let all = records.between("shop", "hpa.web", end - limits.age, end).unwrap();
    assert_eq!(all.len(), 121);
    let runs = records.of("shop", "hpa.web");
    assert_eq!(times(&runs).last(), Some(&20), "{:?}", times(&runs));
    assert_eq!(runs[0].times, 80, "a run that began before the oldest kept pass has its whole length");
    assert!(records.at("shop", "hpa.other", end).is_none());
}

#[test]
fn history_of_zero_keeps_nothing() {
    let records = Records::new(HistoryLimits { age: SignedDuration::ZERO, ..HistoryLimits::default() });
    let spec = Arc::new(mk_spec("web"));
    add(&records, &spec, &once(0, &spec, Some(500)));
    assert!(records.latest(None).is_empty());
}

#[test]
fn oldest_passes_make_room_for_new_ones() {
    let limits = HistoryLimits { age: SignedDuration::from_hours(24), bytes: 70_000 };
    let records = Records::new(limits);
    let specs: Vec<_> = (0..8).map(|n| Arc::new(mk_spec(&format!("web-{n}")))).collect();
    for second in 0..500 {
        for spec in &specs {
            add(&records, spec, &once(second * 15, spec, Some(200 + second % 50)));
        }
    }
    assert!(records.approximate_bytes() < 100_000, "{}", records.approximate_bytes());
    let kept = |spec: &Arc<Spec>| {
        records.between("shop", &format!("hpa.{}", spec.name), Timestamp::MIN, Timestamp::MAX).unwrap().len()
    };
    let counts: Vec<usize> = specs.iter().map(kept).collect();
    let (fewest, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
    assert!(fewest > 64 && most < 450 && most - fewest <= 128, "{counts:?}");

    let tiny = Records::new(HistoryLimits { bytes: 0, ..limits });
    for decision in restless(&specs[0], 100) {
        add(&tiny, &specs[0], &decision);
        assert_eq!(tiny.latest(None)[0].decision.at, decision.at, "the newest is always there");
    }
    assert_eq!(tiny.between("shop", "hpa.web-0", Timestamp::MIN, Timestamp::MAX).unwrap().len(), 1);
}

#[test]
fn the_latest_of_all_and_of_a_namespace() {
    let records = Records::default();
    let spec = Arc::new(mk_spec("web"));
    let decision = once(0, &spec, Some(250));
    let keys = [
        AutoscalerKey::hpa("b", "web"),
        AutoscalerKey::autoscaler("a", "web"),
        AutoscalerKey::hpa("a", "web"),
        AutoscalerKey::hpa("a", "api.v2"),
    ];
    for key in &keys {
        records.add(key, DecisionMode::Active, PERIOD, &spec, &decision);
    }
    let names = |namespace| {
        let name = |r: DecisionRecord| format!("{}/{}", r.metadata.namespace, r.metadata.name);
        records.latest(namespace).into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["a/hpa.api.v2", "a/hpa.web", "a/autoscaler.web", "b/hpa.web"]);
    assert_eq!(names(Some("b")), ["b/hpa.web"]);
    assert_eq!(names(Some("c")), [""; 0]);
    assert_eq!(records.of("a", "hpa.api.v2").len(), 1, "names may have dots");
    for (namespace, name) in [("a", "web"), ("a", "hpa"), ("a", "pod.web"), ("a", ""), ("c", "hpa.web")] {
        assert!(records.of(namespace, name).is_empty(), "{namespace} {name}");
    }
    records.forget(&keys[0]);
    assert!(records.of("b", "hpa.web").is_empty());
}

#[test]
fn follower_receives_every_decision() {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    // Nothing was decided yet.
    let mut stream = std::pin::pin!(records.follow("shop", "hpa.web"));
    let mut other = std::pin::pin!(records.follow("shop", "hpa.other"));
    assert!(stream.next().now_or_never().is_none());
    for second in [0, 15] {
        add(&records, &spec, &once(second, &spec, Some(250)));
    }
    let mut next = || stream.next().now_or_never().unwrap().map(|r| r.map(|record| record.times));
    assert_eq!((next(), next()), (Some(Ok(1)), Some(Ok(2))));
    assert!(other.next().now_or_never().is_none());
    records.forget(&AutoscalerKey::hpa("shop", "web"));
    assert_eq!(next(), None, "it is gone");
    let mut nonsense = std::pin::pin!(records.follow("shop", "nonsense"));
    assert!(nonsense.next().now_or_never().unwrap().is_none());
}

#[test]
fn slow_reader_gets_an_error_and_is_disconnected() {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    let mut slow = std::pin::pin!(records.follow("shop", "hpa.web"));
    let decision = once(0, &spec, Some(250));
    for _ in 0..100 {
        add(&records, &spec, &decision);
    }
    assert_eq!(slow.next().now_or_never().unwrap().unwrap().unwrap_err(), TooSlow { missed: 84 });
    assert!(slow.next().now_or_never().unwrap().is_none());
}

#[test]
fn who_stopped_following_costs_nothing() {
    let spec = Arc::new(mk_spec("web"));
    let records = Records::default();
    drop(records.follow("shop", "hpa.web"));
    drop(records.follow("shop", "hpa.silent"));
    add(&records, &spec, &once(0, &spec, Some(250)));
    drop(records.follow("shop", "hpa.another"));
    assert_eq!(records.lock().followers.len(), 1);
}

/// Ten thousand with an hour of quiet passes, measured on ten.
#[test]
fn an_hour_of_ten_thousand_fits_into_a_hundred_mebibytes() {
    let records = Records::default();
    for n in 0..10 {
        let spec = Arc::new(mk_spec(&format!("checkout-frontend-{n}")));
        let (mut state, mut status) = (State::default(), Status::default());
        for second in 0..500 {
            let milli = 240 + (second * 37 + n) % 20;
            let decision = decide(
                &mut state,
                at(second * 15),
                &spec,
                &status,
                (10, Some(milli)),
                ScaleWriteResult::Done,
            );
            status.clone_from(&decision.status);
            add(&records, &spec, &decision);
        }
    }
    let each = records.approximate_bytes() / 10;
    assert!(each * 10_000 <= 100 << 20, "{each} bytes each");
}

/// As much as the process takes, and how long a steady decision takes:
/// `cargo test -p controllers --lib records:: -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement; takes a minute"]
fn memory_and_time_of_records_are_printed() {
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let specs: Vec<_> = (0..10_000).map(|n| Arc::new(mk_spec(&format!("checkout-frontend-{n}")))).collect();
    let decisions = restless(&specs[0], 25);
    for (what, runs) in [("25 passes", 25), ("one pass", 1)] {
        let before = resident();
        let records = Records::default();
        for spec in &specs {
            add_all(&records, spec, &decisions[..runs]);
        }
        let (grown, estimated) = (resident().saturating_sub(before), records.approximate_bytes());
        println!("10,000 of {what}: {} KiB resident, {} KiB approximately", grown >> 10, estimated >> 10);
        let start = Instant::now();
        for spec in specs.iter().cycle().take(100_000) {
            add(&records, spec, &decisions[runs - 1]);
        }
        println!("a steady decision: {:?}", start.elapsed() / 100_000);
    }
    let (records, start) = (Records::default(), Instant::now());
    for decision in decisions.iter().cycle().take(1000) {
        add(&records, &specs[0], decision);
    }
    println!("a decision that differs: {:?}", start.elapsed() / 1000);
}
