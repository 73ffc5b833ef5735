//! Several controllers, each a process of its own, of which one leads; and the leader killed at any moment.
//!
//! A process is this test binary once more, or the `plimsoll` that `PLIMSOLL_BIN` names. Each goes through a proxy of its own,
//! so that it is known who wrote what.

mod crew;

use std::time::Duration;

use serde_json::json;
use testbed::twin::Failure;
use tokio::time::Instant;

use crate::ground::{BUSY, PERIOD, on_both, queue, soak};
use crew::{Crew, LEASE, RETRY};

/// How long a window holds.
const WINDOW: Duration = Duration::from_secs(12);
/// Memory counts whole seconds, rounded up, and decisions come once per period.
const COARSE: Duration = Duration::from_secs(2);
/// Candidates wait longer than the retry period by a random share.
const CANDIDATE: Duration = RETRY.saturating_mul(22).checked_div(10).unwrap();

#[test]
fn a_leader_that_is_killed_is_followed_by_one_that_knows_what_it_knew() -> Result<(), Failure> {
    on_both(async |ground| {
        let kills = if soak() { 50 } else { 6 };
        for name in ["toggled", "held"] {
            ground.deployment(name, 4).await;
            ground.ask_for(name, 4);
        }
        ground.hpa("toggled", 2, 8, json!([queue("toggled")])).await;
        let window = json!({"scaleDown": {"stabilizationWindowSeconds": WINDOW.as_secs()}});
        let spec =
            json!({"minReplicas": 2, "maxReplicas": 8, "metrics": [queue("held")], "behavior": window});
        ground.hpa_with("held", spec).await;
        let mut crew = Crew::start(&ground, 3).await;
        crew.leader(&ground).await;
        let (toggled, held) = (ground.witness("toggled").await, ground.witness("held").await);
        let mut expected = vec![4];
        let mut fell: Option<Instant> = None;
        let mut falls = Vec::new();
        for kill in 0..kills {
            // A window that goes on over several leaders, and a new one when it has ended.
            match fell {
                Some(since) if held.last().replicas == 3 => {
                    falls.push(held.last().at - since);
                    fell = None;
                }
                Some(_) => {}
                None => {
                    ground.ask_for("held", 6);
                    held.caught_up(&ground, 6).await;
                    ground.ask_for("held", 3);
                    fell = Some(Instant::now());
                    ground.until_condition("held", "AbleToScale", "True ScaleDownStabilized").await;
                }
            }
            let wanted = if kill % 2 == 0 { 7 } else { 4 };
            ground.ask_for("toggled", wanted);
            expected.push(wanted);
            tokio::time::sleep(crew::chance(3 * PERIOD)).await;
            let old = crew.leader(&ground).await;
            crew.kill(old);
            let killed = Instant::now();
            let new = crew.next_leader(&ground, old).await;
            let took = killed.elapsed();
            println!(
                "{}: kill {kill}: {new} took over from {old} after {:.2} s",
                ground.cluster,
                took.as_secs_f64()
            );
            assert!(took <= LEASE + CANDIDATE + BUSY, "on {}: taken over after {took:?}", ground.cluster);
            ground.until_replicas("toggled", wanted).await;
            crew.restart(&ground, old).await;
        }
        if let Some(since) = fell {
            held.caught_up(&ground, 3).await;
            falls.push(held.last().at - since);
        }
        toggled.caught_up(&ground, *expected.last().unwrap()).await;
        // Every count was written once, and no other ever was.
        assert_eq!(toggled.counts(), expected, "on {}", ground.cluster);
        let generations: Vec<i64> = toggled.seen().iter().map(|sight| sight.generation).collect();
        assert!(
            generations.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "on {}: {generations:?}",
            ground.cluster
        );
        let written = crew.written("/toggled/scale");
        assert!(
            written < expected.len(),
            "on {}: {written} writes of {}",
            ground.cluster,
            expected.len() - 1
        );
        // No leader cut a window short, and none began it anew.
        println!("{}: a window of {WINDOW:?} held for {falls:?}", ground.cluster);
        let right = WINDOW.saturating_sub(PERIOD + Duration::from_millis(200))
            ..=WINDOW + COARSE + LEASE + CANDIDATE + BUSY;
        assert!(falls.iter().all(|held| right.contains(held)), "on {}: {falls:?}", ground.cluster);
    })
}

#[test]
fn a_leader_that_stops_in_order_is_followed_at_once() -> Result<(), Failure> {
    on_both(async |ground| {
        ground.deployment("web", 4).await;
        ground.ask_for("web", 4);
        ground.hpa("web", 2, 8, json!([queue("web")])).await;
        let mut crew = Crew::start(&ground, 2).await;
        for wanted in [6, 3] {
            let old = crew.leader(&ground).await;
            let told = Instant::now();
            crew.terminate(old).await;
            let new = crew.next_leader(&ground, old).await;
            let took = told.elapsed();
            println!("{}: {new} took over from {old} after {:.2} s", ground.cluster, took.as_secs_f64());
            // It need not wait until the lease runs out.
            assert!(took <= CANDIDATE + BUSY / 2, "on {}: taken over after {took:?}", ground.cluster);
            ground.ask_for("web", wanted);
            ground.until_replicas("web", wanted).await;
            crew.restart(&ground, old).await;
        }
    })
}
