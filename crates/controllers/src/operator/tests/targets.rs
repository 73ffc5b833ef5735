//! Targets that can be scaled, and targets that cannot.

use api::provider::Compat;
use cluster::discovery::Discovery;
use http::Method;
use keda::admission::Verdict;
use serde_json::{Value, json};

use super::admission::created;
use super::env::{TestEnv, objects, trigger};
use super::sources::SourceResponse;
use crate::operator::Admission;

const WIDGETS: &str = "/apis/example.com/v1beta1/namespaces/shop/widgets";

/// A custom resource in two versions; the second is not the preferred one.
async fn widgets(env: &TestEnv) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": schema,
            "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [version("v1", true), version("v1beta1", false)]},
    });
    env.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widget = json!({"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 0}});
    env.create(WIDGETS, widget).await;
}

fn spec(api_version: &str, kind: &str) -> Value {
    json!({"pollingInterval": 5, "triggers": [trigger("orders")],
        "scaleTargetRef": {"name": "w", "apiVersion": api_version, "kind": kind}})
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_scaled_in_the_referenced_version() {
    let env = TestEnv::start().await;
    widgets(&env).await;
    env.sources.set("orders", SourceResponse::Value(5));
    env.scaled_object("so", spec("example.com/v1beta1", "Widget")).await;
    let size = async || env.get(&format!("{WIDGETS}/w")).await.unwrap()["spec"]["size"].clone();
    env.until("it is woken", async || size().await == 1).await;
    let status = env.status("so").await;
    assert_eq!(status["scaleTargetKind"], "example.com/v1beta1.Widget");
    assert_eq!(status["scaleTargetGVKR"]["resource"], "widgets");
    let target = &env.hpa("keda-hpa-so").await.unwrap()["spec"]["scaleTargetRef"];
    assert_eq!(target, &json!({"apiVersion": "example.com/v1beta1", "kind": "Widget", "name": "w"}));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_or_unscalable_target_is_reported() {
    let env = TestEnv::start().await;
    widgets(&env).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}});
    env.create("/api/v1/namespaces/shop/configmaps", map).await;
    let wrong = "ScaledObject doesn't have correct scaleTargetRef specification: ";
    let cases = [
        (
            "other-version",
            "example.com/v7",
            "Widget",
            "no matches for kind \"Widget\" in version \"example.com/v7\"",
            "",
        ),
        (
            "no-kind",
            "example.com/v1",
            "Gadget",
            "no matches for kind \"Gadget\" in version \"example.com/v1\"",
            "",
        ),
        ("not-scalable", "v1", "ConfigMap", "", "Target resource doesn't expose /scale subresource"),
        ("not-there", "apps/v1", "StatefulSet", "", "Target resource doesn't exist"),
    ];
    for (name, api_version, kind, _, _) in cases {
        env.scaled_object(name, spec(api_version, kind)).await;
    }
    for (name, _, _, cause, note) in cases {
        env.until(name, async || {
            let (state, reason, message) = env.condition(name, "Ready").await;
            (&*state, &*reason) == ("False", "ScaledObjectCheckFailed") && message.starts_with(wrong)
        })
        .await;
        assert!(env.condition(name, "Ready").await.2.contains(cause), "{name}");
        assert_eq!(env.condition(name, "Active").await.1, "UnknownState");
        let reported = async || env.events(name).await.into_iter().any(|(_, text)| text == note);
        if !note.is_empty() {
            env.until(note, reported).await;
        }
        assert!(env.hpa(&format!("keda-hpa-{name}")).await.is_none());
    }
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn forbidden_target_is_not_reported_as_missing() {
    let env = TestEnv::start().await;
    widgets(&env).await;
    env.sources.set("orders", SourceResponse::Value(5));
    env.client_faults.refuse(Method::GET, "/widgets/w/scale", 403, u32::MAX);
    env.scaled_object("so", spec("example.com/v1", "Widget")).await;
    let ready = async || env.condition("so", "Ready").await;
    let needed = "a role that allows to get and update widgets/scale of API group \"example.com\"";
    env.until("it says what it needs", async || ready().await.2.contains(needed)).await;
    assert_eq!(ready().await.1, "ScaledObjectCheckFailed");
    let notes: Vec<String> = env.events("so").await.into_iter().map(|(_, note)| note).collect();
    assert!(!notes.iter().any(|note| note.starts_with("Target resource")), "{notes:?}");
    env.client_faults.clear_refusals();
    let size = async || env.get(&format!("{WIDGETS}/w")).await.unwrap()["spec"]["size"].clone();
    env.until("it is woken once it may be", async || size().await == 1).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_target_is_found_without_permission_to_get_it() {
    let env = TestEnv::start().await;
    widgets(&env).await;
    env.client_faults.refuse(Method::GET, "/widgets/", 404, 1);
    env.client_faults.refuse(Method::GET, "/widgets/", 403, 1);
    env.scaled_object("so", spec("example.com/v1", "Widget")).await;
    let notes = async || env.events("so").await.into_iter().map(|(_, note)| note).collect::<Vec<_>>();
    let reported = "Target resource doesn't exist".to_owned();
    env.until("it is reported", async || notes().await.contains(&reported)).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn edited_reference_scales_the_new_target() {
    let env = TestEnv::start().await;
    env.deployment("one", 2).await;
    env.deployment("two", 0).await;
    env.sources.set("orders", SourceResponse::Value(5));
    let target = |name: &str| json!({"name": name});
    let spec =
        json!({"pollingInterval": 3600, "scaleTargetRef": target("one"), "triggers": [trigger("orders")]});
    env.scaled_object("so", spec).await;
    env.until("it is active", async || env.condition("so", "Active").await.0 == "True").await;
    env.patch(&objects("so"), json!({"spec": {"scaleTargetRef": target("two")}})).await;
    env.until("it wakes the other at once", async || env.replicas("two").await == 1).await;
    let hpa = env.hpa("keda-hpa-so").await.unwrap();
    assert_eq!(hpa["spec"]["scaleTargetRef"]["name"], "two");
    assert_eq!(env.status("so").await["originalReplicaCount"], 2, "the first count is that of the first");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn webhook_accepts_what_the_operator_can_scale() {
    let env = TestEnv::start().await;
    widgets(&env).await;
    let admission = Admission::new(env.client.clone(), Discovery::new(env.client.clone()), Compat::Better);
    let judge = async |api_version: &str, kind: &str| {
        let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": "so", "namespace": "shop"}, "spec": spec(api_version, kind)});
        let request = created(&object);
        match admission.review(&request).await {
            Verdict::Allowed(_) => None,
            Verdict::Denied(denial) => Some(denial.message),
        }
    };
    for version in ["example.com/v1", "example.com/v1beta1"] {
        assert_eq!(judge(version, "Widget").await, None, "{version}");
    }
    let denied = "no matches for kind \"Widget\" in version \"example.com/v7\"";
    assert_eq!(judge("example.com/v7", "Widget").await.as_deref(), Some(denied));
    env.stop().await;
}
