//! Our operator beside KEDA on a real cluster, and alone with ten times as much: `make bench-operator`.
//!
//! ```text
//! beside      1,000 ScaledObjects: first KEDA 2.20.2 looks after them, then ours, on one API server, one Prometheus
//! alone       10,000 of them on localkube, which runs in a process of its own
//! same        1,000 that all ask the same: how often Prometheus is asked
//! wake        1,250 at zero whose source has something to do all at once
//! push        from the tell of an external scaler to the write of the scale
//! restart     Prometheus killed and started again under load
//! learn       a little of everything, only if it is asked for: what `make learn` learns from
//! workloads       the objects
//! env       localkube in another process; the subject, our binary
//! source      a Prometheus that says what it is told to, and counts
//! questions   what an HPA controller asks
//! figures     what the kernel says of processes
//! table       limits and verdicts
//! ```
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod beside;
mod env;
mod figures;
mod learn;
mod push;
mod questions;
mod restart;
mod same;
mod source;
mod subject;
#[path = "../metrics/table.rs"]
mod table;
mod wake;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

/// The allocator of the binary; localkube has much to hold here.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// From poll to poll, as it is unless a ScaledObject says otherwise.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long is measured: five intervals, after which times of activity that were left out are written in any case.
const WINDOW: Duration = Duration::from_secs(150);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = |name: &str| arguments.is_empty() || arguments.iter().any(|word| word == name);
    if arguments.first().is_some_and(|word| word == env::SERVER) {
        runtime.block_on(env::serve(&arguments[1]));
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|word| word == "learn") {
        return if runtime.block_on(learn::run()) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut good = true;
    if asked("beside") {
        good &= runtime.block_on(beside::run());
    }
    if asked("alone") {
        good &= runtime.block_on(alone::run());
    }
    if asked("same") {
        good &= runtime.block_on(same::run());
    }
    if asked("restart") {
        good &= runtime.block_on(restart::run());
    }
    if asked("wake") {
        good &= runtime.block_on(wake::run());
    }
    if asked("push") {
        good &= runtime.block_on(push::run());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
