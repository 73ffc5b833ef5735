//! Scenario files: they are loaded, then simulated for a bounded time.

use std::path::Path;

use api::yaml::SourceFile;
use sim::{Millis, Observer, Recording, Scenario, Simulation, WorkloadSample};

use super::text::render;

/// The bound of the virtual time of a simulation.
const MAX_VIRTUAL_TIME: Millis = Millis::from_mins(30);
/// The bound of the load samples of a simulation, times pods; a larger scenario is not simulated.
const MAX_POD_SAMPLES: i64 = 2_000_000;

/// The input is one scenario file. Files to which it refers cannot be read.
pub fn run(data: &[u8]) {
    let Ok(source) = SourceFile::from_bytes("fuzz.yaml", data) else { return };
    let files = |_: &Path| Err(std::io::Error::other("no such file"));
    let mut scenario = match Scenario::load(&[source], &files) {
        Ok(scenario) => scenario,
        Err(problems) => return problems.iter().for_each(render),
    };
    scenario.duration = scenario.duration.min(MAX_VIRTUAL_TIME);
    if pod_samples(&scenario) > MAX_POD_SAMPLES {
        return;
    }
    let mut recording = Recording::new(&scenario, 100);
    let summary = Simulation::new(&scenario).run(&mut recording);
    let again = Simulation::new(&scenario).run(&mut FiniteNumbersCheck);
    assert_eq!(format!("{summary:?}"), format!("{again:?}"), "the same files give the same run");
}

/// An upper bound of the load samples of a simulation, times pods.
fn pod_samples(scenario: &Scenario) -> i64 {
    let ticks = scenario.duration.0 / scenario.cadence.tick.0.max(1);
    let grown = scenario.autoscalers.iter().map(|a| i64::from(a.spec.max.get())).sum::<i64>();
    let pods = grown + scenario.workloads.iter().map(|w| w.plan.replicas as i64).sum::<i64>();
    let periods = scenario.autoscalers.iter().map(|a| scenario.duration.0 / a.period.0.max(1)).sum::<i64>();
    ticks.saturating_mul(scenario.workloads.len() as i64).saturating_add(periods).saturating_mul(pods.max(1))
}

/// An observer that checks that all load samples are finite and not negative.
struct FiniteNumbersCheck;

impl Observer for FiniteNumbersCheck {
    fn sample(&mut self, _: jiff::Timestamp, _: usize, sample: &WorkloadSample) {
        let numbers = [sample.offered, sample.served, sample.unserved, sample.backlog];
        assert!(numbers.iter().all(|n| n.is_finite() && *n >= 0.0), "{sample:?}");
    }
}
