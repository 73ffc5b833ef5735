//! Broken ScaledObjects and ScaledJobs on both clusters: the first line of `plimsoll why` names the cause. The set-ups of HPAs are in the tests of
//! the controller.

use http::Method;
use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{SourceResponse, TestNamespace, deployment, free_port, metrics_api, on_both};
use crate::shared::why::WhyCommand;

const OBJECTS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects";
const JOBS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledjobs";
const AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/triggerauthentications";
/// A token that no Secret has.
const TOKEN: &str = "token-1f0c77";

/// One set-up: a ScaledObject or ScaledJob with the trigger `metrics-api`, the expected cause, and words of the first line.
struct SetUp {
    name: &'static str,
    is_job: bool,
    /// Replicas of the target; none: there is no target.
    replicas: Option<u32>,
    /// The response of the source.
    says: SourceResponse,
    /// Changes the ScaledObject.
    change: fn(&mut Value),
    id: &'static str,
    /// `{ns}` is the namespace.
    words: &'static str,
}

impl SetUp {
    /// `so/orders`.
    fn full_name(&self) -> String {
        format!("{}/{}", if self.is_job { "sj" } else { "so" }, self.name)
    }

    /// The path of the collection of its kind.
    fn collection(&self) -> &'static str {
        if self.is_job { JOBS } else { OBJECTS }
    }

    fn of_jobs(self) -> Self {
        Self { is_job: true, replicas: None, ..self }
    }
}

/// Sets the URL of the trigger to a port on which no program listens.
fn ask_nobody(object: &mut Value) {
    object["spec"]["triggers"][0]["metadata"]["url"] = json!(format!("http://127.0.0.1:{}/", free_port()));
}

/// Removes a required parameter from the trigger.
fn drop_url(object: &mut Value) {
    object["spec"]["triggers"][0]["metadata"].as_object_mut().unwrap().remove("url");
}

fn set_ups() -> Vec<SetUp> {
    let set_up = |name, says, change: fn(&mut Value), id, words| SetUp {
        name,
        is_job: false,
        replicas: Some(2),
        says,
        change,
        id,
        words,
    };
    vec![
        set_up(
            "why-refused",
            SourceResponse::Value(15),
            ask_nobody,
            "trigger-connection-refused",
            "the source of trigger metrics-api refuses the connection: ",
        ),
        set_up(
            "why-hangs",
            SourceResponse::Hangs,
            |_| (),
            "trigger-timeout",
            "the source of trigger metrics-api does not answer in time: ",
        ),
        set_up(
            "why-fails",
            SourceResponse::Fails("the queue is closed"),
            |_| (),
            "trigger-failed",
            "the source of trigger metrics-api reports an error: ",
        ),
        set_up(
            "why-fallback",
            SourceResponse::Fails("the queue is closed"),
            |object| object["spec"]["fallback"] = json!({"failureThreshold": 1, "replicas": 4}),
            "trigger-failed",
            "the source of trigger metrics-api reports an error: ",
        ),
        set_up(
            "why-denied",
            SourceResponse::Guarded(15, TOKEN),
            |_| (),
            "trigger-authentication",
            "the credentials of trigger metrics-api are missing or not accepted: ",
        ),
        set_up(
            "why-no-authentication",
            SourceResponse::Value(15),
            |object| refer(object, "why-nobody"),
            "trigger-authentication",
            "TriggerAuthentication {ns}/why-nobody does not exist",
        ),
        set_up(
            "why-no-secret",
            SourceResponse::Value(15),
            |object| refer(object, "why-secret"),
            "trigger-authentication",
            "Secret {ns}/why-missing does not exist",
        ),
        set_up(
            "why-no-key",
            SourceResponse::Value(15),
            |object| refer(object, "why-key"),
            "trigger-authentication",
            "Secret {ns}/why-login has no key",
        ),
        set_up(
            "why-no-url",
            SourceResponse::Value(15),
            drop_url,
            "trigger-parameters",
            "trigger metrics-api is not usable: ",
        ),
        SetUp {
            replicas: Some(0),
            ..set_up(
                "why-rest",
                SourceResponse::Value(0),
                |_| (),
                "nothing-active",
                "no trigger is active, so the target rests at 0",
            )
        },
        set_up(
            "why-cooldown",
            SourceResponse::Value(5),
            |object| object["spec"]["cooldownPeriod"] = json!(3600),
            "cooldown",
            "nothing is active; cooldown until ",
        ),
        set_up(
            "why-paused",
            SourceResponse::Value(15),
            |object| object["metadata"]["annotations"] = json!({"autoscaling.keda.sh/paused-replicas": "2"}),
            "paused",
            "paused at 2 by its annotation",
        ),
        SetUp {
            replicas: None,
            ..set_up(
                "why-gone",
                SourceResponse::Value(15),
                |_| (),
                "target-not-found",
                "Deployment {ns}/why-gone does not exist",
            )
        },
        set_up(
            "why-rival",
            SourceResponse::Value(15),
            |_| (),
            "two-autoscalers",
            "Deployment {ns}/why-rival is also scaled by hpa/why-rival",
        ),
        set_up(
            "why-job-refused",
            SourceResponse::Value(15),
            ask_nobody,
            "trigger-connection-refused",
            "the source of trigger metrics-api refuses the connection: ",
        )
        .of_jobs(),
        set_up(
            "why-job-no-url",
            SourceResponse::Value(15),
            drop_url,
            "trigger-parameters",
            "trigger metrics-api is not usable: ",
        )
        .of_jobs(),
        set_up(
            "why-job-rest",
            SourceResponse::Value(0),
            |_| (),
            "nothing-active",
            "no trigger is active, so no jobs are created",
        )
        .of_jobs(),
    ]
}

/// Lets the trigger take its token from a TriggerAuthentication.
fn refer(object: &mut Value, authentication: &str) {
    let trigger = &mut object["spec"]["triggers"][0];
    trigger["metadata"]["authMode"] = json!("bearer");
    trigger["authenticationRef"] = json!({"name": authentication});
}

#[test]
fn first_line_of_why_names_the_cause() -> Result<(), Failure> {
    on_both(async |ns| {
        let (ns, operator) = ns.serving().await;
        let all = set_ups();
        credentials(&ns).await;
        for set_up in &all {
            create(&ns, set_up).await;
        }
        // The other autoscaler comes later, because the webhook refuses a ScaledObject beside one.
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "why-rival"});
        let rival = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "why-rival"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}});
        post(&ns, "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", &rival).await;
        // A cooldown follows activity.
        ns.until_condition("why-cooldown", "Active", "True ScalerActive").await;
        ns.set_response("why-cooldown", SourceResponse::Value(0));

        let why = WhyCommand::new(&ns.env.cluster.kubeconfig, &ns.namespace);
        let mut open: Vec<&SetUp> = all.iter().collect();
        ns.until("the causes", async || {
            let names: Vec<String> = open.iter().map(|set_up| set_up.full_name()).collect();
            let response = why.explain(&names).await?;
            let mut wrong = Vec::new();
            open.retain(|set_up| {
                let words = set_up.words.replace("{ns}", &ns.namespace);
                let missed = response.misses(&set_up.full_name(), set_up.id, &words);
                wrong.extend(missed.clone());
                missed.is_some()
            });
            if wrong.is_empty() { Ok(()) } else { Err(wrong) }
        })
        .await;
        for set_up in &all {
            ns.send(Method::DELETE, &format!("{}/{}", set_up.collection(), set_up.name), None).await;
        }
        // Other tests use the same namespace.
        for path in [
            "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers/why-rival",
            "/apis/keda.sh/v1alpha1/namespaces/{ns}/triggerauthentications/why-secret",
            "/apis/keda.sh/v1alpha1/namespaces/{ns}/triggerauthentications/why-key",
            "/api/v1/namespaces/{ns}/secrets/why-login",
        ] {
            ns.send(Method::DELETE, path, None).await;
        }
        operator.check();
    })
}

async fn post(ns: &TestNamespace, path: &str, object: &Value) {
    let (code, body) = ns.send(Method::POST, path, Some(object)).await;
    assert_eq!(code, 201, "{path}: {body}");
}

/// A TriggerAuthentication whose Secret is missing, and one whose Secret lacks the key.
async fn credentials(ns: &TestNamespace) {
    for (name, secret) in [("why-secret", "why-missing"), ("why-key", "why-login")] {
        let parameter = json!({"parameter": "token", "name": secret, "key": "token"});
        let authentication = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
            "metadata": {"name": name}, "spec": {"secretTargetRef": [parameter]}});
        post(ns, AUTHENTICATIONS, &authentication).await;
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "why-login"}, "stringData": {"user": "u"}});
    post(ns, "/api/v1/namespaces/{ns}/secrets", &secret).await;
}

async fn create(ns: &TestNamespace, set_up: &SetUp) {
    let SetUp { name, replicas, says, change, .. } = set_up;
    ns.set_response(name, says.clone());
    if let Some(replicas) = replicas {
        post(ns, "/apis/apps/v1/namespaces/{ns}/deployments", &deployment(name, *replicas)).await;
    }
    let mut object = if set_up.is_job { ns.scaled_job(name, 4) } else { ns.scaled_object(name, &json!({})) };
    object["spec"]["triggers"] = json!([metrics_api(ns, name, "10")]);
    change(&mut object);
    post(ns, set_up.collection(), &object).await;
}
