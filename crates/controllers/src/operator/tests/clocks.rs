//! The machine's clock may be set while the operator runs.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, deployments, trigger};
use super::sources::SourceResponse;

/// Activates an object, makes its source idle, sets the clock by `jump`, and returns how long the target stays active.
async fn cooldown_with(jump: SignedDuration) -> Duration {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(5));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 100, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    let replicas =
        async || env.get(&deployments("worker")).await.unwrap()["spec"]["replicas"].as_i64().unwrap();
    env.until("it is activated", async || replicas().await == 1).await;
    env.sources.set("orders", SourceResponse::Value(0));
    sleep(Duration::from_secs(10)).await;
    let idle = Instant::now();
    env.jump(jump);
    env.until("it is deactivated", async || replicas().await == 0).await;
    let taken = idle.elapsed();
    env.stop().await;
    taken
}

#[tokio::test(start_paused = true)]
async fn cooldown_keeps_its_length_when_the_clock_is_set() {
    for jump in [SignedDuration::from_hours(1), SignedDuration::from_hours(-1)] {
        let taken = cooldown_with(jump).await;
        assert!(taken > Duration::from_secs(80) && taken < Duration::from_secs(110), "{jump}: {taken:?}");
    }
}

/// Creates an object that is never active, sets the clock by `jump` after ten seconds, and returns how long the target keeps its
/// replicas.
async fn initial_cooldown_with(jump: SignedDuration) -> Duration {
    let env = TestEnv::start().await;
    env.deployment("worker", 3).await;
    let created = Instant::now();
    let spec = json!({"pollingInterval": 5, "initialCooldownPeriod": 120, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    sleep(Duration::from_secs(10)).await;
    env.jump(jump);
    env.until("it is deactivated", async || env.replicas("worker").await == 0).await;
    let taken = created.elapsed();
    env.stop().await;
    taken
}

#[tokio::test(start_paused = true)]
async fn initial_cooldown_keeps_its_length_when_the_clock_is_set() {
    for jump in [SignedDuration::from_hours(1), SignedDuration::from_hours(-1)] {
        let taken = initial_cooldown_with(jump).await;
        assert!(taken > Duration::from_secs(115) && taken < Duration::from_secs(135), "{jump}: {taken:?}");
    }
}
