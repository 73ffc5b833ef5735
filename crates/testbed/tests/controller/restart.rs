//! Stabilization windows and scale events survive a controller restart, and the writes that this costs.

use std::time::Duration;

use controllers::hpa::HpaSettings;
use serde_json::{Value, json};
use testbed::harness::Failure;
use tokio::time::Instant;

use crate::env::{ControllerEnv, RunningController, on_both, queue};

const WINDOW: Duration = Duration::from_secs(10);
const STATE_ANNOTATION: &str = "plimsoll.dev/memory";
const HPAS: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";
/// After the end of a window, at most so many reconciles read the metric before the deployment is scaled. A window that
/// began anew in its middle would last for ten more.
const MAX_LATE_RECONCILES: u64 = 5;

#[test]
fn restarted_controller_keeps_windows_and_scale_events() -> Result<(), Failure> {
    on_both(async |env| {
        // One workload is held by its stabilization window, the other by its scale-up policy.
        env.deployment("held", 4).await;
        env.deployment("paced", 4).await;
        env.deployment("steady", 4).await;
        env.ask_for("held", 6);
        env.ask_for("paced", 4);
        env.ask_for("steady", 4);
        let spec = |name: &str, behavior: Value| json!({"minReplicas": 2, "maxReplicas": 8, "metrics": [queue(name)], "behavior": behavior});
        let window = json!({"scaleDown": {"stabilizationWindowSeconds": WINDOW.as_secs()}});
        env.hpa_with("held", spec("held", window.clone())).await;
        env.hpa_with("steady", spec("steady", window)).await;
        let rate = json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": WINDOW.as_secs()}]}});
        env.hpa_with("paced", spec("paced", rate)).await;
        let proxied = env.proxied().await;
        let first = RunningController::start(proxied.client.clone(), env.settings());
        env.until_replicas("held", 6).await;
        env.until_condition("paced", "AbleToScale", "True ReadyForNewScale").await;
        env.until_condition("steady", "AbleToScale", "True ReadyForNewScale").await;
        let (held, paced) = (env.observer("held").await, env.observer("paced").await);
        let window_begun = env.before_a_reconcile("held").await;
        env.ask_for("held", 3);
        let fell = Instant::now();
        let held_for = env.measure_window("held", window_begun, WINDOW, &held, 3);
        let rate_begun = Instant::now();
        env.ask_for("paced", 8);
        paced.caught_up(&env, 6).await;
        let paced_for = env.measure_window("paced", rate_begun, WINDOW, &paced, 8);
        env.until_condition("held", "AbleToScale", "True ScaleDownStabilized").await;
        env.until_condition("paced", "ScalingLimited", "True ScaleUpLimit").await;

        // The controller is restarted in the middle of both windows.
        tokio::time::sleep_until(fell + WINDOW / 2).await;
        first.kill().await;
        let second = RunningController::start(proxied.client.clone(), env.settings());
        held.caught_up(&env, 3).await;
        paced.caught_up(&env, 8).await;
        // A controller without persisted state would start a new window, and scale up at once.
        for (what, measured) in [("window", held_for), ("rate", paced_for)] {
            let measured = measured.await.unwrap();
            println!("{}: a {what} of {WINDOW:?}: {measured:?}", env.cluster);
            assert!(measured.at_most >= WINDOW, "on {}: a {what} of {measured:?}", env.cluster);
            assert!(
                measured.late_reconciles <= MAX_LATE_RECONCILES,
                "on {}: a {what} of {measured:?}",
                env.cluster
            );
        }
        assert_eq!((held.counts(), paced.counts()), (vec![6, 3], vec![4, 6, 8]));

        // Without changes nothing is written for two windows, and not by a new controller either.
        let steady = proxied.writes_to("/steady/status");
        assert!(steady.len() <= 3, "on {}: {steady:#?}", env.cluster);
        second.stop().await;
    })
}

#[test]
fn constant_metrics_cause_no_writes() -> Result<(), Failure> {
    on_both(async |env| {
        for (name, replicas) in [("calm", 4), ("clamped", 8), ("limited", 4)] {
            env.deployment(name, replicas).await;
        }
        env.ask_for("calm", 4);
        env.ask_for("clamped", 20);
        env.ask_for("limited", 4);
        env.hpa("calm", 2, 8, json!([queue("calm")])).await;
        env.hpa("clamped", 2, 8, json!([queue("clamped")])).await;
        let windows = json!({"scaleDown": {"stabilizationWindowSeconds": 2}, "scaleUp": {"stabilizationWindowSeconds": 2}});
        let spec =
            json!({"minReplicas": 2, "maxReplicas": 8, "metrics": [queue("limited")], "behavior": windows});
        env.hpa_with("limited", spec).await;
        let proxied = env.proxied().await;
        // The HPA has the default window, so that there is state to persist.
        let settings = HpaSettings { config: engine::ControllerConfig::default().into(), ..env.settings() };
        let ours = RunningController::start(proxied.client.clone(), settings);
        let names = ["calm", "clamped", "limited"];
        for name in names {
            env.until_condition(name, "ScalingActive", "True ValidMetricFound").await;
        }
        env.until_decisions(&ours, &names, 3).await;
        proxied.rules.clear_log();
        env.until_decisions(&ours, &names, 12).await;
        let requests = proxied.rules.log();
        let writes = proxied.writes();
        assert!(writes.is_empty(), "on {}: {writes:#?}", env.cluster);
        assert!(requests.iter().any(|entry| entry.path.contains("external.metrics")), "passes went on");
        ours.stop().await;
    })
}

#[test]
fn persisted_state_keeps_fields_of_other_managers() -> Result<(), Failure> {
    on_both(async |env| {
        env.deployment("web", 4).await;
        env.ask_for("web", 6);
        let applied = |label: &str| {
            json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web", "labels": {"team": label}, "annotations": {"note": "mine"}},
                "spec": {
                    "minReplicas": 2, "maxReplicas": 8, "metrics": [queue("web")],
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
                }
            })
        };
        let path = format!("{HPAS}/web?fieldManager=alice");
        let before = env.patch(&path, applied("a")).await;
        let ours = env.controller(env.settings());
        env.until_replicas("web", 6).await;
        let memory =
            async || env.hpa_object("web").await["metadata"]["annotations"][STATE_ANNOTATION].clone();
        env.until("a memory", async || if memory().await.is_string() { Ok(()) } else { Err(()) }).await;
        env.until_condition("web", "AbleToScale", "True ReadyForNewScale").await;
        let after = env.hpa_object("web").await;
        assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
        assert_eq!(after["metadata"]["annotations"]["note"], "mine");
        assert_eq!(after["metadata"]["annotations"].as_object().unwrap().len(), 2);
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(fields(&after, "alice"), fields(&before, "alice"));
        // The controller owns the status and one annotation.
        let entries = after["metadata"]["managedFields"].as_array().unwrap();
        let own: Vec<&Value> = entries.iter().filter(|entry| entry["subresource"] == "status").collect();
        let [own] = own.as_slice() else { panic!("{entries:#?}") };
        let owned = own["fieldsV1"].as_object().unwrap();
        let annotations = own["fieldsV1"]["f:metadata"]["f:annotations"].as_object().unwrap();
        assert_eq!(owned.keys().map(String::as_str).collect::<Vec<_>>(), ["f:metadata", "f:status"]);
        assert_eq!(own["fieldsV1"]["f:metadata"].as_object().unwrap().len(), 1, "{own:#}");
        assert!(
            annotations.keys().all(|key| key == "." || *key == format!("f:{STATE_ANNOTATION}")),
            "{own:#}"
        );
        // The other manager applies again without a conflict.
        let again = env.patch(&path, applied("b")).await;
        assert_eq!(again["metadata"]["labels"]["team"], "b");
        assert!(again["metadata"]["annotations"][STATE_ANNOTATION].is_string());
        ours.stop().await;
    })
}

/// The fields that a manager owns.
fn fields(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries.iter().find(|entry| entry["manager"] == manager).unwrap()["fieldsV1"].clone()
}

#[test]
fn invalid_persisted_state_is_ignored() -> Result<(), Failure> {
    on_both(async |env| {
        let long = "1;r=".repeat(4000);
        let nonsense = [
            "",
            "garbage",
            "2;r=9@1767268800",
            "1;r=9999999999@1;u=-1@1",
            "1;r=8@1767268800,6@",
            "\u{1f40b}\u{0}",
            &long,
        ];
        let nonsense = nonsense.map(|text| text.replace('\u{0}', ""));
        for (number, text) in nonsense.iter().enumerate() {
            let name = format!("odd-{number}");
            env.deployment(&name, 4).await;
            env.ask_for(&name, 6);
            env.hpa(&name, 2, 8, json!([queue(&name)])).await;
            let annotated = json!({"metadata": {"annotations": {STATE_ANNOTATION: text}}});
            env.patch(&format!("{HPAS}/{name}"), annotated).await;
        }
        let ours = env.controller(env.settings());
        for (number, text) in nonsense.iter().enumerate() {
            let name = format!("odd-{number}");
            env.until_replicas(&name, 6).await;
            env.until("a new memory", async || {
                let found = env.hpa_object(&name).await["metadata"]["annotations"][STATE_ANNOTATION].clone();
                if found.as_str().is_some_and(|found| found.starts_with("1;r=6@") && found != text) {
                    Ok(())
                } else {
                    Err(found)
                }
            })
            .await;
        }
        assert!(ours.is_alive());
        ours.stop().await;
    })
}

#[test]
fn persisted_state_can_be_disabled() -> Result<(), Failure> {
    on_both(async |env| {
        env.deployment("web", 4).await;
        env.ask_for("web", 6);
        env.hpa("web", 2, 8, json!([queue("web")])).await;
        let ours = env.controller(HpaSettings { persist_state: false, ..env.settings() });
        env.until_replicas("web", 6).await;
        env.until_condition("web", "AbleToScale", "True ReadyForNewScale").await;
        ours.stop().await;
        let hpa = env.hpa_object("web").await;
        assert!(hpa["metadata"]["annotations"].is_null(), "{:#}", hpa["metadata"]);
        leave(&env).await;
    })
}

/// Persisted state of an earlier controller is ignored when persistence is disabled.
async fn leave(env: &ControllerEnv) {
    env.ask_for("web", 3);
    let future = "1;r=8@4102444800";
    env.patch(&format!("{HPAS}/web"), json!({"metadata": {"annotations": {STATE_ANNOTATION: future}}})).await;
    let ours = env.controller(HpaSettings { persist_state: false, ..env.settings() });
    env.until_replicas("web", 3).await;
    ours.stop().await;
    env.delete(&format!("{HPAS}/web")).await;
}
