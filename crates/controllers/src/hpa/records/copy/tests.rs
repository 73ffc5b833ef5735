#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Mutex;

use api::decisions::DecisionMode;
use api::decisions::passes::{PassDetail, PassQuery};
use cluster::lease::{Election, LeaseSettings};
use engine::Spec;
use futures::{FutureExt as _, StreamExt as _};
use localkube::{Cluster, Options};
use runtime::leader::LeadershipView;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::*;
use crate::hpa::records::tests::{PERIOD, at, json, mk_spec, once};

/// The records of the processes at addresses.
type ServedRecords = Arc<Mutex<Vec<(SocketAddr, Records)>>>;

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 10257))
}

fn add(records: &Records, spec: &Arc<Spec>, second: i64) {
    let decision = once(second, spec, Some(100 + second % 60));
    records.add(&AutoscalerKey::hpa("shop", &spec.name), DecisionMode::Active, PERIOD, spec, &decision);
}

/// Every pass of the HPA `web`.
fn passes(records: &Records) -> Vec<serde_json::Value> {
    let kept = records.between("shop", "hpa.web", Timestamp::MIN, Timestamp::MAX).unwrap_or_default();
    kept.iter().map(json).collect()
}

/// A page as it arrives.
fn page(records: &Records, after: Option<String>, limit: usize) -> Result<PassList, HistoryCopyError> {
    let query = PassQuery { after, limit: Some(limit), detail: PassDetail::Full, ..PassQuery::default() };
    let list = records.passes(&query).map_err(|_| HistoryCopyError::UnknownCursor)?;
    Ok(serde_json::from_value(json(&list)).unwrap())
}

/// Reads small pages of the process at an address.
fn fetch(replicas: &ServedRecords) -> FetchPasses {
    let replicas = Arc::clone(replicas);
    Arc::new(move |address, after| {
        let found = replicas.lock().unwrap().iter().find(|(known, _)| *known == address).cloned();
        let answer = match found {
            Some((_, records)) => page(&records, after, 3),
            None => Err(HistoryCopyError::Unauthorized),
        };
        Box::pin(async move { answer })
    })
}

fn follower(records: &Records, leadership: &Leadership, fetch: Option<FetchPasses>) -> HistoryFollower {
    HistoryFollower {
        records: records.clone(),
        leadership: leadership.clone(),
        clock: Clock::new(|| at(0)),
        fetch,
        exists: Arc::new(|_: &AutoscalerKey| None),
    }
}

/// The leadership of a candidate that sees another process lead.
fn following(leader: Option<SocketAddr>) -> (watch::Sender<LeadershipView>, Leadership) {
    let view = LeadershipView { holder: Some("other".into()), address: leader, ..LeadershipView::default() };
    let (sender, seen) = watch::channel(view);
    (sender, Leadership::elected(seen, Clock::new(|| at(0))))
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let wait = async {
        while !done() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(timeout(Duration::from_mins(5), wait).await.is_ok(), "{what}");
}

#[test]
fn a_copy_has_every_pass_once() {
    let spec = Arc::new(mk_spec("web"));
    let (leader, copied) = (Records::default(), Records::default());
    for second in [0, 15, 30, 45, 60] {
        add(&leader, &spec, second);
    }
    assert_eq!(copied.copy(None, page(&leader, None, 3).unwrap(), false), 3);
    // Read again from the beginning, as after a change of the leader.
    assert_eq!(copied.copy(None, page(&leader, None, 100).unwrap(), false), 2);
    assert_eq!(copied.copy(None, page(&leader, None, 100).unwrap(), false), 0);
    assert_eq!(passes(&copied), passes(&leader));
    assert_eq!(json(&copied.of("shop", "hpa.web")), json(&leader.of("shop", "hpa.web")));

    // What follows a cursor is new, also if the clock of the leader was set back.
    let cursor = page(&leader, None, 100).unwrap().metadata.cursor;
    add(&leader, &spec, 50);
    let new = page(&leader, Some(cursor.clone()), 100).unwrap();
    assert_eq!(copied.copy(Some(&cursor), new, true), 1);
    assert_eq!(passes(&copied), passes(&leader));
    // Without `detail=full` there is nothing to copy.
    let short = leader.passes(&PassQuery::default()).unwrap();
    assert_eq!(Records::default().copy(None, short, true), 0);
}

#[test]
fn replicas_understand_the_cursors_of_each_other() {
    let spec = Arc::new(mk_spec("web"));
    let (leader, copied) = (Records::default(), Records::default());
    let mut known = None;
    let mut follow = |limit| {
        let list = page(&leader, known.clone(), limit).unwrap();
        let next = Some(list.metadata.cursor.clone());
        copied.copy(known.as_deref(), list, true);
        known = next;
    };
    for second in 0..6 {
        add(&leader, &spec, second * 15);
    }
    follow(4);
    follow(4);
    // Asked in turns, each pass is seen once.
    let mut seen = Vec::new();
    let mut after = None;
    for replica in [&leader, &copied, &leader] {
        let list = page(replica, after, 2).unwrap();
        seen.extend(list.items.iter().map(|item| item.at));
        after = Some(list.metadata.cursor);
    }
    assert_eq!(seen, (0..6).map(|n| at(n * 15)).collect::<Vec<_>>());

    // The follower is late: it has nothing new, and does not send the requester back.
    add(&leader, &spec, 90);
    let list = page(&leader, after, 2).unwrap();
    assert_eq!(list.items.len(), 1);
    let late = page(&copied, Some(list.metadata.cursor.clone()), 2).unwrap();
    assert!(late.items.is_empty());
    assert_eq!(late.metadata.cursor, list.metadata.cursor);
    // It takes over before it has copied that pass: what it decides itself is new.
    add(&copied, &spec, 105);
    let new = page(&copied, Some(list.metadata.cursor), 2).unwrap();
    assert_eq!(new.items.iter().map(|item| item.at).collect::<Vec<_>>(), [at(105)]);
    assert!(page(&copied, Some(new.metadata.cursor), 2).unwrap().items.is_empty());
}

#[test]
fn a_watch_on_a_follower_sees_copied_passes() {
    let spec = Arc::new(mk_spec("web"));
    let (leader, copied) = (Records::default(), Records::default());
    let mut watched = std::pin::pin!(copied.follow("shop", "hpa.web"));
    add(&leader, &spec, 0);
    copied.copy(None, page(&leader, None, 100).unwrap(), false);
    let seen = watched.next().now_or_never().flatten().unwrap().unwrap();
    assert_eq!((seen.decision.at, seen.times), (at(0), 1));
}

#[tokio::test(start_paused = true)]
async fn after_a_takeover_the_past_is_still_there() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client();
    let clock = || {
        let clock = localkube::clock::Clock::system();
        Clock::new(move || clock.now())
    };
    let candidate = |identity: &str, number: u8| {
        let lease = LeaseSettings::new("default", "test", identity);
        let lease = LeaseSettings { address: Some(address(number)), ..lease };
        Election::start(client.clone(), lease, clock())
    };
    let spec = Arc::new(mk_spec("web"));
    let (one, two) = (Records::default(), Records::default());
    let replicas: ServedRecords =
        Arc::new(Mutex::new(vec![(address(1), one.clone()), (address(2), two.clone())]));
    let (first, leader) = candidate("one", 1);
    timeout(Duration::from_mins(1), leader.acquired()).await.unwrap();
    for second in 0..10 {
        add(&one, &spec, second * 15);
    }
    let (_second, next) = candidate("two", 2);
    tokio::spawn(follower(&two, &next, Some(fetch(&replicas))).run());
    until("all passes are copied in pages", || passes(&two) == passes(&one)).await;
    add(&one, &spec, 150);
    // Two seconds are enough for a new pass, on a clock that stands still while there is work.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(passes(&two), passes(&one));

    // The leader dies.
    drop(first);
    timeout(Duration::from_mins(1), next.acquired()).await.unwrap();
    assert_eq!(passes(&two).len(), 11);
    add(&two, &spec, 165);
    let (_third, back) = candidate("one again", 3);
    tokio::spawn(follower(&one, &back, Some(fetch(&replicas))).run());
    until("the former leader has the passes of the new one", || passes(&one) == passes(&two)).await;
    assert_eq!(passes(&one).len(), 12);
}

#[tokio::test]
async fn a_restarted_leader_is_read_again() {
    let spec = Arc::new(mk_spec("web"));
    let (copied, (_sender, leadership)) = (Records::default(), following(Some(address(1))));
    let before = Records::default();
    add(&before, &spec, 0);
    let replicas: ServedRecords = Arc::new(Mutex::new(vec![(address(1), before)]));
    let (follower, mut progress) =
        (follower(&copied, &leadership, Some(fetch(&replicas))), CopyProgress::default());
    assert_eq!(follower.copy_page(&mut progress).await, COPY_INTERVAL);
    assert!(progress.caught_up);

    // The same pod, another process: it has another part of the past.
    let after = Records::default();
    for second in [0, 15, 30, 45] {
        add(&after, &spec, second);
    }
    replicas.lock().unwrap()[0].1 = after.clone();
    assert_eq!(follower.copy_page(&mut progress).await, PAGE_INTERVAL, "its cursor is unknown");
    assert_eq!(follower.copy_page(&mut progress).await, PAGE_INTERVAL, "there is more");
    assert_eq!(follower.copy_page(&mut progress).await, COPY_INTERVAL);
    assert_eq!(passes(&copied), passes(&after));
}

#[tokio::test]
async fn reasons_not_to_copy_are_logged_once() {
    let copied = Records::default();
    let replicas = ServedRecords::default();
    for (leader, fetch, reason) in [
        (Some(address(1)), None, "no CA"),
        (None, Some(fetch(&replicas)), "no address"),
        (Some(address(1)), Some(fetch(&replicas)), "it does not authorize this replica (403)"),
    ] {
        let (_sender, leadership) = following(leader);
        let (follower, mut progress) = (follower(&copied, &leadership, fetch), CopyProgress::default());
        assert_eq!(follower.copy_page(&mut progress).await, COPY_INTERVAL);
        assert_eq!(progress.last_problem.as_deref(), Some(reason));
        assert!(!progress.is_new(reason) && progress.is_new("another"));
    }
    assert!(copied.latest(None).is_empty());
}

#[test]
fn deleted_autoscalers_are_forgotten_after_a_while() {
    let records = Records::default();
    add(&records, &Arc::new(mk_spec("web")), 0);
    add(&records, &Arc::new(mk_spec("late")), 90);
    let names = || records.latest(None).iter().map(|found| found.metadata.name.clone()).collect::<Vec<_>>();
    records.forget_deleted(at(100), &|_: &AutoscalerKey| None);
    records.forget_deleted(at(100), &|_: &AutoscalerKey| Some(true));
    assert_eq!(names(), ["hpa.late", "hpa.web"]);
    records.forget_deleted(at(100), &|_: &AutoscalerKey| Some(false));
    assert_eq!(names(), ["hpa.late"], "the leader may have seen it before this replica");
    records.forget_deleted(at(200), &|_: &AutoscalerKey| Some(false));
    assert!(names().is_empty());
}
