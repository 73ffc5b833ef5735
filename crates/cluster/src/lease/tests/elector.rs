use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use crate::lease::{
    ElectionAction, ElectionEvent, Elector, Lease, LeaseRequestFailure, LeaseSettings, StepTime,
};

/// An elector and the moments of its steps, in milliseconds.
struct Case {
    start: Instant,
    elector: Elector,
}

impl Case {
    fn new() -> Self {
        Self { start: Instant::now(), elector: Elector::new(LeaseSettings::new("ns", "l", "me")) }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn step(&mut self, millis: u64, event: ElectionEvent) -> ElectionAction {
        let moment = StepTime { now: self.at(millis), wall: Timestamp::UNIX_EPOCH, jitter: 0.5 };
        self.elector.step(moment, event)
    }

    fn answer(&mut self, millis: u64, answer: Result<Lease, LeaseRequestFailure>) -> ElectionAction {
        self.step(millis, ElectionEvent::Answer(answer))
    }

    fn is_leader(&self, millis: u64) -> bool {
        self.elector.leads_until().is_some_and(|until| self.at(millis) < until)
    }

    /// Reads a lease without a holder, creates it, and leads from 0 on.
    fn leader() -> Self {
        let mut case = Self::new();
        case.step(0, ElectionEvent::Due);
        let ElectionAction::Create(lease, _) = case.answer(0, Err(LeaseRequestFailure::NotFound)) else {
            panic!()
        };
        assert_eq!(case.answer(10, Ok(lease)), ElectionAction::Wait(case.at(2_010)));
        assert!(case.is_leader(10));
        case
    }
}

fn held(holder: &str, seconds: i64, version: u32) -> Lease {
    let spec =
        json!({"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": version.to_string()});
    let text = json!({"metadata": {"resourceVersion": version.to_string()}, "spec": spec}).to_string();
    Lease::parse(text.as_bytes()).unwrap()
}

fn holder_of(action: &ElectionAction) -> &str {
    match action {
        ElectionAction::Create(lease, _) | ElectionAction::Update(lease, _) => lease.holder(),
        other => panic!("no write: {other:?}"),
    }
}

const HALF: Duration = Duration::from_secs(5);

#[test]
fn a_candidate_reads_before_it_writes() {
    let mut case = Case::new();
    assert_eq!(case.step(0, ElectionEvent::Due), ElectionAction::Get(HALF));
    // Free: taken at once.
    assert_eq!(holder_of(&case.answer(5, Ok(held("", 1, 1)))), "me");
    assert!(!case.is_leader(5));
}

#[test]
fn a_lease_expires_its_duration_after_the_last_observed_change() {
    for (seconds, patience) in [(7, 7_000), (15, 15_000), (40, 40_000), (0, 15_000), (-3, 15_000)] {
        let mut case = Case::new();
        case.step(0, ElectionEvent::Due);
        assert_eq!(case.answer(100, Ok(held("other", seconds, 1))), ElectionAction::Wait(case.at(3_300)));
        // It changed: counted from here.
        case.step(3_300, ElectionEvent::Due);
        case.answer(3_400, Ok(held("other", seconds, 2)));
        case.step(6_600, ElectionEvent::Due);
        let just_before = case.answer(3_400 + patience - 1, Ok(held("other", seconds, 2)));
        assert!(matches!(just_before, ElectionAction::Wait(_)), "{seconds}: {just_before:?}");
        case.step(3_400 + patience, ElectionEvent::Due);
        let taken = case.answer(3_400 + patience, Ok(held("other", seconds, 2)));
        assert_eq!(holder_of(&taken), "me", "{seconds}");
    }
}

#[test]
fn a_conflict_is_followed_by_a_retry_period() {
    for failure in
        [LeaseRequestFailure::Conflict, LeaseRequestFailure::Unknown, LeaseRequestFailure::NotFound]
    {
        let mut case = Case::new();
        case.step(0, ElectionEvent::Due);
        case.answer(0, Ok(held("", 1, 1)));
        assert_eq!(case.answer(10, Err(failure)), ElectionAction::Wait(case.at(3_210)), "{failure:?}");
        assert!(!case.is_leader(10));
        assert_eq!(case.step(3_210, ElectionEvent::Due), ElectionAction::Get(HALF));
    }
}

#[test]
fn a_leader_updates_the_observed_lease_and_reads_only_after_a_failure() {
    let mut case = Case::leader();
    let ElectionAction::Update(lease, _) = case.step(2_010, ElectionEvent::Due) else { panic!() };
    assert_eq!(case.answer(2_020, Ok(lease)), ElectionAction::Wait(case.at(4_020)));

    assert_eq!(holder_of(&case.step(4_020, ElectionEvent::Due)), "me");
    // Somebody touched the lease, but it is still ours.
    assert_eq!(case.answer(4_030, Err(LeaseRequestFailure::Conflict)), ElectionAction::Get(HALF));
    assert!(case.is_leader(4_030));
    let again = case.answer(4_040, Ok(held("me", 15, 9)));
    let ElectionAction::Update(lease, _) = again else { panic!() };
    assert!(String::from_utf8(lease.body()).unwrap().contains(r#""resourceVersion":"9""#));
    assert_eq!(case.answer(4_050, Ok(lease)), ElectionAction::Wait(case.at(6_050)));
    assert!(case.is_leader(4_050));
}

#[test]
fn a_term_ends_before_another_candidate_can_acquire_the_lease() {
    let case = Case::leader();
    // 15 s from the start of the request, not from its answer, less a margin; no step is needed for that.
    assert!(case.is_leader(12_499));
    assert!(!case.is_leader(12_500));
}

#[test]
fn a_leader_without_responses_stops_leading_at_the_renew_deadline() {
    let mut case = Case::leader();
    case.step(2_010, ElectionEvent::Due);
    // No request outlives the deadline.
    assert_eq!(
        case.answer(7_010, Err(LeaseRequestFailure::Unknown)),
        ElectionAction::Get(Duration::from_millis(2_990))
    );
    assert!(case.is_leader(7_010));
    assert_eq!(case.answer(9_000, Err(LeaseRequestFailure::Unknown)), ElectionAction::Wait(case.at(10_000)));
    assert_eq!(case.step(10_000, ElectionEvent::Due), ElectionAction::Get(HALF));
    assert!(!case.is_leader(10_000));
    // It is still ours for the server: taken again, and led again.
    let ElectionAction::Update(lease, _) = case.answer(10_100, Ok(held("me", 15, 3))) else { panic!() };
    case.answer(10_200, Ok(lease));
    assert!(case.is_leader(10_200));
}

#[test]
fn a_leader_that_reads_another_holder_or_none_stops_leading() {
    for answer in [Ok(held("other", 15, 2)), Ok(held("", 1, 2)), Err(LeaseRequestFailure::NotFound)] {
        let mut case = Case::leader();
        case.step(2_010, ElectionEvent::Due);
        case.answer(2_020, Err(LeaseRequestFailure::Conflict));
        let action = case.answer(2_030, answer.clone());
        assert!(!case.is_leader(2_030), "{answer:?}");
        match answer {
            Ok(lease) if lease.holder() == "other" => assert!(matches!(action, ElectionAction::Wait(_))),
            Ok(_) => assert!(matches!(action, ElectionAction::Update(..))),
            Err(_) => assert!(matches!(action, ElectionAction::Create(..)), "a deleted lease is made again"),
        }
    }
}

#[test]
fn a_response_with_another_holder_does_not_make_a_leader() {
    let mut case = Case::new();
    case.step(0, ElectionEvent::Due);
    case.answer(0, Err(LeaseRequestFailure::NotFound));
    case.answer(10, Ok(held("other", 15, 1)));
    assert!(!case.is_leader(10));
    // Nor does a response that arrives after the renew deadline.
    let mut case = Case::new();
    case.step(0, ElectionEvent::Due);
    let ElectionAction::Create(lease, _) = case.answer(0, Err(LeaseRequestFailure::NotFound)) else {
        panic!()
    };
    case.answer(10_000, Ok(lease));
    assert!(!case.is_leader(10_000));
}

#[test]
fn release_clears_the_holder_of_our_lease() {
    let mut case = Case::leader();
    let ElectionAction::Update(lease, limit) = case.step(500, ElectionEvent::Release) else { panic!() };
    assert_eq!((lease.holder(), lease.duration(), limit), ("", Some(Duration::from_secs(1)), HALF));
    assert!(!case.is_leader(500));
    assert_eq!(case.answer(510, Ok(lease)), ElectionAction::Stop);
    assert_eq!(case.step(520, ElectionEvent::Due), ElectionAction::Stop);
}

#[test]
fn release_reads_again_after_an_unknown_result_and_gives_up_soon() {
    // Somebody touched it: read, then given back.
    let mut case = Case::leader();
    case.step(500, ElectionEvent::Release);
    assert!(matches!(case.answer(510, Err(LeaseRequestFailure::Conflict)), ElectionAction::Get(_)));
    assert_eq!(holder_of(&case.answer(520, Ok(held("me", 15, 4)))), "");
    assert_eq!(case.answer(530, Err(LeaseRequestFailure::NotFound)), ElectionAction::Stop);

    // A write is on its way: it may have happened.
    let mut case = Case::new();
    case.step(0, ElectionEvent::Due);
    case.answer(0, Err(LeaseRequestFailure::NotFound));
    assert!(matches!(case.step(10, ElectionEvent::Release), ElectionAction::Get(_)));
    assert_eq!(case.answer(20, Ok(held("other", 15, 1))), ElectionAction::Stop);

    // A server that is gone is not waited for.
    let mut case = Case::leader();
    case.step(0, ElectionEvent::Release);
    let mut requests = 1;
    while case.answer(requests, Err(LeaseRequestFailure::Unknown)) != ElectionAction::Stop {
        requests += 1;
    }
    assert!(requests <= 4, "{requests}");

    // A candidate has nothing to give.
    let mut case = Case::new();
    case.step(0, ElectionEvent::Due);
    case.answer(0, Ok(held("other", 15, 1)));
    assert_eq!(case.step(10, ElectionEvent::Release), ElectionAction::Stop);
}

#[test]
fn invalid_settings_do_not_panic() {
    let start = Instant::now();
    let settings = LeaseSettings {
        lease_duration: Duration::MAX,
        renew_deadline: Duration::MAX,
        retry_period: Duration::MAX,
        ..LeaseSettings::new("", "", "")
    };
    let mut elector = Elector::new(settings);
    let moment = StepTime { now: start, wall: Timestamp::MAX, jitter: f64::INFINITY };
    elector.step(moment, ElectionEvent::Due);
    let ElectionAction::Create(lease, _) =
        elector.step(moment, ElectionEvent::Answer(Err(LeaseRequestFailure::NotFound)))
    else {
        panic!()
    };
    assert!(matches!(elector.step(moment, ElectionEvent::Answer(Ok(lease))), ElectionAction::Wait(_)));
    elector.leads_until();
    elector.step(moment, ElectionEvent::Release);
}
