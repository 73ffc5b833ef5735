//! The length of stabilization windows when the clock of the machine is set.

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

use crate::env::{ControllerEnv, RunningController, on_both, queue};

const WINDOW: Duration = Duration::from_secs(5);
/// After the end of the window, at most so many reconciles read the metric before the deployment is scaled down.
const MAX_LATE_RECONCILES: u64 = 4;

#[test]
fn stabilization_windows_keep_their_length_when_the_clock_is_set() -> Result<(), Failure> {
    on_both(async |env| {
        join_all([("forward", 3600), ("back", -3600), ("a-year", 365 * 24 * 3600)].map(|(name, seconds)| {
            let env = &env;
            async move { jump(&env.in_new_namespace(name).await, seconds).await }
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
    let set_by = offset.clone();
    let clock =
        Clock::new(move || Timestamp::now() + SignedDuration::from_secs(set_by.load(Ordering::Relaxed)));
    let proxied = env.proxied().await;
    let ours = RunningController::start_with(
        proxied.client.clone(),
        env.settings(),
        Leadership::without_election(),
        clock,
    );
    env.until_replicas("web", 6).await;
    let observer = env.observer("web").await;
    // A reconcile still proposes six, so the window begins at this time or later, even if reconciles are late.
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
    // The controller compares its clocks every second; here it does so while a reconcile waits for its samples.
    let slow =
        Rule::new(Fault::DelayResponse(Duration::from_secs(2))).prefix("/apis/external.metrics.k8s.io/");
    let slow = proxied.rules.add(slow.times(1));
    env.until("a slow pass", async || if proxied.rules.hits(slow) == 0 { Err(()) } else { Ok(()) }).await;
    offset.store(seconds, Ordering::Relaxed);
    // Windows count whole seconds, so one second later the window has certainly ended.
    let certain_end = fell + WINDOW + Duration::from_secs(1);
    let mut reads_at_end = None;
    env.until("the end of the window", async || {
        if reads_at_end.is_none() && Instant::now() >= certain_end {
            reads_at_end = Some(env.metric_reads("web"));
        }
        if observer.last().replicas == 3 { Ok(()) } else { Err(observer.counts()) }
    })
    .await;
    let reads = env.metric_reads("web");
    let late = reads - reads_at_end.unwrap_or(reads);
    let held = observer.last().at - begun;
    let shown = format!(
        "{}: set by {seconds} s, a window of {WINDOW:?} held for at most {held:?}, and {late} reconciles longer",
        env.cluster
    );
    println!("{shown}");
    assert!(held + Duration::from_secs(1) >= WINDOW, "{shown}");
    // The limit is in reconciles, which a busy machine delays but does not skip: one that was under way, and the one that scales.
    assert!(late <= MAX_LATE_RECONCILES, "{shown}");
    assert_eq!(observer.counts(), [6, 3]);
    assert!(ours.is_alive());
    ours.stop().await;
}
