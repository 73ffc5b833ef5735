//! The life of a ScaledObject without an HPA.

use serde_json::{Value, json};
use testbed::twin::Failure;

use crate::site::{Operator, Plot, Says, deployment, on_both};

const NAME: &str = "direct";
const HPA: &str = "keda-hpa-direct";

#[test]
fn without_an_hpa_an_object_wakes_grows_shrinks_rests_and_leaves_all_as_it_was() -> Result<(), Failure> {
    on_both(async |plot| {
        let operator = Operator::start(&plot, &["--act=direct"]).await;
        let kubectl = plot.kubectl();
        kubectl.apply(&deployment(NAME, 2));
        let more = json!({
            "advanced": {"restoreToOriginalReplicaCount": true}, "fallback": {"failureThreshold": 1, "replicas": 6}
        });
        kubectl.apply(&plot.scaled_object(NAME, &more));
        plot.until_condition(NAME, "Ready", "True ScaledObjectReady").await;
        plot.until_replicas(NAME, 0).await;
        let status = plot.object(NAME).await["status"].clone();
        assert_eq!(status["externalMetricNames"], json!(["s0-direct"]));
        assert_eq!(status["originalReplicaCount"], 2);
        assert!(status.get("hpaName").is_none_or(|name| name == ""), "{status}");

        // Straight to as many as there is work for.
        plot.say(NAME, Says::Value(35));
        plot.until_replicas(NAME, 4).await;
        plot.until_condition(NAME, "Active", "True ScalerActive").await;
        let note = format!(
            "Normal KEDAScaleTargetActivated: Scaled apps/v1.Deployment {}/{NAME} from 0 to 4, triggered by s0-{NAME}",
            plot.namespace
        );
        plot.until_event(NAME, &note).await;
        plot.say(NAME, Says::Value(1000));
        plot.until_replicas(NAME, 10).await;
        plot.say(NAME, Says::Value(25));
        plot.until_replicas(NAME, 3).await;

        pauses(&plot).await;

        plot.say(NAME, Says::Fails("the queue is closed"));
        plot.until_replicas(NAME, 6).await;
        plot.until_condition(NAME, "Fallback", "True FallbackExists").await;
        plot.say(NAME, Says::Value(25));
        plot.until_replicas(NAME, 3).await;
        plot.until_condition(NAME, "Fallback", "False NoFallbackFound").await;

        kubectl.apply(&plot.scaled_object(
            NAME,
            &json!({"maxReplicaCount": 2,
            "advanced": {"restoreToOriginalReplicaCount": true}}),
        ));
        plot.until_replicas(NAME, 2).await;
        plot.say(NAME, Says::Value(0));
        plot.until_replicas(NAME, 0).await;
        assert_eq!(plot.hpa(HPA).await, Value::Null);
        kubectl.say(&format!("delete so {NAME}"));
        assert_eq!(plot.object(NAME).await, Value::Null);
        assert_eq!(plot.replicas(NAME).await, 2, "as many as at first");
        operator.check();
    })
}

/// Begins and ends at three, for a value of 25.
async fn pauses(plot: &Plot) {
    let kubectl = plot.kubectl();
    let annotate = |what: &str| kubectl.say(&format!("annotate so {NAME} autoscaling.keda.sh/{what}"));
    annotate("paused-replicas=5");
    plot.until_replicas(NAME, 5).await;
    plot.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
    annotate("paused-replicas-");
    plot.until_replicas(NAME, 3).await;
    annotate("paused-scale-in=true");
    plot.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
    plot.say(NAME, Says::Value(15));
    plot.rounds(NAME, 6).await;
    assert_eq!(plot.replicas(NAME).await, 3, "no scale-in");
    plot.say(NAME, Says::Value(55));
    plot.until_replicas(NAME, 6).await;
    annotate("paused-scale-in-");
    plot.say(NAME, Says::Value(25));
    plot.until_replicas(NAME, 3).await;
    annotate("paused-scale-out=true");
    plot.until_condition(NAME, "Paused", "True ScaledObjectPaused").await;
    plot.say(NAME, Says::Value(95));
    plot.rounds(NAME, 6).await;
    assert_eq!(plot.replicas(NAME).await, 3, "no scale-out");
    plot.say(NAME, Says::Value(25));
    annotate("paused-scale-out-");
    plot.until_condition(NAME, "Paused", "False ScaledObjectUnpaused").await;
}

#[test]
fn an_object_goes_from_an_hpa_to_none_and_back() -> Result<(), Failure> {
    on_both(async |plot| {
        let operator = Operator::start(&plot, &[]).await;
        let kubectl = plot.kubectl();
        kubectl.apply(&deployment(NAME, 1));
        plot.say(NAME, Says::Value(35));
        kubectl.apply(&plot.scaled_object(NAME, &json!({})));
        plot.until_hpa(HPA, "presence", |hpa| !hpa.is_null()).await;
        plot.until_condition(NAME, "Active", "True ScalerActive").await;
        assert_eq!(plot.replicas(NAME).await, 1, "that is for the HPA to do");

        kubectl.say(&format!("annotate so {NAME} plimsoll.dev/act=direct"));
        plot.until_hpa(HPA, "the end", Value::is_null).await;
        plot.until_replicas(NAME, 4).await;

        kubectl.say(&format!("annotate so {NAME} plimsoll.dev/act=hpa --overwrite"));
        plot.until_hpa(HPA, "return", |hpa| !hpa.is_null()).await;
        plot.until_object(NAME, "the name", |found| found["status"]["hpaName"] == HPA).await;
        plot.say(NAME, Says::Value(75));
        plot.rounds(NAME, 6).await;
        assert_eq!(plot.replicas(NAME).await, 4, "that is for the HPA to do again");
        // But rest is still ours to give.
        plot.say(NAME, Says::Value(0));
        plot.until_replicas(NAME, 0).await;
        operator.check();
    })
}
