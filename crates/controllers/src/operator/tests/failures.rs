//! Sources that fail, credentials that are missing, targets that are not there.

use std::time::Duration;

use api::provider::Compat;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, objects, trigger};
use super::sources::SourceResponse;
use crate::operator::OperatorSettings;

#[tokio::test(start_paused = true)]
async fn fallback_applies_while_a_source_fails() {
    let env = TestEnv::start().await;
    env.deployment("worker", 4).await;
    let fallback = json!({"failureThreshold": 2, "replicas": 5, "behavior": "static"});
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 1, "fallback": fallback, "triggers": [trigger("orders")]});
    env.sources.set("orders", SourceResponse::Value(40));
    env.scaled_object("worker", spec).await;
    env.until("it is active", async || env.condition("worker", "Active").await.0 == "True").await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    env.until("it falls back", async || env.condition("worker", "Fallback").await.0 == "True").await;
    let health = env.status("worker").await["health"]["s0-orders"].clone();
    assert_eq!(health["status"], "Failing");
    assert_eq!(env.replicas("worker").await, 4);
    let served = env.handle.metric("shop", "worker", "s0-orders").await.unwrap();
    assert_eq!(served[0].value.to_string(), "50");
    env.until("it is reported", async || env.has_event("worker", "ScaledObjectFallbackActivated").await)
        .await;
    env.sources.set("orders", SourceResponse::Value(40));
    env.until("it is over", async || env.condition("worker", "Fallback").await.0 == "False").await;
    assert_eq!(env.status("worker").await["health"]["s0-orders"]["numberOfFailures"], 0);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failing_source_without_fallback_leaves_the_target_alone() {
    let env = TestEnv::start().await;
    env.deployment("worker", 4).await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    let spec = json!({"pollingInterval": 5, "cooldownPeriod": 1, "triggers": [trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("it says so", async || env.condition("worker", "Ready").await.1 == "TriggerError").await;
    assert!(env.condition("worker", "Ready").await.2.contains("connection refused"));
    sleep(Duration::from_mins(5)).await;
    assert_eq!(env.replicas("worker").await, 4);
    // The scaler is rebuilt with growing delays.
    assert!((2..30).contains(&env.sources.builds("orders")), "{}", env.sources.builds("orders"));
    env.sources.set("orders", SourceResponse::Value(1));
    env.until("it is well", async || env.condition("worker", "Ready").await.0 == "True").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn broken_trigger_does_not_disable_the_others() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let broken = json!({"type": "unheard-of", "metadata": {}});
    let spec = json!({"pollingInterval": 5, "triggers": [broken, trigger("orders")]});
    env.scaled_object("worker", spec).await;
    env.until("there is an HPA", async || env.hpa("keda-hpa-worker").await.is_some()).await;
    env.sources.set("orders", SourceResponse::Value(3));
    env.until("it is woken all the same", async || env.replicas("worker").await == 1).await;
    env.until("it says what is wrong", async || {
        let (state, reason, message) = env.condition("worker", "Ready").await;
        (&*state, &*reason) == ("Unknown", "PartialTriggerError") && message.contains("unheard-of")
    })
    .await;
    env.until("it is reported", async || env.has_event("worker", "KEDAScalerFailed").await).await;
    env.stop().await;
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
async fn missing_authentication_is_named_and_noticed_when_created() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(3));
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [guarded()]})).await;
    let ready = async || env.condition("worker", "Ready").await;
    env.until("it is named", async || ready().await.2.contains("creds")).await;
    assert_eq!(ready().await.1, "ScaledObjectCheckFailed");
    sleep(Duration::from_mins(10)).await;

    let mut wrong = authentication("missing");
    wrong["metadata"]["name"] = json!("creds");
    env.create(AUTHENTICATIONS, wrong).await;
    env.until("now the secret is named", async || ready().await.2.contains("missing")).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "c2VjcmV0"},
    });
    env.create("/api/v1/namespaces/shop/secrets", secret).await;
    let began = tokio::time::Instant::now();
    env.patch(&format!("{AUTHENTICATIONS}/creds"), json!({"spec": authentication("login")["spec"]})).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let users = async || {
        env.get(&format!("{AUTHENTICATIONS}/creds")).await.unwrap()["status"]["scaledobjects"].clone()
    };
    env.until("it says who uses it", async || users().await == "worker").await;

    // It can be deleted although it had the finalizer.
    env.delete(&objects("worker")).await;
    env.delete(&format!("{AUTHENTICATIONS}/creds")).await;
    env.until("it is gone", async || env.get(&format!("{AUTHENTICATIONS}/creds")).await.is_none()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_secret_is_read_again() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "c2VjcmV0"},
    });
    env.create("/api/v1/namespaces/shop/secrets", secret).await;
    env.create(AUTHENTICATIONS, authentication("login")).await;
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [guarded()]})).await;
    env.until("it was polled", async || env.sources.queries("orders") > 1).await;
    let built = env.sources.builds("orders");
    sleep(Duration::from_mins(5)).await;
    assert_eq!(env.sources.builds("orders"), built, "nothing has changed");
    env.patch("/api/v1/namespaces/shop/secrets/login", json!({"data": {"password": "b3RoZXI="}})).await;
    env.until("it is built anew", async || env.sources.builds("orders") > built).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn scaler_with_the_role_of_a_service_account_is_rebuilt_only_when_the_account_changes() {
    const ACCOUNTS: &str = "/api/v1/namespaces/shop/serviceaccounts";
    let env = TestEnv::start().await;
    let labels = json!({"app": "worker"});
    let pods = json!({"serviceAccountName": "worker", "containers": [{"name": "c", "image": "i"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pods});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    });
    env.create("/apis/apps/v1/namespaces/shop/deployments", deployment).await;
    let role = |arn: &str| json!({"eks.amazonaws.com/role-arn": arn});
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "worker", "annotations": role("arn:aws:iam::1:role/a")},
    });
    env.create(ACCOUNTS, account).await;
    let identity = json!({"podIdentity": {"provider": "aws", "identityOwner": "workload"}});
    let own = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "workload"},
        "spec": identity,
    });
    env.create(AUTHENTICATIONS, own).await;
    let mut trigger = trigger("orders");
    trigger["authenticationRef"] = json!({"name": "workload"});
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger]})).await;
    env.until("it was polled", async || env.sources.queries("orders") > 1).await;
    let built = env.sources.builds("orders");
    sleep(Duration::from_mins(5)).await;
    assert_eq!(env.sources.builds("orders"), built, "nothing has changed");
    let other = json!({"metadata": {"annotations": role("arn:aws:iam::1:role/b")}});
    env.patch(&format!("{ACCOUNTS}/worker"), other).await;
    env.until("it is built anew", async || env.sources.builds("orders") > built).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_authentication_does_not_rebuild_working_scalers_in_strict_mode() {
    let env = TestEnv::with(OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() }).await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(3));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "c2VjcmV0"},
    });
    env.create("/api/v1/namespaces/shop/secrets", secret).await;
    env.create(AUTHENTICATIONS, authentication("login")).await;
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [guarded()]})).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    let built = env.sources.builds("orders");
    env.delete("/api/v1/namespaces/shop/secrets/login").await;
    env.delete(&format!("{AUTHENTICATIONS}/creds")).await;
    env.until("it is gone", async || env.get(&format!("{AUTHENTICATIONS}/creds")).await.is_none()).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(env.sources.builds("orders"), built, "nothing was built anew");
    assert_eq!(env.condition("worker", "Ready").await.0, "True");
    env.patch(&objects("worker"), json!({"spec": {"pollingInterval": 6}})).await;
    let ready = async || env.condition("worker", "Ready").await;
    env.until("an edit misses them", async || ready().await.1 == "ScaledObjectCheckFailed").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_target_is_reported_and_noticed_when_created() {
    let env = TestEnv::start().await;
    env.sources.set("orders", SourceResponse::Value(3));
    env.scaled_object("worker", json!({"triggers": [trigger("orders")]})).await;
    let ready = async || env.condition("worker", "Ready").await;
    env.until("it is reported", async || ready().await.2.contains("\"worker\" not found")).await;
    env.until("it is reported", async || env.has_event("worker", "ScaledObjectCheckFailed").await).await;
    sleep(Duration::from_mins(20)).await;
    env.deployment("worker", 0).await;
    let began = tokio::time::Instant::now();
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_is_reported_and_others_go_on() {
    let env = TestEnv::start().await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(3));
    let odd = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "odd", "namespace": "shop", "uid": "u"}, "spec": {"triggers": "none"},
    });
    // An older CRD may have accepted it.
    let key = localkube::store::ObjectKey::new("shop", "odd");
    assert!(env.running.cluster().store_raw("keda.sh", "scaledobjects", &key, odd));
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.until("it is woken", async || env.replicas("worker").await == 1).await;
    env.until("it is reported", async || env.has_event("odd", "ScaledObjectCheckFailed").await).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn broken_trigger_disables_all_in_strict_mode() {
    let settings = OperatorSettings { compat: Compat::Strict, ..OperatorSettings::default() };
    let env = TestEnv::with(settings).await;
    env.deployment("worker", 0).await;
    env.sources.set("orders", SourceResponse::Value(3));
    let broken = json!({"type": "unheard-of", "metadata": {}});
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [broken, trigger("orders")]})).await;
    let ready = async || env.condition("worker", "Ready").await;
    env.until("it says so", async || ready().await.1 == "ScaledObjectCheckFailed").await;
    let message =
        "failed to ensure HPA is correctly created for ScaledObject: no scaler found for type: unheard-of";
    assert_eq!(ready().await.2, message);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(env.replicas("worker").await, 0);
    env.stop().await;
}

/// How often the event of a source that fails in every poll of a minute is written, and its count by then.
async fn written_in_a_minute(compat: Compat) -> (usize, u64) {
    let env = TestEnv::with(OperatorSettings { compat, ..OperatorSettings::default() }).await;
    env.deployment("worker", 4).await;
    env.sources.set("orders", SourceResponse::Value(1));
    env.scaled_object("worker", json!({"pollingInterval": 5, "triggers": [trigger("orders")]})).await;
    env.until("it is active", async || env.condition("worker", "Active").await.0 == "True").await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    let reported = async || {
        let all = env.get("/api/v1/namespaces/shop/events").await.unwrap();
        let failed = |event: &&Value| event["reason"] == "KEDAScalerFailed";
        let event = all["items"].as_array().unwrap().iter().find(failed).cloned();
        event.map(|event| event["series"]["count"].as_u64().unwrap_or(1))
    };
    env.until("it is reported", async || reported().await.is_some()).await;
    let began = Instant::now();
    let mut seen = vec![reported().await];
    while began.elapsed() < Duration::from_secs(58) {
        sleep(Duration::from_millis(50)).await;
        seen.push(reported().await);
    }
    seen.dedup();
    env.stop().await;
    (seen.len(), seen.last().copied().flatten().unwrap())
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_written_every_twenty_seconds_and_at_every_poll_in_strict_mode() {
    let (written, reported) = written_in_a_minute(Compat::Strict).await;
    assert!(written >= 11 && reported >= 12, "{written} {reported}");
    let (written, reported) = written_in_a_minute(Compat::Better).await;
    assert_eq!(written, 3, "when it begins, 20 and 40 s later");
    assert!(reported >= 8, "all are counted: {reported}");
}
