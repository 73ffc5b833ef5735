//! Health and circuit breaker of an upstream. Time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::error::UpstreamError;

/// Failures in a row that open the circuit.
const FAILURES_BEFORE_OPEN: u32 = 3;
/// Shortest and longest time that the circuit stays open.
const MIN_OPEN_TIME: Duration = Duration::from_secs(1);
const MAX_OPEN_TIME: Duration = Duration::from_secs(30);
/// Number of latencies kept for percentiles.
const MAX_LATENCY_SAMPLES: usize = 256;

/// Health of an upstream.
#[derive(Debug)]
pub(crate) struct UpstreamHealth {
    circuit: Circuit,
    state: HealthState,
    requests: u64,
    errors: u64,
    latencies: VecDeque<Duration>,
}

/// Circuit breaker state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circuit {
    Closed {
        failures: u32,
    },
    /// No request before `until`; then one probe is sent.
    Open {
        until: Instant,
        pause: Duration,
    },
}

/// Result of the last request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HealthState {
    /// No request yet.
    Unknown,
    /// Healthy since this time.
    Healthy(Instant),
    /// Failing since this time, with the last error.
    Failing(Instant, UpstreamError),
}

impl UpstreamHealth {
    pub(crate) fn new() -> Self {
        Self {
            circuit: Circuit::Closed { failures: 0 },
            state: HealthState::Unknown,
            requests: 0,
            errors: 0,
            latencies: VecDeque::with_capacity(MAX_LATENCY_SAMPLES),
        }
    }

    /// Whether a request may be sent now; a caller that gets `Ok` must send one. The error has the remaining time and
    /// the cause.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), (Duration, UpstreamError)> {
        let Circuit::Open { until, pause } = &mut self.circuit else { return Ok(()) };
        if now >= *until {
            *until = now + *pause;
            return Ok(());
        }
        let cause = match &self.state {
            HealthState::Failing(_, cause) => cause.clone(),
            HealthState::Unknown | HealthState::Healthy(_) => UpstreamError::Busy,
        };
        Err((*until - now, cause))
    }

    /// A request was answered, whatever the status.
    pub(crate) fn answered(&mut self, now: Instant, took: Duration) {
        self.count(took);
        self.circuit = Circuit::Closed { failures: 0 };
        self.set_healthy(now);
    }

    /// A request failed.
    pub(crate) fn failed(&mut self, now: Instant, took: Duration, cause: UpstreamError) {
        self.count(took);
        self.errors += 1;
        if cause.is_of_server() {
            self.circuit = match self.circuit {
                Circuit::Closed { failures } if failures + 1 < FAILURES_BEFORE_OPEN => {
                    Circuit::Closed { failures: failures + 1 }
                }
                Circuit::Closed { .. } => Circuit::Open { until: now + MIN_OPEN_TIME, pause: MIN_OPEN_TIME },
                Circuit::Open { pause, .. } => {
                    let pause = (pause * 2).min(MAX_OPEN_TIME);
                    Circuit::Open { until: now + pause, pause }
                }
            };
        }
        self.set_failing(now, cause);
    }

    /// Discovery succeeded. That does not prove that queries work, but allows a probe at once.
    pub(crate) fn listed(&mut self, now: Instant) {
        match &mut self.circuit {
            Circuit::Open { until, .. } => *until = now,
            Circuit::Closed { failures: 0 } => self.set_healthy(now),
            Circuit::Closed { .. } => {}
        }
    }

    /// Discovery failed. Queries are still sent, because some servers have no discovery.
    pub(crate) fn not_listed(&mut self, now: Instant, cause: UpstreamError) {
        self.set_failing(now, cause);
    }

    pub(crate) fn state(&self) -> &HealthState {
        &self.state
    }

    /// Number of requests and of failed ones.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.requests, self.errors)
    }

    /// 99th percentile of the kept latencies; `None` without any.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * 99).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }

    /// Whether the circuit is open.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.circuit, Circuit::Open { .. })
    }

    fn count(&mut self, took: Duration) {
        self.requests += 1;
        if self.latencies.len() >= MAX_LATENCY_SAMPLES {
            self.latencies.pop_front();
        }
        self.latencies.push_back(took);
    }

    fn set_healthy(&mut self, now: Instant) {
        if !matches!(self.state, HealthState::Healthy(_)) {
            self.state = HealthState::Healthy(now);
        }
    }

    fn set_failing(&mut self, now: Instant, cause: UpstreamError) {
        let since = match self.state {
            HealthState::Failing(since, _) => since,
            HealthState::Unknown | HealthState::Healthy(_) => now,
        };
        self.state = HealthState::Failing(since, cause);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn down() -> UpstreamError {
        UpstreamError::NoAnswer(crate::http::HttpErrorCause::Refused)
    }

    #[test]
    fn open_circuit_allows_one_probe_per_pause() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut health = UpstreamHealth::new();
        for _ in 0..3 {
            health.admit(at(0)).unwrap();
            health.failed(at(0), MS, down());
        }
        assert_eq!(health.admit(at(999)), Err((MS, down())));
        health.admit(at(1000)).unwrap();
        // Another caller while the probe is pending.
        assert!(health.admit(at(1001)).is_err());
        health.failed(at(1500), MS, down());
        assert!(health.admit(at(3499)).is_err());
        health.admit(at(3500)).unwrap();
        health.answered(at(3600), MS);
        health.admit(at(3600)).unwrap();
        assert_eq!((health.counts(), health.state()), ((5, 4), &HealthState::Healthy(at(3600))));
    }

    #[test]
    fn query_errors_do_not_open_the_circuit() {
        let now = Instant::now();
        let mut health = UpstreamHealth::new();
        for _ in 0..10 {
            health.failed(now, MS, UpstreamError::Status { code: 500, message: "no such scaler".into() });
        }
        health.admit(now).unwrap();
        assert!(matches!(health.state(), HealthState::Failing(..)));
    }

    #[test]
    fn successful_discovery_allows_a_probe() {
        let now = Instant::now();
        let mut health = UpstreamHealth::new();
        (0..3).for_each(|_| health.failed(now, MS, down()));
        assert!(health.admit(now).is_err());
        health.listed(now);
        health.admit(now).unwrap();
        assert!(health.admit(now).is_err() && health.is_open());
    }

    #[test]
    fn latencies_are_bounded() {
        let (now, mut health) = (Instant::now(), UpstreamHealth::new());
        assert_eq!(health.p99(), None);
        (1..=1000).for_each(|millis| health.answered(now, MS * millis));
        assert_eq!(health.latencies.len(), MAX_LATENCY_SAMPLES);
        assert_eq!(health.p99(), Some(MS * 998));
    }

    proptest! {
        /// For any sequence of outcomes: a failing upstream gets at most one request per pause, and is probed again
        /// within the longest pause.
        #[test]
        fn failing_upstream_is_neither_flooded_nor_forgotten(outcomes in proptest::collection::vec(any::<bool>(), 1..200)) {
            let start = Instant::now();
            let mut health = UpstreamHealth::new();
            let (mut now, mut refused_since) = (start, None);
            for good in outcomes {
                match health.admit(now) {
                    Ok(()) => {
                        refused_since = None;
                        if good { health.answered(now, MS) } else { health.failed(now, MS, down()) }
                    }
                    Err((wait, _)) => {
                        let since = *refused_since.get_or_insert(now);
                        prop_assert!(wait <= MAX_OPEN_TIME && now - since <= MAX_OPEN_TIME);
                    }
                }
                now += Duration::from_millis(700);
            }
        }
    }
}
