//! Records of objects whose triggers are not polled: the cause is kept until it is gone.

use api::decisions::DecisionRecord;
use api::diagnosis::{Diagnosis, diagnose};
use api::provider::Compat;
use engine::ActivationVerdict;
use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::env::{TestEnv, objects, send, trigger};
use crate::operator::OperatorSettings;

const AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/triggerauthentications";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scaledobjects.keda.sh";
/// More requests than a test sends.
const ALL: u32 = 10_000;

/// The first cause of the newest record, such as `so.worker`.
fn first_cause(env: &TestEnv, name: &str) -> Option<Diagnosis> {
    let record = env.handle.records().of("shop", name).pop()?;
    diagnose(&record.facts(None)).into_iter().next()
}

/// Waits for a cause with this identifier whose sentence contains these words.
async fn until_cause(env: &TestEnv, name: &str, id: &str, words: &str) {
    let is_it = |cause: Diagnosis| cause.id == id && cause.sentence.contains(words);
    env.until(words, async || first_cause(env, name).is_some_and(is_it)).await;
}

fn spec(trigger: &Value) -> Value {
    json!({"pollingInterval": 5, "triggers": [trigger]})
}

fn unknown() -> Value {
    json!({"type": "unheard-of", "metadata": {}})
}

#[tokio::test(start_paused = true)]
async fn missing_credentials_are_recorded() {
    let env = TestEnv::start().await;
    env.deployment("worker", 2).await;
    let mut guarded = trigger("orders");
    guarded["authenticationRef"] = json!({"name": "creds"});
    env.scaled_object("worker", spec(&guarded)).await;
    let id = "trigger-authentication";
    until_cause(&env, "so.worker", id, "TriggerAuthentication shop/creds does not exist").await;
    let record = env.handle.records().of("shop", "so.worker").pop().unwrap();
    assert_eq!(record.decision.current(), 2);
    assert_eq!(record.sentence(), "held: its triggers are not polled");
    for reason in ["ScaledObjectCheckFailed", "KEDAScalerFailed"] {
        env.until("its events name the cause", async || env.has_event_with_cause(reason, id).await).await;
    }

    let parameter = json!({"parameter": "password", "name": "login", "key": "password"});
    let authentication = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
        "metadata": {"name": "creds"}, "spec": {"secretTargetRef": [parameter]}});
    env.create(AUTHENTICATIONS, authentication).await;
    until_cause(&env, "so.worker", id, "Secret shop/login does not exist").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "data": {"user": "c2VjcmV0"}});
    env.create("/api/v1/namespaces/shop/secrets", secret).await;
    until_cause(&env, "so.worker", id, "Secret shop/login has no key").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn refused_writes_are_recorded_until_they_succeed() {
    let env = TestEnv::start().await;
    for name in ["worker", "other"] {
        env.deployment(name, 0).await;
    }
    env.client_faults.refuse(Method::POST, "horizontalpodautoscalers", 403, ALL);
    env.client_faults.refuse(Method::PATCH, "scaledobjects/other", 403, ALL);
    for name in ["worker", "other"] {
        env.scaled_object(name, spec(&trigger("orders"))).await;
    }
    let id = "object-not-managed";
    until_cause(&env, "so.worker", id, "the operator cannot manage HPA keda-hpa-worker: ").await;
    until_cause(&env, "so.other", id, "the operator cannot manage ScaledObject shop/other: ").await;
    env.client_faults.clear_refusals();
    for name in ["so.worker", "so.other"] {
        until_cause(&env, name, "nothing-active", "no trigger is active").await;
    }
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_target_name_is_recorded_before_and_after_the_first_poll() {
    let env = TestEnv::start().await;
    // The definition of KEDA allows an empty name, ours does not.
    let name = "spec/properties/scaleTargetRef/properties/name/minLength";
    let path = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{name}");
    let patch = json!([{"op": "remove", "path": path}]);
    send(&env.client, Method::PATCH, DEFINITION, "application/json-patch+json", &patch).await;
    env.deployment("worker", 2).await;
    let mut nameless = spec(&trigger("orders"));
    nameless["scaleTargetRef"] = json!({"name": ""});
    env.scaled_object("worker", nameless).await;
    let words = "ScaledObject.spec.scaleTargetRef.name is missing";
    until_cause(&env, "so.worker", "spec-invalid", words).await;
    let named = |name: &str| json!({"spec": {"scaleTargetRef": {"name": name}}});
    env.patch(&objects("worker"), named("worker")).await;
    env.until("it is polled", async || {
        let id = first_cause(&env, "so.worker").map(|cause| cause.id);
        id.is_some_and(|id| id != "spec-invalid")
    })
    .await;
    env.patch(&objects("worker"), named("")).await;
    until_cause(&env, "so.worker", "spec-invalid", words).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn record_of_a_failed_reconcile_says_when_it_is_tried_again() {
    let env = TestEnv::start().await;
    env.scaled_object("worker", spec(&trigger("orders"))).await;
    let newest = || env.handle.records().of("shop", "so.worker").pop();
    let is_slow = |record: &DecisionRecord| record.period > SignedDuration::from_secs(10);
    env.until("retries come later than polls", async || newest().as_ref().is_some_and(is_slow)).await;
    let before = newest().unwrap();
    env.until("it is tried again", async || newest().is_some_and(|record| record.last > before.last)).await;
    let waited = newest().unwrap().last.duration_since(before.last);
    assert!((waited - before.period).abs() < SignedDuration::from_secs(2), "{waited} {}", before.period);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unavailable_api_server_is_recorded() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.client_faults.refuse(Method::POST, "horizontalpodautoscalers", 503, ALL);
    env.scaled_object("worker", spec(&trigger("orders"))).await;
    let words = "the API server is not available, so HPA keda-hpa-worker is not managed: ";
    until_cause(&env, "so.worker", "api-server-unavailable", words).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unusable_triggers_are_recorded_for_jobs_too() {
    let env = TestEnv::start().await;
    let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut spec = spec(&unknown());
    spec["jobTargetRef"] = json!({"template": pods});
    let job = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": "sj"}, "spec": spec});
    env.create("/apis/keda.sh/v1alpha1/namespaces/shop/scaledjobs", job).await;
    let words = "trigger unheard-of is not usable: no scaler found for type: unheard-of";
    until_cause(&env, "sj.sj", "trigger-parameters", words).await;
    let record = env.handle.records().of("shop", "sj.sj").pop().unwrap();
    let verdict = record.decision.activation.unwrap().verdict;
    assert_eq!(verdict, ActivationVerdict::Held("its triggers are not polled".into()));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unusable_triggers_are_recorded_in_strict_mode() {
    let env = TestEnv::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await;
    env.deployment("worker", 2).await;
    env.scaled_object("worker", spec(&unknown())).await;
    let words = "trigger unheard-of is not usable: ";
    until_cause(&env, "so.worker", "trigger-parameters", words).await;
    env.stop().await;
}
