#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

const LIMITS: ConcurrencyLimits = ConcurrencyLimits { quick: 4, slow: 2 };

fn id(name: &str) -> Id {
    Id::object("ns", name)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Takes everything that is due.
fn taken(scheduler: &mut PollScheduler, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| scheduler.take(now)).map(|turn| turn.id.name.to_string()).collect()
}

/// Polled so often; everybody asks something else.
fn every(seconds: u64, name: &str) -> PollSchedule {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    PollSchedule { interval: secs(seconds), group: hasher.finish() }
}

#[tokio::test(start_paused = true)]
async fn polls_are_at_fixed_moments_and_never_overlap() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    assert_eq!(scheduler.take(start), Some(DueObject { id: id("a"), poll: None }));
    scheduler.poll(&id("a"), Some(every(10, "a")), start);
    assert_eq!(scheduler.take(start), None, "it runs");
    scheduler.done(&id("a"), start);
    assert_eq!(scheduler.take(start).unwrap().poll, Some(Duration::ZERO), "the first is at once");
    scheduler.done(&id("a"), start);
    let first = scheduler.next().unwrap();
    assert!(first > start && first <= start + secs(10));
    assert_eq!(scheduler.take(first + secs(1)).unwrap().poll, Some(secs(1)));
    scheduler.done(&id("a"), first + secs(3));
    assert_eq!(scheduler.next(), Some(first + secs(10)));
    scheduler.take(first + secs(10)).unwrap();
    // The poll takes longer than the interval: those that were missed are not made up for, and the moments stay.
    assert_eq!(scheduler.take(first + secs(25)), None);
    scheduler.done(&id("a"), first + secs(25));
    assert_eq!(scheduler.take(first + secs(25)).unwrap().poll, Some(secs(5)));
    scheduler.done(&id("a"), first + secs(26));
    assert_eq!(scheduler.next(), Some(first + secs(30)));
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_the_same_are_polled_close_together() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { quick: 10_000, slow: 1 });
    let schedule = PollSchedule { interval: secs(30), group: 7 };
    // Some were there when we began; the others come by and by.
    for number in 0..500 {
        scheduler.spread(&id(&number.to_string()), start, schedule);
    }
    for number in 500..1000 {
        scheduler.add(&id(&number.to_string()), start + secs(number / 20));
    }
    let mut polls: Vec<Duration> = Vec::new();
    for tenth in 0..1200_u32 {
        let now = start + Duration::from_millis(100) * tenth;
        while let Some(turn) = scheduler.take(now) {
            if turn.poll.is_some() && tenth >= 600 {
                polls.push(now - start);
            }
            scheduler.poll(&turn.id, Some(schedule), now);
            scheduler.done(&turn.id, now);
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
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.take(start).unwrap();
    scheduler.wake(&id("a"), start);
    assert_eq!(scheduler.take(start), None);
    scheduler.done(&id("a"), start);
    assert_eq!(scheduler.take(start), Some(DueObject { id: id("a"), poll: None }));
    scheduler.done(&id("a"), start);
    assert_eq!(scheduler.next(), None);
    scheduler.wake(&id("a"), start + secs(9));
    scheduler.wake(&id("a"), start + secs(5));
    scheduler.wake(&id("a"), start + secs(7));
    assert_eq!(scheduler.next(), Some(start + secs(5)));
    scheduler.wake(&id("unknown"), start);
    scheduler.remove(&id("a"));
    assert!(scheduler.is_empty() && scheduler.next().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_interval_that_changes_counts_from_now() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.take(start).unwrap();
    scheduler.poll(&id("a"), Some(every(300, "a")), start);
    scheduler.done(&id("a"), start);
    scheduler.take(start).unwrap();
    scheduler.done(&id("a"), start);
    let late = scheduler.next().unwrap();
    assert!(late > start && late <= start + secs(300));
    scheduler.poll(&id("a"), Some(every(5, "a")), start + secs(1));
    let soon = scheduler.next().unwrap();
    assert!(soon > start + secs(1) && soon <= start + secs(6));
    scheduler.poll(&id("a"), None, start + secs(2));
    assert_eq!(scheduler.next(), None);
    scheduler.poll(&id("a"), Some(every(5, "a")), start + secs(3));
    assert_eq!(scheduler.next(), Some(start + secs(3)), "it was not polled, so it is at once");
}

#[tokio::test(start_paused = true)]
async fn first_turns_are_spread_over_the_interval_but_not_over_hours() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { quick: 10_000, slow: 1 });
    for number in 0..3000 {
        let name = number.to_string();
        scheduler.spread(&id(&name), start, every(if number % 2 == 0 { 30 } else { 86_400 }, &name));
    }
    let per_second: Vec<usize> =
        (1..=30).map(|second| taken(&mut scheduler, start + secs(second)).len()).collect();
    assert_eq!(per_second.iter().sum::<usize>(), 3000);
    assert!(per_second.iter().all(|count| (50..200).contains(count)), "{per_second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_few_objects_have_fewer_moments_than_many() {
    let start = Instant::now();
    let moments = |objects: usize| {
        let mut scheduler = PollScheduler::new(LIMITS);
        scheduler.began = Some(start);
        for number in 0..objects {
            scheduler.add(&id(&number.to_string()), start);
        }
        let rhythm = scheduler.rhythm(start);
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
    let mut scheduler = PollScheduler::new(LIMITS);
    let names: Vec<String> = (0..8).map(|number| format!("h{number}")).collect();
    for name in &names {
        scheduler.add(&id(name), start);
    }
    assert_eq!(taken(&mut scheduler, start).len(), 4, "no more than that run at once");
    assert_eq!(scheduler.next(), Some(start + PATIENCE), "then a place may be free");
    scheduler.add(&id("quick"), start);
    let later = start + PATIENCE;
    let mut second = taken(&mut scheduler, later);
    second.sort();
    assert_eq!(second, ["h4", "h5", "h6", "h7"], "those that hang count no more");
    assert_eq!(taken(&mut scheduler, later + PATIENCE), ["quick"]);
    let end = start + secs(10);
    for name in &names {
        scheduler.done(&id(name), end);
        scheduler.wake(&id(name), end);
    }
    scheduler.done(&id("quick"), end);
    scheduler.add(&id("new"), end);
    let third = taken(&mut scheduler, end);
    assert_eq!(third.len(), 3, "two that were slow, and the one that was not");
    assert!(third.contains(&"new".to_owned()));
    // One that has become quick is in the quick lane again.
    let recovered = third.iter().find(|name| name.starts_with('h')).unwrap().clone();
    scheduler.done(&id(&recovered), end);
    scheduler.wake(&id(&recovered), end);
    assert!(taken(&mut scheduler, end).contains(&recovered));
}

#[tokio::test(start_paused = true)]
async fn counts_stay_right_whoever_leaves_when() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { quick: 1, slow: 1 });
    for name in ["a", "b"] {
        scheduler.add(&id(name), start);
    }
    assert_eq!(taken(&mut scheduler, start), ["a"]);
    scheduler.remove(&id("a"));
    assert_eq!(taken(&mut scheduler, start), [""; 0], "its turn still runs");
    scheduler.done(&id("a"), start);
    assert_eq!(taken(&mut scheduler, start), ["b"]);
    let later = start + secs(5);
    scheduler.add(&id("c"), later);
    assert_eq!(taken(&mut scheduler, later), ["c"]);
    scheduler.remove(&id("b"));
    scheduler.done(&id("b"), later);
    scheduler.done(&id("c"), later);
    scheduler.wake(&id("c"), later);
    assert_eq!(taken(&mut scheduler, later), ["c"]);
    assert_eq!((scheduler.running.len(), scheduler.running_slow, scheduler.len()), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_waits_until_the_last_turn_has_ended() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.take(start).unwrap();
    scheduler.remove(&id("a"));
    scheduler.wake(&id("a"), start);
    scheduler.poll(&id("a"), Some(every(30, "a")), start);
    scheduler.add(&id("a"), start);
    assert_eq!(scheduler.take(start), None, "its last turn still runs");
    scheduler.done(&id("a"), start);
    assert_eq!(scheduler.take(start), Some(DueObject { id: id("a"), poll: None }));
    scheduler.remove(&id("a"));
    scheduler.done(&id("a"), start);
    assert!(scheduler.is_empty() && scheduler.next().is_none());
}

#[tokio::test(start_paused = true)]
async fn when_one_finds_something_to_do_those_who_ask_the_same_are_polled_at_once() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { quick: 100, slow: 1 });
    let (same, other) =
        (PollSchedule { interval: secs(30), group: 7 }, PollSchedule { interval: secs(30), group: 8 });
    let names = [("a", same), ("b", same), ("c", same), ("else", other), ("gone", same)];
    let objects = names.map(|(name, schedule)| (id(name), schedule));
    for (id, schedule) in objects.into_iter().chain([(Id::job("ns", "job"), same)]) {
        scheduler.add(&id, start);
        scheduler.take(start).unwrap();
        scheduler.poll(&id, Some(schedule), start);
        scheduler.done(&id, start);
        scheduler.take(start).unwrap();
        scheduler.done(&id, start);
    }
    scheduler.remove(&id("gone"));
    let before = scheduler.next().unwrap();
    assert!(before > start, "all were polled");
    scheduler.hurry(&id("else"), start);
    scheduler.hurry(&id("unknown"), start);
    assert_eq!(scheduler.next(), Some(before), "nobody asks what it asks");
    scheduler.hurry(&id("a"), start);
    let mut hurried = taken(&mut scheduler, start);
    hurried.sort();
    assert_eq!(hurried, ["b", "c"], "but no job: what it has created since its last poll may not have begun");
    let soon = start + Duration::from_millis(1);
    scheduler.hurry(&id("b"), soon);
    for name in ["b", "c"] {
        scheduler.done(&id(name), soon);
    }
    assert!(taken(&mut scheduler, soon).is_empty(), "they were just polled, and so not again");
    // Their own moments stay as they were.
    let polled = taken(&mut scheduler, start + secs(30));
    assert_eq!(polled.len(), 5);
    scheduler.remove(&id("c"));
    scheduler.poll(&id("b"), None, start + secs(31));
    assert_eq!(scheduler.groups, HashMap::from([(7, 2), (8, 1)]));
}
