//! Shadow, dry run and off, by flag and by annotation: none of them writes.

use std::time::Duration;

use api::decisions::{DecisionMode, DifferenceRecord};
use controllers::hpa::HpaSettings;
use serde_json::json;
use testbed::harness::Failure;
use testbed::peer::{Peer, PeerOptions};

use crate::env::{ControllerEnv, RunningController, alone_on_both, cpu, on_both, queue};

/// The active controller: that of Kubernetes on the real cluster, otherwise a second one of ours.
pub(crate) enum ActiveController {
    Peer(#[allow(dead_code, reason = "held for its end")] Box<Peer>),
    RunningController(#[allow(dead_code, reason = "held for its end")] RunningController),
}

/// The sync period of Kubernetes' own controller, which accepts only whole seconds.
pub(crate) const PEER_PERIOD: Duration = Duration::from_secs(1);

pub(crate) async fn acting(env: &ControllerEnv) -> ActiveController {
    let Some(access) = env.access else {
        return ActiveController::RunningController(env.controller(env.settings()));
    };
    let options = PeerOptions {
        namespace: Some(env.namespace.clone()),
        sync_period: Some(PEER_PERIOD),
        downscale_stabilization: Some(Duration::ZERO),
        ..PeerOptions::default()
    };
    ActiveController::Peer(Box::new(Peer::start(access, &options).await.unwrap()))
}

#[test]
fn shadow_mode_agrees_and_reports_a_wrong_setting() -> Result<(), Failure> {
    // No other test runs meanwhile, because it would delay kube-controller-manager, whose old condition is a difference until its next sync.
    alone_on_both(async |env| {
        env.workload("web", 4).await;
        env.deployment("worker", 4).await;
        env.usage("web", 4, 500, 1);
        env.ask_for("worker", 4);
        env.hpa("web", 2, 8, json!([cpu(50)])).await;
        env.hpa("worker", 2, 8, json!([queue("worker")])).await;
        let _acting = acting(&env).await;
        let proxied = env.proxied().await;
        let settings = HpaSettings { mode: DecisionMode::Shadow, period: PEER_PERIOD, ..env.settings() };
        let shadow = RunningController::start(proxied.client.clone(), settings.clone());
        let compared = || shadow.handle.differences(None).compared;

        // The cases are scale-up, scale-down, missing metrics and bounds.
        env.usage("web", 4, 750, 1);
        env.ask_for("worker", 7);
        env.until_replicas("web", 6).await;
        env.until_replicas("worker", 7).await;
        env.usage("web", 4, 375, 1);
        env.until_replicas("web", 3).await;
        env.script.clear_pods(&env.namespace);
        env.until_condition("web", "ScalingActive", "False FailedGetResourceMetric").await;
        env.ask_for("worker", 20);
        env.until_replicas("worker", 8).await;
        env.usage("web", 4, 525, 1);
        env.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
        env.until_condition("worker", "ScalingLimited", "True TooManyReplicas").await;
        let until = compared() + 6;
        env.until("comparisons", async || if compared() >= until { Ok(()) } else { Err(compared()) }).await;
        let report = shadow.handle.differences(Some(&env.namespace));
        assert!(report.items.is_empty(), "on {}: {:#?}", env.cluster, report.items);
        assert_eq!(report.autoscalers, 2);
        let log = proxied.rules.log();
        let reads = log.iter().all(|entry| entry.method == http::Method::GET);
        assert!(
            reads,
            "on {}: {:#?}",
            env.cluster,
            log.iter().filter(|entry| entry.method != http::Method::GET).collect::<Vec<_>>()
        );

        // A ratio of 1.05 is within the tolerance of the active controller, but not within ours.
        let strict = engine::ControllerConfig { tolerance: 0.01, ..(*settings.config).clone() };
        shadow.handle.update(HpaSettings { config: strict.into(), ..settings.clone() });
        let of = |field: &str| {
            let items = shadow.handle.differences(None).items;
            items.into_iter().find(|item: &DifferenceRecord| item.field == field)
        };
        env.until("a difference", async || of("desiredReplicas").map(|_| ()).ok_or(())).await;
        let found = of("desiredReplicas").unwrap();
        let count = env.replicas("web").await;
        assert_eq!((found.theirs, found.ours, found.over), (count.to_string(), "5".to_owned(), false));
        env.until("an event", async || {
            let events = env.events("web").await;
            let reported =
                events.iter().any(|event| event.starts_with("Normal/ShadowDifference: desiredReplicas: "));
            if reported { Ok(()) } else { Err(events) }
        })
        .await;
        shadow.handle.update(settings);
        env.until("its end", async || if of("desiredReplicas").unwrap().over { Ok(()) } else { Err(()) })
            .await;
        assert!(proxied.writes().is_empty(), "on {}: {:#?}", env.cluster, proxied.writes());
        shadow.stop().await;
    })
}

#[test]
fn dry_run_decides_and_writes_nothing() -> Result<(), Failure> {
    on_both(async |env| {
        env.deployment("web", 4).await;
        env.deployment("real", 4).await;
        env.ask_for("web", 6);
        env.ask_for("real", 6);
        env.hpa("web", 2, 8, json!([queue("web")])).await;
        env.hpa("real", 2, 8, json!([queue("real")])).await;
        annotate(&env, "real", "active").await;
        let proxied = env.proxied().await;
        let settings = HpaSettings { mode: DecisionMode::DryRun, ..env.settings() };
        let ours = RunningController::start(proxied.client.clone(), settings);
        // One object has another mode in its annotation.
        env.until_replicas("real", 6).await;
        let records = ours.handle.records();
        env.until("decisions", async || {
            let found = records.of(&env.namespace, "hpa.web");
            if found.last().is_some_and(|record| record.decision.desired == 6) {
                Ok(())
            } else {
                Err(found.len())
            }
        })
        .await;
        assert_eq!(env.replicas("web").await, 4);
        let touched: Vec<_> =
            proxied.writes().into_iter().filter(|entry| entry.path.contains("/web")).collect();
        assert!(touched.is_empty(), "on {}: {touched:#?}", env.cluster);
        let hpa = env.hpa_object("web").await;
        assert!(hpa["status"]["conditions"].is_null(), "{:#}", hpa["status"]);
        assert!(env.events("web").await.is_empty());
        ours.stop().await;
    })
}

async fn annotate(env: &ControllerEnv, name: &str, mode: &str) {
    let path = format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{name}");
    env.patch(&path, json!({"metadata": {"annotations": {"plimsoll.dev/mode": mode}}})).await;
}

#[test]
fn mode_annotation_overrides_the_flag_and_unknown_mode_gets_an_event() -> Result<(), Failure> {
    on_both(async |env| {
        for (name, mode) in
            [("plain", None), ("dry", Some("dry-run")), ("off", Some("off")), ("odd", Some("sideways"))]
        {
            env.deployment(name, 4).await;
            env.ask_for(name, 6);
            env.hpa(name, 2, 8, json!([queue(name)])).await;
            if let Some(mode) = mode {
                annotate(&env, name, mode).await;
            }
        }
        let ours = env.controller(env.settings());
        env.until_replicas("plain", 6).await;
        env.until("an event", async || {
            let events = env.events("odd").await;
            let wanted = "Warning/InvalidAnnotation: annotation plimsoll.dev/mode: \"sideways\" is not known";
            if events.iter().any(|event| event.starts_with(wanted)) { Ok(()) } else { Err(events) }
        })
        .await;
        env.until_decisions(&ours, &["plain", "dry", "odd"], 3).await;
        let records = ours.handle.records();
        for (name, decided) in [("dry", true), ("off", false), ("odd", true)] {
            assert_eq!(env.replicas(name).await, 4, "on {}: {name}", env.cluster);
            assert!(env.hpa_object(name).await["status"]["conditions"].is_null(), "{name}");
            assert_eq!(!records.of(&env.namespace, &format!("hpa.{name}")).is_empty(), decided, "{name}");
        }
        assert_eq!(env.events("odd").await.len(), 1);
        // Each object is reconciled once the annotation is corrected.
        for name in ["dry", "off", "odd"] {
            annotate(&env, name, "active").await;
            env.until_replicas(name, 6).await;
        }
        ours.stop().await;
    })
}
