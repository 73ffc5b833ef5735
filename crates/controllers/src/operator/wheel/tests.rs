#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

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

/// Polled so often; everybody asks something else.
fn every(seconds: u64, name: &str) -> Pace {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    Pace { interval: secs(seconds), group: hasher.finish() }
}

#[tokio::test(start_paused = true)]
async fn polls_are_at_fixed_moments_and_never_overlap() {
    let start = Instant::now();
    let mut wheel = Wheel::new(LIMITS);
    wheel.add(&id("a"), start);
    assert_eq!(wheel.take(start), Some(Turn { id: id("a"), poll: None }));
    wheel.poll(&id("a"), Some(every(10, "a")), start);
    assert_eq!(wheel.take(start), None, "it runs");
    wheel.done(&id("a"), start);
    assert_eq!(wheel.take(start).unwrap().poll, Some(Duration::ZERO), "the first is at once");
    wheel.done(&id("a"), start);
    let first = wheel.next().unwrap();
    assert!(first > start && first <= start + secs(10));
    assert_eq!(wheel.take(first + secs(1)).unwrap().poll, Some(secs(1)));
    wheel.done(&id("a"), first + secs(3));
    assert_eq!(wheel.next(), Some(first + secs(10)));
    wheel.take(first + secs(10)).unwrap();
    // The poll takes longer than the interval: those that were missed are not made up for, and the moments stay.
    assert_eq!(wheel.take(first + secs(25)), None);
    wheel.done(&id("a"), first + secs(25));
    assert_eq!(wheel.take(first + secs(25)).unwrap().poll, Some(secs(5)));
    wheel.done(&id("a"), first + secs(26));
    assert_eq!(wheel.next(), Some(first + secs(30)));
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_the_same_are_polled_close_together() {
    let start = Instant::now();
    let mut wheel = Wheel::new(Limits { quick: 10_000, slow: 1 });
    let pace = Pace { interval: secs(30), group: 7 };
    // Some were there when we began; the others come by and by.
    for number in 0..500 {
        wheel.spread(&id(&number.to_string()), start, pace);
    }
    for number in 500..1000 {
        wheel.add(&id(&number.to_string()), start + secs(number / 20));
    }
    let mut polls: Vec<Duration> = Vec::new();
    for tenth in 0..1200_u32 {
        let now = start + Duration::from_millis(100) * tenth;
        while let Some(turn) = wheel.take(now) {
            if turn.poll.is_some() && tenth >= 600 {
                polls.push(now - start);
            }
            wheel.poll(&turn.id, Some(pace), now);
            wheel.done(&turn.id, now);
        }
    }
    assert_eq!(polls.len(), 2000, "twice each in a minute");
    let (first, last) = (polls[0], polls[polls.len() - 1]);
    let starts = polls.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]) > secs(5)).count();
    assert!((1..=2).contains(&starts), "one heap in each interval: {first:?} to {last:?}, {starts} gaps");
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
    wheel.poll(&id("a"), Some(every(300, "a")), start);
    wheel.done(&id("a"), start);
    wheel.take(start).unwrap();
    wheel.done(&id("a"), start);
    let late = wheel.next().unwrap();
    assert!(late > start && late <= start + secs(300));
    wheel.poll(&id("a"), Some(every(5, "a")), start + secs(1));
    let soon = wheel.next().unwrap();
    assert!(soon > start + secs(1) && soon <= start + secs(6));
    wheel.poll(&id("a"), None, start + secs(2));
    assert_eq!(wheel.next(), None);
    wheel.poll(&id("a"), Some(every(5, "a")), start + secs(3));
    assert_eq!(wheel.next(), Some(start + secs(3)), "it was not polled, so it is at once");
}

#[tokio::test(start_paused = true)]
async fn first_turns_are_spread_over_the_interval_but_not_over_hours() {
    let start = Instant::now();
    let mut wheel = Wheel::new(Limits { quick: 10_000, slow: 1 });
    for number in 0..3000 {
        let name = number.to_string();
        wheel.spread(&id(&name), start, every(if number % 2 == 0 { 30 } else { 86_400 }, &name));
    }
    let per_second: Vec<usize> =
        (1..=30).map(|second| taken(&mut wheel, start + secs(second)).len()).collect();
    assert_eq!(per_second.iter().sum::<usize>(), 3000);
    assert!(per_second.iter().all(|count| (50..200).contains(count)), "{per_second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_few_objects_have_fewer_moments_than_many() {
    let start = Instant::now();
    let moments = |objects: usize| {
        let mut wheel = Wheel::new(LIMITS);
        wheel.began = Some(start);
        for number in 0..objects {
            wheel.add(&id(&number.to_string()), start);
        }
        let rhythm = wheel.rhythm(start);
        let next = |number: usize| {
            let name = number.to_string();
            rhythm.next(&id(&name), every(30, &name), start)
        };
        (0..objects).map(next).collect::<BTreeSet<Instant>>().len()
    };
    assert_eq!(moments(FEW), (MOMENTS / FEWER) as usize);
    let many = moments(FEW + 1);
    assert!(many > 2 * (MOMENTS / FEWER) as usize, "{many}");
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
    assert_eq!(taken(&mut wheel, start), [""; 0], "its turn still runs");
    wheel.done(&id("a"), start);
    assert_eq!(taken(&mut wheel, start), ["b"]);
    let later = start + secs(5);
    wheel.add(&id("c"), later);
    assert_eq!(taken(&mut wheel, later), ["c"]);
    wheel.remove(&id("b"));
    wheel.done(&id("b"), later);
    wheel.done(&id("c"), later);
    wheel.wake(&id("c"), later);
    assert_eq!(taken(&mut wheel, later), ["c"]);
    assert_eq!((wheel.running.len(), wheel.running_slow, wheel.len()), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_waits_until_the_last_turn_has_ended() {
    let start = Instant::now();
    let mut wheel = Wheel::new(LIMITS);
    wheel.add(&id("a"), start);
    wheel.take(start).unwrap();
    wheel.remove(&id("a"));
    wheel.wake(&id("a"), start);
    wheel.poll(&id("a"), Some(every(30, "a")), start);
    wheel.add(&id("a"), start);
    assert_eq!(wheel.take(start), None, "its last turn still runs");
    wheel.done(&id("a"), start);
    assert_eq!(wheel.take(start), Some(Turn { id: id("a"), poll: None }));
    wheel.remove(&id("a"));
    wheel.done(&id("a"), start);
    assert!(wheel.is_empty() && wheel.next().is_none());
}

#[tokio::test(start_paused = true)]
async fn when_one_finds_something_to_do_those_who_ask_the_same_are_polled_at_once() {
    let start = Instant::now();
    let mut wheel = Wheel::new(Limits { quick: 100, slow: 1 });
    let (same, other) = (Pace { interval: secs(30), group: 7 }, Pace { interval: secs(30), group: 8 });
    let names = [("a", same), ("b", same), ("c", same), ("else", other), ("gone", same)];
    let objects = names.map(|(name, pace)| (id(name), pace));
    for (id, pace) in objects.into_iter().chain([(Id::job("ns", "job"), same)]) {
        wheel.add(&id, start);
        wheel.take(start).unwrap();
        wheel.poll(&id, Some(pace), start);
        wheel.done(&id, start);
        wheel.take(start).unwrap();
        wheel.done(&id, start);
    }
    wheel.remove(&id("gone"));
    let before = wheel.next().unwrap();
    assert!(before > start, "all were polled");
    wheel.hurry(&id("else"), start);
    wheel.hurry(&id("unknown"), start);
    assert_eq!(wheel.next(), Some(before), "nobody asks what it asks");
    wheel.hurry(&id("a"), start);
    let mut hurried = taken(&mut wheel, start);
    hurried.sort();
    assert_eq!(hurried, ["b", "c"], "but no job: what it has created since its last poll may not have begun");
    let soon = start + Duration::from_millis(1);
    wheel.hurry(&id("b"), soon);
    for name in ["b", "c"] {
        wheel.done(&id(name), soon);
    }
    assert!(taken(&mut wheel, soon).is_empty(), "they were just polled, and so not again");
    // Their own moments stay as they were.
    let polled = taken(&mut wheel, start + secs(30));
    assert_eq!(polled.len(), 5);
    wheel.remove(&id("c"));
    wheel.poll(&id("b"), None, start + secs(31));
    assert_eq!(wheel.groups, HashMap::from([(7, 2), (8, 1)]));
}
