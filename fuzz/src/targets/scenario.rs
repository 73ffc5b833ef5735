//! Scenario files: load, then run for a bounded while.

use std::path::Path;

use api::yaml::SourceFile;
use sim::{Millis, Observer, Recording, Scenario, Simulation, WorkloadSample};

use super::text::render;

/// Bounds of a run: virtual time, and load samples times pods.
const LONGEST: Millis = Millis::from_mins(30);
const MOST_WORK: i64 = 2_000_000;

/// One file; those it refers to cannot be read.
pub fn run(data: &[u8]) {
    let Ok(source) = SourceFile::from_bytes("fuzz.yaml", data) else { return };
    let files = |_: &Path| Err(std::io::Error::other("no such file"));
    let mut scenario = match Scenario::load(&[source], &files) {
        Ok(scenario) => scenario,
        Err(problems) => return problems.iter().for_each(render),
    };
    scenario.duration = scenario.duration.min(LONGEST);
    if work(&scenario) > MOST_WORK {
        return;
    }
    let mut recording = Recording::new(&scenario, 100);
    let summary = Simulation::new(&scenario).run(&mut recording);
    let again = Simulation::new(&scenario).run(&mut Finite);
    assert_eq!(format!("{summary:?}"), format!("{again:?}"), "the same files give the same run");
}

/// How much a run would do, at most.
fn work(scenario: &Scenario) -> i64 {
    let ticks = scenario.duration.0 / scenario.cadence.tick.0.max(1);
    let grown = scenario.autoscalers.iter().map(|a| i64::from(a.spec.max.get())).sum::<i64>();
    let pods = grown + scenario.workloads.iter().map(|w| w.plan.replicas as i64).sum::<i64>();
    let periods = scenario.autoscalers.iter().map(|a| scenario.duration.0 / a.period.0.max(1)).sum::<i64>();
    ticks.saturating_mul(scenario.workloads.len() as i64).saturating_add(periods).saturating_mul(pods.max(1))
}

/// Sees only numbers.
struct Finite;

impl Observer for Finite {
    fn sample(&mut self, _: jiff::Timestamp, _: usize, sample: &WorkloadSample) {
        let numbers = [sample.offered, sample.served, sample.unserved, sample.backlog];
        assert!(numbers.iter().all(|n| n.is_finite() && *n >= 0.0), "{sample:?}");
    }
}
