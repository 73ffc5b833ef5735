//! How many requests at once the server bears.

use std::time::Duration;

use tokio::time::Instant;

/// Fewer requests than this are never allowed.
const LEAST: f64 = 2.0;
/// More requests than this are never allowed.
const MOST: f64 = 256.0;
/// What is allowed at first.
const START: f64 = 32.0;
/// What remains of the limit when the server has too much to do.
const EASE: f64 = 0.5;
/// Nobody may make us wait longer than this.
const LONGEST_HOLD: Duration = Duration::from_mins(1);
/// Who gives up on a request later than this found the server slow.
const PATIENCE: Duration = Duration::from_secs(1);

/// The limit of requests in flight: it grows a little with each answer and is halved when the server is overloaded.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    limit: f64,
    in_flight: usize,
    hold: Option<Instant>,
    eased: Option<Instant>,
    counts: LimiterSnapshot,
}

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is in flight from this moment on.
    Now,
    /// Not before this moment: the server asked for a pause.
    At(Instant),
    /// Not before another request has come back.
    Full,
}

/// How a request came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Answered, be it with a refusal.
    Answered,
    /// 429 or 503, and how long the server asks to be left alone.
    Overloaded(Option<Duration>),
    /// 504.
    TimedOut,
    /// Nobody waits for the answer any more.
    Abandoned,
    /// It never reached the server, or the server failed; that says nothing about its load.
    Failed,
}

/// What can be seen of the pressure from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimiterSnapshot {
    /// How many requests may be in flight.
    pub limit: usize,
    /// How many are.
    pub in_flight: usize,
    /// How many wait.
    pub waiting: usize,
    /// Until when all wait, because the server asked for it.
    pub held_until: Option<Instant>,
    /// Requests let pass so far.
    pub admitted: u64,
    /// Answers that said the server has too much to do.
    pub overloaded: u64,
    /// Requests that took too long.
    pub timed_out: u64,
    /// Requests sent again.
    pub retried: u64,
}

impl Default for AdaptiveLimit {
    fn default() -> Self {
        Self { limit: START, in_flight: 0, hold: None, eased: None, counts: LimiterSnapshot::default() }
    }
}

impl AdaptiveLimit {
    /// Asks for a request to pass.
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

    /// A request that passed at `admitted` has come back.
    pub fn finish(&mut self, now: Instant, admitted: Instant, outcome: RequestOutcome) {
        // A limit that is not used says nothing about what the server bears.
        let used = self.in_flight as f64 * 2.0 >= self.limit;
        self.in_flight = self.in_flight.saturating_sub(1);
        match outcome {
            RequestOutcome::Answered if used => self.limit = (self.limit + 1.0 / self.limit).min(MOST),
            RequestOutcome::Answered | RequestOutcome::Failed => {}
            RequestOutcome::Overloaded(pause) => {
                self.counts.overloaded += 1;
                self.ease(now, admitted);
                let until = pause.map(|pause| now + pause.min(LONGEST_HOLD));
                self.hold = self.hold.max(until);
            }
            RequestOutcome::Abandoned if now.saturating_duration_since(admitted) < PATIENCE => {}
            RequestOutcome::TimedOut | RequestOutcome::Abandoned => {
                self.counts.timed_out += 1;
                self.ease(now, admitted);
            }
        }
    }

    /// A request is sent again.
    pub fn retried(&mut self) {
        self.counts.retried += 1;
    }

    /// What can be seen from outside.
    pub fn snapshot(&self) -> LimiterSnapshot {
        LimiterSnapshot {
            limit: self.limit as usize,
            in_flight: self.in_flight,
            held_until: self.hold,
            ..self.counts.clone()
        }
    }

    /// Lowers the limit, once for all requests that were under way together.
    fn ease(&mut self, now: Instant, admitted: Instant) {
        if self.eased.is_some_and(|eased| admitted <= eased) {
            return;
        }
        self.eased = Some(now);
        self.limit = (self.limit * EASE).max(LEAST);
    }
}
