//! TriggerAuthentications: their users, finalizers and events; destinations of CloudEvents.

use http::Method;
use serde_json::{Value, json};

use super::env::{TestEnv, condition, objects};

const SHARED: &str = "/apis/keda.sh/v1alpha1/clustertriggerauthentications/shared";
const OWN: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/triggerauthentications/own";
const SOURCES: &str = "/apis/eventing.keda.sh/v1alpha1/namespaces/shop/cloudeventsources";

fn authentication(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": {}})
}

fn scaled_object(name: &str, references: &[(&str, &str)]) -> Value {
    let triggers: Vec<Value> = references
        .iter()
        .map(|(kind, of)| {
            json!({"type": "scripted", "metadata": {"source": of}, "authenticationRef": {"kind": kind, "name": of}})
        })
        .collect();
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name},
        "spec": {"scaleTargetRef": {"name": name}, "triggers": triggers}})
}

#[tokio::test(start_paused = true)]
async fn users_are_listed_in_the_status_of_a_trigger_authentication() {
    let env = TestEnv::start().await;
    let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "till"}});
    env.create("/api/v1/namespaces", elsewhere).await;
    env.create(SHARED.trim_end_matches("/shared"), authentication("ClusterTriggerAuthentication", "shared"))
        .await;
    env.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    env.deployment("a", 1).await;
    env.deployment("b", 1).await;
    let (cluster, namespaced) =
        (("ClusterTriggerAuthentication", "shared"), ("TriggerAuthentication", "own"));
    env.create(&objects(""), scaled_object("a", &[cluster, namespaced])).await;
    env.create(&objects(""), scaled_object("b", &[cluster, cluster])).await;
    // An object with the same name in another namespace: its target does not exist, but it uses the authentication.
    let others = "/apis/keda.sh/v1alpha1/namespaces/till/scaledobjects";
    env.create(others, scaled_object("a", &[cluster])).await;
    let users = async |of: &str| {
        let status = env.get(of).await.unwrap()["status"].clone();
        let mut names: Vec<String> =
            status["scaledobjects"].as_str().unwrap_or_default().split(',').map(str::to_owned).collect();
        names.sort();
        names.join(",")
    };
    env.until("both use it", async || users(SHARED).await == "a,b").await;
    env.until("one uses it", async || users(OWN).await == "a").await;
    assert_eq!(env.status("b").await["authenticationsTypes"], "shared");
    env.until("a is ready", async || env.condition("a", "Ready").await.0 == "True").await;
    assert_eq!(env.status("a").await["authenticationsTypes"], "shared,own");

    env.delete(&objects("a")).await;
    env.until("it is gone", async || env.get(&objects("a")).await.is_none()).await;
    env.until("no object uses it", async || users(OWN).await.is_empty()).await;
    assert_eq!(users(SHARED).await, "a,b", "its namesake does");
    env.delete(&format!("{others}/a")).await;
    env.until("one is left", async || users(SHARED).await == "b").await;

    for (path, name) in [(OWN, "own"), (SHARED, "shared")] {
        assert_eq!(env.get(path).await.unwrap()["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
        env.delete(path).await;
        env.until(name, async || env.get(path).await.is_none()).await;
    }
    for reason in ["TriggerAuthenticationAdded", "TriggerAuthenticationDeleted"] {
        env.until(reason, async || env.has_event("own", reason).await).await;
    }
    let of_cluster = async |reason: &str| {
        let all = env.get("/api/v1/namespaces/default/events").await.unwrap();
        all["items"].as_array().unwrap().iter().any(|event| event["reason"] == reason)
    };
    for reason in ["ClusterTriggerAuthenticationAdded", "ClusterTriggerAuthenticationDeleted"] {
        env.until(reason, async || of_cluster(reason).await).await;
    }
    env.stop().await;
}

async fn names(env: &TestEnv, of: &str) -> String {
    let status = env.get(of).await.unwrap_or_default()["status"].clone();
    status["scaledobjects"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn concurrent_users_are_all_listed() {
    let env = TestEnv::start().await;
    env.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    let own = ("TriggerAuthentication", "own");
    let all: Vec<String> = (10..60).map(|number| format!("so-{number}")).collect();
    for name in &all {
        env.deployment(name, 1).await;
    }
    // They are delivered and reconciled at the same time.
    env.client_faults.hold_watch("/scaledobjects");
    for name in &all {
        env.create(&objects(""), scaled_object(name, &[own])).await;
    }
    env.client_faults.release_watches();
    env.until("the last is ready", async || env.condition("so-59", "Ready").await.0 == "True").await;
    let sorted = async || {
        let mut found: Vec<String> = names(&env, OWN).await.split(',').map(str::to_owned).collect();
        found.sort();
        found
    };
    env.until("all are noted", async || sorted().await.len() >= all.len()).await;
    assert_eq!(sorted().await, all);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_reference_moves_the_user() {
    let env = TestEnv::start().await;
    let (all, of_cluster) = (OWN.trim_end_matches("/own"), SHARED.trim_end_matches("/shared"));
    env.create(all, authentication("TriggerAuthentication", "own")).await;
    env.create(all, authentication("TriggerAuthentication", "shared")).await;
    env.create(of_cluster, authentication("ClusterTriggerAuthentication", "shared")).await;
    env.deployment("a", 1).await;
    env.deployment("b", 1).await;
    let (own, namespaced, cluster) = (
        ("TriggerAuthentication", "own"),
        ("TriggerAuthentication", "shared"),
        ("ClusterTriggerAuthentication", "shared"),
    );
    env.create(&objects(""), scaled_object("a", &[own])).await;
    env.create(&objects(""), scaled_object("b", &[own])).await;
    env.until("both use it", async || names(&env, OWN).await.len() == 3).await;
    let turn = async |to: (&str, &str)| {
        env.patch(&objects("a"), json!({"spec": scaled_object("a", &[to])["spec"]})).await;
    };
    let other = &format!("{all}/shared");
    turn(namespaced).await;
    env.until("it uses the other", async || names(&env, other).await == "a").await;
    env.until("it uses that no longer", async || names(&env, OWN).await == "b").await;
    // A ClusterTriggerAuthentication with the same name.
    turn(cluster).await;
    env.until("it uses a third", async || names(&env, SHARED).await == "a").await;
    env.until("it uses neither", async || names(&env, other).await.is_empty()).await;
    assert_eq!(names(&env, OWN).await, "b");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn finalizer_of_an_authentication_is_removed_after_an_outage() {
    let env = TestEnv::start().await;
    env.client_faults.refuse(Method::PATCH, "/triggerauthentications/own", 500, 3);
    env.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    let is_held = async || env.get(OWN).await.is_some_and(|own| own["metadata"]["finalizers"].is_array());
    env.until("it is held all the same", is_held).await;
    env.client_faults.refuse(Method::PATCH, "/triggerauthentications/own", 503, 5);
    env.delete(OWN).await;
    env.until("it is gone", async || env.get(OWN).await.is_none()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unsupported_cloud_event_destination_has_a_failed_condition() {
    let env = TestEnv::start().await;
    let source = |name: &str, destination: Value| {
        json!({"apiVersion": "eventing.keda.sh/v1alpha1", "kind": "CloudEventSource", "metadata": {"name": name},
            "spec": {"destination": destination}})
    };
    let topic = json!({"azureEventGridTopic": {"endpoint": "https://topic.example"}});
    env.create(SOURCES, source("topic", topic)).await;
    env.create(SOURCES, source("server", json!({"http": {"uri": "http://127.0.0.1:9/take"}}))).await;
    let active = async |name: &str| {
        let object = env.get(&format!("{SOURCES}/{name}")).await.unwrap();
        condition(&object["status"], "Active")
    };
    env.until("that is known", async || active("topic").await.1 == "CloudEventSourceFailed").await;
    let (status, _, message) = active("topic").await;
    assert_eq!(status, "False");
    assert!(message.contains("azureEventGridTopic together with spec.authenticationRef"), "{message}");
    env.until("this is tried", async || active("server").await.1 == "CloudEventSourceActive").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn condition_of_a_cloud_event_source_names_the_failure() {
    let env = TestEnv::start().await;
    let topic = json!({"azureEventGridTopic": {"endpoint": "https://topic.example"}});
    let source = json!({"apiVersion": "eventing.keda.sh/v1alpha1", "kind": "CloudEventSource",
        "metadata": {"name": "topic"}, "spec": {"destination": topic, "authenticationRef": {"name": "own"}}});
    env.create(SOURCES, source).await;
    let active = async || {
        let object = env.get(&format!("{SOURCES}/topic")).await.unwrap();
        condition(&object["status"], "Active")
    };
    env.until("it is known", async || active().await.1 == "CloudEventSourceActive").await;
    // The new authentication is the event that is delivered.
    env.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    let words = "the authentication needs the parameter accessKey";
    env.until("the failure is reported", async || active().await.2.contains(words)).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn condition_of_a_cloud_event_source_that_another_leader_wrote_is_replaced() {
    let env = TestEnv::start().await;
    let source = json!({"apiVersion": "eventing.keda.sh/v1alpha1", "kind": "CloudEventSource",
        "metadata": {"name": "server"}, "spec": {"destination": {"http": {"uri": "http://127.0.0.1:9/take"}}}});
    env.create(SOURCES, source).await;
    let active = async || {
        let object = env.get(&format!("{SOURCES}/server")).await.unwrap();
        condition(&object["status"], "Active").1
    };
    env.until("it is known", async || active().await == "CloudEventSourceActive").await;
    let failed = json!([{"type": "Active", "status": "False", "reason": "CloudEventSourceFailed", "message": "of another"}]);
    env.patch(&format!("{SOURCES}/server/status"), json!({"status": {"conditions": failed}})).await;
    env.until("no delivery has failed here", async || active().await == "CloudEventSourceActive").await;
    env.stop().await;
}
