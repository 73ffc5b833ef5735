//! What can be scaled, and what cannot.

use api::provider::Compat;
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use http::Method;
use keda::admission::{AdmissionInput, AdmissionKind, Operation, Verdict};
use serde_json::{Value, json};

use super::bench::{Bench, objects, trigger};
use super::script::Says;
use crate::operator::Admission;

const WIDGETS: &str = "/apis/example.com/v1beta1/namespaces/shop/widgets";

/// A kind of our own, in two versions of which the second is not the preferred one.
async fn widgets(bench: &Bench) {
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
    bench.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widget = json!({"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 0}});
    bench.create(WIDGETS, widget).await;
}

fn spec(api_version: &str, kind: &str) -> Value {
    json!({"pollingInterval": 5, "triggers": [trigger("orders")],
        "scaleTargetRef": {"name": "w", "apiVersion": api_version, "kind": kind}})
}

#[tokio::test(start_paused = true)]
async fn kinds_of_others_are_scaled_in_the_version_that_is_named() {
    let bench = Bench::start().await;
    widgets(&bench).await;
    bench.script.say("orders", Says::Value(5));
    bench.scaled_object("so", spec("example.com/v1beta1", "Widget")).await;
    let size = async || bench.get(&format!("{WIDGETS}/w")).await.unwrap()["spec"]["size"].clone();
    bench.until("it is woken", async || size().await == 1).await;
    let status = bench.status("so").await;
    assert_eq!(status["scaleTargetKind"], "example.com/v1beta1.Widget");
    assert_eq!(status["scaleTargetGVKR"]["resource"], "widgets");
    let target = &bench.hpa("keda-hpa-so").await.unwrap()["spec"]["scaleTargetRef"];
    assert_eq!(target, &json!({"apiVersion": "example.com/v1beta1", "kind": "Widget", "name": "w"}));
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_or_cannot_be_scaled_is_said() {
    let bench = Bench::start().await;
    widgets(&bench).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}});
    bench.create("/api/v1/namespaces/shop/configmaps", map).await;
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
        bench.scaled_object(name, spec(api_version, kind)).await;
    }
    for (name, _, _, cause, note) in cases {
        bench
            .until(name, async || {
                let (state, reason, message) = bench.condition(name, "Ready").await;
                (&*state, &*reason) == ("False", "ScaledObjectCheckFailed") && message.starts_with(wrong)
            })
            .await;
        assert!(bench.condition(name, "Ready").await.2.contains(cause), "{name}");
        assert_eq!(bench.condition(name, "Active").await.1, "UnknownState");
        let told = async || bench.events(name).await.into_iter().any(|(_, text)| text == note);
        if !note.is_empty() {
            bench.until(note, told).await;
        }
        assert!(bench.hpa(&format!("keda-hpa-{name}")).await.is_none());
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_not_said_to_be_missing() {
    let bench = Bench::start().await;
    widgets(&bench).await;
    bench.script.say("orders", Says::Value(5));
    bench.wire.refuse(Method::GET, "/widgets/w/scale", 403, u32::MAX);
    bench.scaled_object("so", spec("example.com/v1", "Widget")).await;
    let ready = async || bench.condition("so", "Ready").await;
    let needed = "a role that allows to get and update widgets/scale of API group \"example.com\"";
    bench.until("it says what it needs", async || ready().await.2.contains(needed)).await;
    assert_eq!(ready().await.1, "ScaledObjectCheckFailed");
    let notes: Vec<String> = bench.events("so").await.into_iter().map(|(_, note)| note).collect();
    assert!(!notes.iter().any(|note| note.starts_with("Target resource")), "{notes:?}");
    bench.wire.let_through();
    let size = async || bench.get(&format!("{WIDGETS}/w")).await.unwrap()["spec"]["size"].clone();
    bench.until("it is woken once it may be", async || size().await == 1).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whether_a_target_is_there_is_known_without_the_right_to_get_it() {
    let bench = Bench::start().await;
    widgets(&bench).await;
    bench.wire.refuse(Method::GET, "/widgets/", 404, 1);
    bench.wire.refuse(Method::GET, "/widgets/", 403, 1);
    bench.scaled_object("so", spec("example.com/v1", "Widget")).await;
    let notes = async || bench.events("so").await.into_iter().map(|(_, note)| note).collect::<Vec<_>>();
    let told = "Target resource doesn't exist".to_owned();
    bench.until("it is told", async || notes().await.contains(&told)).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_may_turn_to_another_target() {
    let bench = Bench::start().await;
    bench.deployment("one", 2).await;
    bench.deployment("two", 0).await;
    bench.script.say("orders", Says::Value(5));
    let target = |name: &str| json!({"name": name});
    let spec =
        json!({"pollingInterval": 3600, "scaleTargetRef": target("one"), "triggers": [trigger("orders")]});
    bench.scaled_object("so", spec).await;
    bench.until("it is active", async || bench.condition("so", "Active").await.0 == "True").await;
    bench.patch(&objects("so"), json!({"spec": {"scaleTargetRef": target("two")}})).await;
    bench.until("it wakes the other at once", async || bench.replicas("two").await == 1).await;
    let hpa = bench.hpa("keda-hpa-so").await.unwrap();
    assert_eq!(hpa["spec"]["scaleTargetRef"]["name"], "two");
    assert_eq!(bench.status("so").await["originalReplicaCount"], 2, "the first count is that of the first");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_webhook_takes_what_the_operator_can_scale() {
    let bench = Bench::start().await;
    widgets(&bench).await;
    let recorder = EventRecorder::start(bench.client.clone(), "keda-admission", Clock::system());
    let discovery = Discovery::new(bench.client.clone());
    let admission = Admission::new(bench.client.clone(), discovery, &recorder, Compat::Better);
    let judge = async |api_version: &str, kind: &str| {
        let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": "so", "namespace": "shop"}, "spec": spec(api_version, kind)});
        let request = AdmissionInput {
            operation: Operation::Create,
            kind: AdmissionKind::ScaledObject,
            dry_run: false,
            object: &object,
            old: None,
        };
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
    bench.stop().await;
}
