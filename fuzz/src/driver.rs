//! The plain driver: all seeds as they are, then changed seeds until time is up.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::Target;
use crate::mutate::{Random, mutate};

/// Longer than this and an input counts as a hang.
const SLOWEST: Duration = Duration::from_secs(10);

/// How long a target runs.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// For so long.
    Time(Duration),
    /// With so many changed inputs.
    Inputs(u64),
}

/// The current input and its start, for the watchdog thread.
type Hand = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Runs a target; panics with the path of the input at the first finding.
pub fn drive(target: &Target, extent: Extent, seed: u64) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    let hand = Hand::default();
    watch(*target, &hand);
    for input in &seeds {
        feed(target, &hand, input);
    }
    let started = Instant::now();
    let mut random = Random(seed);
    let mut inputs = 0_u64;
    while match extent {
        Extent::Time(time) => started.elapsed() < time,
        Extent::Inputs(most) => inputs < most,
    } {
        let (Some(base), Some(other)) = (random.pick(&seeds), random.pick(&seeds)) else { break };
        feed(target, &hand, &mutate(&mut random, base, other));
        inputs += 1;
    }
    println!("{}: {} seeds, {inputs} changed inputs in {:.0?}", target.name, seeds.len(), started.elapsed());
}

fn feed(target: &Target, hand: &Hand, input: &[u8]) {
    set(hand, Some((Instant::now(), input.to_vec())));
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    set(hand, None);
    if outcome.is_err() {
        panic!("{} panics on the input in {}", target.name, keep(target, input).display());
    }
}

fn set(hand: &Hand, value: Option<(Instant, Vec<u8>)>) {
    if let Ok(mut hand) = hand.lock() {
        *hand = value;
    }
}

/// The watchdog: ends the process when an input takes too long, because no other thread can.
fn watch(target: Target, hand: &Hand) {
    let hand = Arc::downgrade(hand);
    std::thread::spawn(move || {
        while let Some(hand) = hand.upgrade() {
            let late =
                hand.lock().ok().and_then(|hand| hand.clone()).filter(|(since, _)| since.elapsed() > SLOWEST);
            if let Some((_, input)) = late {
                let path = keep(&target, &input);
                eprintln!("{} takes more than {SLOWEST:?} on the input in {}", target.name, path.display());
                std::process::exit(1);
            }
            drop(hand);
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Writes a finding down; it is a seed of the next run.
fn keep(target: &Target, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let folder = root().join("artifacts").join(target.name);
    let path = folder.join(format!("found-{:016x}", hasher.finish()));
    if fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input)).is_err() {
        eprintln!("{}", String::from_utf8_lossy(input));
    }
    path
}

/// Seeds in the order of their names: the same every time.
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
