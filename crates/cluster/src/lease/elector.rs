//! The election as a machine without clock or network: it is told what happened and says what to do.
//!
//! A record is judged by when *we* last saw it change, never by the times written in it: clocks differ, and a lease
//! must not. Every write is guarded by the `resourceVersion` of what was read.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::Lease;
use super::settings::LeaseSettings;

/// When a step happens.
#[derive(Clone, Copy, Debug)]
pub struct StepTime {
    /// By a clock that never jumps: what is decided by.
    pub now: Instant,
    /// By the clock of the world: what is written down.
    pub wall: Timestamp,
    /// A random number from 0 to 1.
    pub jitter: f64,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum ElectionEvent {
    /// It is time for the next try.
    Due,
    /// The request was answered, or was not.
    Answer(Result<Lease, LeaseRequestFailure>),
    /// We are to stop, and give the lease back.
    Release,
}

/// Why there is no lease in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRequestFailure {
    /// It does not exist.
    NotFound,
    /// Somebody else wrote in between.
    Conflict,
    /// No answer, or one that says nothing: a write may or may not have happened.
    Unknown,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectionAction {
    /// Wait until then.
    Wait(Instant),
    /// Read the lease, for no longer than this.
    Get(Duration),
    /// Create it.
    Create(Lease, Duration),
    /// Write it.
    Update(Lease, Duration),
    /// Nothing more.
    Stop,
}

/// Between what was asked and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElectionState {
    /// Until the next try.
    Waiting,
    /// A read is on its way.
    Reading,
    /// A write is on its way; `fresh` if its ground was read just before, not remembered.
    Writing { renewal: Renewal, fresh: bool },
    /// The lease is being given back; so many requests more may be made for it.
    Releasing { tries: u8 },
    /// All is over.
    Stopped,
}

/// When a renewal was started. Its effect is later than this, and so is the moment from which others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// By the clock that never jumps.
    pub started: Instant,
    /// By the clock of the world.
    pub wall: Timestamp,
}

/// The lease as we last saw it, and since when it has been like that for us.
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
    /// The last renewal that succeeded, if we lead.
    leading: Option<Renewal>,
    /// Whether a write of ours may have happened without our knowledge.
    unsure: bool,
}

impl Elector {
    /// A candidate that has seen nothing.
    pub fn new(settings: LeaseSettings) -> Self {
        let settings = settings.bounded();
        Self { settings, state: ElectionState::Waiting, observed: None, leading: None, unsure: false }
    }

    /// The last renewal, if the election says that we lead.
    pub fn leading(&self) -> Option<Renewal> {
        self.leading
    }

    /// The moment from which we must not act, if we lead now.
    pub fn leads_until(&self) -> Option<Instant> {
        Some(self.leading?.started + self.settings.trust())
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

    /// The leader writes what it remembers and reads only if that fails; a candidate reads first.
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
        ElectionAction::Get(self.patience(now))
    }

    fn claim(&mut self, moment: StepTime, lease: &Lease, fresh: bool) -> ElectionAction {
        let renewal = Renewal { started: moment.now, wall: moment.wall };
        self.state = ElectionState::Writing { renewal, fresh };
        let settings = &self.settings;
        let next = lease.held(&settings.identity, settings.lease_seconds(), moment.wall);
        ElectionAction::Update(next, self.patience(moment.now))
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
                // An answer so late that it is no longer worth anything does not make a leader.
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

    /// Remembers what was seen, and since when it has been so.
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

    /// The lease is gone: whoever is first may have it.
    fn forget(&mut self) {
        self.observed = None;
        self.leading = None;
        self.unsure = false;
    }

    fn holds(&self) -> bool {
        self.lease().is_some_and(|lease| lease.holder() == self.settings.identity)
    }

    /// Whether nobody holds the lease, or we do, or its holder has been silent for as long as it asked for.
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

    /// How long a request may take: half of the renew deadline, as with client-go, but no leader waits for an answer
    /// beyond its own.
    fn patience(&self, now: Instant) -> Duration {
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

    /// Stops leading, and starts to give back what we hold or may hold.
    fn stop(&mut self, moment: StepTime) -> ElectionAction {
        if matches!(self.state, ElectionState::Writing { .. }) {
            self.unsure = true;
        }
        self.leading = None;
        match (self.unsure, self.holds(), &self.observed) {
            (false, true, Some(observed)) => {
                let lease = observed.lease.released(moment.wall);
                self.state = ElectionState::Releasing { tries: 3 };
                ElectionAction::Update(lease, self.patience(moment.now))
            }
            (true, ..) => {
                self.state = ElectionState::Releasing { tries: 3 };
                ElectionAction::Get(self.patience(moment.now))
            }
            _ => self.over(),
        }
    }

    /// One more step of giving back: a read that shows us as the holder is followed by a write, a failure by a read.
    fn release(&mut self, moment: StepTime, tries: u8, event: ElectionEvent) -> ElectionAction {
        let Some(tries) = tries.checked_sub(1) else { return self.over() };
        match event {
            ElectionEvent::Answer(Ok(lease)) => {
                self.observe(moment.now, lease);
                match &self.observed {
                    Some(observed) if self.holds() => {
                        let lease = observed.lease.released(moment.wall);
                        self.state = ElectionState::Releasing { tries };
                        ElectionAction::Update(lease, self.patience(moment.now))
                    }
                    _ => self.over(),
                }
            }
            ElectionEvent::Answer(Err(LeaseRequestFailure::Conflict | LeaseRequestFailure::Unknown)) => {
                self.state = ElectionState::Releasing { tries };
                ElectionAction::Get(self.patience(moment.now))
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
