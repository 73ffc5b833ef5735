//! Our operator beside KEDA on a real cluster, and alone with ten times as much: `make bench-operator`.
//!
//! ```text
//! beside      1,000 ScaledObjects: first KEDA 2.20.2, then Plimsoll, on one API server and one Prometheus
//! alone       10,000 ScaledObjects on localkube, which runs in a process of its own
//! same        1,000 ScaledObjects with the same query: how often Prometheus is queried
//! wake        1,250 ScaledObjects at zero whose source becomes active at the same moment
//! push        time from the push of an external scaler to the write of the scale
//! restart     Prometheus is killed and started again under load
//! backends    5,000 ScaledObjects over 20 backends of six protocols, one of which hangs
//! kafka       1,000 consumer groups on one Kafka cluster: first KEDA 2.20.2, then Plimsoll
//! pgo_workload  polls and metric requests, a part of the profile of `make pgo-profile`; runs only if it is named
//! versions     an older revision and this one, only if it is named: `make bench-versions`
//! workloads   the deployments and ScaledObjects
//! env         localkube in another process
//! operator_process     the operator as a process
//! scripted_prometheus  a simulated Prometheus that counts queries
//! metric_requests      the requests of an HPA controller
//! backend_servers  simulated servers of several protocols
//! kafka_server     a real Kafka broker, its topics and consumer groups
//! kafka_proxy      counts requests to the broker
//! ```

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alone;
mod backend_servers;
mod backends;
mod beside;
mod env;
mod kafka;
mod kafka_proxy;
mod kafka_server;
mod metric_requests;
mod operator_process;
mod pgo_workload;
mod push;
mod restart;
mod same;
mod scripted_prometheus;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod shared;
mod versions;
mod wake;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use shared::server::SERVER;

/// The allocator of the measured binary, for localkube, which holds many objects here.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The default polling interval of a ScaledObject.
const POLLING_INTERVAL: Duration = Duration::from_secs(30);
/// The duration of a measurement: five polling intervals, within which deferred writes of `lastActiveTime` are done in any case.
const MEASUREMENT_WINDOW: Duration = Duration::from_secs(150);

fn main() -> ExitCode {
    let (arguments, runtime) = (shared::arguments(), shared::runtime());
    match arguments.first().map(String::as_str) {
        Some(SERVER) => {
            runtime.block_on(env::serve(&arguments[1]));
            ExitCode::SUCCESS
        }
        // This benchmark runs only if it is named.
        Some("pgo-workload") => {
            shared::run(&[], &[("pgo-workload", &|| runtime.block_on(pgo_workload::run()))])
        }
        Some("versions") => shared::run(&[], &[("versions", &|| runtime.block_on(versions::run()))]),
        _ => shared::run(
            &arguments,
            &[
                ("beside", &|| runtime.block_on(beside::run())),
                ("alone", &|| runtime.block_on(alone::run())),
                ("same", &|| runtime.block_on(same::run())),
                ("restart", &|| runtime.block_on(restart::run())),
                ("wake", &|| runtime.block_on(wake::run())),
                ("push", &|| runtime.block_on(push::run())),
                ("backends", &|| runtime.block_on(backends::run())),
                ("kafka", &|| runtime.block_on(kafka::run())),
            ],
        ),
    }
}
