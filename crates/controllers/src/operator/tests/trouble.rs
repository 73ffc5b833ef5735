//! Sources that fail, credentials that are missing, targets that are not there.

use std::time::Duration;

use api::provider::Compat;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::bench::{Bench, objects, trigger};
use super::script::Says;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn a_source_that_dies_is_replaced_by_a_number_and_nothing_sleeps_for_it() {
    let bench = Bench::start().await;
    bench.deployment("worker", 4).await;
    let fallback = json!({"failureThreshold": 2, "replicas": 5, "behavior": "static"});
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 1, "fallback": fallback, "triggers": [trigger("orders")]});
    bench.script.say("orders", Says::Value(40));
    bench.scaled_object("worker", spec).await;
    bench.until("it is active", async || bench.condition("worker", "Active").await.0 == "True").await;
    bench.script.say("orders", Says::Fails("connection refused"));
    bench.until("it falls back", async || bench.condition("worker", "Fallback").await.0 == "True").await;
    let health = bench.status("worker").await["health"]["s0-orders"].clone();
    assert_eq!(health["status"], "Failing");
    assert_eq!(bench.replicas("worker").await, 4);
    let served = bench.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    assert_eq!(served[0].value.to_string(), "50");
    bench
        .until("it is told", async || bench.has_event("worker", "ScaledObjectFallbackActivated").await)
        .await;
    bench.script.say("orders", Says::Value(40));
    bench.until("it is over", async || bench.condition("worker", "Fallback").await.0 == "False").await;
    assert_eq!(bench.status("worker").await["health"]["s0-orders"]["numberOfFailures"], 0);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_fallback_a_failing_source_leaves_the_target_alone() {
    let bench = Bench::start().await;
    bench.deployment("worker", 4).await;
    bench.script.say("orders", Says::Fails("connection refused"));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 1, "triggers": [trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("it says so", async || bench.condition("worker", "Ready").await.1 == "TriggerError").await;
    assert!(bench.condition("worker", "Ready").await.2.contains("connection refused"));
    sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.replicas("worker").await, 4);
    // It is built anew, but ever more seldom.
    assert!((2..30).contains(&bench.script.built("orders")), "{}", bench.script.built("orders"));
    bench.script.say("orders", Says::Value(1));
    bench.until("it is well", async || bench.condition("worker", "Ready").await.0 == "True").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_broken_trigger_does_not_disable_the_others() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let broken = json!({"type": "unheard-of", "metadata": {}});
    let spec = json!({"pollingInterval": 5, "triggers": [broken, trigger("orders")]});
    bench.scaled_object("worker", spec).await;
    bench.until("there is an HPA", async || bench.hpa("keda-hpa-worker").await.is_some()).await;
    bench.script.say("orders", Says::Value(3));
    bench.until("it is woken all the same", async || bench.replicas("worker").await == 1).await;
    bench
        .until("it says what is wrong", async || {
            let (state, reason, message) = bench.condition("worker", "Ready").await;
            (&*state, &*reason) == ("Unknown", "PartialTriggerError") && message.contains("unheard-of")
        })
        .await;
    bench.until("it is told", async || bench.has_event("worker", "KEDAScalerFailed").await).await;
    bench.stop().await;
}

fn guarded() -> Value {
    let reference = json!({"name": "creds"});
    let metadata = json!({"source": "orders", "needs-password": "yes"});
    json!({"type": "scripted", "metadata": metadata, "authenticationRef": reference})
}

fn authentication(secret: &str) -> Value {
    let target = json!({"parameter": "password", "name": secret, "key": "password"});
    json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
        "metadata": {"name": "creds"}, "spec": {"secretTargetRef": [target]},
    })
}

const AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/triggerauthentications";

#[tokio::test(start_paused = true)]
async fn a_missing_authentication_is_named_and_its_appearance_is_noticed() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(3));
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [guarded()]})).await;
    let ready = async || bench.condition("worker", "Ready").await;
    bench.until("it is named", async || ready().await.2.contains("creds")).await;
    assert_eq!(ready().await.1, "ScaledObjectCheckFailed");
    sleep(Duration::from_mins(10)).await;

    let mut wrong = authentication("missing");
    wrong["metadata"]["name"] = json!("creds");
    bench.create(AUTHENTICATIONS, wrong).await;
    bench.until("now the secret is named", async || ready().await.2.contains("missing")).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "c2VjcmV0"},
    });
    bench.create("/api/v1/namespaces/shop/secrets", secret).await;
    let began = tokio::time::Instant::now();
    bench.patch(&format!("{AUTHENTICATIONS}/creds"), json!({"spec": authentication("login")["spec"]})).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let users = async || {
        bench.get(&format!("{AUTHENTICATIONS}/creds")).await.unwrap()["status"]["scaledobjects"].clone()
    };
    bench.until("it says who uses it", async || users().await == "worker").await;

    // It can be deleted, though it was held.
    bench.delete(&objects("worker")).await;
    bench.delete(&format!("{AUTHENTICATIONS}/creds")).await;
    bench.until("it is gone", async || bench.get(&format!("{AUTHENTICATIONS}/creds")).await.is_none()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_is_read_again() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "c2VjcmV0"},
    });
    bench.create("/api/v1/namespaces/shop/secrets", secret).await;
    bench.create(AUTHENTICATIONS, authentication("login")).await;
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [guarded()]})).await;
    bench.until("it was polled", async || bench.script.asked("orders") > 1).await;
    let built = bench.script.built("orders");
    sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.script.built("orders"), built, "nothing has changed");
    bench.patch("/api/v1/namespaces/shop/secrets/login", json!({"data": {"password": "b3RoZXI="}})).await;
    bench.until("it is built anew", async || bench.script.built("orders") > built).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn to_be_strict_what_works_goes_on_with_the_credentials_it_has() {
    let bench = Bench::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(3));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "c2VjcmV0"},
    });
    bench.create("/api/v1/namespaces/shop/secrets", secret).await;
    bench.create(AUTHENTICATIONS, authentication("login")).await;
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [guarded()]})).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    let built = bench.script.built("orders");
    bench.delete("/api/v1/namespaces/shop/secrets/login").await;
    bench.delete(&format!("{AUTHENTICATIONS}/creds")).await;
    bench.until("it is gone", async || bench.get(&format!("{AUTHENTICATIONS}/creds")).await.is_none()).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(bench.script.built("orders"), built, "nothing was built anew");
    assert_eq!(bench.condition("worker", "Ready").await.0, "True");
    bench.patch(&objects("worker"), json!({"spec": {"pollingInterval": 6}})).await;
    let ready = async || bench.condition("worker", "Ready").await;
    bench.until("an edit misses them", async || ready().await.1 == "ScaledObjectCheckFailed").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_target_is_said_and_its_appearance_is_noticed() {
    let bench = Bench::start().await;
    bench.script.say("orders", Says::Value(3));
    bench.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    let ready = async || bench.condition("worker", "Ready").await;
    bench.until("it is said", async || ready().await.2.contains("\"worker\" not found")).await;
    bench.until("it is told", async || bench.has_event("worker", "ScaledObjectCheckFailed").await).await;
    sleep(Duration::from_mins(20)).await;
    bench.deployment("worker", 0).await;
    let began = tokio::time::Instant::now();
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_told_and_others_go_on() {
    let bench = Bench::start().await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(3));
    let odd = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "odd", "namespace": "shop", "uid": "u"}, "spec": {"triggers": "none"},
    });
    // An older definition may have let it in.
    let key = localkube::store::ObjectKey::new("shop", "odd");
    assert!(bench.running.cluster().store_raw("keda.sh", "scaledobjects", &key, odd));
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    bench.until("it is woken", async || bench.replicas("worker").await == 1).await;
    bench.until("it is told", async || bench.has_event("odd", "ScaledObjectCheckFailed").await).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn to_be_strict_one_broken_trigger_is_the_end_of_all() {
    let settings = OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() };
    let bench = Bench::with(settings).await;
    bench.deployment("worker", 0).await;
    bench.script.say("orders", Says::Value(3));
    let broken = json!({"type": "unheard-of", "metadata": {}});
    bench
        .scaled_object("worker", json!({"pollingInterval": 5, "triggers": [broken, trigger("orders")]}))
        .await;
    let ready = async || bench.condition("worker", "Ready").await;
    bench.until("it says so", async || ready().await.1 == "ScaledObjectCheckFailed").await;
    let message =
        "failed to ensure HPA is correctly created for ScaledObject: no scaler found for type: unheard-of";
    assert_eq!(ready().await.2, message);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bench.replicas("worker").await, 0);
    bench.stop().await;
}

/// How often the event of a source that fails in every poll of a minute is written, and its count by then.
async fn written_in_a_minute(compat: Compat) -> (usize, u64) {
    let bench = Bench::with(OperatorSettings { compat, ..OperatorSettings::default() }).await;
    bench.deployment("worker", 4).await;
    bench.script.say("orders", Says::Value(1));
    bench.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    bench.until("it is active", async || bench.condition("worker", "Active").await.0 == "True").await;
    bench.script.say("orders", Says::Fails("connection refused"));
    let told = async || {
        let all = bench.get("/api/v1/namespaces/shop/events").await.unwrap();
        let failed = |event: &&Value| event["reason"] == "KEDAScalerFailed";
        let event = all["items"].as_array().unwrap().iter().find(failed).cloned();
        event.map(|event| event["series"]["count"].as_u64().unwrap_or(1))
    };
    bench.until("it is told", async || told().await.is_some()).await;
    let began = Instant::now();
    let mut seen = vec![told().await];
    while began.elapsed() < Duration::from_secs(58) {
        sleep(Duration::from_millis(50)).await;
        seen.push(told().await);
    }
    seen.dedup();
    bench.stop().await;
    (seen.len(), seen.last().copied().flatten().unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_is_told_at_every_poll_is_written_every_twenty_seconds_and_with_keda_at_every_poll() {
    let (written, told) = written_in_a_minute(Compat::Strict).await;
    assert!(written >= 11 && told >= 12, "{written} {told}");
    let (written, told) = written_in_a_minute(Compat::Better).await;
    assert_eq!(written, 3, "when it begins, 20 and 40 s later");
    assert!(told >= 8, "all are counted: {told}");
}
