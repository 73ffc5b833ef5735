//! The three metrics APIs for simulated clusters: `metrics.k8s.io`, `custom.metrics.k8s.io` and
//! `external.metrics.k8s.io`, as an aggregated API server on this machine.
//!
//! It serves the usage of simulated nodes ([`MetricsApi::of_nodes`]) and the values of a [`Script`], which also injects
//! faults and counts requests.
//!
//! ```text
//! contents       the metrics that are served
//! script         values and faults set by tests
//! rate           usage rates of simulated nodes
//! answer, wire   responses, without IO
//! discovery      discovery documents
//! serve          TLS, and injected connection faults
//! register       registration in a cluster
//! ```
//!
//! Requests are not authenticated: it is a simulation on loopback without secrets. Responses are JSON, which every
//! client of these APIs accepts, and tables for people.

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

pub use contents::{ContainerUsage, DescribedObject, Labels, NodeUsage, PodUsage, SampleTime, Series};
pub use script::{MetricsGroup, Outage, Script};

use crate::access::PkiError;
use crate::clock::Clock;
use crate::nodes::{Meter, Nodes};
use rate::UsageRates;
use serve::MetricsEndpoint;

/// Settings of the metrics APIs.
#[derive(Clone, Copy, Debug)]
pub struct MetricsSettings {
    /// How often nodes are sampled.
    pub resolution: Duration,
    /// The clock of [`SampleTime::Now`].
    pub clock: Clock,
}

impl Default for MetricsSettings {
    /// 15 seconds, with the system's clock.
    fn default() -> Self {
        Self { resolution: contents::DEFAULT_WINDOW, clock: Clock::system() }
    }
}

/// A running metrics API server; it stops when this is dropped.
pub struct MetricsApi {
    script: Script,
    endpoint: MetricsEndpoint,
    #[allow(dead_code, reason = "held for their end")]
    tasks: JoinSet<()>,
}

/// The metrics APIs cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MetricsApiError {
    /// Listening failed.
    #[error("failed to listen for metrics")]
    Listen(#[from] io::Error),
    /// The certificate could not be created.
    #[error("failed to set up TLS for metrics")]
    Tls(#[from] PkiError),
    /// The cluster refused an object of the registration.
    #[error("failed to register {object}")]
    Register {
        /// The object.
        object: String,
        /// The error of the cluster.
        source: kube::Error,
    },
    /// The cluster did not serve the APIs in time.
    #[error("the cluster did not find {api} within {} s", .patience.as_secs())]
    Unavailable {
        /// Group and version.
        api: String,
        /// The timeout.
        patience: Duration,
    },
}

impl MetricsApi {
    /// Serves the values of its script.
    pub async fn start(settings: MetricsSettings) -> Result<Self, MetricsApiError> {
        let script = Script::default();
        let mut tasks = JoinSet::new();
        let (endpoint, listener) = MetricsEndpoint::open().await?;
        tasks.spawn(serve::accept(endpoint.clone(), listener, script.clone(), settings.clock));
        Ok(Self { script, endpoint, tasks })
    }

    /// Serves the usage of simulated nodes as well; values of the script take precedence.
    pub async fn of_nodes(nodes: &Nodes, settings: MetricsSettings) -> Result<Self, MetricsApiError> {
        let mut started = Self::start(settings).await?;
        started.tasks.spawn(collect(nodes.meter(), started.script.clone(), settings.resolution));
        Ok(started)
    }

    /// The handle that sets values and injects faults.
    pub fn script(&self) -> Script {
        self.script.clone()
    }

    /// Its TLS port on `localhost`.
    pub fn port(&self) -> u16 {
        self.endpoint.port
    }

    /// The CA certificate of its server certificate, as PEM.
    pub fn ca_pem(&self) -> &str {
        self.endpoint.ca_pem()
    }
}

/// Samples the nodes until it is dropped.
async fn collect(meter: Meter, script: Script, resolution: Duration) {
    let mut rates = UsageRates::default();
    let mut due = tokio::time::interval(resolution);
    loop {
        due.tick().await;
        let measured = rates.step(resolution, &meter.read());
        script.lock().measured = measured;
    }
}
