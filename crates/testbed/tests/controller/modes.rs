//! Shadow, dry run, off: by flag and on one object. Who only looks writes nothing.

use std::time::Duration;

use api::decisions::{DifferenceRecord, Mode};
use controllers::hpa::Settings;
use serde_json::json;
use testbed::peer::{Peer, PeerOptions};
use testbed::twin::Failure;

use crate::ground::{Ground, Ours, PERIOD, cpu, on_both, queue};

/// The controller that acts: Kubernetes' own where it can run, else another of ours.
enum Acting {
    Peer(#[allow(dead_code, reason = "held for its end")] Box<Peer>),
    Ours(#[allow(dead_code, reason = "held for its end")] Ours),
}

/// Kubernetes' own takes whole seconds.
const PEER_PERIOD: Duration = Duration::from_secs(1);

async fn acting(ground: &Ground) -> Acting {
    let Some(access) = ground.access else {
        return Acting::Ours(ground.controller(ground.settings()));
    };
    let options = PeerOptions {
        namespace: Some(ground.namespace.clone()),
        sync_period: Some(PEER_PERIOD),
        downscale_stabilization: Some(Duration::ZERO),
        ..PeerOptions::default()
    };
    Acting::Peer(Box::new(Peer::start(access, &options).await.unwrap()))
}

#[test]
fn a_shadow_agrees_in_a_normal_life_and_reports_a_wrong_setting() -> Result<(), Failure> {
    on_both(async |ground| {
        ground.workload("web", 4).await;
        ground.deployment("worker", 4).await;
        ground.usage("web", 4, 500, 1);
        ground.ask_for("worker", 4);
        ground.hpa("web", 2, 8, json!([cpu(50)])).await;
        ground.hpa("worker", 2, 8, json!([queue("worker")])).await;
        let _acting = acting(&ground).await;
        let proxied = ground.proxied().await;
        let settings = Settings { mode: Mode::Shadow, period: PEER_PERIOD, ..ground.settings() };
        let shadow = Ours::start(proxied.client.clone(), settings.clone());
        let compared = || shadow.handle.differences(None).compared;

        // A normal life: up, down, a while without metrics, at the limits.
        ground.usage("web", 4, 750, 1);
        ground.ask_for("worker", 7);
        ground.until_replicas("web", 6).await;
        ground.until_replicas("worker", 7).await;
        ground.usage("web", 4, 375, 1);
        ground.until_replicas("web", 3).await;
        ground.script.clear_pods(&ground.namespace);
        ground.until_condition("web", "ScalingActive", "False FailedGetResourceMetric").await;
        ground.ask_for("worker", 20);
        ground.until_replicas("worker", 8).await;
        ground.usage("web", 4, 525, 1);
        ground.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
        ground.until_condition("worker", "ScalingLimited", "True TooManyReplicas").await;
        let until = compared() + 6;
        ground
            .until("comparisons", async || if compared() >= until { Ok(()) } else { Err(compared()) })
            .await;
        let report = shadow.handle.differences(Some(&ground.namespace));
        assert!(report.items.is_empty(), "on {}: {:#?}", ground.cluster, report.items);
        assert_eq!(report.autoscalers, 2);
        let log = proxied.rules.log();
        let reads = log.iter().all(|entry| entry.method == http::Method::GET);
        assert!(
            reads,
            "on {}: {:#?}",
            ground.cluster,
            log.iter().filter(|entry| entry.method != http::Method::GET).collect::<Vec<_>>()
        );

        // 1.05 of the target is within the tolerance of the one that acts, but not within ours now.
        let strict = engine::Config { tolerance: 0.01, ..(*settings.config).clone() };
        shadow.handle.update(Settings { config: strict.into(), ..settings.clone() });
        let of = |field: &str| {
            let items = shadow.handle.differences(None).items;
            items.into_iter().find(|item: &DifferenceRecord| item.field == field)
        };
        ground.until("a difference", async || of("desiredReplicas").map(|_| ()).ok_or(())).await;
        let found = of("desiredReplicas").unwrap();
        let count = ground.replicas("web").await;
        assert_eq!((found.theirs, found.ours, found.over), (count.to_string(), "5".to_owned(), false));
        ground
            .until("an event", async || {
                let events = ground.events("web").await;
                let told = events
                    .iter()
                    .any(|event| event.starts_with("Normal/ShadowDifference: desiredReplicas: "));
                if told { Ok(()) } else { Err(events) }
            })
            .await;
        shadow.handle.update(settings);
        ground
            .until("its end", async || if of("desiredReplicas").unwrap().over { Ok(()) } else { Err(()) })
            .await;
        assert!(proxied.writes().is_empty(), "on {}: {:#?}", ground.cluster, proxied.writes());
        shadow.stop().await;
    })
}

#[test]
fn a_dry_run_decides_and_writes_nothing() -> Result<(), Failure> {
    on_both(async |ground| {
        ground.deployment("web", 4).await;
        ground.deployment("real", 4).await;
        ground.ask_for("web", 6);
        ground.ask_for("real", 6);
        ground.hpa("web", 2, 8, json!([queue("web")])).await;
        ground.hpa("real", 2, 8, json!([queue("real")])).await;
        annotate(&ground, "real", "active").await;
        let proxied = ground.proxied().await;
        let settings = Settings { mode: Mode::DryRun, ..ground.settings() };
        let ours = Ours::start(proxied.client.clone(), settings);
        // One object says otherwise.
        ground.until_replicas("real", 6).await;
        let records = ours.handle.records();
        ground
            .until("decisions", async || {
                let found = records.of(&ground.namespace, "hpa.web");
                if found.last().is_some_and(|record| record.decision.desired == 6) {
                    Ok(())
                } else {
                    Err(found.len())
                }
            })
            .await;
        assert_eq!(ground.replicas("web").await, 4);
        let touched: Vec<_> =
            proxied.writes().into_iter().filter(|entry| entry.path.contains("/web")).collect();
        assert!(touched.is_empty(), "on {}: {touched:#?}", ground.cluster);
        let hpa = ground.hpa_object("web").await;
        assert!(hpa["status"]["conditions"].is_null(), "{:#}", hpa["status"]);
        assert!(ground.events("web").await.is_empty());
        ours.stop().await;
    })
}

async fn annotate(ground: &Ground, name: &str, mode: &str) {
    let path = format!("/apis/autoscaling/v2/namespaces/{{ns}}/horizontalpodautoscalers/{name}");
    ground.patch(&path, json!({"metadata": {"annotations": {"plimsoll.dev/mode": mode}}})).await;
}

#[test]
fn an_annotation_overrules_the_mode_and_one_that_is_not_known_gets_an_event() -> Result<(), Failure> {
    on_both(async |ground| {
        for (name, mode) in
            [("plain", None), ("dry", Some("dry-run")), ("off", Some("off")), ("odd", Some("sideways"))]
        {
            ground.deployment(name, 4).await;
            ground.ask_for(name, 6);
            ground.hpa(name, 2, 8, json!([queue(name)])).await;
            if let Some(mode) = mode {
                annotate(&ground, name, mode).await;
            }
        }
        let ours = ground.controller(ground.settings());
        ground.until_replicas("plain", 6).await;
        ground
            .until("an event", async || {
                let events = ground.events("odd").await;
                let wanted =
                    "Warning/InvalidAnnotation: annotation plimsoll.dev/mode: \"sideways\" is not known";
                if events.iter().any(|event| event.starts_with(wanted)) { Ok(()) } else { Err(events) }
            })
            .await;
        tokio::time::sleep(3 * PERIOD).await;
        let records = ours.handle.records();
        for (name, decided) in [("dry", true), ("off", false), ("odd", true)] {
            assert_eq!(ground.replicas(name).await, 4, "on {}: {name}", ground.cluster);
            assert!(ground.hpa_object(name).await["status"]["conditions"].is_null(), "{name}");
            assert_eq!(!records.of(&ground.namespace, &format!("hpa.{name}")).is_empty(), decided, "{name}");
        }
        assert_eq!(ground.events("odd").await.len(), 1);
        // Each is taken up as soon as the annotation is corrected.
        for name in ["dry", "off", "odd"] {
            annotate(&ground, name, "active").await;
            ground.until_replicas(name, 6).await;
        }
        ours.stop().await;
    })
}
