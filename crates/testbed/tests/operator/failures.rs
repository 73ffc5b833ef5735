//! Deleted secrets, sources that hang, a process that is killed.

use serde_json::{Value, json};
use testbed::harness::Failure;
use tokio::net::TcpListener;

use crate::env::{
    Kubectl, Operator, SourceResponse, TestNamespace, deployment, metrics_api, on_both, scripted,
};

/// Secret values that must not appear anywhere: words that occur nowhere else.
const TOKENS: [&str; 3] = ["first-7d1c0b", "second-e93a41", "third-50f2aa"];

fn secret(kubectl: &Kubectl, token: &str) {
    kubectl.run_ok(&format!("create secret generic login --from-literal=token={token}"));
}

#[test]
fn deleted_secret_is_named_and_does_not_deactivate() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &[]).await;
        let kubectl = ns.kubectl();
        for (name, count) in [("guarded", 2), ("free", 0)] {
            kubectl.apply(&deployment(name, count));
        }
        let mut trigger = metrics_api(&ns, "guarded", "10");
        trigger["metadata"]["authMode"] = json!("bearer");
        trigger["authenticationRef"] = json!({"name": "doorkeeper"});
        kubectl.apply(&ns.scaled_object("guarded", &json!({"triggers": [trigger]})));
        kubectl.apply(&ns.scaled_object("free", &json!({})));
        let [first, second, third] = TOKENS;
        ns.set_response("guarded", SourceResponse::Guarded(15, first));
        ns.set_response("free", SourceResponse::Value(5));

        // First the authentication is missing, then the secret that it names.
        let named = async |what: &str| {
            ns.until_object("guarded", what, |found| {
                TestNamespace::condition(found, "Ready").starts_with("False")
                    && TestNamespace::message(found, "Ready").contains(what)
            })
            .await;
        };
        named(&format!("TriggerAuthentication {}/doorkeeper does not exist", ns.namespace)).await;
        let parameter = json!({"parameter": "token", "name": "login", "key": "token"});
        kubectl.apply(&json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "doorkeeper"},
            "spec": {"secretTargetRef": [parameter]}
        }));
        named(&format!("Secret {}/login does not exist", ns.namespace)).await;
        ns.until_replicas("free", 1).await;
        assert_eq!(ns.replicas("guarded").await, 2, "what is not known is not zero");

        secret(&kubectl, first);
        ns.until_condition("guarded", "Ready", "True ScaledObjectReady").await;
        ns.until_condition("guarded", "Active", "True ScalerActive").await;
        ns.until_object("guarded", "names of authentications", |found| {
            found["status"]["authenticationsTypes"] == "doorkeeper"
        })
        .await;

        // The secret of a running trigger is deleted and replaced, as when credentials are rotated.
        kubectl.run_ok("delete secret login");
        named(&format!("Secret {}/login does not exist", ns.namespace)).await;
        ns.rounds("free", 4).await;
        assert_eq!(ns.replicas("guarded").await, 2);
        ns.until_condition("free", "Active", "True ScalerActive").await;
        ns.set_response("guarded", SourceResponse::Guarded(15, second));
        secret(&kubectl, second);
        ns.until_condition("guarded", "Ready", "True ScaledObjectReady").await;

        // A wrong credential is an error too, not zero.
        ns.set_response("guarded", SourceResponse::Guarded(15, third));
        ns.until_condition("guarded", "Ready", "False TriggerError").await;
        ns.rounds("guarded", 4).await;
        assert_eq!(ns.replicas("guarded").await, 2);
        ns.set_response("guarded", SourceResponse::Guarded(0, second));
        ns.until_replicas("guarded", 0).await;
        let reported =
            operator.log() + &ns.object("guarded").await.to_string() + &ns.events("guarded").await.join(" ");
        assert!(!TOKENS.iter().any(|token| reported.contains(token)), "a secret was told");
        operator.check();
    })
}

/// A server that accepts connections and never responds.
async fn mute() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            held.push(connection);
        }
    });
    address
}

#[test]
fn endless_source_times_out_and_delays_no_other() -> Result<(), Failure> {
    const TIMEOUT_MESSAGE: &str = "no answer within 5 s";
    on_both(async |ns| {
        // Without the deadline, pages would time out after a minute and external scalers after ten seconds.
        let patient = [("KEDA_HTTP_DEFAULT_TIMEOUT", "60000")];
        let operator = Operator::start_with(&ns, &["--source-deadline=5s"], &patient).await;
        let kubectl = ns.kubectl();
        let silent = json!({"type": "external", "metadata": {"scalerAddress": mute().await}});
        let endless = [
            ("hangs", scripted(&ns, "hangs"), SourceResponse::Hangs),
            ("direct", scripted(&ns, "direct"), SourceResponse::Hangs),
            ("page", metrics_api(&ns, "page", "10"), SourceResponse::Hangs),
            ("drips", metrics_api(&ns, "drips", "10"), SourceResponse::Drips),
        ];
        for (name, trigger, _) in &endless {
            ns.set_response(name, SourceResponse::Value(25));
            kubectl.apply(&deployment(name, 3));
            let mut object = ns.scaled_object(name, &json!({"triggers": [trigger]}));
            if *name == "direct" {
                object["metadata"]["annotations"] = json!({"plimsoll.dev/act": "direct"});
            }
            kubectl.apply(&object);
        }
        // A source that never responded, not even with its metrics.
        kubectl.apply(&deployment("mute", 3));
        kubectl.apply(&ns.scaled_object("mute", &json!({"triggers": [silent]})));
        kubectl.apply(&deployment("quick", 0));
        kubectl.apply(&ns.scaled_object("quick", &json!({})));
        for (name, ..) in &endless {
            ns.until_condition(name, "Active", "True ScalerActive").await;
        }
        let names = ["hangs", "direct", "page", "drips", "mute"];
        let written = async || {
            let mut all = Vec::new();
            for name in names {
                all.push((ns.replicas(name).await, ns.generation(name).await));
            }
            all
        };
        let before = written().await;

        for (name, _, says) in &endless {
            ns.set_response(name, says.clone());
        }
        for name in names {
            ns.until_object(name, TIMEOUT_MESSAGE, |found| {
                TestNamespace::condition(found, "Ready").starts_with("False")
                    && TestNamespace::message(found, "Ready").contains(TIMEOUT_MESSAGE)
            })
            .await;
        }
        // While some queries time out one after the other, other sources are queried every second.
        let query_count = |name: &str| ns.env.sources.query_count(&ns.namespace, name);
        let begun = (query_count("quick"), query_count("drips"));
        ns.rounds("drips", 3).await;
        let (quick, slow) = (query_count("quick") - begun.0, query_count("drips") - begun.1);
        assert!(quick >= 2 * slow, "{quick} and {slow}");
        ns.set_response("quick", SourceResponse::Value(5));
        ns.until_replicas("quick", 1).await;
        // Long after the cooldown, targets of unknown sources are unchanged.
        assert_eq!(written().await, before);
        assert!(before.iter().all(|(count, _)| *count == 3), "{before:?}");

        // A reported zero counts.
        for (name, ..) in &endless {
            ns.set_response(name, SourceResponse::Value(0));
        }
        for (name, ..) in &endless {
            ns.until_replicas(name, 0).await;
            ns.until_condition(name, "Ready", "True ScaledObjectReady").await;
        }
        operator.check();
    })
}

/// What must not change: the generation of the deployment and the version of the HPA.
async fn mark(ns: &TestNamespace) -> [Value; 3] {
    let hpa = ns.hpa("keda-hpa-served").await;
    let hpa = json!([hpa["metadata"]["uid"], hpa["metadata"]["resourceVersion"]]);
    [ns.generation("served").await, ns.generation("direct").await, hpa]
}

#[test]
fn killed_operator_continues_after_restart() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &[]).await;
        let kubectl = ns.kubectl();
        for name in ["served", "direct"] {
            kubectl.apply(&deployment(name, 1));
            ns.set_response(name, SourceResponse::Value(45));
            let mut object =
                ns.scaled_object(name, &json!({"advanced": {"restoreToOriginalReplicaCount": true}}));
            if name == "direct" {
                object["metadata"]["annotations"] = json!({"plimsoll.dev/act": "direct"});
            }
            kubectl.apply(&object);
        }
        ns.until_replicas("direct", 5).await;
        ns.until_hpa("keda-hpa-served", "presence", |hpa| !hpa.is_null()).await;
        ns.until_condition("served", "Active", "True ScalerActive").await;
        // As an HPA would.
        kubectl.run_ok("scale deployment served --replicas=5");
        ns.rounds("direct", 4).await;
        let before = mark(&ns).await;
        let reported = ns.events("served").await.len();

        operator.kill();
        operator.resume().await;
        ns.rounds("served", 6).await;
        ns.rounds("direct", 6).await;
        assert_eq!(mark(&ns).await, before);
        assert_eq!(ns.events("served").await.len(), reported, "{:#?}", ns.events("served").await);

        // The source fails when the operator is back.
        operator.kill();
        for name in ["served", "direct"] {
            ns.set_response(name, SourceResponse::Fails("the queue is closed"));
        }
        operator.resume().await;
        for name in ["served", "direct"] {
            ns.until_condition(name, "Ready", "False TriggerError").await;
            ns.rounds(name, 4).await;
        }
        assert_eq!(mark(&ns).await, before, "an error is no reason to shrink");
        for name in ["served", "direct"] {
            ns.set_response(name, SourceResponse::Value(45));
            ns.until_condition(name, "Ready", "True ScaledObjectReady").await;
        }
        assert_eq!(mark(&ns).await, before);
        let hpas = ns.get("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers").await.1;
        assert_eq!(hpas["items"].as_array().map(Vec::len), Some(1));

        // Edits made while the operator was down are reconciled when it is back.
        operator.kill();
        kubectl.run_ok("delete so direct --wait=false");
        let mut edited = ns.scaled_object("served", &json!({"maxReplicaCount": 6}));
        edited["spec"]["advanced"]["restoreToOriginalReplicaCount"] = json!(true);
        kubectl.apply(&edited);
        operator.resume().await;
        ns.until_object("direct", "the end", Value::is_null).await;
        assert_eq!(ns.replicas("direct").await, 1, "as many as at first");
        ns.until_hpa("keda-hpa-served", "an edit", |hpa| hpa["spec"]["maxReplicas"] == 6).await;
        operator.check();
    })
}
