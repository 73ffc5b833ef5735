#![allow(clippy::unwrap_used)]

use super::*;

const LIMITS: Limits = Limits { quick: 4, slow: 2 };

fn id(name: &str) -> Id {
    Id::object("ns", name)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Takes everything that is due.
fn taken(wheel: &mut Wheel, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| wheel.take(now)).map(|turn| turn.id.name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn polls_go_from_start_to_start_and_never_overlap() {
    let start = Instant::now();
    let mut wheel = Wheel::new(LIMITS);
    wheel.add(&id("a"), start);
    assert_eq!(wheel.take(start), Some(Turn { id: id("a"), poll: None }));
    wheel.poll(&id("a"), Some(secs(10)), start);
    assert_eq!(wheel.take(start), None, "it runs");
    wheel.done(&id("a"), start);
    assert_eq!(wheel.take(start).unwrap().poll, Some(Duration::ZERO));
    wheel.done(&id("a"), start + secs(3));
    assert_eq!(wheel.next(), Some(start + secs(10)));
    assert_eq!(wheel.take(start + secs(11)).unwrap().poll, Some(secs(1)));
    // The poll takes longer than the interval: the next one begins at once, and the phase is kept where it can be.
    assert_eq!(wheel.take(start + secs(25)), None);
    wheel.done(&id("a"), start + secs(25));
    assert_eq!(wheel.take(start + secs(25)).unwrap().poll, Some(secs(5)));
    wheel.done(&id("a"), start + secs(26));
    assert_eq!(wheel.next(), Some(start + secs(30)));
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_a_turn_runs_comes_after_it() {
    let start = Instant::now();
    let mut wheel = Wheel::new(LIMITS);
    wheel.add(&id("a"), start);
    wheel.take(start).unwrap();
    wheel.wake(&id("a"), start);
    assert_eq!(wheel.take(start), None);
    wheel.done(&id("a"), start);
    assert_eq!(wheel.take(start), Some(Turn { id: id("a"), poll: None }));
    wheel.done(&id("a"), start);
    assert_eq!(wheel.next(), None);
    wheel.wake(&id("a"), start + secs(9));
    wheel.wake(&id("a"), start + secs(5));
    wheel.wake(&id("a"), start + secs(7));
    assert_eq!(wheel.next(), Some(start + secs(5)));
    wheel.wake(&id("unknown"), start);
    wheel.remove(&id("a"));
    assert!(wheel.is_empty() && wheel.next().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_interval_that_changes_counts_from_now() {
    let start = Instant::now();
    let mut wheel = Wheel::new(LIMITS);
    wheel.add(&id("a"), start);
    wheel.take(start).unwrap();
    wheel.poll(&id("a"), Some(secs(300)), start);
    wheel.done(&id("a"), start);
    wheel.take(start).unwrap();
    wheel.done(&id("a"), start);
    assert_eq!(wheel.next(), Some(start + secs(300)));
    wheel.poll(&id("a"), Some(secs(5)), start + secs(1));
    assert_eq!(wheel.next(), Some(start + secs(6)));
    wheel.poll(&id("a"), None, start + secs(2));
    assert_eq!(wheel.next(), None);
    wheel.poll(&id("a"), Some(secs(5)), start + secs(3));
    assert_eq!(wheel.next(), Some(start + secs(3)), "it was not polled, so it is at once");
}

#[tokio::test(start_paused = true)]
async fn first_turns_are_spread_over_the_interval_but_not_over_hours() {
    let start = Instant::now();
    let mut wheel = Wheel::new(Limits { quick: 10_000, slow: 1 });
    for number in 0..3000 {
        wheel.spread(&id(&number.to_string()), start, secs(if number % 2 == 0 { 30 } else { 86_400 }));
    }
    let per_second: Vec<usize> =
        (1..=30).map(|second| taken(&mut wheel, start + secs(second)).len()).collect();
    assert_eq!(per_second.iter().sum::<usize>(), 3000);
    assert!(per_second.iter().all(|count| (50..200).contains(count)), "{per_second:?}");
}

#[tokio::test(start_paused = true)]
async fn slow_turns_free_their_place_and_are_bounded_among_themselves() {
    let start = Instant::now();
    let mut wheel = Wheel::new(LIMITS);
    let names: Vec<String> = (0..8).map(|number| format!("h{number}")).collect();
    for name in &names {
        wheel.add(&id(name), start);
    }
    assert_eq!(taken(&mut wheel, start).len(), 4, "no more than that run at once");
    assert_eq!(wheel.next(), Some(start + PATIENCE), "then a place may be free");
    wheel.add(&id("quick"), start);
    let later = start + PATIENCE;
    let mut second = taken(&mut wheel, later);
    second.sort();
    assert_eq!(second, ["h4", "h5", "h6", "h7"], "those that hang count no more");
    assert_eq!(taken(&mut wheel, later + PATIENCE), ["quick"]);
    let end = start + secs(10);
    for name in &names {
        wheel.done(&id(name), end);
        wheel.wake(&id(name), end);
    }
    wheel.done(&id("quick"), end);
    wheel.add(&id("new"), end);
    let third = taken(&mut wheel, end);
    assert_eq!(third.len(), 3, "two that were slow, and the one that was not");
    assert!(third.contains(&"new".to_owned()));
    // One that has become quick is in the quick lane again.
    let recovered = third.iter().find(|name| name.starts_with('h')).unwrap().clone();
    wheel.done(&id(&recovered), end);
    wheel.wake(&id(&recovered), end);
    assert!(taken(&mut wheel, end).contains(&recovered));
}

#[tokio::test(start_paused = true)]
async fn counts_stay_right_whoever_leaves_when() {
    let start = Instant::now();
    let mut wheel = Wheel::new(Limits { quick: 1, slow: 1 });
    for name in ["a", "b"] {
        wheel.add(&id(name), start);
    }
    assert_eq!(taken(&mut wheel, start), ["a"]);
    wheel.remove(&id("a"));
    assert_eq!(taken(&mut wheel, start), ["b"]);
    let later = start + secs(5);
    wheel.add(&id("c"), later);
    assert_eq!(taken(&mut wheel, later), ["c"]);
    wheel.remove(&id("b"));
    wheel.done(&id("b"), later);
    wheel.done(&id("c"), later);
    wheel.wake(&id("c"), later);
    assert_eq!(taken(&mut wheel, later), ["c"]);
    assert_eq!((wheel.running.len(), wheel.running_slow), (1, 0));
}
