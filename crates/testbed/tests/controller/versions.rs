//! A rolling update from an older version of the binary to this one, and back, while load moves.
//!
//! There are always two replicas. The follower is replaced first, so that it copies the history of a leader of the other version, and
//! then the leader, in the middle of a window, so that the other version continues it from the annotation.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{ControllerEnv, ReplicaWatch, on_both, queue};
use crate::replica::{Replica, account, forget, logged, time};
use crate::shared::program::{old_program, program};

/// The sync period: longer than a takeover, as in production.
const SYNC: Duration = Duration::from_secs(3);
/// The stabilization window of `held` and the period of the policy of `paced`.
const WINDOW: Duration = Duration::from_secs(30);
/// Syncs with the lower load before the leader is replaced: about half of the window.
const SYNCS_BEFORE_TAKEOVER: u64 = 4;
/// After the end of a window, at most so many syncs read the metric before the deployment is scaled. A window that began anew with
/// the new leader would last for at least [`SYNCS_BEFORE_TAKEOVER`] more.
const MAX_LATE_SYNCS: u64 = 3;
/// Decision logs have milliseconds.
const ROUNDING: SignedDuration = SignedDuration::from_millis(100);
/// What the policy of `paced` adds in each [`WINDOW`].
const STEP: i64 = 2;

/// A logged decision on one HPA.
#[derive(Clone, Copy, Debug)]
struct Pass {
    at: Timestamp,
    /// Which of the replicas decided.
    replica: usize,
    current: i64,
    /// What the metric proposes; none if it could not be read.
    proposal: Option<i64>,
    desired: i64,
    scaled: bool,
}

impl Pass {
    /// None if the scale could not be read.
    fn of(replica: usize, pass: &Value) -> Option<Self> {
        let decision = &pass["decision"];
        Some(Self {
            at: time(pass),
            replica,
            current: decision["scale"]["specReplicas"].as_i64()?,
            proposal: decision["evaluations"][0]["result"]["Ok"]["replicas"].as_i64(),
            desired: decision["desired"].as_i64()?,
            scaled: decision["outcome"] == "scaled",
        })
    }
}

/// Whether a logged decision is on this HPA.
fn is_on(pass: &Value, hpa: &str) -> bool {
    pass["metadata"]["name"] == format!("hpa.{hpa}")
}

/// The decisions of all replicas on an HPA, in the order of their times.
fn passes(replicas: &[Replica], hpa: &str) -> Vec<Pass> {
    let mut all = Vec::new();
    for (number, replica) in replicas.iter().enumerate() {
        let own = logged(&replica.log);
        all.extend(own.iter().filter(|pass| is_on(pass, hpa)).filter_map(|pass| Pass::of(number, pass)));
    }
    all.sort_by_key(|pass| pass.at);
    all
}

/// Asserts that no decision was below what a controller that never ended would keep for the window.
fn check_window(cluster: &str, passes: &[Pass]) {
    let window = SignedDuration::try_from(WINDOW).unwrap() - ROUNDING;
    for pass in passes {
        let within = passes.iter().filter(|other| other.at <= pass.at && other.at > pass.at - window);
        let Some(kept) = within.filter_map(|other| other.proposal).max() else { continue };
        assert!(pass.desired >= kept.min(pass.current), "on {cluster}: below {kept}: {pass:?}");
    }
}

/// Asserts that each step is as large as the policy allows, and that between two of them is its period.
fn check_steps(cluster: &str, passes: &[Pass]) {
    let period = SignedDuration::try_from(WINDOW).unwrap() - ROUNDING;
    let steps: Vec<&Pass> = passes.iter().filter(|pass| pass.scaled).collect();
    assert!(steps.len() >= 3, "on {cluster}: {steps:?}");
    assert!(steps.iter().all(|step| step.desired == step.current + STEP), "on {cluster}: {steps:?}");
    let apart = |pair: &[&Pass]| pair[1].at.duration_since(pair[0].at) >= period;
    assert!(steps.windows(2).all(apart), "on {cluster}: {steps:?}");
}

/// Asserts that a takeover took at most one sync longer than the longest time between two syncs of one leader, which is [`SYNC`] on a
/// machine that is not busy.
fn check_missed_syncs(cluster: &str, hpa: &str, passes: &[Pass]) {
    let gap = |pair: &[Pass]| pair[1].at.duration_since(pair[0].at);
    let (mut usual, mut takeover) = (SignedDuration::ZERO, SignedDuration::ZERO);
    let mut takeovers = 0;
    for pair in passes.windows(2) {
        if pair[0].replica == pair[1].replica {
            usual = usual.max(gap(pair));
        } else {
            takeovers += 1;
            takeover = takeover.max(gap(pair));
        }
    }
    println!(
        "{cluster}: {hpa}: {takeovers} takeovers, at most {takeover:#} between two syncs; otherwise {usual:#}"
    );
    assert_eq!(takeovers, 2, "on {cluster}: the leader changes once in each direction: {passes:?}");
    assert!(takeover <= usual + SignedDuration::try_from(SYNC).unwrap(), "on {cluster}: {hpa}: {takeover:#}");
}

/// Waits until a follower has the last decision of the leader.
async fn until_copied(env: &ControllerEnv, leader: &Replica, follower: &Replica) {
    let last = logged(&leader.log).into_iter().rfind(|pass| is_on(pass, "web")).unwrap();
    let decided =
        |pass: &Value| ["at", "scale", "desired", "outcome"].map(|field| pass["decision"][field].clone());
    env.until("the history of the leader at its follower", async || {
        let found = follower.decision_at(&env.namespace, time(&last)).await;
        if decided(&found) == decided(&last) { Ok(()) } else { Err(found) }
    })
    .await;
}

/// Waits until a replica has decided.
async fn until_leads(env: &ControllerEnv, replica: &Replica) {
    env.until("decisions of a replica", async || {
        if logged(&replica.log).iter().any(|pass| is_on(pass, "web")) { Ok(()) } else { Err(()) }
    })
    .await;
}

/// Changes the load of `web` again and again until `done`, and returns the replicas that were right, one after the other.
async fn change_load(env: &ControllerEnv, web: &ReplicaWatch, done: &Cell<bool>) -> Vec<i64> {
    let mut expected = vec![4];
    let mut step = 0;
    while !done.get() {
        // From 2 to 8, and never the same twice in a row.
        let wanted = 2 + 5 * step % 7;
        step += 1;
        env.ask_for("web", wanted);
        expected.push(wanted);
        web.caught_up(env, wanted).await;
    }
    expected
}

/// Replaces both replicas by another version, one at a time. All that ran are in `replicas`, the leader and its follower at the end.
async fn replace(
    env: &ControllerEnv,
    token: &str,
    program: &Path,
    replicas: &mut Vec<Replica>,
    held: &ReplicaWatch,
) {
    let mut follower = replicas.pop().unwrap();
    let mut leader = replicas.pop().unwrap();
    follower.terminate(env).await;
    replicas.push(follower);
    let successor = Replica::start_version(env, token, program, SYNC).await;
    until_copied(env, &leader, &successor).await;

    env.ask_for("held", 6);
    held.caught_up(env, 6).await;
    let begun = env.before_a_reconcile("held").await;
    env.ask_for("held", 3);
    let window = env.measure_window("held", begun, WINDOW, held, 3);
    env.until_condition("held", "AbleToScale", "True ScaleDownStabilized").await;
    env.until_metric_reads("held", SYNCS_BEFORE_TAKEOVER).await;
    leader.terminate(env).await;
    replicas.push(leader);
    until_leads(env, &successor).await;
    let follower = Replica::start_version(env, token, program, SYNC).await;
    until_copied(env, &successor, &follower).await;
    held.caught_up(env, 3).await;
    let window = window.await.unwrap();
    println!("{}: a window of {WINDOW:?}: {window:?}", env.cluster);
    assert!(window.at_most >= WINDOW, "on {}: {window:?}", env.cluster);
    assert!(window.late_reconciles <= MAX_LATE_SYNCS, "on {}: {window:?}", env.cluster);
    replicas.push(successor);
    replicas.push(follower);
}

#[test]
#[ignore = "builds an older version: make test-upgrade"]
fn rolling_update_and_rollback_scale_as_one_version_does() -> Result<(), Failure> {
    on_both(async |env| {
        let (old, new) = (old_program(), program());
        let at_once = json!({
            "scaleUp": {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]},
            "scaleDown": {"stabilizationWindowSeconds": 0}
        });
        let window = json!({"scaleDown": {"stabilizationWindowSeconds": WINDOW.as_secs()}});
        let policy = json!({"type": "Pods", "value": STEP, "periodSeconds": WINDOW.as_secs()});
        let paced = json!({"scaleUp": {"policies": [policy]}});
        for (name, load, behavior) in [("web", 4, at_once), ("held", 4, window), ("paced", 60, paced)] {
            env.deployment(name, 4).await;
            env.ask_for(name, load);
            let spec =
                json!({"minReplicas": 2, "maxReplicas": 60, "metrics": [queue(name)], "behavior": behavior});
            env.hpa_with(name, spec).await;
        }
        let (web, held) = (env.observer("web").await, env.observer("held").await);
        let token = account(&env).await;
        let leader = Replica::start_version(&env, &token, &old, SYNC).await;
        until_leads(&env, &leader).await;
        let mut replicas = vec![leader, Replica::start_version(&env, &token, &old, SYNC).await];
        let done = Cell::new(false);
        let update = async {
            replace(&env, &token, new, &mut replicas, &held).await;
            replace(&env, &token, &old, &mut replicas, &held).await;
            done.set(true);
        };
        let (expected, ()) = tokio::join!(change_load(&env, &web, &done), update);

        // Every count was written exactly once, and no other count.
        assert_eq!(web.counts(), expected, "on {}", env.cluster);
        assert_eq!(held.counts(), [4, 6, 3, 6, 3], "on {}", env.cluster);
        let decided = passes(&replicas, "web");
        let wrong: Vec<&Pass> = decided
            .iter()
            .filter(|pass| pass.proposal.is_some_and(|proposal| proposal != pass.desired))
            .collect();
        assert!(wrong.is_empty(), "on {}: {wrong:?}", env.cluster);
        check_window(env.cluster, &passes(&replicas, "held"));
        check_steps(env.cluster, &passes(&replicas, "paced"));
        for hpa in ["web", "held", "paced"] {
            check_missed_syncs(env.cluster, hpa, &passes(&replicas, hpa));
        }
        drop(replicas);
        forget(&env).await;
    })
}
