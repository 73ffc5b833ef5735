#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::unchecked_time_subtraction)]

use super::*;

const PERIOD: Duration = Duration::from_secs(15);

fn limits(parallel: usize) -> ScheduleLimits {
    ScheduleLimits { period: PERIOD, parallel, open: parallel * 4 }
}

fn node(name: &str) -> Arc<Node> {
    Arc::new(Node { name: name.into(), ready: true, ..Node::default() })
}

fn nodes(count: usize) -> Vec<Arc<Node>> {
    (0..count).map(|at| node(&format!("ip-10-0-{}-{}", at / 250, at % 250))).collect()
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Simulates the schedule until `end`; `answer` gives duration and success of each scrape. Returns the scrape times
/// of each node.
fn play(
    schedule: &mut Schedule,
    from: Duration,
    end: Duration,
    answer: impl Fn(&str, Duration) -> (Duration, bool),
) -> HashMap<Arc<str>, Vec<Duration>> {
    let mut requested: HashMap<Arc<str>, Vec<Duration>> = HashMap::new();
    let mut open: BTreeSet<(Duration, Arc<str>, bool)> = BTreeSet::new();
    let mut busy = BTreeSet::new();
    let mut now = from;
    loop {
        let step = schedule.step(now);
        for due_node in step.due_nodes {
            assert!(due_node.due <= now);
            let name = &due_node.node.name;
            assert!(busy.insert(Arc::clone(name)), "a scrape of {name} is under way already");
            requested.entry(Arc::clone(name)).or_default().push(now);
            let (took, good) = answer(name, now);
            open.insert((now + took, Arc::clone(name), good));
        }
        let answered = open.first().map(|(at, ..)| *at);
        let Some(then) = [answered, step.until].into_iter().flatten().min().filter(|&then| then <= end)
        else {
            return requested;
        };
        assert!(then > now || answered == Some(now), "it does not stand still");
        now = then;
        while open.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, name, good) = open.pop_first().unwrap();
            busy.remove(&name);
            let result = if good { ScrapeResult::Succeeded } else { ScrapeResult::Failed };
            schedule.done(&name, result, now);
        }
    }
}

const QUICK_SCRAPE_TIME: Duration = Duration::from_millis(5);

#[test]
fn new_node_gets_early_scrapes_then_its_offset() {
    let mut schedule = Schedule::new(limits(64));
    let (added, removed) = schedule.set(&[node("a")], secs(3.0));
    assert_eq!((added.len(), removed.len()), (1, 0));
    let requested = play(&mut schedule, secs(3.0), secs(120.0), |_, _| (QUICK_SCRAPE_TIME, true));
    let times = &requested["a"];
    let offset = offset("a", PERIOD).as_secs_f64();
    assert_eq!(times[0], secs(3.0));
    for pair in times.windows(2).take(3) {
        assert!(pair[1] - pair[0] <= EARLY_SCRAPE_INTERVAL + QUICK_SCRAPE_TIME, "{times:?}");
    }
    for time in &times[4..] {
        let off = (time.as_secs_f64() - offset).rem_euclid(15.0);
        assert!(off.min(15.0 - off) < 0.001, "{time:?} is not at {offset}");
    }
    assert!((10..=12).contains(&times.len()), "{times:?}");
}

#[test]
fn offsets_are_even_and_independent() {
    let all = nodes(5000);
    let mut counts = [0_usize; 15];
    for node in &all {
        counts[offset(&node.name, PERIOD).as_secs() as usize] += 1;
    }
    assert!(counts.iter().all(|count| (260..410).contains(count)), "{counts:?}");
    assert_eq!(offset("ip-10-0-1-7", PERIOD), offset("ip-10-0-1-7", PERIOD));
}

#[test]
fn concurrency_never_exceeds_the_limit() {
    let mut schedule = Schedule::new(limits(8));
    schedule.set(&nodes(100), Duration::ZERO);
    let first = schedule.step(Duration::ZERO);
    assert_eq!(first.due_nodes.len(), 8);
    assert!(schedule.step(secs(0.5)).due_nodes.is_empty());
    schedule.done(&first.due_nodes[0].node.name, ScrapeResult::Succeeded, secs(0.5));
    assert_eq!(schedule.step(secs(0.5)).due_nodes.len(), 1);
}

#[test]
fn silent_requests_do_not_count_up_to_a_limit() {
    let mut schedule = Schedule::new(limits(8));
    schedule.set(&nodes(100), Duration::ZERO);
    let mut counts = Vec::new();
    for second in 0..6 {
        counts.push(schedule.step(secs(f64::from(second))).due_nodes.len());
    }
    assert_eq!(counts, [8, 8, 8, 8, 0, 0], "four times eight at most");
}

#[test]
fn failing_node_is_retried_then_backs_off() {
    let mut schedule = Schedule::new(limits(64));
    schedule.set(&[node("a")], Duration::ZERO);
    play(&mut schedule, Duration::ZERO, secs(60.0), |_, _| (QUICK_SCRAPE_TIME, true));
    let requested = play(&mut schedule, secs(60.0), secs(1800.0), |_, _| (QUICK_SCRAPE_TIME, false));
    let gaps: Vec<f64> =
        requested["a"].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().round()).collect();
    // Three periods with a retry each, then every 2nd, 4th and 8th: two minutes.
    assert_eq!(gaps[..10], [3.0, 12.0, 3.0, 12.0, 3.0, 12.0, 30.0, 60.0, 120.0, 120.0], "{gaps:?}");
    assert!(gaps[10..].iter().all(|gap| *gap == 120.0));
}

#[test]
fn recovered_node_returns_to_its_interval() {
    let mut schedule = Schedule::new(limits(64));
    schedule.set(&[node("a")], Duration::ZERO);
    let until = secs(600.0);
    play(&mut schedule, Duration::ZERO, until, |_, _| (QUICK_SCRAPE_TIME, false));
    let requested = play(&mut schedule, until, secs(900.0), |_, _| (QUICK_SCRAPE_TIME, true));
    // A new node that never succeeded still gets its early scrapes once it does.
    let gaps: Vec<f64> = requested["a"].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    assert!(gaps.iter().all(|gap| *gap <= 15.1), "{gaps:?}");
}

#[test]
fn successful_retry_ends_retrying() {
    let mut schedule = Schedule::new(limits(64));
    schedule.set(&[node("a")], Duration::ZERO);
    play(&mut schedule, Duration::ZERO, secs(60.0), |_, _| (QUICK_SCRAPE_TIME, true));
    let failing = schedule.nodes["a"].due;
    let requested =
        play(&mut schedule, secs(60.0), secs(150.0), |_, now| (QUICK_SCRAPE_TIME, now != failing));
    let gaps: Vec<f64> =
        requested["a"].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().round()).collect();
    assert_eq!(gaps, [3.0, 12.0, 15.0, 15.0, 15.0, 15.0]);
}

#[test]
fn slow_failure_near_period_end_is_not_retried() {
    let mut schedule = Schedule::new(limits(64));
    schedule.set(&[node("a")], Duration::ZERO);
    play(&mut schedule, Duration::ZERO, secs(60.0), |_, _| (QUICK_SCRAPE_TIME, true));
    // A scrape of 13 of 15 seconds leaves no time for a retry.
    let requested = play(&mut schedule, secs(60.0), secs(119.0), |_, _| (secs(13.0), false));
    let gaps: Vec<f64> =
        requested["a"].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().round()).collect();
    assert!(gaps.iter().all(|gap| *gap == 15.0 || *gap == 30.0), "{gaps:?}");
}

#[test]
fn healthy_nodes_do_not_wait_for_hanging_ones() {
    let mut schedule = Schedule::new(ScheduleLimits { period: PERIOD, parallel: 64, open: 1024 });
    let all = nodes(2000);
    schedule.set(&all, Duration::ZERO);
    let hangs = |name: &str| offset(name, PERIOD) < PERIOD / 4;
    let hung =
        |name: &str, _: Duration| if hangs(name) { (secs(10.0), false) } else { (QUICK_SCRAPE_TIME, true) };
    play(&mut schedule, Duration::ZERO, secs(60.0), hung);
    let requested = play(&mut schedule, secs(60.0), secs(240.0), hung);
    for node in all.iter().filter(|node| !hangs(&node.name)) {
        let worst = requested[&node.name].windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(worst < secs(15.2), "{} waited {worst:?}", node.name);
    }
}

#[test]
fn five_thousand_nodes_start_within_seconds_with_a_fifth_hanging() {
    let mut schedule = Schedule::new(ScheduleLimits { period: PERIOD, parallel: 64, open: 1024 });
    let all = nodes(5000);
    schedule.set(&all, Duration::ZERO);
    let hangs = |name: &str| offset(name, PERIOD) < PERIOD / 5;
    let requested = play(&mut schedule, Duration::ZERO, secs(60.0), |name, _| {
        if hangs(name) { (secs(10.0), false) } else { (QUICK_SCRAPE_TIME, true) }
    });
    let healthy = all.iter().filter(|node| !hangs(&node.name));
    let last = healthy.map(|node| requested[&node.name][0]).max().unwrap();
    assert!(last < secs(17.0), "{last:?}");
}

#[test]
fn moved_or_ready_node_is_scraped_at_once() {
    let mut schedule = Schedule::new(limits(64));
    let mut changing = Node { name: "a".into(), ready: false, ..Node::default() };
    schedule.set(&[Arc::new(changing.clone())], Duration::ZERO);
    play(&mut schedule, Duration::ZERO, secs(600.0), |_, _| (QUICK_SCRAPE_TIME, false));
    changing.ready = true;
    schedule.set(&[Arc::new(changing.clone())], secs(601.0));
    assert_eq!(schedule.step(secs(601.0)).due_nodes.len(), 1);
    // The node moves during its scrape; that result does not count for the new address.
    changing.addresses = vec![("InternalIP".into(), "10.0.0.9".into())];
    schedule.set(&[Arc::new(changing.clone())], secs(602.0));
    assert!(schedule.step(secs(602.0)).due_nodes.is_empty());
    schedule.done(&"a".into(), ScrapeResult::Failed, secs(603.0));
    let step = schedule.step(secs(603.0));
    assert_eq!(step.due_nodes[0].node.addresses, changing.addresses);
    // Label changes do not reschedule a node.
    schedule.done(&"a".into(), ScrapeResult::Succeeded, secs(603.1));
    changing.labels = Arc::new([("a", "b")].into_iter().collect());
    schedule.set(&[Arc::new(changing)], secs(603.2));
    assert!(schedule.step(secs(603.2)).due_nodes.is_empty());
}

#[test]
fn removed_node_is_not_scraped_and_its_late_result_is_ignored() {
    let mut schedule = Schedule::new(limits(64));
    schedule.set(&[node("a"), node("b")], Duration::ZERO);
    assert_eq!(schedule.step(Duration::ZERO).due_nodes.len(), 2);
    let (added, removed) = schedule.set(&[node("b")], secs(1.0));
    assert_eq!((added.len(), removed), (0, vec![Arc::from("a")]));
    assert_eq!(schedule.done(&"a".into(), ScrapeResult::Succeeded, secs(2.0)), ScheduleState::Removed);
    assert_eq!(schedule.done(&"b".into(), ScrapeResult::Succeeded, secs(2.0)), ScheduleState::Scheduled);
    let requested = play(&mut schedule, secs(2.0), secs(60.0), |_, _| (QUICK_SCRAPE_TIME, true));
    assert!(!requested.contains_key("a"));
    assert!(schedule.running.is_empty());
}

#[test]
fn node_removed_and_readded_during_scrape_is_scraped_once() {
    let mut schedule = Schedule::new(limits(64));
    schedule.set(&[node("a")], Duration::ZERO);
    assert_eq!(schedule.step(Duration::ZERO).due_nodes.len(), 1);
    schedule.set(&[], secs(1.0));
    schedule.set(&[node("a")], secs(2.0));
    assert!(schedule.step(secs(2.0)).due_nodes.is_empty());
    assert_eq!(schedule.done(&"a".into(), ScrapeResult::Succeeded, secs(3.0)), ScheduleState::Scheduled);
    let requested = play(&mut schedule, secs(3.0), secs(33.0), |_, _| (QUICK_SCRAPE_TIME, true));
    assert!((3..=6).contains(&requested["a"].len()), "{requested:?}");
}
