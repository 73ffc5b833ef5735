//! `WATCH_LABEL_SELECTOR`: objects without the labels belong to another operator.

use serde_json::json;

use super::env::{TestEnv, objects, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn objects_without_the_labels_are_left_alone() {
    let settings = OperatorSettings {
        label_selector: "team in (a),stage!=old".to_owned(),
        ..OperatorSettings::default()
    };
    let env = TestEnv::with(settings).await;
    env.sources.set("orders", SourceResponse::Value(25));
    for name in ["ours", "theirs"] {
        env.deployment(name, 0).await;
    }
    let theirs = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "theirs", "labels": {"team": "b"}},
        "spec": {"scaleTargetRef": {"name": "theirs"}, "pollingInterval": 5, "triggers": [trigger("orders")]}});
    env.create(&objects(""), theirs).await;
    // The label of the test environment is `team: a`.
    env.scaled_object("ours", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.until("ours is activated", async || env.replicas("ours").await == 1).await;
    assert_eq!(env.handle.objects(), (1, 0));
    assert!(env.hpa("keda-hpa-theirs").await.is_none());
    assert_eq!(env.replicas("theirs").await, 0);

    env.patch(&objects("theirs"), json!({"metadata": {"labels": {"team": "a"}}})).await;
    env.until("it is taken over", async || env.replicas("theirs").await == 1).await;
    env.stop().await;
}
