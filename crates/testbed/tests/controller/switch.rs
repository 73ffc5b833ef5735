//! The guide for Kubernetes' HPA controller (docs/switching.md): shadow, report, active, and back. On localkube, a second controller of ours
//! has the part of Kubernetes' own.

use api::decisions::DecisionMode;
use controllers::hpa::HpaSettings;
use http::Method;
use serde_json::json;
use testbed::harness::Failure;

use crate::env::{ControllerEnv, ReplicaWatch, RunningController, alone_on_both, queue};
use crate::modes::{PEER_PERIOD, acting};
use crate::serving;
use crate::shared::manifests;
use crate::shared::program::json_of;

/// Comparisons after the load has settled.
const QUIET_COMPARISONS: u64 = 6;

/// Changes the load, and waits until the controller that acts has followed.
async fn follow(env: &ControllerEnv, web: &ReplicaWatch, replicas: i64) {
    env.ask_for("web", replicas);
    web.caught_up(env, replicas).await;
    env.until_told("web", replicas).await;
}

#[test]
#[ignore = "starts the controller of Kubernetes twice: make test-switch"]
fn shadow_report_active_and_back_scale_nothing_wrongly() -> Result<(), Failure> {
    alone_on_both(async |env| {
        env.deployment("web", 4).await;
        env.ask_for("web", 4);
        env.hpa("web", 2, 8, json!([queue("web")])).await;
        let spec = env.hpa_object("web").await["spec"].clone();
        let web = env.witness("web").await;
        let theirs = acting(&env).await;

        let settings = HpaSettings { period: PEER_PERIOD, ..env.settings() };
        let in_shadow = HpaSettings { mode: DecisionMode::Shadow, ..settings.clone() };
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

        drop(theirs);
        let ours = env.controller(settings);
        follow(&env, &web, 6).await;
        follow(&env, &web, 2).await;
        ours.stop().await;

        let _theirs = acting(&env).await;
        // From 2, Kubernetes scales to 4 at most in one step.
        follow(&env, &web, 4).await;
        assert_eq!(web.counts(), [4, 7, 3, 6, 2, 4], "on {}", env.cluster);
        assert_eq!(env.hpa_object("web").await["spec"], spec, "on {}", env.cluster);
    })
}
