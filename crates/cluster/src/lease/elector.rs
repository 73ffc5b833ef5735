//! The election as a state machine without clock or network: events in, actions out.
//!
//! Whether a lease has expired is judged by when *this process* last saw it change, never by the times written in it, because
//! clocks differ. Every write carries the `resourceVersion` that was read.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::Lease;
use super::settings::LeaseSettings;

/// The time of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepTime {
    /// The monotonic time, which decides.
    pub now: Instant,
    /// The wall-clock time, which is written.
    pub wall: Timestamp,
    /// A random number from 0 to 1.
    pub jitter: f64,
}

/// An event of the election.
#[derive(Clone, Debug)]
pub enum ElectionEvent {
    /// The wait is over.
    Due,
    /// The request has ended.
    Answer(Result<Lease, LeaseRequestFailure>),
    /// Stop, and release the lease.
    Release,
}

/// Why a request returned no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRequestFailure {
    /// The lease does not exist.
    NotFound,
    /// The lease was changed since it was read.
    Conflict,
    /// No usable response: a write may or may not have happened.
    Unknown,
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectionAction {
    /// Wait until this time.
    Wait(Instant),
    /// Read the lease, within this time.
    Get(Duration),
    /// Create the lease.
    Create(Lease, Duration),
    /// Update the lease.
    Update(Lease, Duration),
    /// The election is over.
    Stop,
}

/// What the elector waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElectionState {
    /// The next try.
    Waiting,
    /// The response of a read.
    Reading,
    /// The response of a write; `fresh` if the lease was read just before it.
    Writing { renewal: Renewal, fresh: bool },
    /// The release of the lease, for which so many more requests may be made.
    Releasing { tries: u8 },
    /// Nothing: the election is over.
    Stopped,
}

/// When a renewal was started. The renewal takes effect later, and others wait from that later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The monotonic time.
    pub started: Instant,
    /// The wall-clock time.
    pub wall: Timestamp,
}

/// The lease as last seen, and since when it has not changed.
#[derive(Clone, Debug)]
struct ObservedLease {
    lease: Lease,
    since: Instant,
}

/// A candidate, or the leader.
#[derive(Debug)]
pub struct Elector {
    settings: LeaseSettings,
    state: ElectionState,
    observed: Option<ObservedLease>,
    /// The last successful renewal, if this process is the leader.
    leading: Option<Renewal>,
    /// Whether a write without a response may have succeeded.
    unsure: bool,
}

impl Elector {
    /// A candidate that has not read the lease.
    pub fn new(settings: LeaseSettings) -> Self {
        let settings = settings.bounded();
        Self { settings, state: ElectionState::Waiting, observed: None, leading: None, unsure: false }
    }

    /// The last renewal, if this process is the leader.
    pub fn leading(&self) -> Option<Renewal> {
        self.leading
    }

    /// The end of the term: the time from which this process must not write.
    pub fn leads_until(&self) -> Option<Instant> {
        Some(self.leading?.started + self.settings.write_window())
    }

    /// The lease as last seen.
    pub fn lease(&self) -> Option<&Lease> {
        self.observed.as_ref().map(|observed| &observed.lease)
    }

    /// The next step.
    pub fn step(&mut self, moment: StepTime, event: ElectionEvent) -> ElectionAction {
        self.step_down_if_late(moment.now);
        match (self.state, event) {
            (ElectionState::Stopped, _) => ElectionAction::Stop,
            (ElectionState::Releasing { tries }, event) => self.release(moment, tries, event),
            (_, ElectionEvent::Release) => self.stop(moment),
            (ElectionState::Reading, ElectionEvent::Answer(answer)) => self.read(moment, answer),
            (ElectionState::Writing { renewal, fresh }, ElectionEvent::Answer(answer)) => {
                self.wrote(moment, renewal, fresh, answer)
            }
            (ElectionState::Waiting, _) | (_, ElectionEvent::Due) => self.attempt(moment),
        }
    }

    /// The leader updates the lease it last saw and reads only if that fails; a candidate reads first.
    fn attempt(&mut self, moment: StepTime) -> ElectionAction {
        match (&self.leading, &self.observed) {
            (Some(_), Some(observed)) => {
                let lease = observed.lease.clone();
                self.claim(moment, &lease, false)
            }
            _ => self.get(moment.now),
        }
    }

    fn get(&mut self, now: Instant) -> ElectionAction {
        self.state = ElectionState::Reading;
        ElectionAction::Get(self.request_timeout(now))
    }

    fn claim(&mut self, moment: StepTime, lease: &Lease, fresh: bool) -> ElectionAction {
        let renewal = Renewal { started: moment.now, wall: moment.wall };
        self.state = ElectionState::Writing { renewal, fresh };
        let settings = &self.settings;
        let next = lease.held(&settings.identity, settings.lease_seconds(), moment.wall);
        let next = next.with_address(settings.address);
        ElectionAction::Update(next, self.request_timeout(moment.now))
    }

    fn create(&mut self, moment: StepTime) -> ElectionAction {
        let lease = Lease::new(&self.settings.namespace, &self.settings.name);
        match self.claim(moment, &lease, true) {
            ElectionAction::Update(lease, limit) => ElectionAction::Create(lease, limit),
            other => other,
        }
    }

    fn read(&mut self, moment: StepTime, answer: Result<Lease, LeaseRequestFailure>) -> ElectionAction {
        match answer {
            Ok(lease) => {
                self.observe(moment.now, lease);
                match &self.observed {
                    Some(observed) if self.may_claim(moment.now, observed) => {
                        let lease = observed.lease.clone();
                        self.claim(moment, &lease, true)
                    }
                    _ => self.wait(moment),
                }
            }
            Err(LeaseRequestFailure::NotFound) => {
                self.forget();
                self.create(moment)
            }
            Err(LeaseRequestFailure::Conflict | LeaseRequestFailure::Unknown) => self.wait(moment),
        }
    }

    fn wrote(
        &mut self,
        moment: StepTime,
        renewal: Renewal,
        fresh: bool,
        answer: Result<Lease, LeaseRequestFailure>,
    ) -> ElectionAction {
        match answer {
            Ok(lease) => {
                self.observe(moment.now, lease);
                // A response after the end of the term does not make a leader.
                let late =
                    moment.now.saturating_duration_since(renewal.started) >= self.settings.renew_deadline;
                if self.holds() && !late {
                    self.leading = Some(renewal);
                }
                return self.wait(moment);
            }
            Err(LeaseRequestFailure::NotFound) => self.forget(),
            Err(LeaseRequestFailure::Unknown) => self.unsure = true,
            Err(LeaseRequestFailure::Conflict) => {}
        }
        if fresh { self.wait(moment) } else { self.get(moment.now) }
    }

    /// Remembers the lease, and since when it has not changed.
    fn observe(&mut self, now: Instant, lease: Lease) {
        self.unsure = false;
        match &mut self.observed {
            Some(seen) if seen.lease.spec() == lease.spec() => seen.lease = lease,
            observed => *observed = Some(ObservedLease { lease, since: now }),
        }
        if !self.holds() {
            self.leading = None;
        }
    }

    /// The lease was deleted: the first candidate that creates it becomes the leader.
    fn forget(&mut self) {
        self.observed = None;
        self.leading = None;
        self.unsure = false;
    }

    fn holds(&self) -> bool {
        self.lease().is_some_and(|lease| lease.holder() == self.settings.identity)
    }

    /// Whether the lease has no holder, or this process holds it, or it has expired.
    fn may_claim(&self, now: Instant, observed: &ObservedLease) -> bool {
        let holder = observed.lease.holder();
        let patience = observed.lease.duration().unwrap_or(self.settings.lease_duration);
        holder.is_empty()
            || holder == self.settings.identity
            || now.saturating_duration_since(observed.since) >= patience
    }

    fn wait(&mut self, moment: StepTime) -> ElectionAction {
        self.state = ElectionState::Waiting;
        let now = moment.now;
        ElectionAction::Wait(match self.leading {
            Some(renewal) => {
                (now + self.settings.pause()).min(renewal.started + self.settings.renew_deadline)
            }
            None => now + self.settings.candidate_pause(moment.jitter),
        })
    }

    /// The timeout of a request: half of the renew deadline, as in client-go, but for a leader not after the end of its
    /// term.
    fn request_timeout(&self, now: Instant) -> Duration {
        let half = (self.settings.renew_deadline / 2).max(Duration::from_millis(10));
        match self.leading {
            Some(renewal) => {
                let left = (renewal.started + self.settings.renew_deadline).saturating_duration_since(now);
                half.min(left)
            }
            None => half,
        }
    }

    fn step_down_if_late(&mut self, now: Instant) {
        let deadline = self.settings.renew_deadline;
        if self.leading.is_some_and(|last| now.saturating_duration_since(last.started) >= deadline) {
            self.leading = None;
        }
    }

    /// Ends the term, and starts to release a lease that this process holds or may hold.
    fn stop(&mut self, moment: StepTime) -> ElectionAction {
        if matches!(self.state, ElectionState::Writing { .. }) {
            self.unsure = true;
        }
        self.leading = None;
        match (self.unsure, self.holds(), &self.observed) {
            (false, true, Some(observed)) => {
                let lease = observed.lease.released(moment.wall);
                self.state = ElectionState::Releasing { tries: 3 };
                ElectionAction::Update(lease, self.request_timeout(moment.now))
            }
            (true, ..) => {
                self.state = ElectionState::Releasing { tries: 3 };
                ElectionAction::Get(self.request_timeout(moment.now))
            }
            _ => self.over(),
        }
    }

    /// The next step of the release: a read that shows this process as the holder is followed by a write, a failure by a read.
    fn release(&mut self, moment: StepTime, tries: u8, event: ElectionEvent) -> ElectionAction {
        let Some(tries) = tries.checked_sub(1) else { return self.over() };
        match event {
            ElectionEvent::Answer(Ok(lease)) => {
                self.observe(moment.now, lease);
                match &self.observed {
                    Some(observed) if self.holds() => {
                        let lease = observed.lease.released(moment.wall);
                        self.state = ElectionState::Releasing { tries };
                        ElectionAction::Update(lease, self.request_timeout(moment.now))
                    }
                    _ => self.over(),
                }
            }
            ElectionEvent::Answer(Err(LeaseRequestFailure::Conflict | LeaseRequestFailure::Unknown)) => {
                self.state = ElectionState::Releasing { tries };
                ElectionAction::Get(self.request_timeout(moment.now))
            }
            ElectionEvent::Answer(Err(LeaseRequestFailure::NotFound))
            | ElectionEvent::Due
            | ElectionEvent::Release => self.over(),
        }
    }

    fn over(&mut self) -> ElectionAction {
        self.state = ElectionState::Stopped;
        ElectionAction::Stop
    }
}
