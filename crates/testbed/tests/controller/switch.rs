//! The guide for Kubernetes' HPA controller (docs/switching.md): shadow, report, active, and back. The active controller is a process, with
//! its lease. On localkube, a second controller of ours has the part of Kubernetes' own.

use std::time::Duration;

use api::decisions::DecisionMode;
use controllers::hpa::HpaSettings;
use http::Method;
use serde_json::json;
use testbed::harness::Failure;
use tokio::time::Instant;

use crate::env::{
    ControllerEnv, Handover, ReplicaWatch, RunningController, SyncTimes, alone_on_both, missed_syncs, queue,
};
use crate::modes::{PEER_PERIOD, acting};
use crate::replica::{Replica, account, forget};
use crate::serving;
use crate::shared::manifests;
use crate::shared::outage_watch::DEFAULT_SYNC_PERIOD;
use crate::shared::program::{json_of, program};

/// The number of comparisons of both autoscalers after the load has settled.
const QUIET_COMPARISONS: u64 = 12;

/// Changes the load, and waits until the active controller has scaled.
async fn follow(env: &ControllerEnv, web: &ReplicaWatch, replicas: i64) {
    env.ask_for("web", replicas);
    web.caught_up(env, replicas).await;
    env.until_reported("web", replicas).await;
}

/// Prints how long an autoscaler was without a sync at each handover, which includes the start of the next controller, and asserts that
/// it would have missed at most one with the default period.
fn check_syncs(cluster: &str, syncs: &SyncTimes, handovers: [(&str, Handover); 2]) {
    let gaps = syncs.gaps(&handovers.map(|(_, handover)| handover));
    for ((direction, _), gap) in handovers.into_iter().zip(gaps.handovers) {
        println!(
            "{cluster}: {}: {direction}: {gap:.1?} between two syncs, otherwise at most {:.1?}; missed: {} with a period of {PEER_PERIOD:?}",
            syncs.workload,
            gaps.usual,
            missed_syncs(gap, PEER_PERIOD)
        );
        assert!(
            gap > Duration::ZERO && gap < DEFAULT_SYNC_PERIOD,
            "on {cluster}: {}: {direction}: {gap:?}",
            syncs.workload
        );
    }
}

#[test]
#[ignore = "starts the controller of Kubernetes twice: make test-switch"]
fn shadow_report_active_and_back_scale_nothing_wrongly() -> Result<(), Failure> {
    alone_on_both(async |env| {
        for (name, replicas) in [("web", 4), ("idle", 3)] {
            env.deployment(name, replicas).await;
            env.ask_for(name, replicas as i64);
            env.hpa(name, 2, 8, json!([queue(name)])).await;
        }
        let spec = env.hpa_object("web").await["spec"].clone();
        let (web, idle) = (env.observer("web").await, env.observer("idle").await);
        let theirs = acting(&env).await;
        env.until_reported("web", 4).await;
        env.until_reported("idle", 3).await;

        let in_shadow = HpaSettings { mode: DecisionMode::Shadow, period: PEER_PERIOD, ..env.settings() };
        let shadow = RunningController::start(env.client.clone(), in_shadow);
        let served = serving::start(&env.client, &shadow.handle, &env.namespace, "decisions").await;
        let registered = served.api_services();
        manifests::apply(&env.client, env.cluster, &registered, |_| true).await;
        env.until_found("/apis/decisions.plimsoll.dev/v1alpha1/namespaces/{ns}/decisions").await;
        follow(&env, &web, 7).await;
        follow(&env, &web, 3).await;
        let compared = || shadow.handle.differences(None).compared;
        let wanted = compared() + QUIET_COMPARISONS;
        env.until("comparisons", async || if compared() >= wanted { Ok(()) } else { Err(compared()) }).await;
        let (code, report) = json_of(&env.kubeconfig, &["shadow", "report", "-n", &env.namespace]);
        assert_eq!(code, Some(0), "on {}: {report:#}", env.cluster);
        for object in registered.iter().rev() {
            env.send(Method::DELETE, &manifests::path(object), None).await;
        }
        shadow.stop().await;

        let syncs = ["web", "idle"].map(|name| env.sync_times(name));
        for name in ["web", "idle"] {
            env.until_metric_reads(name, 2).await;
        }
        let token = account(&env).await;
        let from = Instant::now();
        drop(theirs);
        let mut ours = Replica::start_version(&env, &token, program(), PEER_PERIOD).await;
        let to_ours = Handover { from, until: Instant::now() };
        follow(&env, &web, 6).await;
        follow(&env, &web, 2).await;

        let from = Instant::now();
        ours.terminate(&env).await;
        let _theirs = acting(&env).await;
        let back = Handover { from, until: Instant::now() };
        // From 2 replicas, the default policies of Kubernetes allow at most 4 in one step.
        follow(&env, &web, 4).await;
        env.until_metric_reads("idle", 2).await;
        for syncs in &syncs {
            check_syncs(env.cluster, syncs, [("to ours", to_ours), ("back", back)]);
        }
        assert_eq!(web.counts(), [4, 7, 3, 6, 2, 4], "on {}", env.cluster);
        assert_eq!(idle.counts(), [3], "on {}", env.cluster);
        assert_eq!(env.hpa_object("web").await["spec"], spec, "on {}", env.cluster);
        forget(&env).await;
    })
}
