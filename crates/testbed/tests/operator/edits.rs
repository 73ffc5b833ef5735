//! What is edited reaches the HPA, and what others do to it is undone.

use serde_json::{Value, json};
use testbed::twin::Failure;

use crate::site::{Operator, Plot, Says, deployment, metrics_api, on_both, scripted};

const NAME: &str = "edited";
const HPA: &str = "keda-hpa-edited";

fn metric(hpa: &Value) -> (Value, Value) {
    let external = &hpa["spec"]["metrics"][0]["external"];
    (external["metric"]["name"].clone(), external["target"]["averageValue"].clone())
}

#[test]
fn edits_reach_the_hpa() -> Result<(), Failure> {
    on_both(async |plot| {
        let operator = Operator::start(&plot, &[]).await;
        let kubectl = plot.kubectl();
        kubectl.apply(&deployment(NAME, 0));
        kubectl.apply(&plot.scaled_object(NAME, &json!({})));
        let hpa = plot.until_hpa(HPA, "presence", |hpa| !hpa.is_null()).await;
        assert_eq!(metric(&hpa), (json!("s0-edited"), json!("10")));
        let first = hpa["metadata"]["uid"].clone();

        // Bounds and the target.
        let mut trigger = scripted(&plot, NAME);
        trigger["metadata"]["target"] = json!("25");
        kubectl.apply(&plot.scaled_object(
            NAME,
            &json!({"maxReplicaCount": 7, "minReplicaCount": 2, "triggers": [trigger]}),
        ));
        let hpa = plot.until_hpa(HPA, "a new target", |hpa| metric(hpa).1 == "25").await;
        assert_eq!((&hpa["spec"]["minReplicas"], &hpa["spec"]["maxReplicas"]), (&json!(2), &json!(7)));
        assert_eq!(hpa["metadata"]["uid"], first, "written anew, not made anew");
        plot.until_replicas(NAME, 2).await;

        // Another type of trigger, and two of them.
        let page = metrics_api(&plot, "page", "3");
        kubectl.apply(&plot.scaled_object(NAME, &json!({"triggers": [page]})));
        plot.until_hpa(HPA, "another metric", |hpa| {
            metric(hpa) == (json!("s0-metric-api-value"), json!("3"))
        })
        .await;
        plot.until_object(NAME, "another type", |found| {
            let status = &found["status"];
            status["triggersTypes"] == "metrics-api"
                && status["externalMetricNames"] == json!(["s0-metric-api-value"])
        })
        .await;
        plot.until_replicas(NAME, 0).await;
        plot.say("page", Says::Value(2));
        plot.until_replicas(NAME, 1).await;
        let both = json!({"triggers": [scripted(&plot, NAME), page]});
        kubectl.apply(&plot.scaled_object(NAME, &both));
        let two = |hpa: &Value| hpa["spec"]["metrics"].as_array().is_some_and(|all| all.len() == 2);
        plot.until_hpa(HPA, "two metrics", two).await;

        // What others do to it is undone.
        kubectl.say(&format!("patch hpa {HPA} --patch {{\"spec\":{{\"maxReplicas\":99}}}}"));
        plot.until_hpa(HPA, "what it was", |hpa| hpa["spec"]["maxReplicas"] == 10).await;
        kubectl.say(&format!("delete hpa {HPA}"));
        plot.until_hpa(HPA, "return", |hpa| !hpa.is_null() && hpa["metadata"]["uid"] != first).await;

        // Another name.
        let named = json!({"triggers": [scripted(&plot, NAME), page],
            "advanced": {"horizontalPodAutoscalerConfig": {"name": "mine"}}});
        kubectl.apply(&plot.scaled_object(NAME, &named));
        plot.until_hpa("mine", "presence", two).await;
        plot.until_hpa(HPA, "the end", Value::is_null).await;
        plot.until_object(NAME, "the name", |found| found["status"]["hpaName"] == "mine").await;

        // One that cannot work is said to be wrong, and what was there stays. The other one has work, so that this stays said.
        plot.say(NAME, Says::Value(5));
        let broken = json!({"type": "metrics-api", "metadata": {"url": "http://localhost:1"}});
        let mut wrong = named.clone();
        wrong["triggers"] = json!([scripted(&plot, NAME), broken]);
        kubectl.apply(&plot.scaled_object(NAME, &wrong));
        plot.until_object(NAME, "what is wrong", |found| {
            Plot::condition(found, "Ready") == "Unknown PartialTriggerError"
                && Plot::message(found, "Ready").contains("valueLocation")
        })
        .await;
        assert!(two(&plot.hpa("mine").await), "an HPA does not lose what cannot be told now");
        kubectl.apply(&plot.scaled_object(NAME, &named));
        plot.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        operator.check();
    })
}

#[test]
fn a_target_that_is_missing_is_said_and_its_appearance_noticed() -> Result<(), Failure> {
    on_both(async |plot| {
        let operator = Operator::start(&plot, &[]).await;
        let kubectl = plot.kubectl();
        plot.say(NAME, Says::Value(5));
        kubectl.apply(&plot.scaled_object(NAME, &json!({})));
        plot.until_object(NAME, "what is missing", |found| {
            Plot::condition(found, "Ready") == "False ScaledObjectCheckFailed"
                && Plot::message(found, "Ready")
                    == "ScaledObject doesn't have correct scaleTargetRef specification: deployments.apps \
                        \"edited\" not found"
                && Plot::condition(found, "Active") == "Unknown UnknownState"
        })
        .await;
        plot.until_event(NAME, "Warning ScaledObjectCheckFailed: Target resource doesn't exist").await;
        assert_eq!(plot.hpa(HPA).await, Value::Null);
        kubectl.apply(&deployment(NAME, 0));
        plot.until_replicas(NAME, 1).await;
        plot.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        // It goes and comes again.
        kubectl.say(&format!("delete deployment {NAME}"));
        plot.until_object(NAME, "what is missing", |found| {
            Plot::condition(found, "Ready").starts_with("False")
        })
        .await;
        kubectl.apply(&deployment(NAME, 0));
        plot.until_replicas(NAME, 1).await;
        plot.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        operator.check();
    })
}
