//! All forms of pauses, by `kubectl annotate`.

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{Kubectl, Operator, SourceResponse, TestNamespace, deployment, on_both};

const NAME: &str = "paused";
const HPA: &str = "keda-hpa-paused";

fn annotate(kubectl: &Kubectl, what: &str) {
    kubectl.run_ok(&format!("annotate so {NAME} autoscaling.keda.sh/{what}"));
}

async fn begin(ns: &TestNamespace) -> (Operator, Kubectl) {
    let operator = Operator::start(ns, &[]).await;
    let kubectl = ns.kubectl();
    kubectl.apply(&deployment(NAME, 1));
    ns.set_response(NAME, SourceResponse::Value(5));
    kubectl.apply(&ns.scaled_object(NAME, &json!({})));
    ns.until_condition(NAME, "Active", "True ScalerActive").await;
    ns.until_hpa(HPA, "presence", |hpa| !hpa.is_null()).await;
    (operator, kubectl)
}

#[test]
fn pause_deletes_the_hpa_and_sets_the_count_until_it_ends() -> Result<(), Failure> {
    on_both(async |ns| {
        let (operator, kubectl) = begin(&ns).await;
        annotate(&kubectl, "paused=true");
        ns.until_hpa(HPA, "the end", Value::is_null).await;
        ns.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
        let object = ns.object(NAME).await;
        assert_eq!(TestNamespace::message(&object, "Paused"), "ScaledObject is paused");
        assert_eq!(TestNamespace::condition(&object, "Ready"), "True ScaledObjectReady");
        assert_eq!(TestNamespace::message(&object, "Ready"), "ScaledObject is paused");
        assert_eq!(ns.replicas(NAME).await, 1, "it stays where it is");
        for reported in [
            "Normal ScaledObjectPaused: ScaledObject is paused",
            "Normal KEDAScalersStopped: Stopped scalers watch",
        ] {
            ns.until_event(NAME, reported).await;
        }
        assert_eq!(kubectl.words(&format!("get so {NAME}"))[1][8], "True", "PAUSED");

        // Paused at a count, and again after the annotation is edited.
        for count in [3, 0] {
            annotate(&kubectl, &format!("paused-replicas={count} --overwrite"));
            ns.until_replicas(NAME, count).await;
            ns.until_object(NAME, "pausedReplicaCount", |found| {
                found["status"]["pausedReplicaCount"] == count
            })
            .await;
        }
        // It takes precedence over `paused: "false"`.
        annotate(&kubectl, "paused=false --overwrite");
        ns.until_object(NAME, "the annotation", |found| {
            found["metadata"]["annotations"]["autoscaling.keda.sh/paused"] == "false"
        })
        .await;
        // It stays so during several polls of another object.
        kubectl.apply(&deployment("other", 0));
        ns.set_response("other", SourceResponse::Value(1));
        kubectl.apply(&ns.scaled_object("other", &json!({})));
        ns.until_replicas("other", 1).await;
        ns.rounds("other", 4).await;
        assert_eq!((ns.hpa(HPA).await, ns.replicas(NAME).await), (Value::Null, 0));

        // A source is not queried while the object is paused: the end of the pause activates it.
        annotate(&kubectl, "paused-replicas-");
        ns.until_hpa(HPA, "return", |hpa| !hpa.is_null()).await;
        ns.until_replicas(NAME, 1).await;
        ns.until_condition(NAME, "Paused", "False ScaledObjectUnpaused").await;
        let object = ns.object(NAME).await;
        assert_eq!(TestNamespace::message(&object, "Paused"), "pause annotation removed for ScaledObject");
        assert_eq!(object["status"].get("pausedReplicaCount"), None);
        let reported = "Normal ScaledObjectUnpaused: pause annotation removed for ScaledObject";
        ns.until_event(NAME, reported).await;

        // An invalid count is reported, and corrected by the next edit.
        annotate(&kubectl, "paused-replicas=abc");
        ns.until_object(NAME, "what is wrong", |found| {
            TestNamespace::condition(found, "Ready") == "False ScaledObjectCheckFailed"
                && TestNamespace::message(found, "Ready").contains("failed to parse paused replica count")
        })
        .await;
        annotate(&kubectl, "paused-replicas=2 --overwrite");
        ns.until_replicas(NAME, 2).await;
        ns.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        operator.check();
    })
}

#[test]
fn pause_in_one_direction_stops_only_that_direction() -> Result<(), Failure> {
    on_both(async |ns| {
        let (operator, kubectl) = begin(&ns).await;
        let policy = |direction: &'static str| {
            move |hpa: &Value| hpa["spec"]["behavior"][direction]["selectPolicy"] == "Disabled"
        };
        annotate(&kubectl, "paused-scale-in=true");
        ns.until_hpa(HPA, "no way down", policy("scaleDown")).await;
        ns.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
        ns.set_response(NAME, SourceResponse::Value(0));
        // The test waits longer than the cooldown of one second.
        ns.until_condition(NAME, "Active", "False ScalerNotActive").await;
        ns.rounds(NAME, 6).await;
        assert_eq!(ns.replicas(NAME).await, 1, "no scale-in");

        annotate(&kubectl, "paused-scale-in-");
        ns.until_replicas(NAME, 0).await;
        ns.until_hpa(HPA, "a way down", |hpa| !policy("scaleDown")(hpa)).await;
        ns.until_condition(NAME, "Paused", "False ScaledObjectUnpaused").await;

        annotate(&kubectl, "paused-scale-out=true");
        ns.until_hpa(HPA, "no way up", policy("scaleUp")).await;
        ns.set_response(NAME, SourceResponse::Value(25));
        ns.until_condition(NAME, "Active", "True ScalerActive").await;
        ns.rounds(NAME, 6).await;
        assert_eq!(ns.replicas(NAME).await, 0, "no scale-out");
        annotate(&kubectl, "paused-scale-out-");
        ns.until_replicas(NAME, 1).await;

        // Activation is forced although the source reports no load.
        ns.set_response(NAME, SourceResponse::Value(0));
        ns.until_replicas(NAME, 0).await;
        annotate(&kubectl, "force-activation=true");
        ns.until_replicas(NAME, 1).await;
        ns.until_object(NAME, "why", |found| {
            TestNamespace::message(found, "Active")
                == "Scaling is performed because activation is being forced by annotation"
        })
        .await;
        annotate(&kubectl, "force-activation-");
        ns.until_replicas(NAME, 0).await;
        operator.check();
    })
}
