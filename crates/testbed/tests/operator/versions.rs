//! A rolling update from an older version of the operator to this one, and back, while load moves.
//!
//! There are always two replicas. Each time the follower is replaced first and then the leader, in the middle of a cooldown, so that
//! the other version continues it from the status of the ScaledObject.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::json;
use testbed::harness::Failure;
use tokio::time::Instant;

use crate::env::{Operator, SYSTEM_NAMESPACE, SourceResponse, TestNamespace, deployment, on_both, program};
use crate::shared::program::old_program;
use crate::shared::replica_watch::ReplicaWatch;

/// The polling interval: longer than a takeover, as in production.
const POLL: Duration = Duration::from_secs(3);
/// The cooldown of `held`.
const COOLDOWN: Duration = Duration::from_secs(30);
/// The last activity is stored in whole seconds.
const ROUNDING: Duration = Duration::from_secs(2);
/// Polls without activity before the leader is replaced.
const POLLS_BEFORE_TAKEOVER: u64 = 4;
/// After the end of a cooldown, at most so many polls query the source before the deployment is scaled to zero. A cooldown that began
/// anew with the new leader would last for at least one more.
const MAX_LATE_POLLS: u64 = 2;

/// The value of the source of `web` in a step, and the replicas that are right for it.
type Load = fn(i64) -> (u32, i64);

/// For an operator that leaves everything above zero to an HPA.
fn on_and_off(step: i64) -> (u32, i64) {
    if step % 2 == 0 { (7, 1) } else { (0, 0) }
}

/// For an operator that scales by itself: from 2 to 8 replicas, and never the same twice in a row.
fn up_and_down(step: i64) -> (u32, i64) {
    let replicas = 2 + 5 * step % 7;
    (10 * replicas as u32, replicas)
}

impl ReplicaWatch {
    /// Waits until this count was seen last.
    pub(crate) async fn until_last(&self, ns: &TestNamespace, count: i64) {
        ns.until(&format!("{count} replicas"), async || {
            if self.last().replicas == count { Ok(()) } else { Err(self.counts()) }
        })
        .await;
    }
}

async fn replica(ns: &TestNamespace, program: &Path, act: &str) -> Operator {
    let flags = [
        "--leader-elect".to_owned(),
        format!("--leader-election-id={}", ns.namespace),
        "--enable-cert-rotation".to_owned(),
        format!("--cert-secret-name={}", ns.namespace),
        "--enable-webhook-patching=false".to_owned(),
        "--enable-apiservice-patching=false".to_owned(),
        "--metrics-service-bind-address=0".to_owned(),
        "--health-probe-bind-address=0".to_owned(),
        format!("--act={act}"),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Operator::start_version(ns, program, &flags).await
}

/// Changes the load of `web` again and again until `done`, and returns the replicas that were right, one after the other.
async fn change_load(ns: &TestNamespace, load: Load, web: &ReplicaWatch, done: &Cell<bool>) -> Vec<i64> {
    let mut right = vec![0];
    let mut step = 0;
    while !done.get() {
        let (value, replicas) = load(step);
        step += 1;
        ns.set_response("web", SourceResponse::Value(value));
        right.push(replicas);
        web.until_last(ns, replicas).await;
    }
    right
}

/// Replaces both replicas by another version, the follower first, and returns when the leader was.
async fn replace(
    ns: &TestNamespace,
    program: &Path,
    leader: &Operator,
    follower: &Operator,
    held: &ReplicaWatch,
) -> Instant {
    follower.replace(program).await;
    ns.set_response("held", SourceResponse::Value(5));
    held.until_last(ns, 1).await;
    let begun = Instant::now();
    // The second poll from now is certain to see the activity.
    ns.rounds("held", 2).await;
    ns.set_response("held", SourceResponse::Value(0));
    let certain_end = Instant::now() + COOLDOWN + ROUNDING;
    ns.rounds("held", POLLS_BEFORE_TAKEOVER).await;
    let replaced = Instant::now();
    leader.replace(program).await;
    held.until_last(ns, 0).await;
    let ended = held.last().at;
    let polls = ns.env.sources.query_times(&ns.namespace, "held");
    let late = polls.iter().filter(|at| **at > certain_end && **at < ended).count() as u64;
    println!(
        "{}: a cooldown of {COOLDOWN:?} took at most {:?}; {late} late polls",
        ns.env.cluster.name,
        ended - begun
    );
    assert!(ended - begun >= COOLDOWN, "on {}: {:?}", ns.env.cluster.name, ended - begun);
    assert!(late <= MAX_LATE_POLLS, "on {}: {late} late polls", ns.env.cluster.name);
    replaced
}

/// Asserts that a takeover took at most one poll longer than the longest time between two polls of one leader, which is [`POLL`] on a
/// machine that is not busy.
fn check_missed_polls(ns: &TestNamespace, source: &str, takeovers: &[Instant]) {
    let polls = ns.env.sources.query_times(&ns.namespace, source);
    let (mut usual, mut longest) = (Duration::ZERO, Duration::ZERO);
    for pair in polls.windows(2) {
        let gap = pair[1] - pair[0];
        if takeovers.iter().any(|at| pair[0] <= *at && *at <= pair[1]) {
            longest = longest.max(gap);
        } else {
            usual = usual.max(gap);
        }
    }
    let cluster = ns.env.cluster.name;
    println!("{cluster}: {source}: takeovers: at most {longest:?} between two polls; otherwise {usual:?}");
    assert!(longest <= usual + POLL, "on {cluster}: {source}: {longest:?}");
}

async fn update_and_roll_back(ns: &TestNamespace, act: &str, load: Load) {
    let (old, new) = (old_program(), program());
    let kubectl = ns.kubectl();
    for name in ["web", "held"] {
        kubectl.apply(&deployment(name, 0));
        ns.set_response(name, SourceResponse::Value(0));
    }
    kubectl.apply(&ns.scaled_object("web", &json!({"pollingInterval": POLL.as_secs()})));
    let slow = json!({"pollingInterval": POLL.as_secs(), "cooldownPeriod": COOLDOWN.as_secs()});
    kubectl.apply(&ns.scaled_object("held", &slow));
    let watch = async |name: &str| ReplicaWatch::start(ns.client(), &ns.namespace, name).await;
    let (web, held) = (watch("web").await, watch("held").await);
    let first = replica(ns, &old, act).await;
    ns.rounds("held", 1).await;
    let second = replica(ns, &old, act).await;
    let done = Cell::new(false);
    let update = async {
        let updated = replace(ns, new, &first, &second, &held).await;
        // The follower of the first round leads now.
        let back = replace(ns, &old, &second, &first, &held).await;
        done.set(true);
        [updated, back]
    };
    let (right, takeovers) = tokio::join!(change_load(ns, load, &web, &done), update);

    // Every count was written exactly once, and no other count.
    assert_eq!(web.counts(), right, "on {}", ns.env.cluster.name);
    assert_eq!(held.counts(), [0, 1, 0, 1, 0], "on {}", ns.env.cluster.name);
    for source in ["web", "held"] {
        check_missed_polls(ns, source, &takeovers);
    }
    first.check();
    second.check();
    drop((first, second));
    ns.send(Method::DELETE, &format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets/{}", ns.namespace), None)
        .await;
}

#[test]
#[ignore = "builds an older version: make test-upgrade"]
fn rolling_update_and_rollback_keep_activity_and_cooldown() -> Result<(), Failure> {
    on_both(async |ns| update_and_roll_back(&ns, "hpa", on_and_off).await)
}

#[test]
#[ignore = "builds an older version: make test-upgrade"]
fn rolling_update_and_rollback_scale_directly_as_one_version_does() -> Result<(), Failure> {
    on_both(async |ns| update_and_roll_back(&ns, "direct", up_and_down).await)
}
