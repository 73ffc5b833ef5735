//! The three metrics APIs for simulated clusters: `metrics.k8s.io`, `custom.metrics.k8s.io` and
//! `external.metrics.k8s.io`, as an aggregated server on this machine.
//!
//! What is served is what simulated nodes use ([`MetricsApi::of_nodes`]), and what a [`Script`] says. The script also
//! makes faults and counts requests.
//!
//! ```text
//! contents       what is measured
//! script         set by hand, with faults
//! rate           read from simulated nodes
//! answer, wire   what a request gets, without IO
//! discovery
//! serve          TLS, and the faults of connections
//! register       how a cluster gets to know it
//! ```
//!
//! It answers everybody: it is a simulation on loopback, and holds no secrets. Answers are JSON, which every client of
//! these APIs takes, and tables for people.

mod answer;
mod contents;
mod discovery;
mod rate;
mod register;
mod script;
mod serve;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::time::Duration;

use tokio::task::JoinSet;

pub use contents::{ContainerUsage, Described, Labels, NodeUsage, PodUsage, Series, When};
pub use script::{Group, Outage, Script};

use crate::access::PkiError;
use crate::clock::Clock;
use crate::nodes::{Meter, Nodes};
use rate::Rates;
use serve::Door;

/// How metrics are served.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often nodes are read.
    pub resolution: Duration,
    /// What [`When::Now`] is.
    pub clock: Clock,
}

impl Default for Settings {
    /// Every 15 seconds, by the system's time.
    fn default() -> Self {
        Self { resolution: contents::WINDOW, clock: Clock::system() }
    }
}

/// A running server of metrics; it ends when this is dropped.
pub struct MetricsApi {
    script: Script,
    door: Door,
    #[allow(dead_code, reason = "held for their end")]
    tasks: JoinSet<()>,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no port.
    #[error("failed to listen for metrics")]
    Listen(#[from] io::Error),
    /// There is no certificate.
    #[error("failed to set up TLS for metrics")]
    Tls(#[from] PkiError),
    /// The cluster does not take what makes the APIs known.
    #[error("failed to register {object}")]
    Register {
        /// Which object.
        object: String,
        /// What the cluster said.
        source: kube::Error,
    },
    /// The cluster did not find the APIs in time.
    #[error("the cluster did not find {api} within {} s", .patience.as_secs())]
    Unavailable {
        /// Which group and version.
        api: String,
        /// How long was waited.
        patience: Duration,
    },
}

impl MetricsApi {
    /// Serves what its script says.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        let script = Script::default();
        let mut tasks = JoinSet::new();
        let (door, listener) = Door::open().await?;
        tasks.spawn(serve::accept(door.clone(), listener, script.clone(), settings.clock));
        Ok(Self { script, door, tasks })
    }

    /// Serves what the pods on simulated nodes use, too; what the script says goes before it.
    pub async fn of_nodes(nodes: &Nodes, settings: Settings) -> Result<Self, Error> {
        let mut started = Self::start(settings).await?;
        started.tasks.spawn(collect(nodes.meter(), started.script.clone(), settings.resolution));
        Ok(started)
    }

    /// The handle that sets values and makes faults.
    pub fn script(&self) -> Script {
        self.script.clone()
    }

    /// The port on `localhost` where it speaks TLS.
    pub fn port(&self) -> u16 {
        self.door.port
    }

    /// The authority behind its certificate, as PEM.
    pub fn ca_pem(&self) -> &str {
        self.door.ca_pem()
    }
}

/// Reads nodes for ever.
async fn collect(meter: Meter, script: Script, resolution: Duration) {
    let mut rates = Rates::default();
    let mut due = tokio::time::interval(resolution);
    loop {
        due.tick().await;
        let measured = rates.step(resolution, &meter.read());
        script.lock().measured = measured;
    }
}
