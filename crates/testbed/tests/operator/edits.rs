//! Edits reach the HPA, and edits of the HPA by others are undone.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{Operator, SourceResponse, TestNamespace, deployment, metrics_api, on_both, scripted};

const NAME: &str = "edited";
const HPA: &str = "keda-hpa-edited";

fn metric(hpa: &Value) -> (Value, Value) {
    let external = &hpa["spec"]["metrics"][0]["external"];
    (external["metric"]["name"].clone(), external["target"]["averageValue"].clone())
}

#[test]
fn edits_reach_the_hpa() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &[]).await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 0));
        kubectl.apply(&ns.scaled_object(NAME, &json!({})));
        let hpa = ns.until_hpa(HPA, "presence", |hpa| !hpa.is_null()).await;
        assert_eq!(metric(&hpa), (json!("s0-edited"), json!("10")));
        let first = hpa["metadata"]["uid"].clone();

        // Bounds and the target.
        let mut trigger = scripted(&ns, NAME);
        trigger["metadata"]["target"] = json!("25");
        kubectl.apply(&ns.scaled_object(
            NAME,
            &json!({"maxReplicaCount": 7, "minReplicaCount": 2, "triggers": [trigger]}),
        ));
        let hpa = ns.until_hpa(HPA, "a new target", |hpa| metric(hpa).1 == "25").await;
        assert_eq!((&hpa["spec"]["minReplicas"], &hpa["spec"]["maxReplicas"]), (&json!(2), &json!(7)));
        assert_eq!(hpa["metadata"]["uid"], first, "written anew, not made anew");
        ns.until_replicas(NAME, 2).await;

        // Another type of trigger, and two of them.
        let page = metrics_api(&ns, "page", "3");
        kubectl.apply(&ns.scaled_object(NAME, &json!({"triggers": [page]})));
        ns.until_hpa(HPA, "another metric", |hpa| metric(hpa) == (json!("s0-metric-api-value"), json!("3")))
            .await;
        ns.until_object(NAME, "another type", |found| {
            let status = &found["status"];
            status["triggersTypes"] == "metrics-api"
                && status["externalMetricNames"] == json!(["s0-metric-api-value"])
        })
        .await;
        ns.until_replicas(NAME, 0).await;
        ns.set_response("page", SourceResponse::Value(2));
        ns.until_replicas(NAME, 1).await;
        let both = json!({"triggers": [scripted(&ns, NAME), page]});
        kubectl.apply(&ns.scaled_object(NAME, &both));
        let two = |hpa: &Value| hpa["spec"]["metrics"].as_array().is_some_and(|all| all.len() == 2);
        ns.until_hpa(HPA, "two metrics", two).await;

        // An edit by somebody else is undone.
        kubectl.run_ok(&format!("patch hpa {HPA} --patch {{\"spec\":{{\"maxReplicas\":99}}}}"));
        ns.until_hpa(HPA, "what it was", |hpa| hpa["spec"]["maxReplicas"] == 10).await;
        kubectl.run_ok(&format!("delete hpa {HPA}"));
        ns.until_hpa(HPA, "return", |hpa| !hpa.is_null() && hpa["metadata"]["uid"] != first).await;

        // Another name.
        let named = json!({"triggers": [scripted(&ns, NAME), page],
            "advanced": {"horizontalPodAutoscalerConfig": {"name": "mine"}}});
        kubectl.apply(&ns.scaled_object(NAME, &named));
        ns.until_hpa("mine", "presence", two).await;
        ns.until_hpa(HPA, "the end", Value::is_null).await;
        ns.until_object(NAME, "the name", |found| found["status"]["hpaName"] == "mine").await;

        // An invalid trigger is reported and the HPA stays. The other trigger is active, so that the condition stays.
        ns.set_response(NAME, SourceResponse::Value(5));
        let broken = json!({"type": "metrics-api", "metadata": {"url": "http://localhost:1"}});
        let mut wrong = named.clone();
        wrong["triggers"] = json!([scripted(&ns, NAME), broken]);
        kubectl.apply(&ns.scaled_object(NAME, &wrong));
        ns.until_object(NAME, "what is wrong", |found| {
            TestNamespace::condition(found, "Ready") == "Unknown PartialTriggerError"
                && TestNamespace::message(found, "Ready").contains("valueLocation")
        })
        .await;
        assert!(two(&ns.hpa("mine").await), "an HPA does not lose what cannot be told now");
        kubectl.apply(&ns.scaled_object(NAME, &named));
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        operator.check();
    })
}

#[test]
fn missing_target_is_reported_and_noticed_when_created() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &[]).await;
        let kubectl = ns.kubectl();
        ns.set_response(NAME, SourceResponse::Value(5));
        kubectl.apply(&ns.scaled_object(NAME, &json!({})));
        ns.until_object(NAME, "what is missing", |found| {
            TestNamespace::condition(found, "Ready") == "False ScaledObjectCheckFailed"
                && TestNamespace::message(found, "Ready")
                    == "ScaledObject doesn't have correct scaleTargetRef specification: deployments.apps \
                        \"edited\" not found"
                && TestNamespace::condition(found, "Active") == "Unknown UnknownState"
        })
        .await;
        ns.until_event(NAME, "Warning ScaledObjectCheckFailed: Target resource doesn't exist").await;
        assert_eq!(ns.hpa(HPA).await, Value::Null);
        kubectl.apply(&deployment(NAME, 0));
        ns.until_replicas(NAME, 1).await;
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        // The target is deleted and created again.
        kubectl.run_ok(&format!("delete deployment {NAME}"));
        ns.until_object(NAME, "what is missing", |found| {
            TestNamespace::condition(found, "Ready").starts_with("False")
        })
        .await;
        kubectl.apply(&deployment(NAME, 0));
        ns.until_replicas(NAME, 1).await;
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        operator.check();
    })
}
