//! A steady step allocates the same for ten pods as for ten thousand. One test, because it counts the allocations of
//! the whole process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{World, cpu, default_behavior, external, mk_pod, mk_spec, pending, pods_metric, resource, secs};
use dhat::{HeapStats, Profiler};
use engine::spec::{Behavior, Metric, MetricTarget, Spec};
use engine::{MetricSamples, Pod, Scale, ScaleOutcome};

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// What one step allocates, in blocks and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allocated {
    blocks: u64,
    bytes: u64,
}

/// Long enough for every window to be full and every slot to be reused.
const WARM_UP: usize = 100;

/// The cost of one more step of a target that stays as it is.
fn steady_step(mut world: World) -> Allocated {
    let mut seen = world.observation();
    let mut step = || {
        let before = HeapStats::get();
        let decision = world.state.step(world.now, &seen);
        let after = HeapStats::get();
        assert_eq!(decision.outcome, ScaleOutcome::Kept, "{:?}", decision.evaluations);
        seen.status = decision.status;
        world.now += secs(15);
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
fn world(pods: i32, metrics: &[Metric], behavior: Option<Behavior>) -> World {
    let mut world = World::new(Spec { max: 20_000, behavior, ..mk_spec(metrics) }, pods.min(1));
    world.pods = vec![mk_pod("p"); pods as usize];
    world.scale = Ok(Scale { spec_replicas: pods, status_replicas: pods, selector: "app=d".into() });
    for metric in metrics {
        world = match metric.goal {
            MetricTarget::Value(target) => world.totals(&[target]),
            MetricTarget::AverageValue(target) => world.each(target),
            MetricTarget::Utilization(percent) => world.each(i64::from(percent) * 10),
            MetricTarget::Missing => world,
        };
    }
    world
}

/// The same with some pods that are starting and some without a sample: the second look allocates nothing either.
fn untidy(mut world: World) -> World {
    for pod in world.pods.iter_mut().step_by(10) {
        *pod = Pod { shape: pod.shape.clone(), ..pending("starting") };
    }
    if let Some(Ok(MetricSamples::PerPod(samples))) = world.samples.first_mut() {
        samples.by_pod.iter_mut().step_by(7).for_each(|sample| *sample = None);
    }
    world
}

/// One kind of target: which metrics, under which rules, and what its pods are like.
struct Kind {
    name: &'static str,
    metrics: Vec<Metric>,
    behavior: Option<Behavior>,
    arrange: fn(World) -> World,
}

fn kinds() -> [Kind; 4] {
    let tidy: fn(World) -> World = |world| world;
    let four = vec![
        cpu(50),
        resource("cpu", MetricTarget::AverageValue(700)),
        pods_metric(900),
        external(MetricTarget::Value(1)),
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
        let step = |pods| steady_step(arrange(world(pods, &metrics, behavior.clone())));
        let (few, many) = (step(10), step(10_000));
        println!("{name}: {few:?}");
        assert_eq!(few, many, "{name}");
        assert!(few.blocks > 0, "nothing was counted");
    }
}
