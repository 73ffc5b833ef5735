//! Cost of a simulated month: `examples/month.yaml` on one core.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::print_stdout)]

#[path = "../../engine/benches/table/mod.rs"]
#[allow(dead_code)]
mod table;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use api::yaml::SourceFile;
use sim::{DueDecision, Millis, NullObserver, Observer, Recording, Scenario, Simulation};

use table::Table;

/// Maximum time of the simulation of 30 days, in seconds.
const MAX_MONTH_SECONDS: f64 = 2.0;
/// Instructions of one decision and of the virtual time up to the next.
const INSTRUCTIONS_PER_DECISION: f64 = 40_000.0;
const DAY: Millis = Millis::from_hours(24);

fn main() -> ExitCode {
    let counting = std::env::args().nth(1).as_deref() == Some("count");
    let scenario =
        match load(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/month.yaml").as_path()) {
            Ok(scenario) => scenario,
            Err(text) => {
                println!("{text}");
                return ExitCode::FAILURE;
            }
        };
    if counting {
        measured(&Scenario { duration: DAY, ..scenario }, &mut NullObserver);
        return ExitCode::SUCCESS;
    }
    let mut table = Table::new("simulator: examples/month.yaml");
    let seen = watch(&scenario);
    table::note("decisions", f64::from(seen.decisions), table::count);
    table::note("most pods", f64::from(seen.most_pods), table::count);
    table.row("time, 30 days", time(|| measured(&scenario, &mut NullObserver)), MAX_MONTH_SECONDS, seconds);
    let recorded = time(|| measured(&scenario, &mut Recording::new(&scenario, 2000)));
    table.row("time, 30 days, with all that a report shows", recorded, MAX_MONTH_SECONDS, seconds);
    match table::count_under_valgrind(&["count"]) {
        Ok(day) => {
            let decisions = f64::from(watch(&Scenario { duration: DAY, ..scenario.clone() }).decisions);
            table.row(
                "instructions per decision, first day",
                day / decisions,
                INSTRUCTIONS_PER_DECISION,
                table::count,
            );
        }
        Err(why) => table.not_measured("instructions", &why),
    }
    table.verdict()
}

fn load(path: &Path) -> Result<Scenario, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let source = SourceFile::from_bytes("month.yaml", &bytes).map_err(|problem| problem.render(false))?;
    let files = |path: &Path| std::fs::read(path);
    Scenario::load(&[source], &files)
        .map_err(|problems| problems.iter().map(|p| p.render(false)).collect::<Vec<_>>().join("\n"))
}

/// The only function whose instructions are counted.
#[inline(never)]
fn measured(scenario: &Scenario, observer: &mut dyn Observer) {
    black_box(Simulation::new(black_box(scenario)).run(observer));
}

/// The best of three runs, since other load can only make it slower.
fn time(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::INFINITY, f64::min)
}

/// The amount of work.
#[derive(Default)]
struct Seen {
    decisions: u32,
    most_pods: u32,
}

impl Observer for Seen {
    fn step(&mut self, _: &DueDecision, seen: &engine::Observation, _: &engine::Decision) {
        self.decisions += 1;
        self.most_pods = self.most_pods.max(u32::try_from(seen.pods.len()).unwrap_or(u32::MAX));
    }
}

fn watch(scenario: &Scenario) -> Seen {
    let mut seen = Seen::default();
    measured(scenario, &mut seen);
    seen
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}
