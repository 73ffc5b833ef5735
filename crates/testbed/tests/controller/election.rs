//! Several controllers as processes, of which one leads, and the leader is killed at random times.
//!
//! A process is this test binary once more, or the `plimsoll` that `PLIMSOLL_BIN` names. Each goes through a proxy of its own,
//! so that the writer of each request is known.

mod replicas;

use std::time::Duration;

use serde_json::json;
use testbed::harness::Failure;
use tokio::time::Instant;

use crate::env::{BUSY, PERIOD, on_both, queue, soak};
use replicas::{ControllerReplicas, LEASE, RETRY};

/// Length of the stabilization window.
const WINDOW: Duration = Duration::from_secs(12);
/// Persisted state counts whole seconds, rounded up, and decisions are made once per period.
const COARSE: Duration = Duration::from_secs(2);
/// Extra time of a window on a busy machine; a window that each leader restarts takes longer.
const WINDOW_SLACK: Duration = Duration::from_secs(3);
/// Candidates wait longer than the retry period by a random share.
const CANDIDATE: Duration = RETRY.saturating_mul(22).checked_div(10).unwrap();

#[test]
fn killed_leader_is_followed_with_its_persisted_state() -> Result<(), Failure> {
    on_both(async |env| {
        let kills = if soak() { 50 } else { 6 };
        for name in ["toggled", "held"] {
            env.deployment(name, 4).await;
            env.ask_for(name, 4);
        }
        env.hpa("toggled", 2, 8, json!([queue("toggled")])).await;
        let window = json!({"scaleDown": {"stabilizationWindowSeconds": WINDOW.as_secs()}});
        let spec =
            json!({"minReplicas": 2, "maxReplicas": 8, "metrics": [queue("held")], "behavior": window});
        env.hpa_with("held", spec).await;
        let mut crew = ControllerReplicas::start(&env, 3).await;
        crew.leader(&env).await;
        let (toggled, held) = (env.witness("toggled").await, env.witness("held").await);
        let mut expected = vec![4];
        let mut fell: Option<Instant> = None;
        let mut falls = Vec::new();
        for kill in 0..kills {
            // One window lasts over several leaders, and a new one begins after its end.
            match fell {
                Some(since) if held.last().replicas == 3 => {
                    falls.push(held.last().at - since);
                    fell = None;
                }
                Some(_) => {}
                None => {
                    env.ask_for("held", 6);
                    held.caught_up(&env, 6).await;
                    env.ask_for("held", 3);
                    fell = Some(Instant::now());
                    env.until_condition("held", "AbleToScale", "True ScaleDownStabilized").await;
                }
            }
            let wanted = if kill % 2 == 0 { 7 } else { 4 };
            env.ask_for("toggled", wanted);
            expected.push(wanted);
            tokio::time::sleep(replicas::chance(3 * PERIOD)).await;
            let old = crew.leader(&env).await;
            crew.kill(old);
            let killed = Instant::now();
            let new = crew.next_leader(&env, old).await;
            let took = killed.elapsed();
            println!(
                "{}: kill {kill}: {new} took over from {old} after {:.2} s",
                env.cluster,
                took.as_secs_f64()
            );
            assert!(took <= LEASE + CANDIDATE + BUSY, "on {}: taken over after {took:?}", env.cluster);
            env.until_replicas("toggled", wanted).await;
            crew.restart(&env, old).await;
        }
        if let Some(since) = fell {
            held.caught_up(&env, 3).await;
            falls.push(held.last().at - since);
        }
        toggled.caught_up(&env, *expected.last().unwrap()).await;
        // Every count was written exactly once, and no other count.
        assert_eq!(toggled.counts(), expected, "on {}", env.cluster);
        let generations: Vec<i64> = toggled.seen().iter().map(|sight| sight.generation).collect();
        assert!(
            generations.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "on {}: {generations:?}",
            env.cluster
        );
        let written = crew.written("/toggled/scale");
        assert!(written < expected.len(), "on {}: {written} writes of {}", env.cluster, expected.len() - 1);
        // No leader shortened a window or restarted it.
        println!("{}: a window of {WINDOW:?} held for {falls:?}", env.cluster);
        let right = WINDOW.saturating_sub(PERIOD + Duration::from_millis(200))
            ..=WINDOW + COARSE + LEASE + CANDIDATE + WINDOW_SLACK;
        assert!(falls.iter().all(|held| right.contains(held)), "on {}: {falls:?}", env.cluster);
    })
}

const LEASE_PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/plimsoll-controller";

#[test]
fn stopped_leader_releases_its_lease_at_once() -> Result<(), Failure> {
    on_both(async |env| {
        env.deployment("web", 4).await;
        env.ask_for("web", 4);
        env.hpa("web", 2, 8, json!([queue("web")])).await;
        let mut crew = ControllerReplicas::start(&env, 2).await;
        for wanted in [6, 3] {
            let old = crew.leader(&env).await;
            let holder = async || env.read(LEASE_PATH).await["spec"]["holderIdentity"].clone();
            let before = holder().await;
            let told = Instant::now();
            crew.terminate(old).await;
            assert_ne!(holder().await, before, "on {}: the lease was not released", env.cluster);
            let new = crew.next_leader(&env, old).await;
            let took = told.elapsed();
            println!("{}: {new} took over from {old} after {:.2} s", env.cluster, took.as_secs_f64());
            // The next leader need not wait until the lease expires.
            assert!(took <= CANDIDATE + BUSY / 2, "on {}: taken over after {took:?}", env.cluster);
            env.ask_for("web", wanted);
            env.until_replicas("web", wanted).await;
            crew.restart(&env, old).await;
        }
    })
}
