use std::sync::Arc;

use engine::pod::ConditionStatus;
use engine::{PodPhase, PodTemplate};

use super::*;
use crate::load::CurveShape;
use crate::random::Seed;

fn secs(seconds: i64) -> Millis {
    Millis::from_secs(seconds)
}

fn template(order: PodManagement) -> ModelPodTemplate {
    ModelPodTemplate {
        name: "web".into(),
        order,
        shape: Arc::new(PodTemplate::default()),
        start_delay: secs(3),
        ready_delay: secs(7),
        stop_delay: secs(5),
        failing: 0.0,
        failure: PodFailure::NeverReady,
        seed: Seed::new(1),
    }
}

fn start() -> Timestamp {
    "2026-01-05T09:00:00Z".parse().unwrap()
}

fn fleet(template: ModelPodTemplate, replicas: usize) -> PodSet {
    PodSet::new(template, start(), replicas)
}

fn stages(fleet: &PodSet) -> Vec<PodStage> {
    fleet.pods().iter().map(|pod| pod.stage).collect()
}

/// Lets the fleet live from event to event, as a workload does.
fn live(fleet: &mut PodSet, to: i64) {
    while fleet.next() <= secs(to) {
        fleet.advance(fleet.next(), 0.0);
    }
}

fn names(fleet: &PodSet) -> Vec<String> {
    fleet.pods().iter().map(|pod| pod.view.name.to_string()).collect()
}

#[test]
fn a_pod_starts_becomes_ready_and_stops() {
    let mut fleet = fleet(template(PodManagement::Any), 1);
    let old = fleet.pods()[0].view.name.clone();
    assert_eq!((fleet.ready(), fleet.active()), (1, 1));
    assert_eq!(fleet.pods()[0].view.ready.unwrap().since, start() - jiff::SignedDuration::from_hours(1));

    fleet.scale(secs(10), 2, 0.0);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Pending]);
    assert_eq!((fleet.ready(), fleet.active(), fleet.next()), (1, 2, secs(13)));
    let view = |fleet: &PodSet| fleet.pods()[1].view.clone();
    assert_eq!(
        (view(&fleet).phase, view(&fleet).ready.unwrap().status),
        (PodPhase::Pending, ConditionStatus::False)
    );

    live(&mut fleet, 13);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Starting]);
    assert_eq!(
        (view(&fleet).phase, view(&fleet).ready.unwrap().status),
        (PodPhase::Running, ConditionStatus::False)
    );

    live(&mut fleet, 20);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Ready]);
    let ready = view(&fleet).ready.unwrap();
    assert_eq!(
        (ready.status, ready.since),
        (ConditionStatus::True, start() + jiff::SignedDuration::from_secs(20))
    );
    assert_eq!(view(&fleet).started, Some(start() + jiff::SignedDuration::from_secs(10)));

    fleet.scale(secs(30), 1, 0.0);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Stopping], "the youngest goes first");
    assert!(view(&fleet).deleting && view(&fleet).phase == PodPhase::Running);
    assert_eq!((fleet.ready(), fleet.active(), fleet.pods().len()), (1, 1, 2));
    live(&mut fleet, 34);
    assert_eq!(fleet.pods().len(), 2);
    live(&mut fleet, 35);
    assert_eq!(names(&fleet), [old.to_string()]);
    assert_eq!(fleet.next(), Millis::NEVER);
}

#[test]
fn scale_down_deletes_unready_and_young_pods_first() {
    let mut fleet = fleet(template(PodManagement::Any), 2);
    fleet.scale(secs(0), 3, 0.0);
    live(&mut fleet, 5);
    fleet.scale(secs(5), 4, 0.0);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Ready, PodStage::Starting, PodStage::Pending]);
    fleet.scale(secs(6), 3, 0.0);
    assert_eq!(
        stages(&fleet),
        [PodStage::Ready, PodStage::Ready, PodStage::Starting],
        "what never ran is gone at once"
    );
    fleet.scale(secs(6), 1, 0.0);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Stopping, PodStage::Stopping]);
    live(&mut fleet, 100);
    assert_eq!(stages(&fleet), [PodStage::Ready], "a pod that stops does not become ready");
}

#[test]
fn no_delays_at_all() {
    let none = ModelPodTemplate {
        start_delay: Millis::ZERO,
        ready_delay: Millis::ZERO,
        stop_delay: Millis::ZERO,
        ..template(PodManagement::OneByOne)
    };
    for order in [PodManagement::Any, PodManagement::Numbered, PodManagement::OneByOne] {
        let mut fleet = fleet(ModelPodTemplate { order, ..none.clone() }, 0);
        fleet.scale(secs(1), 5, 0.0);
        assert_eq!((fleet.ready(), fleet.pods().len()), (5, 5), "{order:?}");
        fleet.scale(secs(2), 2, 0.0);
        assert_eq!((fleet.ready(), fleet.pods().len(), fleet.next()), (2, 2, Millis::NEVER), "{order:?}");
    }
}

#[test]
fn stateful_sets_number_their_pods_and_scale_one_by_one() {
    let mut fleet = fleet(template(PodManagement::OneByOne), 1);
    fleet.scale(secs(0), 3, 0.0);
    assert_eq!(names(&fleet), ["web-0", "web-1"]);
    live(&mut fleet, 9);
    assert_eq!(names(&fleet), ["web-0", "web-1"]);
    live(&mut fleet, 10);
    assert_eq!(names(&fleet), ["web-0", "web-1", "web-2"]);
    live(&mut fleet, 20);
    assert_eq!(fleet.ready(), 3);
    fleet.scale(secs(30), 1, 0.0);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Ready, PodStage::Stopping]);
    live(&mut fleet, 35);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Stopping]);
    // A name is free again only when its pod is gone.
    fleet.scale(secs(36), 2, 0.0);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Stopping]);
    live(&mut fleet, 40);
    assert_eq!(stages(&fleet), [PodStage::Ready, PodStage::Pending]);
    assert_eq!(names(&fleet), ["web-0", "web-1"]);

    let mut parallel = super::tests::fleet(template(PodManagement::Numbered), 0);
    parallel.scale(secs(0), 3, 0.0);
    assert_eq!(names(&parallel), ["web-0", "web-1", "web-2"]);
}

#[test]
fn some_pods_fail() {
    let failing = ModelPodTemplate { failing: 0.3, ..template(PodManagement::Any) };
    let mut never_ready = fleet(failing.clone(), 0);
    never_ready.scale(secs(0), 1000, 0.0);
    live(&mut never_ready, 100);
    assert!((600..800).contains(&never_ready.ready()), "{}", never_ready.ready());
    assert_eq!((never_ready.active(), never_ready.pods().len()), (1000, 1000));

    let mut replaced = fleet(ModelPodTemplate { failure: PodFailure::Failed, ..failing.clone() }, 0);
    replaced.scale(secs(0), 1000, 0.0);
    live(&mut replaced, 1000);
    assert_eq!((replaced.ready(), replaced.active()), (1000, 1000));
    assert_eq!(replaced.pods().len(), 1020, "some failed pods stay listed");
    let mut all = names(&replaced);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1020, "names are unique");

    let mut numbered =
        fleet(ModelPodTemplate { failure: PodFailure::Failed, order: PodManagement::Numbered, ..failing }, 0);
    numbered.scale(secs(0), 50, 0.0);
    live(&mut numbered, 1000);
    assert_eq!((numbered.ready(), numbered.pods().len()), (50, 50));
}

fn workload(replicas: usize, load: CurveShape) -> Workload {
    let plan = WorkloadModel {
        template: template(PodManagement::Any),
        replicas,
        service: ServiceCapacity { per_pod: Some(10.0), queue: 0.0 },
        load: LoadCurve::new(vec![load], Vec::new()),
    };
    let cadence = ModelTiming { start: start(), tick: secs(1), resolution: secs(15), oldest: secs(60) };
    Workload::new(&plan, &cadence)
}

#[test]
fn ready_pods_share_the_work_and_windows_are_means() {
    let step = CurveShape::Step { from: 4.0, to: 16.0, at: secs(22), until: Millis::NEVER };
    let mut workload = workload(2, step);
    let activity = |workload: &Workload, at: i64, pod: usize| {
        workload.fleet().pods()[pod].activity(&workload.window(secs(at)).unwrap()).map(|a| a.work)
    };
    assert_eq!(activity(&workload, 0, 0), Some(2.0), "the past was as steady as the first moment");
    workload.advance(secs(20));
    workload.scale(4);
    workload.advance(secs(60));
    // 15 s to 30 s: 7 s of 4 units by two pods, then 8 s of 16 by two pods (the new ones are ready at 30 s).
    let early = (7.0 * 2.0 + 8.0 * 8.0) / 15.0;
    assert!((activity(&workload, 40, 0).unwrap() - early).abs() < 1e-9);
    assert_eq!(activity(&workload, 40, 2), None, "it did not run all the time");
    assert!((activity(&workload, 45, 2).unwrap() - 4.0).abs() < 1e-9);
    assert!((activity(&workload, 45, 0).unwrap() - 4.0).abs() < 1e-9);
    let summary = workload.summary();
    assert_eq!((summary.max_replicas, summary.short_seconds, summary.unserved), (4, 0.0, 0.0));
    assert!((summary.offered - (22.0 * 4.0 + 38.0 * 16.0)).abs() < 1e-9);
}

#[test]
fn overload_time_is_measured() {
    let step = CurveShape::Step { from: 5.0, to: 25.0, at: secs(30), until: secs(100) };
    let mut workload = workload(1, step);
    workload.advance(secs(45));
    workload.scale(3);
    workload.advance(secs(120));
    let summary = workload.summary();
    // Short from 30 s until the new pods are ready at 55 s.
    assert_eq!(
        (summary.short_seconds, summary.worst_reaction_seconds, summary.short_at_end),
        (25.0, 25.0, false)
    );
    assert!((summary.unserved - 25.0 * 15.0).abs() < 1e-9);
    assert!((summary.pod_hours - (45.0 + 3.0 * 75.0) / 3600.0).abs() < 1e-9);
    assert!((summary.ready_hours - (55.0 + 3.0 * 65.0) / 3600.0).abs() < 1e-9);
    assert!((summary.mean_replicas - (45.0 + 3.0 * 75.0) / 120.0).abs() < 1e-9);
}

#[test]
fn samples_are_means_since_the_last() {
    let mut workload = workload(1, CurveShape::Constant(12.0));
    let first = workload.sample();
    assert_eq!((first.offered, first.served, first.unserved), (12.0, 10.0, 2.0));
    workload.advance(secs(15));
    let next = workload.sample();
    assert_eq!(
        (next.at, next.ready, next.pods, next.replicas, next.capacity),
        (secs(15), 1, 1, 1, Some(10.0))
    );
    assert!((next.served - 10.0).abs() < 1e-9 && (next.unserved - 2.0).abs() < 1e-9);
}
