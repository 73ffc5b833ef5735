//! How an upstream fares, and whether it may be asked. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::cause::Cause;

/// Failures in a row after which an upstream is asked only now and then.
const FAILURES: u32 = 3;
/// How long it is left alone at first, and at most.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(30);
/// Latencies that are remembered.
const LATENCIES: usize = 256;

/// How an upstream fares.
#[derive(Debug)]
pub(crate) struct Health {
    circuit: Circuit,
    state: State,
    requests: u64,
    errors: u64,
    latencies: VecDeque<Duration>,
}

/// Whether it may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circuit {
    Closed {
        failures: u32,
    },
    /// Nobody asks before `until`; then one does, and the others wait for what he hears.
    Open {
        until: Instant,
        pause: Duration,
    },
}

/// What was heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing yet.
    Unknown,
    /// It answers, since then.
    Healthy(Instant),
    /// It does not, since then, because of this.
    Failing(Instant, Cause),
}

impl Health {
    pub(crate) fn new() -> Self {
        Self {
            circuit: Circuit::Closed { failures: 0 },
            state: State::Unknown,
            requests: 0,
            errors: 0,
            latencies: VecDeque::with_capacity(LATENCIES),
        }
    }

    /// Whether it may be asked now; whoever hears yes must ask. An error says why and for how long not.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), (Duration, Cause)> {
        let Circuit::Open { until, pause } = &mut self.circuit else { return Ok(()) };
        if now >= *until {
            *until = now + *pause;
            return Ok(());
        }
        let cause = match &self.state {
            State::Failing(_, cause) => cause.clone(),
            State::Unknown | State::Healthy(_) => Cause::Busy,
        };
        Err((*until - now, cause))
    }

    /// It answered a question, whatever it said.
    pub(crate) fn answered(&mut self, now: Instant, took: Duration) {
        self.count(took);
        self.circuit = Circuit::Closed { failures: 0 };
        self.well(now);
    }

    /// It did not.
    pub(crate) fn failed(&mut self, now: Instant, took: Duration, cause: Cause) {
        self.count(took);
        self.errors += 1;
        if cause.is_of_server() {
            self.circuit = match self.circuit {
                Circuit::Closed { failures } if failures + 1 < FAILURES => {
                    Circuit::Closed { failures: failures + 1 }
                }
                Circuit::Closed { .. } => Circuit::Open { until: now + FIRST, pause: FIRST },
                Circuit::Open { pause, .. } => {
                    let pause = (pause * 2).min(LAST);
                    Circuit::Open { until: now + pause, pause }
                }
            };
        }
        self.ill(now, cause);
    }

    /// Its list of metrics was fetched. That does not prove that it answers questions, but one may be tried at once.
    pub(crate) fn listed(&mut self, now: Instant) {
        match &mut self.circuit {
            Circuit::Open { until, .. } => *until = now,
            Circuit::Closed { failures: 0 } => self.well(now),
            Circuit::Closed { .. } => {}
        }
    }

    /// Its list of metrics could not be fetched. Questions are still asked: some servers have no list.
    pub(crate) fn not_listed(&mut self, now: Instant, cause: Cause) {
        self.ill(now, cause);
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Questions sent, and those that failed.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.requests, self.errors)
    }

    /// The time within which 99 of the last 100 answers came; none if there was none.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * 99).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }

    /// Whether it is left alone for a while.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.circuit, Circuit::Open { .. })
    }

    fn count(&mut self, took: Duration) {
        self.requests += 1;
        if self.latencies.len() >= LATENCIES {
            self.latencies.pop_front();
        }
        self.latencies.push_back(took);
    }

    fn well(&mut self, now: Instant) {
        if !matches!(self.state, State::Healthy(_)) {
            self.state = State::Healthy(now);
        }
    }

    fn ill(&mut self, now: Instant, cause: Cause) {
        let since = match self.state {
            State::Failing(since, _) => since,
            State::Unknown | State::Healthy(_) => now,
        };
        self.state = State::Failing(since, cause);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn down() -> Cause {
        Cause::NoAnswer(crate::http::Cause::Refused)
    }

    #[test]
    fn after_three_failures_it_is_asked_once_per_pause() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut health = Health::new();
        for _ in 0..3 {
            health.admit(at(0)).unwrap();
            health.failed(at(0), MS, down());
        }
        assert_eq!(health.admit(at(999)), Err((MS, down())));
        health.admit(at(1000)).unwrap();
        // Somebody else, while the first still waits.
        assert!(health.admit(at(1001)).is_err());
        health.failed(at(1500), MS, down());
        assert!(health.admit(at(3499)).is_err());
        health.admit(at(3500)).unwrap();
        health.answered(at(3600), MS);
        health.admit(at(3600)).unwrap();
        assert_eq!((health.counts(), health.state()), ((5, 4), &State::Healthy(at(3600))));
    }

    #[test]
    fn an_answer_about_the_question_is_no_fault_of_the_server() {
        let now = Instant::now();
        let mut health = Health::new();
        for _ in 0..10 {
            health.failed(now, MS, Cause::Status { code: 500, message: "no such scaler".into() });
        }
        health.admit(now).unwrap();
        assert!(matches!(health.state(), State::Failing(..)));
    }

    #[test]
    fn a_list_lets_one_try() {
        let now = Instant::now();
        let mut health = Health::new();
        (0..3).for_each(|_| health.failed(now, MS, down()));
        assert!(health.admit(now).is_err());
        health.listed(now);
        health.admit(now).unwrap();
        assert!(health.admit(now).is_err() && health.is_open());
    }

    #[test]
    fn latencies_are_bounded() {
        let (now, mut health) = (Instant::now(), Health::new());
        assert_eq!(health.p99(), None);
        (1..=1000).for_each(|millis| health.answered(now, MS * millis));
        assert_eq!(health.latencies.len(), LATENCIES);
        assert_eq!(health.p99(), Some(MS * 998));
    }

    proptest! {
        /// However it flaps: while it fails it is asked at most once per pause, and it is never forgotten for longer than
        /// the longest pause.
        #[test]
        fn it_is_neither_flooded_nor_forgotten(outcomes in proptest::collection::vec(any::<bool>(), 1..200)) {
            let start = Instant::now();
            let mut health = Health::new();
            let (mut now, mut refused_since) = (start, None);
            for good in outcomes {
                match health.admit(now) {
                    Ok(()) => {
                        refused_since = None;
                        if good { health.answered(now, MS) } else { health.failed(now, MS, down()) }
                    }
                    Err((wait, _)) => {
                        let since = *refused_since.get_or_insert(now);
                        prop_assert!(wait <= LAST && now - since <= LAST);
                    }
                }
                now += Duration::from_millis(700);
            }
        }
    }
}
