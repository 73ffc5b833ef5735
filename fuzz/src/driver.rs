//! The driver without libFuzzer: it runs all seeds unchanged, then mutated seeds until the limit of the run is reached.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::Target;
use crate::mutate::{Random, mutate};

/// The time that a target may take for one input; an input that takes longer counts as a hang.
const MAX_INPUT_TIME: Duration = Duration::from_secs(10);

/// How long a target is fuzzed.
#[derive(Clone, Copy, Debug)]
pub enum RunLimit {
    /// The target runs for this time.
    Time(Duration),
    /// The target runs with this number of mutated inputs.
    Inputs(u64),
}

/// The start and the bytes of the input that runs now, shared with the watchdog thread; none between two inputs.
type CurrentInput = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Runs a target; panics with the path of the input at the first finding.
pub fn drive(target: &Target, limit: RunLimit, seed: u64) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    let current = CurrentInput::default();
    spawn_watchdog(*target, &current);
    for input in &seeds {
        run_input(target, &current, input);
    }
    let started = Instant::now();
    let mut random = Random(seed);
    let mut inputs = 0_u64;
    while match limit {
        RunLimit::Time(time) => started.elapsed() < time,
        RunLimit::Inputs(max) => inputs < max,
    } {
        let (Some(base), Some(other)) = (random.pick(&seeds), random.pick(&seeds)) else { break };
        run_input(target, &current, &mutate(&mut random, base, other));
        inputs += 1;
    }
    println!("{}: {} seeds, {inputs} mutated inputs in {:.0?}", target.name, seeds.len(), started.elapsed());
}

fn run_input(target: &Target, current: &CurrentInput, input: &[u8]) {
    set_current(current, Some((Instant::now(), input.to_vec())));
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    set_current(current, None);
    if outcome.is_err() {
        panic!("{} panics on the input in {}", target.name, save_finding(target, input).display());
    }
}

fn set_current(current: &CurrentInput, value: Option<(Instant, Vec<u8>)>) {
    if let Ok(mut current) = current.lock() {
        *current = value;
    }
}

/// Starts the watchdog thread. It ends the process when an input takes longer than [`MAX_INPUT_TIME`], because a thread that hangs cannot be stopped.
fn spawn_watchdog(target: Target, current: &CurrentInput) {
    let current = Arc::downgrade(current);
    std::thread::spawn(move || {
        while let Some(current) = current.upgrade() {
            let late = current
                .lock()
                .ok()
                .and_then(|current| current.clone())
                .filter(|(since, _)| since.elapsed() > MAX_INPUT_TIME);
            if let Some((_, input)) = late {
                let path = save_finding(&target, &input);
                eprintln!(
                    "{} takes more than {MAX_INPUT_TIME:?} on the input in {}",
                    target.name,
                    path.display()
                );
                std::process::exit(1);
            }
            drop(current);
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Writes the input of a finding to a file and returns its path. The next run uses this file as a seed.
fn save_finding(target: &Target, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let folder = root().join("artifacts").join(target.name);
    let path = folder.join(format!("found-{:016x}", hasher.finish()));
    if fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input)).is_err() {
        eprintln!("{}", String::from_utf8_lossy(input));
    }
    path
}

/// All seeds in the order of their paths, so that every run has the same order.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let mut folders =
        vec![root().join("seeds").join(target.name), root().join("artifacts").join(target.name)];
    if target.examples {
        folders.push(root().join("../examples"));
    }
    let list =
        |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = folders.into_iter().flat_map(list).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}
