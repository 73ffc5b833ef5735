//! Our controller beside Kubernetes' own on a real cluster, and alone with ten times as much: `make bench-controller`.
//!
//! ```text
//! beside    1,000 autoscalers × 10 pods: first theirs, then ours, on the same API server and with the same metrics
//! alone     10,000 autoscalers × 10 pods on localkube, which runs in a process of its own
//! workloads     the objects of both
//! load      what pods use: the same all the time, or something new at every look
//! ours      the release binary as a process
//! figures   what a controller says of itself, what the kernel says of it, what it asked for
//! table     limits and verdicts
//! ```
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod beside;
mod figures;
mod load;
mod plimsoll;
mod table;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

/// The allocator of the binary; localkube has much to hold here.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The usual time between two looks at an autoscaler.
const PERIOD: Duration = Duration::from_secs(15);
/// How long is measured.
const WINDOW: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = |name: &str| arguments.is_empty() || arguments.iter().any(|word| word == name);
    if arguments.first().is_some_and(|word| word == alone::SERVER) {
        runtime.block_on(alone::serve(&arguments[1]));
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|word| word == "hold") {
        beside::hold(&runtime, &arguments[1]);
        return ExitCode::SUCCESS;
    }
    let mut good = true;
    if asked("beside") {
        good &= beside::run(&runtime);
    }
    if asked("alone") {
        good &= runtime.block_on(alone::run());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
