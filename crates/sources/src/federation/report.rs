//! Status of upstreams, for `doctor`, logs and metrics.

use std::time::Duration;

use tokio::time::Instant;

use super::health::HealthState;
use super::upstream::Upstream;

/// Status of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamReport {
    /// Name in the configuration.
    pub name: String,
    /// URL.
    pub url: String,
    /// Condition.
    pub condition: UpstreamCondition,
    /// Whether the circuit breaker is open.
    pub circuit_open: bool,
    /// Number of announced custom metrics.
    pub custom: usize,
    /// Number of announced external metrics.
    pub external: usize,
    /// Number of requests.
    pub requests: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// 99th percentile of recent latencies.
    pub p99: Option<Duration>,
}

/// Condition of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamCondition {
    /// No request yet.
    Unknown,
    /// Healthy for this long.
    Healthy(Duration),
    /// Failing.
    Failing {
        /// For this long.
        duration: Duration,
        /// Error.
        cause: String,
        /// Remedy.
        remedy: String,
    },
}

impl UpstreamReport {
    pub(super) fn of(upstream: &Upstream, now: Instant) -> Self {
        let (announced, health) = (upstream.announced(), upstream.health());
        let duration = |since: Instant| now.saturating_duration_since(since);
        let condition = match health.state() {
            HealthState::Unknown => UpstreamCondition::Unknown,
            HealthState::Healthy(since) => UpstreamCondition::Healthy(duration(*since)),
            HealthState::Failing(since, cause) => UpstreamCondition::Failing {
                duration: duration(*since),
                cause: cause.to_string(),
                remedy: cause.remedy().to_owned(),
            },
        };
        let (requests, errors) = health.counts();
        Self {
            name: upstream.config().name.clone(),
            url: upstream.config().base_url(),
            condition,
            circuit_open: health.is_open(),
            custom: announced.custom.len(),
            external: announced.external.len(),
            requests,
            errors,
            p99: health.p99(),
        }
    }
}
