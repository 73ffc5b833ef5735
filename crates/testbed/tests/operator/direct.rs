//! A ScaledObject without an HPA, from its creation to its deletion.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{Operator, SourceResponse, TestNamespace, deployment, on_both};

const NAME: &str = "direct";
const HPA: &str = "keda-hpa-direct";

#[test]
fn direct_mode_scales_from_zero_and_back_and_restores_the_target() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &["--act=direct"]).await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 2));
        let more = json!({
            "advanced": {"restoreToOriginalReplicaCount": true}, "fallback": {"failureThreshold": 1, "replicas": 6}
        });
        kubectl.apply(&ns.scaled_object(NAME, &more));
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        ns.until_replicas(NAME, 0).await;
        let status = ns.object(NAME).await["status"].clone();
        assert_eq!(status["externalMetricNames"], json!(["s0-direct"]));
        assert_eq!(status["originalReplicaCount"], 2);
        assert!(status.get("hpaName").is_none_or(|name| name == ""), "{status}");

        // It is scaled to the load in one step.
        ns.set_response(NAME, SourceResponse::Value(35));
        ns.until_replicas(NAME, 4).await;
        ns.until_condition(NAME, "Active", "True ScalerActive").await;
        let note = format!(
            "Normal KEDAScaleTargetActivated: Scaled apps/v1.Deployment {}/{NAME} from 0 to 4, triggered by s0-{NAME}",
            ns.namespace
        );
        ns.until_event(NAME, &note).await;
        ns.set_response(NAME, SourceResponse::Value(1000));
        ns.until_replicas(NAME, 10).await;
        ns.set_response(NAME, SourceResponse::Value(25));
        ns.until_replicas(NAME, 3).await;

        pauses(&ns).await;

        ns.set_response(NAME, SourceResponse::Fails("the queue is closed"));
        ns.until_replicas(NAME, 6).await;
        ns.until_condition(NAME, "Fallback", "True FallbackExists").await;
        ns.set_response(NAME, SourceResponse::Value(25));
        ns.until_replicas(NAME, 3).await;
        ns.until_condition(NAME, "Fallback", "False NoFallbackFound").await;

        kubectl.apply(&ns.scaled_object(
            NAME,
            &json!({"maxReplicaCount": 2,
            "advanced": {"restoreToOriginalReplicaCount": true}}),
        ));
        ns.until_replicas(NAME, 2).await;
        ns.set_response(NAME, SourceResponse::Value(0));
        ns.until_replicas(NAME, 0).await;
        assert_eq!(ns.hpa(HPA).await, Value::Null);
        kubectl.run_ok(&format!("delete so {NAME}"));
        assert_eq!(ns.object(NAME).await, Value::Null);
        assert_eq!(ns.replicas(NAME).await, 2, "as many as at first");
        operator.check();
    })
}

/// Begins and ends at three, for a value of 25.
async fn pauses(ns: &TestNamespace) {
    let kubectl = ns.kubectl();
    let annotate = |what: &str| kubectl.run_ok(&format!("annotate so {NAME} autoscaling.keda.sh/{what}"));
    annotate("paused-replicas=5");
    ns.until_replicas(NAME, 5).await;
    ns.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
    annotate("paused-replicas-");
    ns.until_replicas(NAME, 3).await;
    annotate("paused-scale-in=true");
    ns.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
    ns.set_response(NAME, SourceResponse::Value(15));
    ns.rounds(NAME, 6).await;
    assert_eq!(ns.replicas(NAME).await, 3, "no scale-in");
    ns.set_response(NAME, SourceResponse::Value(55));
    ns.until_replicas(NAME, 6).await;
    annotate("paused-scale-in-");
    ns.set_response(NAME, SourceResponse::Value(25));
    ns.until_replicas(NAME, 3).await;
    annotate("paused-scale-out=true");
    ns.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
    ns.set_response(NAME, SourceResponse::Value(95));
    ns.rounds(NAME, 6).await;
    assert_eq!(ns.replicas(NAME).await, 3, "no scale-out");
    ns.set_response(NAME, SourceResponse::Value(25));
    annotate("paused-scale-out-");
    ns.until_condition(NAME, "Paused", "False ScaledObjectUnpaused").await;
}

#[test]
fn scaling_mode_changes_between_hpa_and_direct() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &[]).await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 1));
        ns.set_response(NAME, SourceResponse::Value(35));
        kubectl.apply(&ns.scaled_object(NAME, &json!({})));
        ns.until_hpa(HPA, "presence", |hpa| !hpa.is_null()).await;
        ns.until_condition(NAME, "Active", "True ScalerActive").await;
        assert_eq!(ns.replicas(NAME).await, 1, "that is for the HPA to do");

        kubectl.run_ok(&format!("annotate so {NAME} plimsoll.dev/act=direct"));
        ns.until_hpa(HPA, "the end", Value::is_null).await;
        ns.until_replicas(NAME, 4).await;

        kubectl.run_ok(&format!("annotate so {NAME} plimsoll.dev/act=hpa --overwrite"));
        ns.until_hpa(HPA, "return", |hpa| !hpa.is_null()).await;
        ns.until_object(NAME, "the name", |found| found["status"]["hpaName"] == HPA).await;
        ns.set_response(NAME, SourceResponse::Value(75));
        ns.rounds(NAME, 6).await;
        assert_eq!(ns.replicas(NAME).await, 4, "that is for the HPA to do again");
        // Deactivation still works.
        ns.set_response(NAME, SourceResponse::Value(0));
        ns.until_replicas(NAME, 0).await;
        operator.check();
    })
}
