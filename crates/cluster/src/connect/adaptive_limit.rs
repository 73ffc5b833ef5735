//! The adaptive limit of concurrent requests, as a state machine without IO.

use std::time::Duration;

use tokio::time::Instant;

/// The lower bound of the limit, in requests.
const MIN_REQUESTS_IN_FLIGHT: f64 = 2.0;
/// The upper bound of the limit, in requests.
const MAX_REQUESTS_IN_FLIGHT: f64 = 256.0;
/// The limit at the start, in requests.
const INITIAL_REQUESTS_IN_FLIGHT: f64 = 32.0;
/// The limit is multiplied by this when the server is overloaded.
const OVERLOAD_FACTOR: f64 = 0.5;
/// A longer `Retry-After` is cut to this.
const MAX_LIMIT_HOLD: Duration = Duration::from_mins(1);
/// A request that its caller abandons after this counts as timed out.
const ABANDONED_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The limit of requests in flight: it grows a little with each answer and is halved when the server is overloaded.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    limit: f64,
    in_flight: usize,
    hold: Option<Instant>,
    lowered: Option<Instant>,
    counts: LimiterSnapshot,
}

/// Whether a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Admitted; it counts as in flight.
    Now,
    /// Not before this time: the server sent `Retry-After`.
    At(Instant),
    /// Not before another request has ended.
    Full,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The server answered, possibly with an error of the client.
    Answered,
    /// 429 or 503, and its `Retry-After`.
    Overloaded(Option<Duration>),
    /// 504.
    TimedOut,
    /// The caller no longer waits for the response.
    Abandoned,
    /// It did not reach the server, or the server failed. Neither says anything about load.
    Failed,
}

/// The state of a limiter and its counts, for exported metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimiterSnapshot {
    /// The limit of requests in flight.
    pub limit: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests that wait for admission.
    pub waiting: usize,
    /// No request is admitted before this time, because the server sent `Retry-After`.
    pub held_until: Option<Instant>,
    /// Requests admitted so far.
    pub admitted: u64,
    /// Responses 429 and 503.
    pub overloaded: u64,
    /// Requests that timed out.
    pub timed_out: u64,
    /// Requests that were sent again.
    pub retried: u64,
}

impl Default for AdaptiveLimit {
    fn default() -> Self {
        Self {
            limit: INITIAL_REQUESTS_IN_FLIGHT,
            in_flight: 0,
            hold: None,
            lowered: None,
            counts: LimiterSnapshot::default(),
        }
    }
}

impl AdaptiveLimit {
    /// Admits a request, or says when to try again.
    pub fn admit(&mut self, now: Instant) -> Admission {
        match self.hold {
            Some(until) if until > now => return Admission::At(until),
            _ => self.hold = None,
        }
        if self.in_flight >= self.limit as usize {
            return Admission::Full;
        }
        self.in_flight += 1;
        self.counts.admitted += 1;
        Admission::Now
    }

    /// Ends a request that was admitted at `admitted`.
    pub fn finish(&mut self, now: Instant, admitted: Instant, outcome: RequestOutcome) {
        // A limit that is not used up says nothing about the capacity of the server.
        let used = self.in_flight as f64 * 2.0 >= self.limit;
        self.in_flight = self.in_flight.saturating_sub(1);
        match outcome {
            RequestOutcome::Answered if used => {
                self.limit = (self.limit + 1.0 / self.limit).min(MAX_REQUESTS_IN_FLIGHT);
            }
            RequestOutcome::Answered | RequestOutcome::Failed => {}
            RequestOutcome::Overloaded(pause) => {
                self.counts.overloaded += 1;
                self.lower(now, admitted);
                let until = pause.map(|pause| now + pause.min(MAX_LIMIT_HOLD));
                self.hold = self.hold.max(until);
            }
            RequestOutcome::Abandoned
                if now.saturating_duration_since(admitted) < ABANDONED_REQUEST_TIMEOUT => {}
            RequestOutcome::TimedOut | RequestOutcome::Abandoned => {
                self.counts.timed_out += 1;
                self.lower(now, admitted);
            }
        }
    }

    /// Counts a request that is sent again.
    pub fn retried(&mut self) {
        self.counts.retried += 1;
    }

    /// The current state.
    pub fn snapshot(&self) -> LimiterSnapshot {
        LimiterSnapshot {
            limit: self.limit as usize,
            in_flight: self.in_flight,
            held_until: self.hold,
            ..self.counts
        }
    }

    /// Lowers the limit, once for all requests that were in flight together.
    fn lower(&mut self, now: Instant, admitted: Instant) {
        if self.lowered.is_some_and(|lowered| admitted <= lowered) {
            return;
        }
        self.lowered = Some(now);
        self.limit = (self.limit * OVERLOAD_FACTOR).max(MIN_REQUESTS_IN_FLIGHT);
    }
}
