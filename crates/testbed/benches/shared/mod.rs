//! Helpers that the benchmarks of the controller, the metrics server and the operator share.
//!
//! ```text
//! definitions  CustomResourceDefinitions of KEDA's resources
//! plimsoll  the measured binary as a process
//! server    localkube in another process
//! table     rows with limits
//! usage     CPU and memory of processes
//! versions  the binary of an older revision
//! ```

pub(crate) mod definitions;
pub(crate) mod plimsoll;
pub(crate) mod server;
pub(crate) mod table;
pub(crate) mod usage;
pub(crate) mod versions;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Runtime;

/// How many objects are written at the same time.
const CONCURRENT_WRITES: usize = 16;

/// The arguments of this program without `--bench`, which cargo adds.
pub(crate) fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|word| word != "--bench").collect()
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs the benchmarks that the arguments name, or all if there are no arguments. The exit code is a failure if a limit is missed.
pub(crate) fn run(arguments: &[String], benchmarks: &[(&str, &dyn Fn() -> bool)]) -> ExitCode {
    let is_named = |name: &str| arguments.is_empty() || arguments.iter().any(|word| word == name);
    let named = benchmarks.iter().filter(|(name, _)| is_named(name));
    let kept: Vec<bool> = named.map(|(_, benchmark)| benchmark()).collect();
    if kept.iter().all(|kept| *kept) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Calls `write` with every number below `count`, with up to [`CONCURRENT_WRITES`] calls at the same time.
pub(crate) async fn write_many<F: Future<Output = ()> + Send + 'static>(
    count: usize,
    write: impl Fn(usize) -> F + Clone + Send + 'static,
) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONCURRENT_WRITES {
        let (write, next) = (write.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                write(number).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
