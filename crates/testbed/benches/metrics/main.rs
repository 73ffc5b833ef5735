//! Our metrics server beside those it replaces, and alone with more: `make bench-metrics`.
//!
//! ```text
//! resource  1,000 nodes × 30 pods: first metrics-server, then Plimsoll, with the same kubelets and the same API server
//! alone     5,000 nodes × 30 pods: Plimsoll
//! hold      as `resource` with Plimsoll only, until standard input ends: for a profiler
//! custom    requests for 200 autoscalers, 1,000 a second: first prometheus-adapter, then Plimsoll, on the same Prometheus
//! pgo_workload  kubelets and lists, a part of the profile of `make pgo-profile`; runs only if it is named
//! versions  an older revision and this one, only if it is named: `make bench-versions`
//! env       a real API server with simulated nodes and pods
//! server_process  a metrics server as a process
//! lists     times of large lists
//! ```

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod custom;
mod env;
mod lists;
mod pgo_workload;
mod resource;
mod server_process;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod shared;
mod versions;

use std::process::ExitCode;

/// The allocator of the measured binary, for the simulated kubelets, which hold many pods here.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let (arguments, runtime) = (shared::arguments(), shared::runtime());
    if arguments.first().is_some_and(|word| word == "hold") {
        runtime.block_on(resource::hold());
        return ExitCode::SUCCESS;
    }
    // This benchmark runs only if it is named.
    if arguments.first().is_some_and(|word| word == "pgo-workload") {
        return shared::run(&[], &[("pgo-workload", &|| runtime.block_on(pgo_workload::run()))]);
    }
    if arguments.first().is_some_and(|word| word == "versions") {
        return shared::run(&[], &[("versions", &|| runtime.block_on(versions::run()))]);
    }
    shared::run(
        &arguments,
        &[
            ("resource", &|| runtime.block_on(resource::run())),
            ("alone", &|| runtime.block_on(alone::run())),
            ("custom", &|| runtime.block_on(custom::run())),
        ],
    )
}
