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
//! pgo_workload  polls and metric requests, only if it is named: the profile of `make pgo-profile`
//! workloads   the deployments and ScaledObjects
//! env         localkube in another process
//! subject     the operator as a process
//! source      a scripted Prometheus that counts queries
//! questions   the requests of an HPA controller
//! backend_servers  small servers of several protocols
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
mod pgo_workload;
mod push;
mod questions;
mod restart;
mod same;
#[path = "../shared/mod.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod shared;
mod source;
mod subject;
mod wake;
mod workloads;

use std::process::ExitCode;
use std::time::Duration;

use shared::server::SERVER;

/// The allocator of the binary; localkube has much to hold here.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// From poll to poll, as it is unless a ScaledObject says otherwise.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long is measured: five intervals, after which times of activity that were left out are written in any case.
const WINDOW: Duration = Duration::from_secs(150);

fn main() -> ExitCode {
    let (arguments, runtime) = (shared::arguments(), shared::runtime());
    match arguments.first().map(String::as_str) {
        Some(SERVER) => {
            runtime.block_on(env::serve(&arguments[1]));
            ExitCode::SUCCESS
        }
        // Only if it is named.
        Some("pgo-workload") => {
            shared::run(&[], &[("pgo-workload", &|| runtime.block_on(pgo_workload::run()))])
        }
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
