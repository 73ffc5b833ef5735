//! TriggerAuthentications: who uses them, and what is told of them; where events go.

use http::Method;
use serde_json::{Value, json};

use super::bench::{Bench, condition, objects};

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
async fn who_uses_an_authentication_stands_in_its_status() {
    let bench = Bench::start().await;
    let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "till"}});
    bench.create("/api/v1/namespaces", elsewhere).await;
    bench
        .create(SHARED.trim_end_matches("/shared"), authentication("ClusterTriggerAuthentication", "shared"))
        .await;
    bench.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    bench.deployment("a", 1).await;
    bench.deployment("b", 1).await;
    let (cluster, namespaced) =
        (("ClusterTriggerAuthentication", "shared"), ("TriggerAuthentication", "own"));
    bench.create(&objects(""), scaled_object("a", &[cluster, namespaced])).await;
    bench.create(&objects(""), scaled_object("b", &[cluster, cluster])).await;
    // Of the same name, in another namespace; what it would scale is not there, but it uses the authentication.
    let others = "/apis/keda.sh/v1alpha1/namespaces/till/scaledobjects";
    bench.create(others, scaled_object("a", &[cluster])).await;
    let users = async |of: &str| {
        let status = bench.get(of).await.unwrap()["status"].clone();
        let mut names: Vec<String> =
            status["scaledobjects"].as_str().unwrap_or_default().split(',').map(str::to_owned).collect();
        names.sort();
        names.join(",")
    };
    bench.until("both use it", async || users(SHARED).await == "a,b").await;
    bench.until("one uses it", async || users(OWN).await == "a").await;
    assert_eq!(bench.status("b").await["authenticationsTypes"], "shared");
    bench.until("a is ready", async || bench.condition("a", "Ready").await.0 == "True").await;
    assert_eq!(bench.status("a").await["authenticationsTypes"], "shared,own");

    bench.delete(&objects("a")).await;
    bench.until("it is gone", async || bench.get(&objects("a")).await.is_none()).await;
    bench.until("nobody uses it", async || users(OWN).await.is_empty()).await;
    assert_eq!(users(SHARED).await, "a,b", "its namesake does");
    bench.delete(&format!("{others}/a")).await;
    bench.until("one is left", async || users(SHARED).await == "b").await;

    for (path, name) in [(OWN, "own"), (SHARED, "shared")] {
        assert_eq!(bench.get(path).await.unwrap()["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
        bench.delete(path).await;
        bench.until(name, async || bench.get(path).await.is_none()).await;
    }
    for reason in ["TriggerAuthenticationAdded", "TriggerAuthenticationDeleted"] {
        bench.until(reason, async || bench.has_event("own", reason).await).await;
    }
    let of_cluster = async |reason: &str| {
        let all = bench.get("/api/v1/namespaces/default/events").await.unwrap();
        all["items"].as_array().unwrap().iter().any(|event| event["reason"] == reason)
    };
    for reason in ["ClusterTriggerAuthenticationAdded", "ClusterTriggerAuthenticationDeleted"] {
        bench.until(reason, async || of_cluster(reason).await).await;
    }
    bench.stop().await;
}

async fn names(bench: &Bench, of: &str) -> String {
    let status = bench.get(of).await.unwrap_or_default()["status"].clone();
    status["scaledobjects"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn many_who_come_at_once_are_all_noted() {
    let bench = Bench::start().await;
    bench.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    let own = ("TriggerAuthentication", "own");
    let all: Vec<String> = (10..60).map(|number| format!("so-{number}")).collect();
    for name in &all {
        bench.deployment(name, 1).await;
    }
    // They are seen together, and reconciled together.
    bench.wire.hold("/scaledobjects");
    for name in &all {
        bench.create(&objects(""), scaled_object(name, &[own])).await;
    }
    bench.wire.release();
    bench.until("the last is ready", async || bench.condition("so-59", "Ready").await.0 == "True").await;
    let sorted = async || {
        let mut found: Vec<String> = names(&bench, OWN).await.split(',').map(str::to_owned).collect();
        found.sort();
        found
    };
    bench.until("all are noted", async || sorted().await.len() >= all.len()).await;
    assert_eq!(sorted().await, all);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_turns_to_another_authentication_is_noted_there_alone() {
    let bench = Bench::start().await;
    let (all, of_cluster) = (OWN.trim_end_matches("/own"), SHARED.trim_end_matches("/shared"));
    bench.create(all, authentication("TriggerAuthentication", "own")).await;
    bench.create(all, authentication("TriggerAuthentication", "shared")).await;
    bench.create(of_cluster, authentication("ClusterTriggerAuthentication", "shared")).await;
    bench.deployment("a", 1).await;
    bench.deployment("b", 1).await;
    let (own, namespaced, cluster) = (
        ("TriggerAuthentication", "own"),
        ("TriggerAuthentication", "shared"),
        ("ClusterTriggerAuthentication", "shared"),
    );
    bench.create(&objects(""), scaled_object("a", &[own])).await;
    bench.create(&objects(""), scaled_object("b", &[own])).await;
    bench.until("both use it", async || names(&bench, OWN).await.len() == 3).await;
    let turn = async |to: (&str, &str)| {
        bench.patch(&objects("a"), json!({"spec": scaled_object("a", &[to])["spec"]})).await;
    };
    let other = &format!("{all}/shared");
    turn(namespaced).await;
    bench.until("it uses the other", async || names(&bench, other).await == "a").await;
    bench.until("it uses that no longer", async || names(&bench, OWN).await == "b").await;
    // Of the same name, but in no namespace.
    turn(cluster).await;
    bench.until("it uses a third", async || names(&bench, SHARED).await == "a").await;
    bench.until("it uses neither", async || names(&bench, other).await.is_empty()).await;
    assert_eq!(names(&bench, OWN).await, "b");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_authentication_is_let_go_although_the_server_was_away() {
    let bench = Bench::start().await;
    bench.wire.refuse(Method::PATCH, "/triggerauthentications/own", 500, 3);
    bench.create(OWN.trim_end_matches("/own"), authentication("TriggerAuthentication", "own")).await;
    let is_held = async || bench.get(OWN).await.is_some_and(|own| own["metadata"]["finalizers"].is_array());
    bench.until("it is held all the same", is_held).await;
    bench.wire.refuse(Method::PATCH, "/triggerauthentications/own", 503, 5);
    bench.delete(OWN).await;
    bench.until("it is gone", async || bench.get(OWN).await.is_none()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_destination_to_which_nobody_delivers_says_so() {
    let bench = Bench::start().await;
    let source = |name: &str, destination: Value| {
        json!({"apiVersion": "eventing.keda.sh/v1alpha1", "kind": "CloudEventSource", "metadata": {"name": name},
            "spec": {"destination": destination}})
    };
    let topic = json!({"azureEventGridTopic": {"endpoint": "https://topic.example"}});
    bench.create(SOURCES, source("topic", topic)).await;
    bench.create(SOURCES, source("server", json!({"http": {"uri": "http://127.0.0.1:9/take"}}))).await;
    let active = async |name: &str| {
        let object = bench.get(&format!("{SOURCES}/{name}")).await.unwrap();
        condition(&object["status"], "Active")
    };
    bench.until("that is known", async || active("topic").await.1 == "CloudEventSourceFailed").await;
    assert_eq!(active("topic").await.0, "False");
    bench.until("this is tried", async || active("server").await.1 == "CloudEventSourceActive").await;
    bench.stop().await;
}
