//! Cost of a step: wall time, and instructions as counted by callgrind.
//!
//! The instructions are those of [`measured`] alone, see [`table::count_under_valgrind`].

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod table;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use engine::pod::{ConditionStatus, Container, ReadyCondition, Resources};
use engine::spec::{Metric, MetricId, MetricSource, MetricTarget, Spec, TargetRef, UtilizationBase};
use engine::{
    ControllerConfig, Decision, MetricSamples, Observation, Pod, PodPhase, PodSamples, PodSelection,
    PodTemplate, Sample, Scale, State, Status,
};
use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;

use table::Table;

/// The benchmarked targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// cpu at its target, all pods of one template.
    Ready,
    /// cpu at its target, every pod with its own template.
    OwnTemplates,
    /// cpu, memory and two custom metrics.
    FourMetrics,
    /// A third of the pods starting or without a sample, cpu above target: the second calculation.
    Untidy,
}

const LOADS: [(Load, &str); 4] = [
    (Load::Ready, "ready"),
    (Load::OwnTemplates, "own-templates"),
    (Load::FourMetrics, "four-metrics"),
    (Load::Untidy, "untidy"),
];

/// Maximum time of a step with 1,000 pods, which the project promises, in seconds.
const MAX_STEP_SECONDS_1000_PODS: f64 = 60e-6;
/// Maximum number of instructions of a step with 1,000 pods. Instructions make runs on different machines comparable.
const MAX_INSTRUCTIONS_1000_PODS: f64 = 100_000.0;
/// Maximum ratio between the highest and the lowest cost per pod over a thousandfold number of pods.
const MAX_COST_RATIO: f64 = 1.10;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("count") {
        let load = args.next().unwrap_or_default();
        let pods = args.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let load = LOADS.iter().find(|(_, name)| *name == load).map_or(Load::Ready, |(load, _)| *load);
        count_here(load, pods);
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new("engine: one steady step");
    wall_time(&mut table);
    instructions(&mut table);
    table.verdict()
}

fn wall_time(table: &mut Table) {
    let step = |load, pods| {
        let (mut state, mut seen, mut now) = warmed_up(load, pods);
        table::time(|| {
            now += SignedDuration::from_secs(15);
            seen.status = measured(&mut state, now, &seen).status;
        })
    };
    table.row("time, 1,000 ready pods", step(Load::Ready, 1000), MAX_STEP_SECONDS_1000_PODS, table::micros);
    table.row(
        "time, 1,000 pods, each its own template",
        step(Load::OwnTemplates, 1000),
        MAX_STEP_SECONDS_1000_PODS,
        table::micros,
    );
    table::note("time, 1,000 pods, four metrics", step(Load::FourMetrics, 1000), table::micros);
    table::note("time, 1,000 pods, a third starting or unsampled", step(Load::Untidy, 1000), table::micros);
    for pods in [10, 100, 1000, 10_000] {
        let what = format!("time per pod, {} ready pods", table::count(f64::from(pods)));
        table::note(&what, step(Load::Ready, pods) / f64::from(pods), table::nanos);
    }
}

fn instructions(table: &mut Table) {
    const SIZES: [u32; 4] = [10, 100, 1000, 10_000];
    let counts: Result<Vec<f64>, String> = SIZES.iter().map(|&pods| count("ready", pods)).collect();
    let counts = match counts {
        Ok(counts) => counts,
        Err(why) => return table.not_measured("instructions", &why),
    };
    if let [_, _, thousand, _] = counts[..] {
        table.row("instructions, 1,000 ready pods", thousand, MAX_INSTRUCTIONS_1000_PODS, table::count);
    }
    // The cost per additional pod between two sizes, without the fixed cost of a step.
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (sizes, counts) in SIZES.windows(2).zip(counts.windows(2)) {
        let (&[fewer, more], &[less, greater]) = (sizes, counts) else { continue };
        let each = (greater - less) / f64::from(more - fewer);
        (least, most) = (least.min(each), most.max(each));
        let [from, to] = [fewer, more].map(|n| table::count(f64::from(n)));
        let what = format!("instructions per pod, {from} to {to} pods");
        table::note(&what, each, |n| format!("{n:.2}"));
    }
    table.row("dearest by cheapest pod, 10 to 10,000 pods", most / least, MAX_COST_RATIO, |n| {
        format!("{n:.3}")
    });
    for (_, name) in LOADS.iter().skip(1) {
        match count(name, 1000) {
            Ok(found) => table::note(&format!("instructions, 1,000 pods, {name}"), found, table::count),
            Err(why) => table.not_measured(name, &why),
        }
    }
}

/// The only function whose instructions are counted.
#[inline(never)]
fn measured(state: &mut State, now: Timestamp, seen: &Observation) -> Decision {
    black_box(state.step(black_box(now), black_box(seen)))
}

/// Number of steps that are counted together, to average small variations.
const COUNTED_STEPS: u32 = 20;

fn count_here(load: Load, pods: u32) {
    let (mut state, mut seen, mut now) = warmed_up(load, pods);
    for _ in 0..COUNTED_STEPS {
        now += SignedDuration::from_secs(15);
        seen.status = measured(&mut state, now, &seen).status;
    }
}

/// Instructions of one step.
fn count(load: &str, pods: u32) -> Result<f64, String> {
    let total = table::count_under_valgrind(&["count", load, &pods.to_string()])?;
    Ok(total / f64::from(COUNTED_STEPS))
}

/// An unchanged target whose windows are full.
fn warmed_up(load: Load, pods: u32) -> (State, Observation, Timestamp) {
    let mut now = start();
    let mut seen = observation(load, pods);
    let mut state = State::default();
    for _ in 0..100 {
        now += SignedDuration::from_secs(15);
        seen.status = state.step(now, &seen).status;
    }
    (state, seen, now)
}

fn start() -> Timestamp {
    Timestamp::from_second(1_767_268_800).expect("a time in range")
}

fn observation(load: Load, pods: u32) -> Observation {
    let shape = || Arc::new(shape());
    let shared = shape();
    let sibling = |i: u32| {
        let template = if load == Load::OwnTemplates { shape() } else { shared.clone() };
        pod(&format!("web-{i}"), template, load == Load::Untidy && i.is_multiple_of(6))
    };
    let count = i32::try_from(pods).unwrap_or(i32::MAX);
    let milli = if load == Load::Untidy { 900 } else { 500 };
    let answer = || {
        let unsampled = |i: u32| load == Load::Untidy && i % 6 == 3;
        let sample = |i| {
            (!unsampled(i)).then_some(Sample {
                at: start(),
                window: SignedDuration::from_secs(30),
                milli: milli.into(),
            })
        };
        Ok(MetricSamples::PerPod(PodSamples { by_pod: (0..pods).map(sample).collect(), stray: Vec::new() }))
    };
    let metrics = metrics(load);
    Observation {
        config: Arc::new(ControllerConfig::default()),
        samples: metrics.iter().map(|_| answer()).collect(),
        spec: Arc::new(spec(metrics)),
        status: Status::default(),
        scale: Ok(Scale {
            spec_replicas: count.into(),
            status_replicas: count.into(),
            selector: "app=web".into(),
        }),
        selection: PodSelection::Ours,
        pods: (0..pods).map(sibling).collect(),
    }
}

fn metrics(load: Load) -> Vec<Metric> {
    let metric = |source, target| Metric::new(source, target);
    let resource = |name: &str| MetricSource::Resource { name: name.into(), of: UtilizationBase::Requests };
    let custom = |name: &str| {
        MetricSource::Pods(MetricId {
            name: name.into(),
            shown_selector: "nil".into(),
            selector: Ok(String::new()),
        })
    };
    let cpu = metric(resource("cpu"), MetricTarget::Utilization(50));
    if load != Load::FourMetrics {
        return vec![cpu];
    }
    let average = MetricTarget::AverageValue(500.into());
    vec![
        cpu,
        metric(resource("memory"), average),
        metric(custom("rps"), average),
        metric(custom("queue"), average),
    ]
}

fn spec(metrics: Vec<Metric>) -> Spec {
    Spec {
        namespace: "shop".into(),
        name: "web".into(),
        target: TargetRef { kind: "Deployment".into(), name: "web".into() },
        min: 1.into(),
        max: 100_000.into(),
        metrics,
        ..Spec::default()
    }
}

/// Two containers that request 500m each.
fn shape() -> PodTemplate {
    let half = || Quantity::parse("500m").expect("a quantity");
    let amounts = || vec![("memory".to_owned(), half()), ("cpu".to_owned(), half())];
    let container = |name: &str| Container {
        name: name.into(),
        restarts: false,
        resources: Resources { requests: amounts(), limits: Vec::new() },
    };
    PodTemplate { containers: vec![container("web"), container("proxy")], ..PodTemplate::default() }
}

fn pod(name: &str, shape: Arc<PodTemplate>, starting: bool) -> Pod {
    let started = start() - SignedDuration::from_hours(1);
    let since = started + SignedDuration::from_secs(10);
    Pod {
        name: name.into(),
        phase: if starting { PodPhase::Pending } else { PodPhase::Running },
        deleting: false,
        started: Some(started),
        ready: Some(ReadyCondition { status: ConditionStatus::True, since }),
        shape,
    }
}
