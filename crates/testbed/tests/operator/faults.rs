//! Faults of the API server, split brain and clocks on both clusters, in short forms. The long forms run in the crate of the operator, with
//! thousands of generated steps on localkube (`make faults`, `make split-brain`).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cluster::Clock;
use http::Method;
use http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use testbed::harness::Failure;
use testbed::proxy::{Fault, Proxy, Rule};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::env::{
    InProcessOperator, Operator, SourceResponse, TestNamespace, deployment, free_port, on_both,
};
use crate::stopped::{QUIET_POLLS, jobs, replica, until_jobs, until_leading};

/// How often a leader is killed.
const LEADER_KILLS: usize = 2;
/// A cooldown that is long for a busy machine.
const COOLDOWN: Duration = Duration::from_secs(20);
/// The cooldown starts with the last poll that found the source active, which is at most this long ago.
const COOLDOWN_SLACK: Duration = Duration::from_secs(10);

/// A refusal of the API server.
fn status(code: u16, reason: &'static str, retry_after: Option<u32>) -> Fault {
    Fault::Status { code, reason, message: "injected".to_owned(), retry_after }
}

/// Whether a request acts: creates a job, or writes a scale, an HPA or a status.
fn acts(parts: &Parts) -> bool {
    let acts_on = ["/jobs", "/scale", "/scaledobjects/", "/scaledjobs/", "/horizontalpodautoscalers"];
    parts.method != Method::GET && acts_on.iter().any(|part| parts.uri.path().contains(part))
}

fn is_watch(parts: &Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"))
}

/// The faults, which are injected one after the other.
fn faults() -> Vec<Rule> {
    vec![
        Rule::new(status(409, "Conflict", None)).when(acts).times(2),
        Rule::new(status(429, "TooManyRequests", Some(1))).when(acts).times(3),
        Rule::new(status(429, "TooManyRequests", None)).when(acts).times(3),
        Rule::new(status(500, "InternalError", None)).when(acts).times(3),
        Rule::new(Fault::LoseResponse).when(acts).times(2),
        Rule::new(Fault::CutBody { after_bytes: 20 }).when(acts).times(2),
        Rule::new(Fault::Refuse).when(acts).times(3),
        Rule::new(Fault::Garbage).when(acts).times(2),
        Rule::new(status(410, "Expired", None)).when(is_watch).times(3),
    ]
}

/// Starts the objects of a test: a ScaledJob `batch` and a ScaledObject `web`, whose sources are idle.
fn apply(ns: &TestNamespace) {
    let kubectl = ns.kubectl();
    for source in ["batch", "web"] {
        ns.set_response(source, SourceResponse::Value(0));
    }
    kubectl.apply(&deployment("web", 0));
    kubectl.apply(&ns.scaled_job("batch", 20));
    kubectl.apply(&ns.scaled_object("web", &json!({})));
}

/// Asserts the number of jobs, now and after some more polls.
async fn assert_jobs(ns: &TestNamespace, wanted: usize, what: &str) {
    until_jobs(ns, wanted).await;
    ns.rounds("batch", QUIET_POLLS).await;
    let found = jobs(ns).await;
    assert_eq!(found.len(), wanted, "on {}: {what}: {found:?}", ns.env.cluster.name);
}

#[test]
fn faults_of_the_api_server_lose_nothing_and_double_nothing() -> Result<(), Failure> {
    on_both(async |ns| {
        apply(&ns);
        let proxy = Proxy::start(&ns.env.cluster.kubeconfig).await.unwrap();
        let rules = proxy.rules();
        let flags = ["--enable-webhook-patching=false", "--enable-apiservice-patching=false"];
        let operator = Operator::start_as(&ns, &proxy.kubeconfig(), free_port(), &flags).await;
        for (number, fault) in (1..).zip(faults()) {
            let id = rules.add(fault);
            rules.add(Rule::new(Fault::CutWatches).times(1));
            ns.set_response("batch", SourceResponse::Value(10 * u32::try_from(number).unwrap()));
            let (value, replicas) = if number % 2 == 1 { (5, 1) } else { (0, 0) };
            ns.set_response("web", SourceResponse::Value(value));
            assert_jobs(&ns, number, &format!("fault {number}")).await;
            ns.until_replicas("web", replicas).await;
            let hits = rules.hits(id);
            println!("on {}: fault {number} hit {hits} requests", ns.env.cluster.name);
            assert!(hits > 0, "fault {number} hit no request");
            rules.clear();
        }
        operator.check();
    })
}

#[test]
fn leaders_that_are_killed_leave_nothing_half_done() -> Result<(), Failure> {
    on_both(async |ns| {
        apply(&ns);
        let mut leader = replica(&ns, &ns.env.cluster.kubeconfig).await;
        until_leading(&ns, &leader, 1).await;
        let mut other = replica(&ns, &ns.env.cluster.kubeconfig).await;
        for kill in 1..=LEADER_KILLS {
            let before = jobs(&ns).await.len();
            ns.set_response("batch", SourceResponse::Value(10 * u32::try_from(3 * kill).unwrap()));
            // In the middle of its work, if the first job is seen early.
            ns.until("a job of this leader", async || {
                let found = jobs(&ns).await.len();
                if found > before { Ok(()) } else { Err(found) }
            })
            .await;
            leader.kill();
            until_leading(&ns, &other, 1).await;
            assert_jobs(&ns, 3 * kill, &format!("kill {kill}")).await;
            leader.resume().await;
            std::mem::swap(&mut leader, &mut other);
        }
        leader.check();
        other.check();
    })
}

#[test]
fn writes_that_are_delayed_past_the_lease_do_nothing() -> Result<(), Failure> {
    on_both(async |ns| {
        apply(&ns);
        let proxy = Proxy::start(&ns.env.cluster.kubeconfig).await.unwrap();
        let first = replica(&ns, &proxy.kubeconfig()).await;
        until_leading(&ns, &first, 1).await;
        let second = replica(&ns, &ns.env.cluster.kubeconfig).await;
        // The first one can neither renew its lease nor create jobs: its requests stay in the network.
        let (hold, held) = watch::channel(true);
        let delayed = |parts: &Parts| {
            let path = parts.uri.path();
            path.contains("/leases/") || (parts.method == Method::POST && path.ends_with("/jobs"))
        };
        proxy.rules().add(Rule::new(Fault::Hold(held)).when(delayed));
        ns.set_response("batch", SourceResponse::Value(40));
        until_leading(&ns, &second, 1).await;
        assert_jobs(&ns, 4, "the second one leads").await;
        hold.send_replace(false);
        assert_jobs(&ns, 4, "what was delayed has arrived").await;
        second.check();
    })
}

#[test]
fn cooldown_keeps_its_length_when_the_clock_is_set() -> Result<(), Failure> {
    on_both(async |ns| {
        for (name, hours) in [("forward", 1), ("back", -1)] {
            cooldown_with(&ns, name, SignedDuration::from_hours(hours)).await;
        }
    })
}

/// Sets the clock of an operator during a cooldown.
async fn cooldown_with(ns: &TestNamespace, name: &str, jump: SignedDuration) {
    let kubectl = ns.kubectl();
    ns.set_response(name, SourceResponse::Value(5));
    kubectl.apply(&deployment(name, 0));
    kubectl.apply(&ns.scaled_object(name, &json!({"cooldownPeriod": COOLDOWN.as_secs()})));
    let offset = Arc::new(AtomicI64::new(0));
    let set_by = Arc::clone(&offset);
    let clock =
        Clock::new(move || Timestamp::now() + SignedDuration::from_secs(set_by.load(Ordering::Relaxed)));
    let operator = InProcessOperator::start_with(ns, clock).await;
    ns.until_replicas(name, 1).await;
    ns.rounds(name, 1).await;
    let active = Instant::now();
    ns.set_response(name, SourceResponse::Value(0));
    ns.rounds(name, 1).await;
    offset.store(jump.as_secs(), Ordering::Relaxed);
    ns.until_replicas(name, 0).await;
    let taken = active.elapsed();
    println!("on {}: set by {jump}, a cooldown of {COOLDOWN:?} took {taken:?}", ns.env.cluster.name);
    assert!(taken + COOLDOWN_SLACK >= COOLDOWN, "{name}: {taken:?}");
    assert!(operator.is_alive());
    operator.stop().await;
}
