use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use crate::lease::{Action, Elector, Event, Failure, Lease, Moment, Settings};

/// An elector and the moments it is asked at, in milliseconds.
struct Case {
    start: Instant,
    elector: Elector,
}

impl Case {
    fn new() -> Self {
        Self { start: Instant::now(), elector: Elector::new(Settings::new("ns", "l", "me")) }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn step(&mut self, millis: u64, event: Event) -> Action {
        let moment = Moment { now: self.at(millis), wall: Timestamp::UNIX_EPOCH, jitter: 0.5 };
        self.elector.step(moment, event)
    }

    fn answer(&mut self, millis: u64, answer: Result<Lease, Failure>) -> Action {
        self.step(millis, Event::Answer(answer))
    }

    fn leads(&self, millis: u64) -> bool {
        self.elector.leads_until().is_some_and(|until| self.at(millis) < until)
    }

    /// Reads a lease that nobody has, creates it, and leads from 0 on.
    fn leader() -> Self {
        let mut case = Self::new();
        case.step(0, Event::Due);
        let Action::Create(lease, _) = case.answer(0, Err(Failure::NotFound)) else { panic!() };
        assert_eq!(case.answer(10, Ok(lease)), Action::Wait(case.at(2_010)));
        assert!(case.leads(10));
        case
    }
}

fn held(holder: &str, seconds: i64, version: u32) -> Lease {
    let spec =
        json!({"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": version.to_string()});
    let text = json!({"metadata": {"resourceVersion": version.to_string()}, "spec": spec}).to_string();
    Lease::parse(text.as_bytes()).unwrap()
}

fn holder_of(action: &Action) -> &str {
    match action {
        Action::Create(lease, _) | Action::Update(lease, _) => lease.holder(),
        other => panic!("no write: {other:?}"),
    }
}

const HALF: Duration = Duration::from_secs(5);

#[test]
fn a_candidate_reads_before_it_writes() {
    let mut case = Case::new();
    assert_eq!(case.step(0, Event::Due), Action::Get(HALF));
    // Free: taken at once.
    assert_eq!(holder_of(&case.answer(5, Ok(held("", 1, 1)))), "me");
    assert!(!case.leads(5));
}

#[test]
fn a_holder_is_waited_for_as_long_as_it_asked_from_when_we_last_saw_it_change() {
    for (seconds, patience) in [(7, 7_000), (15, 15_000), (40, 40_000), (0, 15_000), (-3, 15_000)] {
        let mut case = Case::new();
        case.step(0, Event::Due);
        assert_eq!(case.answer(100, Ok(held("other", seconds, 1))), Action::Wait(case.at(3_300)));
        // It changed: counted from here.
        case.step(3_300, Event::Due);
        case.answer(3_400, Ok(held("other", seconds, 2)));
        case.step(6_600, Event::Due);
        let just_before = case.answer(3_400 + patience - 1, Ok(held("other", seconds, 2)));
        assert!(matches!(just_before, Action::Wait(_)), "{seconds}: {just_before:?}");
        case.step(3_400 + patience, Event::Due);
        let taken = case.answer(3_400 + patience, Ok(held("other", seconds, 2)));
        assert_eq!(holder_of(&taken), "me", "{seconds}");
    }
}

#[test]
fn a_lost_race_is_followed_by_a_pause() {
    for failure in [Failure::Conflict, Failure::Unknown, Failure::NotFound] {
        let mut case = Case::new();
        case.step(0, Event::Due);
        case.answer(0, Ok(held("", 1, 1)));
        assert_eq!(case.answer(10, Err(failure)), Action::Wait(case.at(3_210)), "{failure:?}");
        assert!(!case.leads(10));
        assert_eq!(case.step(3_210, Event::Due), Action::Get(HALF));
    }
}

#[test]
fn a_leader_writes_what_it_remembers_and_reads_only_if_that_fails() {
    let mut case = Case::leader();
    let Action::Update(lease, _) = case.step(2_010, Event::Due) else { panic!() };
    assert_eq!(case.answer(2_020, Ok(lease)), Action::Wait(case.at(4_020)));

    assert_eq!(holder_of(&case.step(4_020, Event::Due)), "me");
    // Somebody touched the lease, but it is still ours.
    assert_eq!(case.answer(4_030, Err(Failure::Conflict)), Action::Get(HALF));
    assert!(case.leads(4_030));
    let again = case.answer(4_040, Ok(held("me", 15, 9)));
    let Action::Update(lease, _) = again else { panic!() };
    assert!(String::from_utf8(lease.body()).unwrap().contains(r#""resourceVersion":"9""#));
    assert_eq!(case.answer(4_050, Ok(lease)), Action::Wait(case.at(6_050)));
    assert!(case.leads(4_050));
}

#[test]
fn leadership_ends_before_anybody_else_can_begin_theirs() {
    let case = Case::leader();
    // 15 s from the start of the request, not from its answer, less a margin; no step is needed for that.
    assert!(case.leads(12_499));
    assert!(!case.leads(12_500));
}

#[test]
fn a_leader_without_answers_steps_down_at_the_deadline() {
    let mut case = Case::leader();
    case.step(2_010, Event::Due);
    // No request outlives the deadline.
    assert_eq!(case.answer(7_010, Err(Failure::Unknown)), Action::Get(Duration::from_millis(2_990)));
    assert!(case.leads(7_010));
    assert_eq!(case.answer(9_000, Err(Failure::Unknown)), Action::Wait(case.at(10_000)));
    assert_eq!(case.step(10_000, Event::Due), Action::Get(HALF));
    assert!(!case.leads(10_000));
    // It is still ours for the server: taken again, and led again.
    let Action::Update(lease, _) = case.answer(10_100, Ok(held("me", 15, 3))) else { panic!() };
    case.answer(10_200, Ok(lease));
    assert!(case.leads(10_200));
}

#[test]
fn a_leader_that_sees_another_or_nobody_no_longer_leads() {
    for answer in [Ok(held("other", 15, 2)), Ok(held("", 1, 2)), Err(Failure::NotFound)] {
        let mut case = Case::leader();
        case.step(2_010, Event::Due);
        case.answer(2_020, Err(Failure::Conflict));
        let action = case.answer(2_030, answer.clone());
        assert!(!case.leads(2_030), "{answer:?}");
        match answer {
            Ok(lease) if lease.holder() == "other" => assert!(matches!(action, Action::Wait(_))),
            Ok(_) => assert!(matches!(action, Action::Update(..))),
            Err(_) => assert!(matches!(action, Action::Create(..)), "a deleted lease is made again"),
        }
    }
}

#[test]
fn an_answer_that_names_another_holder_makes_no_leader() {
    let mut case = Case::new();
    case.step(0, Event::Due);
    case.answer(0, Err(Failure::NotFound));
    case.answer(10, Ok(held("other", 15, 1)));
    assert!(!case.leads(10));
    // Nor does one that comes when its ground is gone.
    let mut case = Case::new();
    case.step(0, Event::Due);
    let Action::Create(lease, _) = case.answer(0, Err(Failure::NotFound)) else { panic!() };
    case.answer(10_000, Ok(lease));
    assert!(!case.leads(10_000));
}

#[test]
fn release_gives_back_what_we_hold() {
    let mut case = Case::leader();
    let Action::Update(lease, limit) = case.step(500, Event::Release) else { panic!() };
    assert_eq!((lease.holder(), lease.duration(), limit), ("", Some(Duration::from_secs(1)), HALF));
    assert!(!case.leads(500));
    assert_eq!(case.answer(510, Ok(lease)), Action::Stop);
    assert_eq!(case.step(520, Event::Due), Action::Stop);
}

#[test]
fn release_looks_again_when_it_is_unsure_and_gives_up_soon() {
    // Somebody touched it: read, then given back.
    let mut case = Case::leader();
    case.step(500, Event::Release);
    assert!(matches!(case.answer(510, Err(Failure::Conflict)), Action::Get(_)));
    assert_eq!(holder_of(&case.answer(520, Ok(held("me", 15, 4)))), "");
    assert_eq!(case.answer(530, Err(Failure::NotFound)), Action::Stop);

    // A write is on its way: it may have happened.
    let mut case = Case::new();
    case.step(0, Event::Due);
    case.answer(0, Err(Failure::NotFound));
    assert!(matches!(case.step(10, Event::Release), Action::Get(_)));
    assert_eq!(case.answer(20, Ok(held("other", 15, 1))), Action::Stop);

    // A server that is gone is not waited for.
    let mut case = Case::leader();
    case.step(0, Event::Release);
    let mut asked = 1;
    while case.answer(asked, Err(Failure::Unknown)) != Action::Stop {
        asked += 1;
    }
    assert!(asked <= 4, "{asked}");

    // A candidate has nothing to give.
    let mut case = Case::new();
    case.step(0, Event::Due);
    case.answer(0, Ok(held("other", 15, 1)));
    assert_eq!(case.step(10, Event::Release), Action::Stop);
}

#[test]
fn settings_that_should_have_been_refused_do_no_harm() {
    let start = Instant::now();
    let settings = Settings {
        lease_duration: Duration::MAX,
        renew_deadline: Duration::MAX,
        retry_period: Duration::MAX,
        ..Settings::new("", "", "")
    };
    let mut elector = Elector::new(settings);
    let moment = Moment { now: start, wall: Timestamp::MAX, jitter: f64::INFINITY };
    elector.step(moment, Event::Due);
    let Action::Create(lease, _) = elector.step(moment, Event::Answer(Err(Failure::NotFound))) else {
        panic!()
    };
    assert!(matches!(elector.step(moment, Event::Answer(Ok(lease))), Action::Wait(_)));
    elector.leads_until();
    elector.step(moment, Event::Release);
}
