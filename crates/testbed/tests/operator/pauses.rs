//! All forms of pauses, by `kubectl annotate`.

use serde_json::{Value, json};
use testbed::twin::Failure;

use crate::site::{Kubectl, Operator, Plot, Says, deployment, on_both};

const NAME: &str = "paused";
const HPA: &str = "keda-hpa-paused";

fn annotate(kubectl: &Kubectl, what: &str) {
    kubectl.say(&format!("annotate so {NAME} autoscaling.keda.sh/{what}"));
}

async fn begin(plot: &Plot) -> (Operator, Kubectl) {
    let operator = Operator::start(plot, &[]).await;
    let kubectl = plot.kubectl();
    kubectl.apply(&deployment(NAME, 1));
    plot.say(NAME, Says::Value(5));
    kubectl.apply(&plot.scaled_object(NAME, &json!({})));
    plot.until_condition(NAME, "Active", "True ScalerActive").await;
    plot.until_hpa(HPA, "presence", |hpa| !hpa.is_null()).await;
    (operator, kubectl)
}

#[test]
fn a_full_pause_removes_the_hpa_and_pins_the_count_until_it_ends() -> Result<(), Failure> {
    on_both(async |plot| {
        let (operator, kubectl) = begin(&plot).await;
        annotate(&kubectl, "paused=true");
        plot.until_hpa(HPA, "the end", Value::is_null).await;
        plot.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
        let object = plot.object(NAME).await;
        assert_eq!(Plot::message(&object, "Paused"), "ScaledObject is paused");
        assert_eq!(Plot::condition(&object, "Ready"), "True ScaledObjectReady");
        assert_eq!(Plot::message(&object, "Ready"), "ScaledObject is paused");
        assert_eq!(plot.replicas(NAME).await, 1, "it stays where it is");
        for told in [
            "Normal ScaledObjectPaused: ScaledObject is paused",
            "Normal KEDAScalersStopped: Stopped scalers watch",
        ] {
            plot.until_event(NAME, told).await;
        }
        assert_eq!(kubectl.words(&format!("get so {NAME}"))[1][8], "True", "PAUSED");

        // Pinned at a count, and pinned again if somebody edits the number.
        for count in [3, 0] {
            annotate(&kubectl, &format!("paused-replicas={count} --overwrite"));
            plot.until_replicas(NAME, count).await;
            plot.until_object(NAME, "pausedReplicaCount", |found| {
                found["status"]["pausedReplicaCount"] == count
            })
            .await;
        }
        // It wins over a plain pause that says no.
        annotate(&kubectl, "paused=false --overwrite");
        plot.until_object(NAME, "the annotation", |found| {
            found["metadata"]["annotations"]["autoscaling.keda.sh/paused"] == "false"
        })
        .await;
        // As long as something else takes its time.
        kubectl.apply(&deployment("other", 0));
        plot.say("other", Says::Value(1));
        kubectl.apply(&plot.scaled_object("other", &json!({})));
        plot.until_replicas("other", 1).await;
        plot.rounds("other", 4).await;
        assert_eq!((plot.hpa(HPA).await, plot.replicas(NAME).await), (Value::Null, 0));

        // A source that has work is not heard while all is paused: what wakes it is the end of the pause.
        annotate(&kubectl, "paused-replicas-");
        plot.until_hpa(HPA, "return", |hpa| !hpa.is_null()).await;
        plot.until_replicas(NAME, 1).await;
        plot.until_condition(NAME, "Paused", "False ScaledObjectUnpaused").await;
        let object = plot.object(NAME).await;
        assert_eq!(Plot::message(&object, "Paused"), "pause annotation removed for ScaledObject");
        assert_eq!(object["status"].get("pausedReplicaCount"), None);
        let told = "Normal ScaledObjectUnpaused: pause annotation removed for ScaledObject";
        plot.until_event(NAME, told).await;

        // What cannot be read is said, and mended by the next edit.
        annotate(&kubectl, "paused-replicas=abc");
        plot.until_object(NAME, "what is wrong", |found| {
            Plot::condition(found, "Ready") == "False ScaledObjectCheckFailed"
                && Plot::message(found, "Ready").contains("failed to parse paused replica count")
        })
        .await;
        annotate(&kubectl, "paused-replicas=2 --overwrite");
        plot.until_replicas(NAME, 2).await;
        plot.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        operator.check();
    })
}

#[test]
fn a_pause_in_one_direction_stops_that_one_only() -> Result<(), Failure> {
    on_both(async |plot| {
        let (operator, kubectl) = begin(&plot).await;
        let policy = |direction: &'static str| {
            move |hpa: &Value| hpa["spec"]["behavior"][direction]["selectPolicy"] == "Disabled"
        };
        annotate(&kubectl, "paused-scale-in=true");
        plot.until_hpa(HPA, "no way down", policy("scaleDown")).await;
        plot.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
        plot.say(NAME, Says::Value(0));
        // Beyond its cooldown of a second.
        plot.until_condition(NAME, "Active", "False ScalerNotActive").await;
        plot.rounds(NAME, 6).await;
        assert_eq!(plot.replicas(NAME).await, 1, "no scale-in");

        annotate(&kubectl, "paused-scale-in-");
        plot.until_replicas(NAME, 0).await;
        plot.until_hpa(HPA, "a way down", |hpa| !policy("scaleDown")(hpa)).await;
        plot.until_condition(NAME, "Paused", "False ScaledObjectUnpaused").await;

        annotate(&kubectl, "paused-scale-out=true");
        plot.until_hpa(HPA, "no way up", policy("scaleUp")).await;
        plot.say(NAME, Says::Value(25));
        plot.until_condition(NAME, "Active", "True ScalerActive").await;
        plot.rounds(NAME, 6).await;
        assert_eq!(plot.replicas(NAME).await, 0, "no scale-out");
        annotate(&kubectl, "paused-scale-out-");
        plot.until_replicas(NAME, 1).await;

        // The other way round: work where there is none.
        plot.say(NAME, Says::Value(0));
        plot.until_replicas(NAME, 0).await;
        annotate(&kubectl, "force-activation=true");
        plot.until_replicas(NAME, 1).await;
        plot.until_object(NAME, "why", |found| {
            Plot::message(found, "Active")
                == "Scaling is performed because activation is being forced by annotation"
        })
        .await;
        annotate(&kubectl, "force-activation-");
        plot.until_replicas(NAME, 0).await;
        operator.check();
    })
}
