//! Several electors whose requests are delayed or lost, whose processes are killed, and whose clocks differ in time and speed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::lease::{
    ElectionAction, ElectionEvent, Elector, Lease, LeaseRequestFailure, LeaseSettings, StepTime,
};

/// Microseconds of true time.
type Time = u64;
const SECOND: Time = 1_000_000;

/// What can go wrong.
#[derive(Clone, Copy, Debug, Default)]
struct Hazards {
    /// The longest way of a request to the server, or of an answer back.
    delay: Time,
    /// How many of a hundred requests, and as many answers, get lost.
    lost: u64,
    /// How many of a hundred ways take up to ten times as long, even longer than anybody waits.
    stuck: u64,
    /// How many of a thousand steps are a process's last.
    killed: u64,
    /// How many of a hundred steps come late, because the process was starved or stopped.
    starved: u64,
    /// How much faster or slower a clock may go, in thousandths.
    drift: u64,
}

/// A candidate and its clocks.
struct Process {
    elector: Elector,
    /// What its clock shows, against the true time: a start, a pace in thousandths, and a wall clock that is off.
    zero: Instant,
    pace: u64,
    wall: SignedDuration,
    /// Which request it waits for; answers to others come too late.
    request: u64,
    alive: bool,
    /// Until when it was not given the processor.
    asleep: Time,
}

/// Something that will happen.
enum Coming {
    Step(usize, u64, ElectionEvent),
    Arrive(usize, u64, ElectionAction),
}

struct ElectionSimulation {
    hazards: Hazards,
    random: u64,
    now: Time,
    coming: BTreeMap<(Time, u64), Coming>,
    sequence: u64,
    processes: Vec<Process>,
    lease: Option<Value>,
    version: u64,
}

impl ElectionSimulation {
    fn new(seed: u64, electors: usize, hazards: Hazards) -> Self {
        let mut simulation = Self {
            hazards,
            random: seed,
            now: 0,
            coming: BTreeMap::new(),
            sequence: 0,
            processes: Vec::new(),
            lease: None,
            version: 0,
        };
        for _ in 0..electors {
            let start = simulation.below(5 * SECOND);
            simulation.join(start);
        }
        simulation
    }

    /// splitmix64.
    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit.max(1)
    }

    fn happens(&mut self, hundredths: u64) -> bool {
        self.below(100) < hundredths
    }

    fn plan(&mut self, at: Time, what: Coming) {
        self.sequence += 1;
        self.coming.insert((at.max(self.now), self.sequence), what);
    }

    fn join(&mut self, at: Time) {
        let identity = format!("p{}", self.processes.len());
        let drift = self.hazards.drift;
        let process = Process {
            elector: Elector::new(LeaseSettings::new("ns", "l", &identity)),
            zero: Instant::now() + Duration::from_secs(self.below(100_000)),
            pace: 1000 - drift + self.below(2 * drift + 1),
            wall: SignedDuration::from_secs(self.below(7200) as i64 - 3600),
            request: 0,
            alive: true,
            asleep: 0,
        };
        self.processes.push(process);
        self.plan(at, Coming::Step(self.processes.len() - 1, 0, ElectionEvent::Due));
    }

    /// How long a way takes.
    fn way(&mut self) -> Time {
        let most =
            if self.happens(self.hazards.stuck) { 10 * self.hazards.delay } else { self.hazards.delay };
        self.below(most + 1)
    }

    /// Handles the next planned event; returns the electors that lead afterwards.
    fn advance(&mut self) -> Vec<usize> {
        let Some(((at, _), what)) = self.coming.pop_first() else { panic!("nothing is planned") };
        self.now = at;
        match what {
            Coming::Step(who, request, event) => self.step(who, request, event),
            Coming::Arrive(who, request, action) => {
                let answer = self.serve(action);
                if !self.happens(self.hazards.lost) {
                    let back = self.now + self.way();
                    self.plan(back, Coming::Step(who, request, ElectionEvent::Answer(answer)));
                }
            }
        }
        self.leaders()
    }

    fn leaders(&self) -> Vec<usize> {
        let leads =
            |p: &Process| p.alive && p.elector.leads_until().is_some_and(|until| p.local(self.now) < until);
        (0..self.processes.len()).filter(|who| leads(&self.processes[*who])).collect()
    }

    fn step(&mut self, who: usize, request: u64, event: ElectionEvent) {
        if !self.processes[who].alive || self.processes[who].request != request {
            return;
        }
        if self.below(1000) < self.hazards.killed {
            self.processes[who].alive = false;
            let reborn = self.now + self.below(20 * SECOND);
            return self.join(reborn);
        }
        if !matches!(event, ElectionEvent::Release) {
            if self.now >= self.processes[who].asleep && self.happens(self.hazards.starved) {
                self.processes[who].asleep = self.now + self.below(30 * SECOND);
            }
            let awake = self.processes[who].asleep;
            if self.now < awake {
                return self.plan(awake, Coming::Step(who, request, event));
            }
        }
        let jitter = self.below(1000) as f64 / 1000.0;
        let now = self.now;
        let process = &mut self.processes[who];
        process.request += 1;
        let request = process.request;
        let moment = StepTime { now: process.local(now), wall: process.wall(now), jitter };
        let action = process.elector.step(moment, event);
        let limit = match action {
            ElectionAction::Stop => return process.alive = false,
            ElectionAction::Wait(until) => {
                let at = process.true_time(until);
                return self.plan(at, Coming::Step(who, request, ElectionEvent::Due));
            }
            ElectionAction::Get(limit)
            | ElectionAction::Create(_, limit)
            | ElectionAction::Update(_, limit) => limit,
        };
        let late = self.processes[who].true_time(moment.now + limit);
        self.plan(late, Coming::Step(who, request, ElectionEvent::Answer(Err(LeaseRequestFailure::Unknown))));
        if !self.happens(self.hazards.lost) {
            let there = self.now + self.way();
            self.plan(there, Coming::Arrive(who, request, action));
        }
    }

    /// The API server: no write without the version it is for.
    fn serve(&mut self, action: ElectionAction) -> Result<Lease, LeaseRequestFailure> {
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        let next = match (action, &self.lease) {
            (ElectionAction::Get(_), Some(lease)) => {
                return Ok(Lease::parse(lease.to_string().as_bytes()).unwrap());
            }
            (ElectionAction::Get(_) | ElectionAction::Update(..), None) => {
                return Err(LeaseRequestFailure::NotFound);
            }
            (ElectionAction::Create(..), Some(_)) => return Err(LeaseRequestFailure::Conflict),
            (ElectionAction::Create(lease, _), None) => lease.body(),
            (ElectionAction::Update(lease, _), Some(stored)) => {
                let new: Value = serde_json::from_slice(&lease.body()).unwrap();
                if version(&new) != version(stored) {
                    return Err(LeaseRequestFailure::Conflict);
                }
                lease.body()
            }
            (other, _) => panic!("no request: {other:?}"),
        };
        let mut next: Value = serde_json::from_slice(&next).unwrap();
        self.version += 1;
        next["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let answer = Lease::parse(next.to_string().as_bytes()).unwrap();
        self.lease = Some(next);
        Ok(answer)
    }

    /// Runs until exactly this candidate leads, or any does.
    fn until_led(&mut self, limit: Time) -> usize {
        loop {
            if let Some(leader) = self.advance().first() {
                return *leader;
            }
            assert!(self.now < limit, "no candidate leads");
        }
    }
}

impl Process {
    fn local(&self, now: Time) -> Instant {
        self.zero + Duration::from_micros(now * self.pace / 1000)
    }

    fn wall(&self, now: Time) -> Timestamp {
        Timestamp::from_microsecond(1_800_000_000_000_000 + now as i64).unwrap() + self.wall
    }

    /// When its clock shows this, or a little later.
    fn true_time(&self, local: Instant) -> Time {
        (local.saturating_duration_since(self.zero).as_micros() as u64 * 1000).div_ceil(self.pace) + 1
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn at_most_one_process_leads(
        seed: u64, electors in 2_usize..=4, delay in 0_u64..2 * SECOND, lost in 0_u64..40, stuck in 0_u64..20,
        killed in 0_u64..30, starved in 0_u64..10, drift in 0_u64..50,
    ) {
        let mut simulation = ElectionSimulation::new(seed, electors, Hazards { delay, lost, stuck, killed, starved, drift });
        let mut terms = 0;
        let mut last = None;
        while simulation.now < 1200 * SECOND {
            let leaders = simulation.advance();
            prop_assert!(leaders.len() <= 1, "{leaders:?} lead at {} s", simulation.now / SECOND);
            if let Some(leader) = leaders.first().filter(|leader| last != Some(**leader)) {
                (terms, last) = (terms + 1, Some(*leader));
            }
        }
        // Without a leader the assertion above would never have been checked.
        prop_assert!(terms > 0);
    }

    #[test]
    fn killed_leader_is_replaced_within_the_lease_and_two_retries(seed: u64, electors in 2_usize..=4) {
        let delay = SECOND / 20;
        let mut simulation = ElectionSimulation::new(seed, electors, Hazards { delay, ..Hazards::default() });
        for _ in 0..3 {
            let leader = simulation.until_led(simulation.now + 60 * SECOND);
            let death = simulation.now + simulation.below(60 * SECOND);
            while simulation.now < death {
                prop_assert!(simulation.advance().len() <= 1);
            }
            prop_assert_eq!(simulation.leaders(), [leader], "a healthy leader stays");
            let since = simulation.now;
            simulation.processes[leader].alive = false;
            simulation.join(since + SECOND);
            let next = simulation.until_led(since + 60 * SECOND);
            prop_assert_ne!(next, leader);
            let bound = 15 * SECOND + 2 * 44 * SECOND / 10 + 6 * delay;
            prop_assert!(simulation.now - since <= bound, "{} µs", simulation.now - since);
        }
    }

    #[test]
    fn released_lease_is_acquired_within_one_retry(seed: u64, electors in 2_usize..=4) {
        let delay = SECOND / 20;
        let mut simulation = ElectionSimulation::new(seed, electors, Hazards { delay, ..Hazards::default() });
        let leader = simulation.until_led(60 * SECOND);
        let end = simulation.now + 20 * SECOND + simulation.below(60 * SECOND);
        while simulation.now < end {
            simulation.advance();
        }
        let since = simulation.now;
        simulation.step(leader, simulation.processes[leader].request, ElectionEvent::Release);
        prop_assert_eq!(simulation.leaders(), Vec::<usize>::new());
        simulation.until_led(since + 60 * SECOND);
        let bound = 44 * SECOND / 10 + 10 * delay;
        prop_assert!(simulation.now - since <= bound, "{} µs", simulation.now - since);
    }
}
