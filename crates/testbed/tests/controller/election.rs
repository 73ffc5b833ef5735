//! Several controllers as processes, of which one leads, and the leader is killed at random times.
//!
//! A process is this test binary, or the `plimsoll` that `PLIMSOLL_BIN` names. Each sends its requests through its own proxy,
//! so that the writer of each request is known.

mod replicas;

use std::time::{Duration, SystemTime};

use serde_json::json;
use testbed::harness::Failure;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::env::{PERIOD, WindowMeasurement, on_both, queue, soak};
use replicas::{ControllerReplicas, LEASE_DURATION, RETRY_PERIOD};

/// The length of the stabilization window.
const WINDOW: Duration = Duration::from_secs(12);
/// After the end of a window, at most so many reconciles read the metric before the deployment is scaled, with one more for
/// each kill. A window that each leader restarts would not end before the last kill.
const MAX_LATE_RECONCILES: u64 = 6;
/// The number of reads of a lease that is not renewed until a candidate may acquire it. A candidate waits at least [`RETRY_PERIOD`] between
/// two reads,
/// and one more read may be under way at the begin and at the end.
const MAX_CANDIDATE_READS: usize = (LEASE_DURATION.as_millis() / RETRY_PERIOD.as_millis()) as usize + 2;

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
        let (toggled, held) = (env.observer("toggled").await, env.observer("held").await);
        let mut expected = vec![4];
        let mut window: Option<JoinHandle<WindowMeasurement>> = None;
        let mut windows = Vec::new();
        for kill in 0..kills {
            // One window lasts over several leaders, and a new one begins after its end.
            if let Some(ended) = window.take_if(|window| window.is_finished()) {
                windows.push(ended.await.unwrap());
            }
            if window.is_none() {
                env.ask_for("held", 6);
                held.caught_up(&env, 6).await;
                let begun = env.before_a_reconcile("held").await;
                env.ask_for("held", 3);
                window = Some(env.measure_window("held", begun, WINDOW, &held, 3));
                env.until_condition("held", "AbleToScale", "True ScaleDownStabilized").await;
            }
            let wanted = if kill % 2 == 0 { 7 } else { 4 };
            env.ask_for("toggled", wanted);
            expected.push(wanted);
            tokio::time::sleep(replicas::chance(3 * PERIOD)).await;
            let old = crew.leader(&env).await;
            crew.kill(old);
            let (killed, killed_at) = (Instant::now(), SystemTime::now());
            let new = crew.next_leader(&env, old).await;
            let took = killed.elapsed();
            println!(
                "{}: kill {kill}: {new} took over from {old} after {:.2} s",
                env.cluster,
                took.as_secs_f64()
            );
            let reads = crew.lease_reads(new, killed_at);
            assert!(reads <= MAX_CANDIDATE_READS, "on {}: taken over after {reads} reads", env.cluster);
            env.until_replicas("toggled", wanted).await;
            crew.restart(&env, old).await;
        }
        held.caught_up(&env, 3).await;
        if let Some(last) = window {
            windows.push(last.await.unwrap());
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
        println!("{}: a window of {WINDOW:?}: {windows:?}", env.cluster);
        assert!(windows.iter().all(|held| held.at_most >= WINDOW), "on {}: {windows:?}", env.cluster);
        let most = MAX_LATE_RECONCILES + kills;
        assert!(windows.iter().all(|held| held.late_reconciles <= most), "on {}: {windows:?}", env.cluster);
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
            crew.terminate(old).await;
            let released = SystemTime::now();
            assert_ne!(holder().await, before, "on {}: the lease was not released", env.cluster);
            let new = crew.next_leader(&env, old).await;
            // The next leader acquires the released lease after its next read, instead of waiting until the lease expires.
            let reads = crew.lease_reads(new, released);
            println!("{}: {new} took over from {old} after {reads} reads", env.cluster);
            assert!(reads <= 2, "on {}: taken over after {reads} reads", env.cluster);
            env.ask_for("web", wanted);
            env.until_replicas("web", wanted).await;
            crew.restart(&env, old).await;
        }
    })
}
