//! The machine's clock may be set while the operator runs.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::bench::{Bench, deployments, trigger};
use super::script::Says;

/// Activates an object, makes its source idle, sets the clock by `jump`, and returns how long the target stays active.
async fn cooldown_with(jump: SignedDuration) -> Duration {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(5));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 100, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    let replicas =
        async || bench.get(&deployments("worker")).await.unwrap()["spec"]["replicas"].as_i64().unwrap();
    bench.until("it is activated", async || replicas().await == 1).await;
    bench.script.say("orders", Says::Value(0));
    sleep(Duration::from_secs(10)).await;
    let idle = Instant::now();
    bench.jump(jump);
    bench.until("it is deactivated", async || replicas().await == 0).await;
    let taken = idle.elapsed();
    bench.stop().await;
    taken
}

#[tokio::test(start_paused = true)]
async fn cooldown_keeps_its_length_when_the_clock_is_set() {
    for jump in [SignedDuration::from_hours(1), SignedDuration::from_hours(-1)] {
        let taken = cooldown_with(jump).await;
        assert!(taken > Duration::from_secs(80) && taken < Duration::from_secs(110), "{jump}: {taken:?}");
    }
}
