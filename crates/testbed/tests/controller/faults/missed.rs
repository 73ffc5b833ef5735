//! Changes during a broken watch are seen when the watch works again.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use testbed::harness::Failure;
use testbed::proxy::{Fault, Rule};

use super::{HIGH_USAGE_MILLICORES, MAX_REPLICAS, MIN_REPLICAS, cut};
use crate::env::{ControllerEnv, PERIOD, RunningController, cpu, on_both, reconciles_within};

/// The change during the fault.
#[derive(Clone, Copy, Debug)]
enum MissedChange {
    /// A pod is deleted; five replicas are right for the remaining three.
    Pod,
    /// `maxReplicas` becomes five.
    Autoscaler,
    /// A user scales to four; six replicas are right.
    Target,
}

/// How the watch is broken.
#[derive(Clone, Copy, Debug)]
enum WatchFault {
    /// The watch stays open without events, and ends with the fault.
    Stalled,
    /// The watch ends, and no other can be opened.
    Refused,
    /// The watch ends, and its resource version has expired: everything must be listed again.
    Expired,
}

#[test]
fn changes_missed_by_a_broken_watch_are_seen_after_relist() -> Result<(), Failure> {
    on_both(async |env| {
        let changes = [
            (MissedChange::Pod, "/pods"),
            (MissedChange::Autoscaler, "/horizontalpodautoscalers"),
            (MissedChange::Target, "/deployments"),
        ];
        let hows = [WatchFault::Stalled, WatchFault::Refused, WatchFault::Expired];
        let all = changes.into_iter().flat_map(|change| hows.map(|how| (change, how))).enumerate();
        join_all(all.map(|(number, ((changed, part), how))| {
            let env = &env;
            async move {
                let row_env = env.in_new_namespace(&format!("missed-{number}")).await;
                miss(&row_env, changed, part, how).await;
            }
        }))
        .await;
    })
}

async fn miss(env: &ControllerEnv, changed: MissedChange, part: &'static str, how: WatchFault) {
    env.workload("web", 4).await;
    env.usage("web", 4, HIGH_USAGE_MILLICORES, 1);
    env.hpa("web", MIN_REPLICAS, MAX_REPLICAS, json!([cpu(50)])).await;
    let proxied = env.proxied().await;
    let ours = RunningController::start(proxied.client.clone(), env.settings());
    env.until_replicas("web", 6).await;
    env.until_condition("web", "AbleToScale", "True ReadyForNewScale").await;

    let of_part = move |parts: &http::request::Parts| {
        parts.uri.path().ends_with(part)
            && parts.uri.query().is_some_and(|query| query.contains("watch=true"))
    };
    let refused = |code, reason| {
        let fault = Fault::Status { code, reason, message: "injected".into(), retry_after: None };
        Rule::new(fault).when(of_part)
    };
    let rule = match how {
        WatchFault::Stalled => proxied
            .rules
            .add(Rule::new(Fault::StallWatches).when(move |parts| parts.uri.path().ends_with(part))),
        WatchFault::Refused => proxied.rules.add(refused(500, "InternalError")),
        WatchFault::Expired => proxied.rules.add(refused(410, "Expired").times(3)),
    };
    if !matches!(how, WatchFault::Stalled) {
        proxied.rules.add(cut(part));
    }
    let hpa = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers/web";
    let right = match changed {
        MissedChange::Pod => {
            let pod = "/api/v1/namespaces/{ns}/pods/web-3?gracePeriodSeconds=0";
            env.delete(pod).await;
            env.script.remove_pod(&env.namespace, "web-3");
            5
        }
        MissedChange::Autoscaler => {
            env.patch(hpa, json!({"spec": {"maxReplicas": 5}})).await;
            5
        }
        MissedChange::Target => {
            let web = "/apis/apps/v1/namespaces/{ns}/deployments/web";
            env.patch(web, json!({"spec": {"replicas": 4}})).await;
            6
        }
    };
    env.until_decisions(&ours, &["web"], 3).await;
    proxied.rules.remove(rule);
    if matches!(how, WatchFault::Stalled) {
        proxied.rules.add(cut(part));
    }
    let before = ours.decisions(&env.namespace, "web");
    env.until_replicas("web", right).await;
    // Retries back off exponentially, so that the last wait is at most as long as the fault.
    let most = reconciles_within(2 * PERIOD + Duration::from_millis(1600));
    let took = ours.decisions(&env.namespace, "web").saturating_sub(before);
    println!(
        "{}: {changed:?} missed by a watch that was {how:?}: right after {took} reconciles",
        env.cluster
    );
    assert!(took <= most, "on {}: {changed:?} {how:?} was seen after {took} reconciles", env.cluster);
    assert!(ours.is_alive());
    ours.stop().await;
}
