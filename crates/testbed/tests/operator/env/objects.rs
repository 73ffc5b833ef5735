//! Deployments and ScaledObjects, and reads of them.

use serde_json::{Value, json};

use super::TestNamespace;

const OBJECTS: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects";
const HPAS: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";

/// A trigger whose source is the test's external scaler: ten for each replica.
pub(crate) fn scripted(ns: &TestNamespace, source: &str) -> Value {
    let metadata = json!({"scalerAddress": ns.env.sources.scaler, "source": source});
    json!({"type": "external", "metadata": metadata})
}

/// A trigger whose source is the test's HTTP page.
pub(crate) fn metrics_api(ns: &TestNamespace, source: &str, target: &str) -> Value {
    let url = ns.env.sources.url(&ns.namespace, source);
    json!({"type": "metrics-api", "metadata": {"url": url, "valueLocation": "value", "targetValue": target}})
}

/// A behavior without limits and windows.
pub(crate) fn behavior() -> Value {
    let all_at_once = json!([{"type": "Pods", "value": 100, "periodSeconds": 1}]);
    json!({"scaleUp": {"policies": all_at_once}, "scaleDown": {"stabilizationWindowSeconds": 0}})
}

/// A deployment, as kubectl applies it.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
        }
    })
}

impl TestNamespace {
    /// A ScaledObject of the deployment with the same name: polled every second, with a cooldown of one second.
    pub(crate) fn scaled_object(&self, name: &str, more: &Value) -> Value {
        let mut spec = json!({
            "scaleTargetRef": {"name": name}, "pollingInterval": 1, "cooldownPeriod": 1,
            "minReplicaCount": 0, "maxReplicaCount": 10, "triggers": [scripted(self, name)],
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior()}}
        });
        merge(&mut spec, more);
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec})
    }

    /// A ScaledJob with the source of the same name: polled every second.
    pub(crate) fn scaled_job(&self, name: &str, most: u32) -> Value {
        let pods = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({
            "jobTargetRef": {"template": pods}, "pollingInterval": 1, "maxReplicaCount": most,
            "triggers": [scripted(self, name)]
        });
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": name}, "spec": spec})
    }

    /// A ScaledObject; null if there is none.
    pub(crate) async fn object(&self, name: &str) -> Value {
        self.found(&format!("{OBJECTS}/{name}")).await
    }

    /// An HPA; null if there is none.
    pub(crate) async fn hpa(&self, name: &str) -> Value {
        self.found(&format!("{HPAS}/{name}")).await
    }

    async fn found(&self, path: &str) -> Value {
        match self.get(path).await {
            (200, found) => found,
            (404, _) => Value::Null,
            (code, response) => panic!("{path}: {code} {response}"),
        }
    }

    /// `spec.replicas` of a deployment.
    pub(crate) async fn replicas(&self, name: &str) -> i64 {
        let path = format!("/apis/apps/v1/namespaces/{{ns}}/deployments/{name}");
        self.get(&path).await.1["spec"]["replicas"].as_i64().unwrap()
    }

    /// `metadata.generation` of a deployment.
    pub(crate) async fn generation(&self, deployment: &str) -> Value {
        let path = format!("/apis/apps/v1/namespaces/{{ns}}/deployments/{deployment}");
        self.get(&path).await.1["metadata"]["generation"].clone()
    }

    pub(crate) async fn until_replicas(&self, name: &str, wanted: i64) {
        self.until(&format!("{wanted} replicas of {name}"), async || {
            let found = self.replicas(name).await;
            if found == wanted {
                return Ok(());
            }
            let hpa = self.hpa(&format!("keda-hpa-{name}")).await["status"].clone();
            Err((found, self.object(name).await["status"].clone(), hpa))
        })
        .await;
    }

    /// `status reason` of a condition of a ScaledObject, or of another object of the same shape.
    pub(crate) fn condition(object: &Value, kind: &str) -> String {
        let [status, reason, _] = words(object, kind);
        format!("{status} {reason}")
    }

    /// The message of a condition.
    pub(crate) fn message(object: &Value, kind: &str) -> String {
        let [.., message] = words(object, kind);
        message
    }

    pub(crate) async fn until_condition(&self, name: &str, kind: &str, wanted: &str) {
        self.until_object(name, &format!("{kind} {wanted}"), |object| {
            Self::condition(object, kind) == wanted
        })
        .await;
    }

    /// Waits until a ScaledObject fulfils `wanted`.
    pub(crate) async fn until_object(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) {
        self.until(&format!("{what} of {name}"), async || {
            let found = self.object(name).await;
            if wanted(&found) { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Waits until an HPA fulfils `wanted`; null if there is none.
    pub(crate) async fn until_hpa(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        self.until(&format!("{what} of HPA {name}"), async || {
            last = self.hpa(name).await;
            if wanted(&last) { Ok(()) } else { Err(last.clone()) }
        })
        .await;
        last
    }

    /// `type reason: message` of all events about an object, except those about a deployment of the same name.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let list = self.get("/api/v1/namespaces/{ns}/events").await.1;
        let about = |event: &&Value| {
            let object = &event["involvedObject"];
            object["name"] == name && object["kind"] != "Deployment"
        };
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let response =
            |e: &Value| format!("{} {}: {}", text(e, "type"), text(e, "reason"), text(e, "message"));
        list["items"].as_array().unwrap().iter().filter(about).map(response).collect()
    }

    /// Waits until this event about an object is recorded.
    pub(crate) async fn until_event(&self, name: &str, wanted: &str) {
        self.until(&format!("event {wanted:?} of {name}"), async || {
            let reported = self.events(name).await;
            if reported.iter().any(|reported| reported == wanted) { Ok(()) } else { Err(reported) }
        })
        .await;
    }

    /// Waits until the source was queried `count` more times, so that polls have had their effect.
    pub(crate) async fn rounds(&self, source: &str, count: u64) {
        let query_count = || self.env.sources.query_count(&self.namespace, source);
        let before = query_count();
        self.until(&format!("{count} questions to {source}"), async || {
            if query_count() >= before + count { Ok(()) } else { Err((before, query_count())) }
        })
        .await;
    }
}

fn words(object: &Value, kind: &str) -> [String; 3] {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    ["status", "reason", "message"].map(|field| found[field].as_str().unwrap_or_default().to_owned())
}

/// Merges fields into an object, recursively.
fn merge(into: &mut Value, more: &Value) {
    let Some(fields) = more.as_object() else {
        *into = more.clone();
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut into[name.as_str()], value);
        }
    }
}
