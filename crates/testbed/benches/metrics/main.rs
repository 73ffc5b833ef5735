//! Our metrics server beside those it replaces, and alone with more: `make bench-metrics`.
//!
//! ```text
//! resource  1,000 nodes × 30 pods: first metrics-server, then ours, over the same kubelets and on the same API server
//! alone     5,000 nodes × 30 pods: ours
//! hold      as `resource`, ours alone, until standard input ends: for whoever looks with a profiler
//! custom    200 autoscalers' questions, 1,000 a second: first prometheus-adapter, then ours, on the same Prometheus
//! env     a real API server with nodes and pods that are simulated
//! subject   a metrics server as a process
//! figures   what the kernel says of it
//! table     limits and verdicts
//! ```
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod custom;
mod env;
mod figures;
mod lists;
mod resource;
mod subject;
mod table;

use std::process::ExitCode;

/// The allocator of the binary; the simulated side has much to hold here.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = |name: &str| arguments.is_empty() || arguments.iter().any(|word| word == name);
    if arguments.first().is_some_and(|word| word == "hold") {
        runtime.block_on(resource::hold());
        return ExitCode::SUCCESS;
    }
    let mut good = true;
    if asked("resource") {
        good &= runtime.block_on(resource::run());
    }
    if asked("alone") {
        good &= runtime.block_on(alone::run());
    }
    if asked("custom") {
        good &= runtime.block_on(custom::run());
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
