//! Faults of the API server, injected by a proxy: one workload, one table of faults.
//!
//! Each row begins with a workload of six replicas. Then the fault is injected, and the load falls, so that the controller would scale:
//! three replicas would be right. During the fault the count is either six or three; it is six where the metrics cannot be
//! read; and the conditions report the fault where they can be written. After the fault the count is right
//! within two periods.

mod missed;
mod rows;

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;
use testbed::harness::Failure;
use testbed::proxy::{Fault, Rule, RuleId};
use tokio::time::Instant;

use crate::env::{
    ControllerEnv, PERIOD, ProxiedClient, RunningController, cpu, on_both, reconciles_within, soak,
};
use rows::{FaultRow, FaultTarget};

/// Rows that run concurrently.
const MAX_CONCURRENT_ROWS: usize = 6;

#[test]
fn api_server_faults_never_cause_a_wrong_replica_count() -> Result<(), Failure> {
    on_both(async |env| {
        let rows = rows::all();
        let lives = rows.iter().enumerate().map(|(number, row)| {
            let env = &env;
            async move {
                let row_env = env.in_new_namespace(&format!("row-{number}")).await;
                let times = live(&row_env, row).await;
                (row.name, times)
            }
        });
        let lives: Vec<_> =
            futures::stream::iter(lives).buffer_unordered(MAX_CONCURRENT_ROWS).collect().await;
        for (name, times) in lives {
            let times: Vec<String> = times.iter().map(|time| format!("{:.2}", time.as_secs_f64())).collect();
            println!("{}: right again after {} s: {name}", env.cluster, times.join(", "));
        }
    })
}

/// Runs one row, and returns the recovery time after each fault.
async fn live(env: &ControllerEnv, row: &FaultRow) -> Vec<Duration> {
    env.workload("web", 4).await;
    env.usage("web", 4, HIGH_USAGE_MILLICORES, 1);
    env.hpa("web", MIN_REPLICAS, MAX_REPLICAS, json!([cpu(50)])).await;
    let proxied = env.proxied().await;
    let ours = RunningController::start(proxied.client.clone(), env.settings());
    env.until_replicas("web", 6).await;
    healthy(env, row.name).await;
    let observer = env.observer("web").await;
    let mut times = Vec::new();
    let rounds = if soak() { 5 } else { 1 };
    for round in 0..rounds {
        observer.caught_up(env, 6).await;
        let before = observer.seen().len();
        let broken = begin(&proxied, row).await;
        if row.blind {
            // Requests that were sent before may still be under way, and must not return the metrics that are set afterwards.
            let met = || broken.iter().any(|rule| proxied.rules.hits(*rule) > 0);
            let _ = tokio::time::timeout(2 * PERIOD, async {
                while !met() {
                    tokio::time::sleep(PERIOD / 20).await;
                }
            })
            .await;
        }
        env.usage("web", 4, LOW_USAGE_MILLICORES, 1);
        let begun = Instant::now();
        if let Some((kind, wanted)) = row.says {
            let what = format!("{kind} {wanted} during {}", row.name);
            env.until(&what, async || {
                let found = env.condition("web", kind).await;
                if found == wanted { Ok(()) } else { Err((found, env.replicas("web").await)) }
            })
            .await;
        }
        while begun.elapsed() < row.lasts {
            again(&proxied, row);
            tokio::time::sleep(PERIOD / 4).await;
        }
        // On a busy machine the controller may not have sent a request yet.
        if let FaultTarget::Rules(_) | FaultTarget::Relisted(_) = row.broken {
            let unmet = || broken.iter().filter(|rule| proxied.rules.hits(**rule) == 0).count();
            let what = format!("to meet {}", row.name);
            env.until(&what, async || if unmet() == 0 { Ok(()) } else { Err(unmet()) }).await;
        }
        let during = observer.seen().split_off(before);
        if row.blind {
            assert!(during.is_empty(), "on {}: {} without data: {during:?}", env.cluster, row.name);
        }
        end(&proxied, row, broken).await;
        let over = Instant::now();
        let decisions = ours.decisions(&env.namespace, "web");
        env.until_replicas("web", 3).await;
        healthy(env, row.name).await;
        let took = ours.decisions(&env.namespace, "web").saturating_sub(decisions);
        let most = reconciles_within(2 * PERIOD + row.slow);
        assert!(took <= most, "on {}: {} took {took} reconciles to be right", env.cluster, row.name);
        times.push(over.elapsed());
        observer.caught_up(env, 3).await;
        let counts: Vec<i64> = observer.seen().split_off(before).iter().map(|sight| sight.replicas).collect();
        assert_eq!(counts, [3], "on {}: written in {}, round {round}", env.cluster, row.name);
        env.usage("web", 4, HIGH_USAGE_MILLICORES, 1);
        env.until_replicas("web", 6).await;
        healthy(env, row.name).await;
    }
    assert!(ours.is_alive(), "{} ended the controller", row.name);
    let limits = i64::from(MIN_REPLICAS)..=i64::from(MAX_REPLICAS);
    assert!(observer.counts().iter().all(|count| limits.contains(count)), "{:?}", observer.counts());
    ours.stop().await;
    times
}

const MIN_REPLICAS: i32 = 2;
const MAX_REPLICAS: i32 = 8;
/// Usage of each of four pods for which six replicas are right.
const HIGH_USAGE_MILLICORES: i64 = 750;
/// Usage for which three replicas are right.
const LOW_USAGE_MILLICORES: i64 = 375;

/// Waits until all conditions are good.
async fn healthy(env: &ControllerEnv, name: &str) {
    env.until(&format!("all well after {name}"), async || {
        let able = env.condition("web", "AbleToScale").await;
        let active = env.condition("web", "ScalingActive").await;
        if able.starts_with("True ") && active == "True ValidMetricFound" {
            Ok(())
        } else {
            Err((able, active))
        }
    })
    .await;
}

async fn begin(proxied: &ProxiedClient, row: &FaultRow) -> Vec<RuleId> {
    match &row.broken {
        FaultTarget::Rules(rules) | FaultTarget::Relisted(rules) => {
            let added = rules.iter().map(|rule| proxied.rules.add(rule.clone())).collect();
            if matches!(row.broken, FaultTarget::Relisted(_)) {
                proxied.rules.add(cut(""));
            }
            added
        }
        FaultTarget::Cutting(part) => vec![proxied.rules.add(cut(part))],
        FaultTarget::Stalled(part) => {
            let part = (*part).to_owned();
            let stalled = Rule::new(Fault::StallWatches).when(move |parts| parts.uri.path().ends_with(&part));
            vec![proxied.rules.add(stalled)]
        }
        FaultTarget::Down => {
            proxied.proxy.down().await;
            Vec::new()
        }
    }
}

/// Repeats the fault for its duration.
fn again(proxied: &ProxiedClient, row: &FaultRow) {
    if let FaultTarget::Cutting(part) = &row.broken {
        proxied.rules.add(cut(part));
    }
}

async fn end(proxied: &ProxiedClient, row: &FaultRow, broken: Vec<RuleId>) {
    for rule in broken {
        proxied.rules.remove(rule);
    }
    match &row.broken {
        // A connection that lost events must be closed.
        FaultTarget::Stalled(part) => _ = proxied.rules.add(cut(part)),
        FaultTarget::Down => proxied.proxy.up().await.unwrap(),
        FaultTarget::Rules(_) | FaultTarget::Relisted(_) | FaultTarget::Cutting(_) => {}
    }
}

/// Ends the watches of collections with this suffix.
fn cut(part: &'static str) -> Rule {
    Rule::new(Fault::CutWatches).when(move |parts| parts.uri.path().ends_with(part))
}
