//! Clocks that jump: windows keep their length.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cluster::Clock;
use cluster::lease::Leadership;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use localkube::metrics::Series;
use serde_json::json;
use testbed::harness::Failure;
use testbed::proxy::{Fault, Rule};
use tokio::time::Instant;

use crate::env::{BUSY, ControllerEnv, PERIOD, RunningController, on_both, queue};

const WINDOW: Duration = Duration::from_secs(5);

#[test]
fn a_window_is_neither_shorter_nor_longer_when_the_clock_is_set() -> Result<(), Failure> {
    on_both(async |env| {
        join_all([("forward", 3600), ("back", -3600), ("a-year", 365 * 24 * 3600)].map(|(name, seconds)| {
            let env = &env;
            async move { jump(&env.room(name).await, seconds).await }
        }))
        .await;
    })
}

async fn jump(env: &ControllerEnv, seconds: i64) {
    env.deployment("web", 4).await;
    env.ask_for("web", 6);
    let window = json!({"scaleDown": {"stabilizationWindowSeconds": WINDOW.as_secs()}});
    let spec = json!({"minReplicas": 2, "maxReplicas": 8, "metrics": [queue("web")], "behavior": window});
    env.hpa_with("web", spec).await;
    let offset = Arc::new(AtomicI64::new(0));
    let told = offset.clone();
    let clock =
        Clock::new(move || Timestamp::now() + SignedDuration::from_secs(told.load(Ordering::Relaxed)));
    let proxied = env.proxied().await;
    let ours = RunningController::start_with(
        proxied.client.clone(),
        env.settings(),
        Leadership::without_election(),
        clock,
    );
    env.until_replicas("web", 6).await;
    let witness = env.witness("web").await;
    // Still six, and a pass that has seen it: the window begins then or later, however late passes are.
    let begun = Instant::now();
    env.script.set_external(&env.namespace, "web", Series::milli(59_000));
    env.until("a pass", async || {
        let status = env.hpa_object("web").await["status"].take();
        let seen = &status["currentMetrics"][0]["external"]["current"]["averageValue"];
        if seen == "14750m" { Ok(()) } else { Err(status) }
    })
    .await;
    env.ask_for("web", 3);
    let fell = Instant::now();
    env.until_condition("web", "AbleToScale", "True ScaleDownStabilized").await;
    // The clock, which is looked at every second, is found to be set while a pass waits for its samples.
    let slow = Rule::new(Fault::DelayAnswer(Duration::from_secs(2))).prefix("/apis/external.metrics.k8s.io/");
    let slow = proxied.rules.add(slow.times(1));
    env.until("a slow pass", async || if proxied.rules.hits(slow) == 0 { Err(()) } else { Ok(()) }).await;
    offset.store(seconds, Ordering::Relaxed);
    witness.caught_up(env, 3).await;
    let (least, most) = (witness.last().at - fell, witness.last().at - begun);
    let told =
        format!("{}: set by {seconds} s, a window of {WINDOW:?} held for {least:?} to {most:?}", env.cluster);
    println!("{told}");
    // Windows count whole seconds.
    assert!(most + Duration::from_secs(1) >= WINDOW, "{told}");
    assert!(least <= WINDOW + Duration::from_secs(1) + 2 * PERIOD + BUSY, "{told}");
    assert_eq!(witness.counts(), [6, 3]);
    assert!(ours.is_alive());
    ours.stop().await;
}
