//! How upstreams fare, for `doctor`, logs and metrics.

use std::time::Duration;

use tokio::time::Instant;

use super::health::State;
use super::upstream::Upstream;

/// How an upstream fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamReport {
    /// Its name in the configuration.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Whether it answers.
    pub condition: Condition,
    /// Whether it is left alone for a while because it fails again and again.
    pub left_alone: bool,
    /// Custom metrics that it announces.
    pub custom: usize,
    /// External metrics that it announces.
    pub external: usize,
    /// Questions sent.
    pub requests: u64,
    /// Those without an answer.
    pub errors: u64,
    /// The time within which 99 of the last 100 answers came.
    pub p99: Option<Duration>,
}

/// Whether an upstream answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It has not been asked.
    Unknown,
    /// It does, for so long.
    Healthy(Duration),
    /// It does not.
    Failing {
        /// For so long.
        lasting: Duration,
        /// What is wrong.
        cause: String,
        /// What to do about it.
        remedy: String,
    },
}

impl UpstreamReport {
    pub(super) fn of(upstream: &Upstream, now: Instant) -> Self {
        let (announced, health) = (upstream.announced(), upstream.health());
        let lasting = |since: Instant| now.saturating_duration_since(since);
        let condition = match health.state() {
            State::Unknown => Condition::Unknown,
            State::Healthy(since) => Condition::Healthy(lasting(*since)),
            State::Failing(since, cause) => Condition::Failing {
                lasting: lasting(*since),
                cause: cause.to_string(),
                remedy: cause.remedy().to_owned(),
            },
        };
        let (requests, errors) = health.counts();
        Self {
            name: upstream.config().name.clone(),
            url: upstream.config().base_url(),
            condition,
            left_alone: health.is_open(),
            custom: announced.custom.len(),
            external: announced.external.len(),
            requests,
            errors,
            p99: health.p99(),
        }
    }
}
