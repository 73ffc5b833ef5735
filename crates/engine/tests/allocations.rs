//! A steady step allocates the same for ten pods as for ten thousand. One test, because it counts the allocations of
//! the whole process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{
    Fixture, cpu, default_behavior, external, mk_pod, mk_spec, pending, pods_metric, resource, secs,
};
use dhat::{HeapStats, Profiler};
use engine::spec::{Behavior, Metric, MetricTarget, Spec};
use engine::{MetricSamples, Pod, Scale, ScaleOutcome};

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// Allocations of one step, in blocks and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allocated {
    blocks: u64,
    bytes: u64,
}

/// Number of steps until every window is full and every slot is reused.
const WARM_UP: usize = 100;

/// The allocations of one more step of an unchanged target.
fn steady_step(mut fixture: Fixture) -> Allocated {
    let mut seen = fixture.observation();
    let mut step = || {
        let before = HeapStats::get();
        let decision = fixture.state.step(fixture.now, &seen);
        let after = HeapStats::get();
        assert_eq!(decision.outcome, ScaleOutcome::Kept, "{:?}", decision.evaluations);
        seen.status = decision.status;
        fixture.now += secs(15);
        Allocated {
            blocks: after.total_blocks - before.total_blocks,
            bytes: after.total_bytes - before.total_bytes,
        }
    };
    for _ in 0..WARM_UP {
        step();
    }
    step()
}

/// `pods` pods at their target.
fn fixture(pods: i32, metrics: &[Metric], behavior: Option<Behavior>) -> Fixture {
    let mut fixture = Fixture::new(Spec { max: 20_000.into(), behavior, ..mk_spec(metrics) }, pods.min(1));
    fixture.pods = vec![mk_pod("p"); pods as usize];
    fixture.scale =
        Ok(Scale { spec_replicas: pods.into(), status_replicas: pods.into(), selector: "app=d".into() });
    for metric in metrics {
        fixture = match metric.target {
            MetricTarget::Value(target) => fixture.totals(&[target.get()]),
            MetricTarget::AverageValue(target) => fixture.each(target.get()),
            MetricTarget::Utilization(percent) => fixture.each(i64::from(percent) * 10),
            MetricTarget::Missing => fixture,
        };
    }
    fixture
}

/// The same with some pods that are starting and some without a sample: the second calculation allocates nothing either.
fn untidy(mut fixture: Fixture) -> Fixture {
    for pod in fixture.pods.iter_mut().step_by(10) {
        *pod = Pod { shape: pod.shape.clone(), ..pending("starting") };
    }
    if let Some(Ok(MetricSamples::PerPod(samples))) = fixture.samples.first_mut() {
        samples.by_pod.iter_mut().step_by(7).for_each(|sample| *sample = None);
    }
    fixture
}

/// One kind of target: metrics, scaling rules and pods.
struct Kind {
    name: &'static str,
    metrics: Vec<Metric>,
    behavior: Option<Behavior>,
    arrange: fn(Fixture) -> Fixture,
}

fn kinds() -> [Kind; 4] {
    let tidy: fn(Fixture) -> Fixture = |fixture| fixture;
    let four = vec![
        cpu(50),
        resource("cpu", MetricTarget::AverageValue(700.into())),
        pods_metric(900),
        external(MetricTarget::Value(1.into())),
    ];
    [
        Kind { name: "cpu", metrics: vec![cpu(50)], behavior: None, arrange: tidy },
        Kind { name: "behavior", metrics: vec![cpu(50)], behavior: Some(default_behavior()), arrange: tidy },
        Kind { name: "four metrics", metrics: four, behavior: None, arrange: tidy },
        Kind {
            name: "starting pods, missing samples",
            metrics: vec![cpu(50)],
            behavior: None,
            arrange: untidy,
        },
    ]
}

#[test]
fn steady_steps_allocate_the_same_for_any_number_of_pods() {
    let _counting = Profiler::builder().testing().build();
    for Kind { name, metrics, behavior, arrange } in kinds() {
        let step = |pods| steady_step(arrange(fixture(pods, &metrics, behavior.clone())));
        let (few, many) = (step(10), step(10_000));
        println!("{name}: {few:?}");
        assert_eq!(few, many, "{name}");
        assert!(few.blocks > 0, "nothing was counted");
    }
}
