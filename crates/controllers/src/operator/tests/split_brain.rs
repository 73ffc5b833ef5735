//! Several operators, of which one leads; the writes of all are checked afterwards.
//!
//! `PLIMSOLL_KILLS` and `PLIMSOLL_FAULT_SEED` ask for a longer run or another one (`make split-brain`).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::lease::{Election, LeaseSettings};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, trigger};
use super::random_sources::RandomSources;
use super::sources::SourceResponse;
use crate::faulty_client::{FaultyClient, Random, SeenWrite, setting};

const LEASES: &str = "/apis/coordination.k8s.io/";

type History = Arc<Mutex<Vec<SeenWrite>>>;

/// An operator that takes part in the election.
struct Candidate {
    env: TestEnv,
    faults: FaultyClient,
    name: String,
    _election: Election,
}

impl Candidate {
    /// The first operator, which makes the cluster, or another one on the cluster of `beside`.
    async fn start(number: u64, seed: u64, history: &History, beside: Option<&TestEnv>) -> Self {
        let name = format!("operator-{number}");
        let faults = FaultyClient::new(&name, seed + number, Arc::clone(history));
        let mut kept = None;
        let (own, identity) = (faults.clone(), name.clone());
        let stand = |client: kube::Client, clock: cluster::Clock| {
            let lease = LeaseSettings::new("shop", "operator.keda.sh", &identity);
            let (election, leadership) = Election::start(own.client(&client), lease, clock);
            kept = Some(election);
            leadership
        };
        let env = match beside {
            Some(env) => env.another(&faults, stand).await,
            None => TestEnv::behind(&faults, stand).await,
        };
        Self { env, faults, name, _election: kept.unwrap() }
    }

    /// Kills the operator: nothing that it sends from now on arrives.
    async fn kill(self) {
        self.faults.kill();
        self.env.stop().await;
    }
}

/// Who held the lease, from when to when at the latest, as the server saw it.
fn terms(history: &[SeenWrite]) -> Vec<(String, Instant)> {
    let mut terms: Vec<(String, Instant)> = Vec::new();
    for write in history.iter().filter(|write| write.path.starts_with(LEASES) && write.code < 300) {
        let holder = write.body["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if terms.last().is_none_or(|(last, _)| last != holder) {
            terms.push((holder.to_owned(), write.done));
        }
    }
    terms
}

/// Every write was sent in a term of its writer.
fn check_writers(history: &[SeenWrite]) {
    let terms = terms(history);
    assert!(!terms.is_empty());
    for write in history.iter().filter(|write| !write.path.starts_with(LEASES)) {
        let during = terms.iter().rev().find(|(_, since)| *since <= write.sent);
        let holder = during.map(|(holder, _)| holder.as_str());
        assert_eq!(holder, Some(write.by.as_str()), "{write:?}\n{terms:#?}");
    }
}

/// No two creations made the same job: each that succeeded had a name that no job had, and each that was repeated was refused. A
/// finished job that was deleted gives its name free: a new leader does not know the names of jobs before its time.
fn check_creations(history: &[SeenWrite]) {
    let mut names = std::collections::BTreeSet::new();
    for write in history.iter().filter(|write| write.path.contains("/jobs")) {
        if write.method == Method::POST {
            let name = write.body["metadata"]["name"].as_str().unwrap();
            assert!(name.starts_with("job"), "{name}");
            assert_eq!(names.insert(name.to_owned()), write.code < 300, "{write:?}");
        } else if write.method == Method::DELETE && write.code < 300 {
            names.remove(write.path.rsplit('/').next().unwrap_or_default());
        }
    }
}

/// Waits until the lease has another holder.
async fn next_leader(env: &TestEnv, old: &str) -> String {
    let mut holder = String::new();
    env.until("another one leads", async || {
        let lease = env.get(&format!("{LEASES}v1/namespaces/shop/leases/operator.keda.sh")).await;
        let found = lease.unwrap_or_default()["spec"]["holderIdentity"].take();
        holder = found.as_str().unwrap_or_default().to_owned();
        !holder.is_empty() && holder != old
    })
    .await;
    holder
}

#[tokio::test(start_paused = true)]
async fn leaders_that_are_killed_at_random_moments_leave_nothing_half_done() {
    let (seed, kills) = (setting("PLIMSOLL_FAULT_SEED", 1), setting("PLIMSOLL_KILLS", 8));
    println!("PLIMSOLL_FAULT_SEED={seed} PLIMSOLL_KILLS={kills}");
    let history = History::default();
    let mut random = Random::new(seed);
    let mut candidates = vec![Candidate::start(0, seed, &history, None).await];
    candidates.push(Candidate::start(1, seed, &history, Some(&candidates[0].env)).await);
    let mut leader = next_leader(&candidates[0].env, "").await;
    let mut random_sources = RandomSources::open(&candidates[0].env, 2, 2).await;
    let mut checked = 0;
    for number in 0..kills {
        for _ in 0..=random.below(6) {
            random_sources.change(&candidates[0].env, &mut random).await;
            sleep(Duration::from_millis(random.below(6000))).await;
        }
        let at = candidates.iter().position(|candidate| candidate.name == leader).unwrap();
        // Somewhere in a poll, with requests under way.
        sleep(Duration::from_micros(random.below(5_000_000))).await;
        candidates.swap_remove(at).kill().await;
        let next = Candidate::start(number + 2, seed, &history, Some(&candidates[0].env)).await;
        candidates.push(next);
        leader = next_leader(&candidates[0].env, &leader).await;
        let writes = history.lock().unwrap().clone();
        random_sources.check(&candidates[0].env, &writes[checked..]).await;
        checked = writes.len();
    }
    random_sources.set_value(&candidates[0].env, "job0", Some(80));
    random_sources.converge(&candidates[0].env).await;
    let history = history.lock().unwrap().clone();
    random_sources.check(&candidates[0].env, &history[checked..]).await;
    check_writers(&history);
    check_creations(&history);
    assert!(random_sources.all_jobs.len() >= 8, "{:?}", random_sources.all_jobs);
    let terms = terms(&history).len();
    println!("{terms} terms, {} writes, {} jobs", history.len(), random_sources.all_jobs.len());
    assert!(terms as u64 > kills, "{terms} terms");
    for candidate in candidates {
        candidate.env.stop().await;
    }
}

/// The old leader saw the object active later than it wrote. The new leader assumes so in its first poll, which writes that the object
/// is no longer active, and must not forget it in the second.
#[tokio::test(start_paused = true)]
async fn new_leader_keeps_the_cooldown_of_activity_that_was_not_written() {
    let history = History::default();
    let first = Candidate::start(0, 1, &history, None).await;
    next_leader(&first.env, "").await;
    let second = Candidate::start(1, 1, &history, Some(&first.env)).await;
    first.env.deployment("worker", 0).await;
    first.env.sources.set("orders", SourceResponse::Value(1));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 60, "triggers": [trigger("orders")]});
    first.env.scaled_object("worker", spec).await;
    first.env.until("it works", async || first.env.replicas("worker").await == 1).await;
    sleep(Duration::from_secs(50)).await;
    first.kill().await;
    second.env.sources.set("orders", SourceResponse::Value(0));
    let ended = Instant::now();
    next_leader(&second.env, "operator-0").await;
    second.env.until("it rests", async || second.env.replicas("worker").await == 0).await;
    assert!(ended.elapsed() >= Duration::from_secs(55), "{:?}", ended.elapsed());
    second.env.stop().await;
}

/// The old leader cannot renew its lease, and its creations stay in the network until another operator has done the same work. It
/// stops by itself, and what arrives late changes nothing.
#[tokio::test(start_paused = true)]
async fn writes_that_are_delayed_past_the_lease_do_nothing() {
    let history = History::default();
    let first = Candidate::start(0, 1, &history, None).await;
    let leader = next_leader(&first.env, "").await;
    assert_eq!(leader, first.name);
    let second = Candidate::start(1, 1, &history, Some(&first.env)).await;
    let mut random_sources = RandomSources::open(&first.env, 1, 1).await;
    sleep(Duration::from_secs(20)).await;
    first.faults.hold(&[LEASES, "/jobs", "/deployments/"]);
    random_sources.set_value(&first.env, "job0", Some(40));
    random_sources.set_value(&first.env, "obj0", Some(5));
    assert_eq!(next_leader(&first.env, &first.name).await, second.name);
    random_sources.converge(&second.env).await;
    let before = history.lock().unwrap().len();
    first.faults.hold(&[]);
    sleep(Duration::from_mins(1)).await;
    let writes = history.lock().unwrap().clone();
    let is_late = |write: &&SeenWrite| write.by == first.name && !write.path.starts_with(LEASES);
    let late: Vec<&SeenWrite> = writes[before..].iter().filter(is_late).collect();
    let creations = late.iter().filter(|write| write.path.ends_with("/jobs")).count();
    assert!(creations > 0, "nothing was delayed: {late:?}");
    assert!(late.iter().all(|write| write.code == 409), "{late:#?}");
    check_writers(&writes);
    check_creations(&writes);
    random_sources.check(&first.env, &writes).await;
    assert_eq!(random_sources.all_jobs.len(), 4);
    first.env.stop().await;
    second.env.stop().await;
}

/// The old leader can do everything but renew its lease: its renewals do not arrive, or the answers to all requests for the lease are
/// lost. It always has something to write, and stops by itself before another one leads.
async fn check_leader_without_renewals(are_answers_lost: bool) {
    let history = History::default();
    let first = Candidate::start(0, 1, &history, None).await;
    assert_eq!(next_leader(&first.env, "").await, first.name);
    let second = Candidate::start(1, 1, &history, Some(&first.env)).await;
    let mut random_sources = RandomSources::open(&first.env, 1, 1).await;
    sleep(Duration::from_secs(20)).await;
    let cut = Instant::now();
    if are_answers_lost {
        first.faults.lose_answers(&[LEASES]);
    } else {
        first.faults.hold(&[LEASES]);
    }
    for number in 1..=40 {
        if number == 30 {
            first.faults.lose_answers(&[]);
            first.faults.hold(&[]);
        }
        random_sources.set_value(&first.env, "job0", Some(10 * number));
        sleep(Duration::from_secs(2)).await;
        let writes = history.lock().unwrap().clone();
        random_sources.check(&first.env, &writes).await;
    }
    assert_eq!(next_leader(&first.env, &first.name).await, second.name);
    random_sources.converge(&second.env).await;
    let writes = history.lock().unwrap().clone();
    random_sources.check(&first.env, &writes).await;
    check_writers(&writes);
    check_creations(&writes);
    let since_cut = |candidate: &Candidate| {
        let is_creation = |write: &&SeenWrite| write.sent > cut && write.path.ends_with("/jobs");
        writes.iter().filter(is_creation).filter(|write| write.by == candidate.name).count()
    };
    assert!(since_cut(&first) > 0, "it led for a while without renewals");
    assert!(since_cut(&second) > 0, "it continued the work");
    let terms = terms(&writes);
    assert_eq!(terms.len(), 2, "{terms:?}");
    first.env.stop().await;
    second.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn leader_whose_renewals_do_not_arrive_writes_nothing_after_its_term() {
    check_leader_without_renewals(false).await;
}

#[tokio::test(start_paused = true)]
async fn leader_that_gets_no_answers_about_its_lease_writes_nothing_after_its_term() {
    check_leader_without_renewals(true).await;
}

/// The leader renews its lease, and learns nothing else: the answers to its other requests are lost, and its watches are late. It stays
/// the only writer, and what it repeats happens once.
#[tokio::test(start_paused = true)]
async fn leader_that_can_only_renew_its_lease_stays_the_only_writer() {
    let history = History::default();
    let first = Candidate::start(0, 1, &history, None).await;
    assert_eq!(next_leader(&first.env, "").await, first.name);
    let second = Candidate::start(1, 1, &history, Some(&first.env)).await;
    let mut random_sources = RandomSources::open(&first.env, 1, 1).await;
    sleep(Duration::from_secs(20)).await;
    first.faults.set_stale(true);
    first.faults.lose_answers(&["/apis/keda.sh/", "/apis/apps/", "/apis/batch/", "/apis/autoscaling/"]);
    random_sources.set_value(&first.env, "job0", Some(40));
    random_sources.set_value(&first.env, "obj0", Some(5));
    for _ in 0..20 {
        sleep(Duration::from_secs(3)).await;
        let writes = history.lock().unwrap().clone();
        random_sources.check(&first.env, &writes).await;
    }
    let creations = |writes: &[SeenWrite]| {
        writes.iter().filter(|write| write.method == Method::POST && write.path.ends_with("/jobs")).count()
    };
    let writes = history.lock().unwrap().clone();
    let repeated = creations(&writes);
    assert!(repeated > 4, "{repeated} creations: nothing was repeated");
    first.faults.lose_answers(&[]);
    first.faults.set_stale(false);
    first.env.until("it is active", async || first.env.replicas("obj0").await == 1).await;
    sleep(Duration::from_mins(1)).await;
    let writes = history.lock().unwrap().clone();
    random_sources.check(&first.env, &writes).await;
    check_writers(&writes);
    check_creations(&writes);
    assert_eq!(random_sources.all_jobs.len(), 4);
    let terms = terms(&writes);
    assert_eq!(terms.len(), 1, "{terms:?}");
    first.env.stop().await;
    second.env.stop().await;
}

/// A leader whose clock is set by hours stops writing until its next renewal, and keeps its lease.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_neither_loses_the_lease_nor_doubles_a_write() {
    let history = History::default();
    let first = Candidate::start(0, 1, &history, None).await;
    assert_eq!(next_leader(&first.env, "").await, first.name);
    let second = Candidate::start(1, 1, &history, Some(&first.env)).await;
    let mut random_sources = RandomSources::open(&first.env, 1, 1).await;
    for (number, hours) in [6, -6, 24, -48].into_iter().enumerate() {
        first.env.jump(jiff::SignedDuration::from_hours(hours));
        second.env.jump(jiff::SignedDuration::from_hours(-hours));
        random_sources.set_value(&first.env, "job0", Some(10 * (1 + i64::try_from(number).unwrap())));
        random_sources.set_value(&first.env, "obj0", Some(if number % 2 == 0 { 5 } else { 0 }));
        for _ in 0..10 {
            sleep(Duration::from_secs(3)).await;
            let writes = history.lock().unwrap().clone();
            random_sources.check(&first.env, &writes).await;
        }
        random_sources.converge(&first.env).await;
    }
    let history = history.lock().unwrap().clone();
    check_writers(&history);
    check_creations(&history);
    let terms = terms(&history);
    assert_eq!(terms.len(), 1, "{terms:?}");
    let is_any = |write: &SeenWrite| write.body != Value::Null && write.by == second.name;
    assert!(!history.iter().any(is_any), "the second one wrote");
    first.env.stop().await;
    second.env.stop().await;
}
