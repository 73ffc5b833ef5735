//! Sources that fail and recover, and a real Prometheus.

use std::time::Duration;

use serde_json::json;
use testbed::harness::Failure;
use testbed::prometheus::Server;
use testbed::sample::SampleApp;

use crate::env::{SourceResponse, TestNamespace, deployment, on_both, scripted};

#[test]
fn fallback_applies_until_a_failed_source_recovers() -> Result<(), Failure> {
    on_both(async |ns| {
        const NAME: &str = "fallback";
        let (ns, operator) = ns.serving().await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 0));
        let fallback = json!({"failureThreshold": 2, "replicas": 4});
        kubectl.apply(&ns.scaled_object(NAME, &json!({"fallback": fallback})));
        ns.set_response(NAME, SourceResponse::Value(15));
        ns.until_replicas(NAME, 2).await;
        ns.until_condition(NAME, "Fallback", "False NoFallbackFound").await;

        ns.set_response(NAME, SourceResponse::Fails("the queue is closed"));
        ns.until_condition(NAME, "Fallback", "True FallbackExists").await;
        ns.until_replicas(NAME, 4).await;
        // A response from before the failure may arrive late and count as a success.
        ns.until_object(NAME, "a fallback", |object| {
            let words = "At least one trigger is falling back on this scaled object";
            let health = &object["status"]["health"][format!("s0-{NAME}")];
            TestNamespace::message(object, "Fallback") == words
                && health["status"] == "Failing"
                && health["numberOfFailures"].as_i64() > Some(2)
        })
        .await;
        assert_eq!(kubectl.words(&format!("get so {NAME}"))[1][7], "True", "FALLBACK");
        let reported = "Normal ScaledObjectFallbackActivated: ScaledObject fallback is active";
        ns.until_event(NAME, reported).await;
        // The error is recorded as an event too.
        ns.until("a failure", async || {
            let reported = ns.events(NAME).await;
            let named = |reported: &String| {
                reported.starts_with("Warning KEDAScalerFailed") && reported.contains("the queue is closed")
            };
            if reported.iter().any(named) { Ok(()) } else { Err(reported) }
        })
        .await;

        ns.set_response(NAME, SourceResponse::Value(15));
        ns.until_condition(NAME, "Fallback", "False NoFallbackFound").await;
        ns.until_replicas(NAME, 2).await;
        ns.until_object(NAME, "health", |found| {
            let health = &found["status"]["health"][format!("s0-{NAME}")];
            *health == json!({"numberOfFailures": 0, "status": "Happy"})
        })
        .await;
        let reported = "Normal ScaledObjectFallbackDeactivated: ScaledObject fallback is no longer active";
        ns.until_event(NAME, reported).await;
        operator.check();
    })
}

#[test]
fn failed_source_without_fallback_leaves_the_count_alone() -> Result<(), Failure> {
    on_both(async |ns| {
        const NAME: &str = "blind";
        let (ns, operator) = ns.serving().await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 0));
        ns.set_response(NAME, SourceResponse::Value(35));
        kubectl.apply(&ns.scaled_object(NAME, &json!({})));
        ns.until_replicas(NAME, 4).await;
        ns.set_response(NAME, SourceResponse::Fails("the queue is closed"));
        ns.until_object(NAME, "the cause", |found| {
            TestNamespace::condition(found, "Ready") == "False TriggerError"
                && TestNamespace::message(found, "Ready").contains("the queue is closed")
        })
        .await;
        ns.rounds(NAME, 5).await;
        assert_eq!(ns.replicas(NAME).await, 4, "an error is no reason to rest, nor to shrink");
        ns.set_response(NAME, SourceResponse::Value(25));
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        ns.until_replicas(NAME, 3).await;
        operator.check();
    })
}

#[test]
fn prometheus_outage_does_not_scale_down() -> Result<(), Failure> {
    on_both(async |ns| {
        const NAME: &str = "graph";
        let (ns, operator) = ns.serving().await;
        let app = SampleApp::start().unwrap();
        let series = |value| app.set_gauge("queue_depth{queue=\"mail\"}", value);
        series(0.0);
        let mut prometheus = Server::start(Duration::from_secs(1)).await.unwrap();
        prometheus.scrape(&app.targets()).unwrap();
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 0));
        let query = "max(queue_depth{queue=\"mail\"})";
        let metadata = json!({"serverAddress": prometheus.url(), "query": query, "threshold": "10", "ignoreNullValues": "false"});
        let trigger = json!({"type": "prometheus", "metadata": metadata});
        kubectl.apply(&ns.scaled_object(NAME, &json!({"triggers": [trigger]})));
        ns.until_hpa(&format!("keda-hpa-{NAME}"), "presence", |hpa| !hpa.is_null()).await;
        kubectl.apply(&deployment("graph-clock", 0));
        kubectl.apply(&ns.scaled_object("graph-clock", &json!({})));
        series(34.0);
        ns.until_replicas(NAME, 4).await;

        let before = ns.generation(NAME).await;
        prometheus.stop();
        ns.until_condition(NAME, "Ready", "False TriggerError").await;
        // The test waits much longer than the cooldown of one second, measured in polls of another object.
        ns.rounds("graph-clock", 6).await;
        prometheus.resume().await.unwrap();
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        assert_eq!(ns.replicas(NAME).await, 4);
        assert_eq!(ns.generation(NAME).await, before, "no false scale-down, however short");
        series(0.0);
        ns.until_replicas(NAME, 0).await;
        operator.check();
    })
}

#[test]
fn highest_trigger_wins_and_a_failed_one_does_not_stop_the_others() -> Result<(), Failure> {
    on_both(async |ns| {
        const NAME: &str = "several";
        let (ns, operator) = ns.serving().await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 0));
        let triggers = json!([scripted(&ns, "several-mails"), scripted(&ns, "several-orders")]);
        ns.set_response("several-mails", SourceResponse::Value(15));
        ns.set_response("several-orders", SourceResponse::Value(45));
        kubectl.apply(&ns.scaled_object(NAME, &json!({"triggers": triggers})));
        ns.until_replicas(NAME, 5).await;
        ns.set_response("several-mails", SourceResponse::Fails("gone"));
        ns.until_condition(NAME, "Ready", "Unknown PartialTriggerError").await;
        ns.set_response("several-orders", SourceResponse::Value(65));
        ns.until_replicas(NAME, 7).await;
        operator.check();
    })
}
