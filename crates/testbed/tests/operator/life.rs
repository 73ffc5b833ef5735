//! A ScaledObject by kubectl, from its creation to its deletion, with an HPA: 0 ↔ 1 by the operator, 1 ↔ N by the controller that acts
//! on HPAs, from metrics that the operator serves through the API server.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{SourceResponse, TestNamespace, behavior, deployment, on_both};

const NAME: &str = "life";

#[test]
fn hpa_mode_scales_from_zero_and_back_and_restores_the_target() -> Result<(), Failure> {
    on_both(async |ns| {
        let (ns, operator) = ns.serving().await;
        let kubectl = ns.kubectl();
        kubectl.apply(&deployment(NAME, 2));
        let restore = json!({"advanced": {"restoreToOriginalReplicaCount": true}});
        let mut object = ns.scaled_object(NAME, &restore);
        object["metadata"]["labels"] = json!({"team": "a"});
        object["metadata"]["annotations"] = json!({"note": "x"});
        kubectl.apply(&object);
        is_made(&ns).await;

        // The source was never active.
        ns.until_replicas(NAME, 0).await;
        ns.until_condition(NAME, "Active", "False ScalerNotActive").await;
        let note = |from, to| format!("apps/v1.Deployment {}/{NAME} from {from} to {to}", ns.namespace);
        // The HPA may have scaled to its minimum of 1 before the first poll.
        let deactivated =
            [2, 1].map(|from| format!("Normal KEDAScaleTargetDeactivated: Deactivated {}", note(from, 0)));
        ns.until("event of the deactivation", async || {
            let reported = ns.events(NAME).await;
            if reported.iter().any(|reported| deactivated.contains(reported)) {
                Ok(())
            } else {
                Err(reported)
            }
        })
        .await;
        is_shown(&ns, ["True", "False", "False", "False"]).await;

        ns.set_response(NAME, SourceResponse::Value(5));
        ns.until_replicas(NAME, 1).await;
        ns.until_condition(NAME, "Active", "True ScalerActive").await;
        let reported =
            format!("Normal KEDAScaleTargetActivated: Scaled {}, triggered by s0-{NAME}", note(0, 1));
        ns.until_event(NAME, &reported).await;
        ns.until_object(NAME, "lastActiveTime", |found| {
            let status = &found["status"];
            status["lastActiveTime"].is_string()
                && status["triggersActivity"] == json!({(format!("s0-{NAME}")): {"isActive": true}})
        })
        .await;
        is_shown(&ns, ["True", "True", "False", "False"]).await;

        ns.set_response(NAME, SourceResponse::Value(45));
        ns.until_replicas(NAME, 5).await;
        ns.until_condition(NAME, "HPAActive", "True HPAActive").await;
        let reported = format!(
            "Normal SuccessfulRescale: New size: 5; reason: external metric s0-{NAME}\
             (&LabelSelector{{MatchLabels:map[string]string{{scaledobject.keda.sh/name: {NAME},}},\
             MatchExpressions:[]LabelSelectorRequirement{{}},}}) above target"
        );
        ns.until_event(&format!("keda-hpa-{NAME}"), &reported).await;
        ns.set_response(NAME, SourceResponse::Value(1000));
        ns.until_replicas(NAME, 10).await;
        ns.set_response(NAME, SourceResponse::Value(5));
        ns.until_replicas(NAME, 1).await;
        ns.set_response(NAME, SourceResponse::Value(0));
        ns.until_replicas(NAME, 0).await;
        ns.until_event(NAME, &format!("Normal KEDAScaleTargetDeactivated: Deactivated {}", note(1, 0))).await;
        // At zero replicas the HPA is disabled, which is no error.
        ns.until_condition(NAME, "HPAActive", "True ScalingDisabled").await;

        kubectl.run_ok(&format!("delete scaledobject {NAME}"));
        assert_eq!(ns.object(NAME).await, Value::Null, "kubectl returns when the finalizer is gone");
        assert_eq!(ns.replicas(NAME).await, 2, "as many as at first");
        ns.until_hpa(&format!("keda-hpa-{NAME}"), "the end", Value::is_null).await;
        ns.until_event(NAME, "Warning ScaledObjectDeleted: ScaledObject was deleted").await;
        operator.check();
    })
}

/// The HPA, the status and the conditions of a new object.
async fn is_made(ns: &TestNamespace) {
    let hpa = ns.until_hpa(&format!("keda-hpa-{NAME}"), "presence", |hpa| !hpa.is_null()).await;
    let object = ns.object(NAME).await;
    let meta = &hpa["metadata"];
    let labels = json!({
        "app.kubernetes.io/managed-by": "keda-operator", "app.kubernetes.io/name": format!("keda-hpa-{NAME}"),
        "app.kubernetes.io/part-of": NAME, "app.kubernetes.io/version": meta["labels"]["app.kubernetes.io/version"],
        "scaledobject.keda.sh/name": NAME, "team": "a"
    });
    assert_eq!(meta["labels"], labels);
    assert_eq!(meta["annotations"], object["metadata"]["annotations"]);
    assert_eq!(meta["annotations"]["note"], "x");
    let owner = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": NAME, "uid": object["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true
    });
    assert_eq!(meta["ownerReferences"], json!([owner]));
    let spec = &hpa["spec"];
    assert_eq!((&spec["minReplicas"], &spec["maxReplicas"]), (&json!(1), &json!(10)));
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME});
    assert_eq!(spec["scaleTargetRef"], target);
    let window = &behavior()["scaleDown"]["stabilizationWindowSeconds"];
    assert_eq!(spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"], *window);
    let metric = json!({"type": "External", "external": {
        "metric": {
            "name": format!("s0-{NAME}"), "selector": {"matchLabels": {"scaledobject.keda.sh/name": NAME}}
        },
        "target": {"type": "AverageValue", "averageValue": "10"}
    }});
    assert_eq!(spec["metrics"], json!([metric]));

    ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
    let object = ns.object(NAME).await;
    assert_eq!(object["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
    assert_eq!(object["metadata"]["labels"]["scaledobject.keda.sh/name"], NAME);
    let status = &object["status"];
    assert_eq!(status["hpaName"], format!("keda-hpa-{NAME}"));
    assert_eq!(status["scaleTargetKind"], "apps/v1.Deployment");
    let target = json!({"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"});
    assert_eq!(status["scaleTargetGVKR"], target);
    assert_eq!(status["originalReplicaCount"], 2);
    assert_eq!(status["externalMetricNames"], json!([format!("s0-{NAME}")]));
    assert_eq!((&status["triggersTypes"], &status["authenticationsTypes"]), (&json!("external"), &json!("")));
    assert_eq!(
        TestNamespace::message(&object, "Ready"),
        "ScaledObject is defined correctly and is ready for scaling"
    );
    assert_eq!(TestNamespace::condition(&object, "Fallback"), "False NoFallbackFound");
    assert_eq!(TestNamespace::condition(&object, "Paused"), "False ");
    for reported in [
        "Normal ScaledObjectReady: ScaledObject is ready for scaling",
        "Normal KEDAScalersStarted: Started scalers watch",
        "Normal KEDAScalersStarted: Scaler external is built",
    ] {
        ns.until_event(NAME, reported).await;
    }
}

/// What `kubectl get so` prints, without the age.
async fn is_shown(ns: &TestNamespace, states: [&str; 4]) {
    let kubectl = ns.kubectl();
    let titles = "NAME SCALETARGETKIND SCALETARGETNAME MIN MAX READY ACTIVE FALLBACK PAUSED TRIGGERS AUTHENTICATIONS AGE";
    let [ready, active, fallback, paused] = states;
    let row = [NAME, "apps/v1.Deployment", NAME, "0", "10", ready, active, fallback, paused, "external"];
    ns.until("what kubectl prints", async || {
        let lines = kubectl.words(&format!("get so {NAME}"));
        assert_eq!(lines[0].join(" "), titles);
        if lines[1][..row.len()] == row { Ok(()) } else { Err(lines) }
    })
    .await;
}
