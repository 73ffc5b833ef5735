#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use super::*;

const LIMITS: ConcurrencyLimits = ConcurrencyLimits { fast: 4, slow: 2 };

fn id(name: &str) -> ResourceId {
    ResourceId::object("ns", name)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Takes all objects that are due.
fn taken(scheduler: &mut PollScheduler, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| scheduler.next_due(now)).map(|turn| turn.id.name.to_string()).collect()
}

/// A schedule with a group of its own.
fn every(seconds: u64, name: &str) -> PollSchedule {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    PollSchedule { interval: secs(seconds), group: hasher.finish() }
}

#[tokio::test(start_paused = true)]
async fn polls_have_fixed_times_and_never_overlap() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    assert_eq!(
        scheduler.next_due(start),
        Some(DueObject { id: id("a"), poll_delay: None, queue_delay: Duration::ZERO })
    );
    scheduler.set_schedule(&id("a"), Some(every(10, "a")), start);
    assert_eq!(scheduler.next_due(start), None, "it runs");
    scheduler.finish(&id("a"), start);
    assert_eq!(scheduler.next_due(start).unwrap().poll_delay, Some(Duration::ZERO), "the first is at once");
    scheduler.finish(&id("a"), start);
    let first = scheduler.next_due_at().unwrap();
    assert!(first > start && first <= start + secs(10));
    assert_eq!(scheduler.next_due(first + secs(1)).unwrap().poll_delay, Some(secs(1)));
    scheduler.finish(&id("a"), first + secs(3));
    assert_eq!(scheduler.next_due_at(), Some(first + secs(10)));
    scheduler.next_due(first + secs(10)).unwrap();
    // The poll takes longer than the interval: missed polls are skipped, and the poll times stay.
    assert_eq!(scheduler.next_due(first + secs(25)), None);
    scheduler.finish(&id("a"), first + secs(25));
    assert_eq!(scheduler.next_due(first + secs(25)).unwrap().poll_delay, Some(secs(5)));
    scheduler.finish(&id("a"), first + secs(26));
    assert_eq!(scheduler.next_due_at(), Some(first + secs(30)));
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_group_are_polled_close_together() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 10_000, slow: 1 });
    let schedule = PollSchedule { interval: secs(30), group: 7 };
    // Some exist at the start; the others are added later.
    for number in 0..500 {
        scheduler.add_spread(&id(&number.to_string()), start, schedule);
    }
    for number in 500..1000 {
        scheduler.add(&id(&number.to_string()), start + secs(number / 20));
    }
    let mut polls: Vec<Duration> = Vec::new();
    for tenth in 0..1200_u32 {
        let now = start + Duration::from_millis(100) * tenth;
        while let Some(turn) = scheduler.next_due(now) {
            if turn.poll_delay.is_some() && tenth >= 600 {
                polls.push(now - start);
            }
            scheduler.set_schedule(&turn.id, Some(schedule), now);
            scheduler.finish(&turn.id, now);
        }
    }
    assert_eq!(polls.len(), 2000, "twice each in a minute");
    let (first, last) = (polls[0], polls[polls.len() - 1]);
    let starts = polls.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]) > secs(5)).count();
    assert!((1..=2).contains(&starts), "one heap in each interval: {first:?} to {last:?}, {starts} gaps");
}

#[tokio::test(start_paused = true)]
async fn object_woken_while_it_runs_is_due_again() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.wake_by(&id("a"), start);
    assert_eq!(scheduler.next_due(start), None);
    scheduler.finish(&id("a"), start);
    assert_eq!(
        scheduler.next_due(start),
        Some(DueObject { id: id("a"), poll_delay: None, queue_delay: Duration::ZERO })
    );
    scheduler.finish(&id("a"), start);
    assert_eq!(scheduler.next_due_at(), None);
    scheduler.wake_by(&id("a"), start + secs(9));
    scheduler.wake_by(&id("a"), start + secs(5));
    scheduler.wake_by(&id("a"), start + secs(7));
    assert_eq!(scheduler.next_due_at(), Some(start + secs(5)));
    scheduler.wake_by(&id("unknown"), start);
    scheduler.remove(&id("a"));
    assert!(scheduler.is_empty() && scheduler.next_due_at().is_none());
}

#[tokio::test(start_paused = true)]
async fn changed_interval_counts_from_now() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.set_schedule(&id("a"), Some(every(300, "a")), start);
    scheduler.finish(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.finish(&id("a"), start);
    let late = scheduler.next_due_at().unwrap();
    assert!(late > start && late <= start + secs(300));
    scheduler.set_schedule(&id("a"), Some(every(5, "a")), start + secs(1));
    let soon = scheduler.next_due_at().unwrap();
    assert!(soon > start + secs(1) && soon <= start + secs(6));
    scheduler.set_schedule(&id("a"), None, start + secs(2));
    assert_eq!(scheduler.next_due_at(), None);
    scheduler.set_schedule(&id("a"), Some(every(5, "a")), start + secs(3));
    assert_eq!(scheduler.next_due_at(), Some(start + secs(3)), "it was not polled, so it is at once");
}

#[tokio::test(start_paused = true)]
async fn first_polls_are_spread_over_the_interval_up_to_a_bound() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 10_000, slow: 1 });
    for number in 0..3000 {
        let name = number.to_string();
        scheduler.add_spread(&id(&name), start, every(if number % 2 == 0 { 30 } else { 86_400 }, &name));
    }
    let per_second: Vec<usize> =
        (1..=30).map(|second| taken(&mut scheduler, start + secs(second)).len()).collect();
    assert_eq!(per_second.iter().sum::<usize>(), 3000);
    assert!(per_second.iter().all(|count| (50..200).contains(count)), "{per_second:?}");
}

#[tokio::test(start_paused = true)]
async fn few_objects_have_fewer_poll_times_than_many() {
    let start = Instant::now();
    let moments = |objects: usize| {
        let mut scheduler = PollScheduler::new(LIMITS);
        scheduler.began = Some(start);
        for number in 0..objects {
            scheduler.add(&id(&number.to_string()), start);
        }
        let grid = scheduler.grid(start);
        let next = |number: usize| {
            let name = number.to_string();
            grid.next(&id(&name), every(30, &name), start)
        };
        (0..objects).map(next).collect::<BTreeSet<Instant>>().len()
    };
    assert_eq!(moments(MAX_OBJECTS_FOR_MERGED_SLOTS), (SLOTS_PER_INTERVAL / MERGED_SLOTS) as usize);
    let many = moments(MAX_OBJECTS_FOR_MERGED_SLOTS + 1);
    assert!(many > 2 * (SLOTS_PER_INTERVAL / MERGED_SLOTS) as usize, "{many}");
}

#[tokio::test(start_paused = true)]
async fn slow_objects_free_their_place_and_are_bounded() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    let names: Vec<String> = (0..8).map(|number| format!("h{number}")).collect();
    for name in &names {
        scheduler.add(&id(name), start);
    }
    assert_eq!(taken(&mut scheduler, start).len(), 4, "no more than that run at once");
    assert_eq!(scheduler.next_due_at(), Some(start + SLOW_THRESHOLD), "then a place may be free");
    scheduler.add(&id("quick"), start);
    let later = start + SLOW_THRESHOLD;
    let mut second = taken(&mut scheduler, later);
    second.sort();
    assert_eq!(second, ["h4", "h5", "h6", "h7"], "those that hang count no more");
    assert_eq!(taken(&mut scheduler, later + SLOW_THRESHOLD), ["quick"]);
    let end = start + secs(10);
    for name in &names {
        scheduler.finish(&id(name), end);
        scheduler.wake_by(&id(name), end);
    }
    scheduler.finish(&id("quick"), end);
    scheduler.add(&id("new"), end);
    let third = taken(&mut scheduler, end);
    assert_eq!(third.len(), 3, "two that were slow, and the one that was not");
    assert!(third.contains(&"new".to_owned()));
    // An object that has become fast is in the fast queue again.
    let recovered = third.iter().find(|name| name.starts_with('h')).unwrap().clone();
    scheduler.finish(&id(&recovered), end);
    scheduler.wake_by(&id(&recovered), end);
    assert!(taken(&mut scheduler, end).contains(&recovered));
}

#[tokio::test(start_paused = true)]
async fn fast_objects_of_one_namespace_leave_places_to_others() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    let many = |number: usize| ResourceId::object("many", &number.to_string());
    for number in 0..8 {
        scheduler.add(&many(number), start);
    }
    assert_eq!(taken(&mut scheduler, start), ["0", "1", "2", "3"], "one namespace alone has all places");
    let now = start + Duration::from_millis(1);
    scheduler.add(&ResourceId::object("few", "a"), now);
    assert_eq!(taken(&mut scheduler, now), [""; 0]);
    scheduler.finish(&many(0), now);
    scheduler.finish(&many(1), now);
    assert_eq!(taken(&mut scheduler, now), ["4", "a"], "the others of the first namespace wait");
    assert_eq!(scheduler.next_due_at(), Some(start + SLOW_THRESHOLD), "then a place may be free");
    scheduler.finish(&many(2), now);
    assert_eq!(taken(&mut scheduler, now), ["5"]);
    // The rest needs no object to end: all that run prove to be slow.
    assert_eq!(taken(&mut scheduler, now + SLOW_THRESHOLD), ["6", "7"]);
}

#[tokio::test(start_paused = true)]
async fn overdue_objects_are_counted_by_kind() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    for number in 0..6 {
        scheduler.add(&ResourceId::object("many", &number.to_string()), start);
    }
    scheduler.add(&ResourceId::job("few", "a"), start);
    let counts = |scheduler: &PollScheduler, now: Instant| {
        [ResourceKind::Object, ResourceKind::Job].map(|kind| scheduler.overdue(kind, now))
    };
    assert_eq!(counts(&scheduler, start), [0, 0]);
    assert_eq!(counts(&scheduler, start + secs(1)), [6, 1]);
    assert_eq!(taken(&mut scheduler, start), ["0", "1", "2", "a"]);
    assert_eq!(counts(&scheduler, start + secs(1)), [3, 0], "also of a namespace without a place left");
}

/// Objects of a namespace whose last processing was slow; they wait for nothing.
fn slow_objects(
    scheduler: &mut PollScheduler,
    namespace: &str,
    count: usize,
    at: Instant,
) -> Vec<ResourceId> {
    let ids: Vec<ResourceId> =
        (0..count).map(|number| ResourceId::object(namespace, &format!("{namespace}{number}"))).collect();
    for id in &ids {
        scheduler.add(id, at);
    }
    assert_eq!(taken(scheduler, at).len(), count);
    for id in &ids {
        scheduler.finish(id, at + SLOW_THRESHOLD);
    }
    ids
}

fn wake(scheduler: &mut PollScheduler, ids: &[ResourceId], at: Instant) {
    for id in ids {
        scheduler.wake_by(id, at);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_places_are_divided_among_namespaces() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 100, slow: 4 });
    let many = slow_objects(&mut scheduler, "many", 9, start);
    let few = slow_objects(&mut scheduler, "few", 3, start);
    let now = start + SLOW_THRESHOLD;
    wake(&mut scheduler, &many, now);
    let first = ["many0", "many1", "many2", "many3"];
    assert_eq!(taken(&mut scheduler, now), first, "one namespace uses all that nobody else needs");
    wake(&mut scheduler, &few, now);
    assert_eq!(taken(&mut scheduler, now), ["few0", "few1"], "its part, although all places are used");
    let later = now + SLOW_THRESHOLD;
    scheduler.finish(&many[0], later);
    assert_eq!(taken(&mut scheduler, later), [""; 0], "both have their parts or more");
    assert_eq!(scheduler.next_due_at(), None);
    scheduler.finish(&few[0], later);
    assert_eq!(taken(&mut scheduler, later), ["few2"]);
    for id in &few {
        scheduler.finish(id, later);
    }
    assert_eq!(taken(&mut scheduler, later), ["many4"], "the others need nothing any more");
}

#[tokio::test(start_paused = true)]
async fn objects_that_prove_to_be_slow_take_no_places_of_other_namespaces() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 100, slow: 2 });
    let slow = slow_objects(&mut scheduler, "few", 1, start);
    let began = start + SLOW_THRESHOLD;
    for number in 0..20 {
        scheduler.add(&ResourceId::object("many", &number.to_string()), began);
    }
    assert_eq!(taken(&mut scheduler, began).len(), 20, "they are not known to be slow");
    let now = began + SLOW_THRESHOLD;
    wake(&mut scheduler, &slow, now);
    assert_eq!(taken(&mut scheduler, now), ["few0"]);
}

#[tokio::test(start_paused = true)]
async fn slow_places_are_not_exceeded_by_many_namespaces() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 100, slow: 2 });
    let all: Vec<ResourceId> = ["a", "b", "c"]
        .into_iter()
        .flat_map(|namespace| slow_objects(&mut scheduler, namespace, 2, start))
        .collect();
    let now = start + SLOW_THRESHOLD;
    wake(&mut scheduler, &all, now);
    assert_eq!(taken(&mut scheduler, now), ["a0", "b0"]);
    scheduler.finish(&all[0], now + SLOW_THRESHOLD);
    assert_eq!(taken(&mut scheduler, now + SLOW_THRESHOLD), ["a1"], "it is due as long as the others");
}

#[tokio::test(start_paused = true)]
async fn counts_stay_right_when_objects_are_removed() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 1, slow: 1 });
    for name in ["a", "b"] {
        scheduler.add(&id(name), start);
    }
    assert_eq!(taken(&mut scheduler, start), ["a"]);
    scheduler.remove(&id("a"));
    assert_eq!(taken(&mut scheduler, start), [""; 0], "its turn still runs");
    scheduler.finish(&id("a"), start);
    assert_eq!(taken(&mut scheduler, start), ["b"]);
    let later = start + secs(5);
    scheduler.add(&id("c"), later);
    assert_eq!(taken(&mut scheduler, later), ["c"]);
    scheduler.remove(&id("b"));
    scheduler.finish(&id("b"), later);
    scheduler.finish(&id("c"), later);
    scheduler.wake_by(&id("c"), later);
    assert_eq!(taken(&mut scheduler, later), ["c"]);
    assert_eq!((scheduler.fast.running(), scheduler.slow.running(), scheduler.len()), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn object_that_is_added_again_waits_for_its_last_processing() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.remove(&id("a"));
    scheduler.wake_by(&id("a"), start);
    scheduler.set_schedule(&id("a"), Some(every(30, "a")), start);
    scheduler.add(&id("a"), start);
    assert_eq!(scheduler.next_due(start), None, "its last turn still runs");
    scheduler.finish(&id("a"), start);
    assert_eq!(
        scheduler.next_due(start),
        Some(DueObject { id: id("a"), poll_delay: None, queue_delay: Duration::ZERO })
    );
    scheduler.remove(&id("a"));
    scheduler.finish(&id("a"), start);
    assert!(scheduler.is_empty() && scheduler.next_due_at().is_none());
}

#[tokio::test(start_paused = true)]
async fn activation_polls_the_group_at_once() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(ConcurrencyLimits { fast: 100, slow: 1 });
    let (same, other) =
        (PollSchedule { interval: secs(30), group: 7 }, PollSchedule { interval: secs(30), group: 8 });
    let names = [("a", same), ("b", same), ("c", same), ("else", other), ("gone", same)];
    let objects = names.map(|(name, schedule)| (id(name), schedule));
    for (id, schedule) in objects.into_iter().chain([(ResourceId::job("ns", "job"), same)]) {
        scheduler.add(&id, start);
        scheduler.next_due(start).unwrap();
        scheduler.set_schedule(&id, Some(schedule), start);
        scheduler.finish(&id, start);
        scheduler.next_due(start).unwrap();
        scheduler.finish(&id, start);
    }
    scheduler.remove(&id("gone"));
    let before = scheduler.next_due_at().unwrap();
    assert!(before > start, "all were polled");
    scheduler.poll_group_now(&id("else"), start);
    scheduler.poll_group_now(&id("unknown"), start);
    assert_eq!(scheduler.next_due_at(), Some(before), "no other object has its query");
    scheduler.poll_group_now(&id("a"), start);
    let mut hurried_groups = taken(&mut scheduler, start);
    hurried_groups.sort();
    assert_eq!(
        hurried_groups,
        ["b", "c"],
        "but no job: what it has created since its last poll may not have begun"
    );
    let soon = start + Duration::from_millis(1);
    scheduler.poll_group_now(&id("b"), soon);
    for name in ["b", "c"] {
        scheduler.finish(&id(name), soon);
    }
    assert!(taken(&mut scheduler, soon).is_empty(), "they were just polled, and so not again");
    // Their own poll times stay as they were.
    let polled = taken(&mut scheduler, start + secs(30));
    assert_eq!(polled.len(), 5);
    scheduler.remove(&id("c"));
    scheduler.set_schedule(&id("b"), None, start + secs(31));
    assert_eq!(scheduler.groups, HashMap::from([(7, 2), (8, 1)]));
}

#[tokio::test(start_paused = true)]
async fn panicked_object_is_due_after_its_delay_whatever_its_schedule() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.finish_with_delay(&id("a"), start, secs(4));
    assert_eq!(scheduler.next_due_at(), Some(start + secs(4)), "it was not polled before");
    scheduler.next_due(start + secs(4)).unwrap();
    scheduler.set_schedule(&id("a"), Some(every(10, "a")), start + secs(4));
    scheduler.finish(&id("a"), start + secs(4));
    scheduler.next_due(start + secs(4)).unwrap();
    scheduler.finish_with_delay(&id("a"), start + secs(4), secs(60));
    assert_eq!(scheduler.next_due_at(), Some(start + secs(64)), "longer than its polling interval");
    assert_eq!(scheduler.next_due(start + secs(64)).unwrap().poll_delay, Some(Duration::ZERO));
    scheduler.finish(&id("a"), start + secs(64));
    assert!(scheduler.next_due_at().unwrap() <= start + secs(74), "it is polled by its schedule again");
    scheduler.next_due(start + secs(74)).unwrap();
    scheduler.remove(&id("a"));
    scheduler.finish_with_delay(&id("a"), start + secs(74), secs(1));
    assert!(scheduler.is_empty(), "an object that is gone is not retried");
}

#[tokio::test(start_paused = true)]
async fn poll_may_be_hastened_but_not_delayed() {
    let start = Instant::now();
    let mut scheduler = PollScheduler::new(LIMITS);
    scheduler.add(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.set_schedule(&id("a"), Some(every(3600, "a")), start);
    scheduler.finish(&id("a"), start);
    scheduler.next_due(start).unwrap();
    scheduler.finish(&id("a"), start);
    scheduler.poll_by(&id("a"), start + secs(2));
    scheduler.poll_by(&id("a"), start + secs(3));
    assert_eq!(scheduler.next_due_at(), Some(start + secs(2)));
    assert_eq!(scheduler.next_due(start + secs(2)).unwrap().poll_delay, Some(Duration::ZERO));
    scheduler.set_schedule(&id("a"), None, start + secs(2));
    scheduler.finish(&id("a"), start + secs(2));
    scheduler.poll_by(&id("a"), start + secs(3));
    assert_eq!(scheduler.next_due_at(), None, "it is not polled");
}
