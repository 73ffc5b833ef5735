//! Our controller beside Kubernetes' own on a real cluster, and alone with ten times as much: `make bench-controller`.
//!
//! ```text
//! beside     1,000 autoscalers × 10 pods: first Kubernetes' controller, then Plimsoll's, on one API server with the same metrics
//! alone      10,000 autoscalers × 10 pods on localkube, which runs in a process of its own
//! recording  the same 10,000: the cost of keeping every pass in memory and in files
//! roles      1,000 autoscalers × 10 pods: all roles in one process, compared with one process for each role
//! pgo_workload  recorded passes, a part of the profile of `make pgo-profile`; runs only if it is named
//! versions   an older revision and this one, only if it is named: `make bench-versions`
//! workloads  the objects of `beside` and `alone`
//! load       the usage of pods: constant, or another value in every period
//! measure    exported metrics, resource usage and requests of a controller
//! ```

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod beside;
mod load;
mod measure;
mod pgo_workload;
mod recording;
mod roles;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod shared;
mod versions;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use shared::plimsoll::PlimsollProcess;
use shared::server::SERVER;

/// The allocator of the measured binary, for localkube, which holds many objects here.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The default time between two syncs of an autoscaler.
const SYNC_PERIOD: Duration = Duration::from_secs(15);
/// The duration of a measurement.
const MEASUREMENT_WINDOW: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    let (arguments, runtime) = (shared::arguments(), shared::runtime());
    match arguments.first().map(String::as_str) {
        Some(SERVER) => runtime.block_on(alone::serve(&arguments[1], alone::WORKLOADS)),
        Some(pgo_workload::SERVER_FOR_PROFILE) => {
            runtime.block_on(alone::serve(&arguments[1], pgo_workload::WORKLOADS));
        }
        Some(roles::SERVER_WITH_KUBELETS) => runtime.block_on(roles::serve(&arguments[1])),
        Some("hold") => beside::hold(&runtime, &arguments[1]),
        // This benchmark runs only if it is named.
        Some("pgo-workload") => {
            return shared::run(&[], &[("pgo-workload", &|| runtime.block_on(pgo_workload::run()))]);
        }
        Some("versions") => {
            return shared::run(&[], &[("versions", &|| runtime.block_on(versions::run()))]);
        }
        _ => {
            return shared::run(
                &arguments,
                &[
                    ("beside", &|| beside::run(&runtime)),
                    ("alone", &|| runtime.block_on(alone::run())),
                    ("recording", &|| runtime.block_on(recording::run())),
                    ("roles", &|| runtime.block_on(roles::run())),
                ],
            );
        }
    }
    ExitCode::SUCCESS
}

/// Starts `plimsoll controller`.
fn start_controller(kubeconfig: &str) -> PlimsollProcess {
    start_controller_with(kubeconfig, &[])
}

/// Starts `plimsoll controller` with additional flags.
fn start_controller_with(kubeconfig: &str, more: &[String]) -> PlimsollProcess {
    PlimsollProcess::start("controller", kubeconfig, &controller_flags(more))
}

/// The flags of a controller that is measured.
fn controller_flags(more: &[String]) -> Vec<String> {
    let flags = ["--leader-elect=false", "--authorization-always-allow-paths=/healthz,/metrics"];
    [&flags.map(str::to_owned)[..], more].concat()
}
