//! A namespace on one of the clusters: requests, workloads and autoscalers in it, and checks of their state.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "used by tests, which fail by it"
)]

use std::borrow::Borrow;
use std::fmt::Debug;

use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::requests::{self, until, write};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";
const HPAS: &str = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers";

/// The namespace of one test. `{ns}` in paths and bodies of requests is replaced by its name.
#[derive(Clone)]
pub struct TestNamespace {
    /// An administrator's client.
    pub client: Client,
    /// The name of the namespace.
    pub namespace: String,
    /// The name of the cluster, for messages.
    pub cluster: &'static str,
    /// An administrator's kubeconfig, for clients in other processes.
    pub kubeconfig: String,
}

/// A Deployment whose pods have the label `app` with its name.
pub fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    let pods =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": pods});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
}

/// An HPA of the Deployment of the same name; `spec` is its spec without the target.
pub fn hpa(name: &str, mut spec: Value) -> Value {
    spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec})
}

/// `status`, `reason` and `message` of a condition of an object; empty if it has none of this type.
pub fn condition(object: &Value, kind: &str) -> [String; 3] {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind);
    let text = |field: &str| found.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    ["status", "reason", "message"].map(|field| text(field).to_owned())
}

/// The items of a list.
pub fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

/// The items of a list of events whose involved object has this name, as `type`, `reason` and `message`, in the order of their writes.
pub fn events_about(list: &Value, name: &str) -> Vec<[String; 3]> {
    let version =
        |event: &&Value| event["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
    let mut found: Vec<&Value> =
        items(list).iter().filter(|event| event["involvedObject"]["name"] == name).collect();
    found.sort_by_key(version);
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    found.iter().map(|event| ["type", "reason", "message"].map(|field| text(event, field))).collect()
}

impl TestNamespace {
    /// Sends a request, and returns the status code and the body of the response.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(|body| self.fill(body));
        requests::send(&self.client, method, &path.replace("{ns}", &self.namespace), body.as_ref()).await
    }

    /// Sends GET, and returns the status code and the body of the response.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    /// Sends GET, which must succeed, and returns the body.
    pub async fn read(&self, path: &str) -> Value {
        self.write(Method::GET, path, &Value::Null).await
    }

    /// Sends POST, which must succeed, and returns the body.
    pub async fn create(&self, path: &str, object: impl Borrow<Value>) -> Value {
        self.write(Method::POST, path, object.borrow()).await
    }

    /// Sends PATCH, which must succeed, and returns the body.
    pub async fn patch(&self, path: &str, patch: impl Borrow<Value>) -> Value {
        self.write(Method::PATCH, path, patch.borrow()).await
    }

    /// Sends DELETE, which must succeed, and returns the body.
    pub async fn delete(&self, path: &str) -> Value {
        self.write(Method::DELETE, path, &Value::Null).await
    }

    async fn write(&self, method: Method, path: &str, body: &Value) -> Value {
        write(&self.client, method, &path.replace("{ns}", &self.namespace), &self.fill(body)).await
    }

    fn fill(&self, body: &Value) -> Value {
        let text = body.to_string();
        if !text.contains("{ns}") {
            return body.clone();
        }
        let filled = serde_json::from_str(&text.replace("{ns}", &self.namespace));
        filled.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Waits until `probe` succeeds. The message of a failure has the cluster and the last error.
    pub async fn until<T: Debug>(&self, what: &str, probe: impl AsyncFnMut() -> Result<(), T>) {
        until(&format!("on {} in {}: {what}", self.cluster, self.namespace), probe).await;
    }

    /// Waits until a path answers GET with 200.
    pub async fn until_found(&self, path: &str) {
        let probe = async || match self.get(path).await {
            (200, _) => Ok(()),
            refused => Err(refused),
        };
        self.until(path, probe).await;
    }

    /// Creates a namespace whose name begins with that of this one.
    pub async fn another(&self, name: &str) -> Self {
        let another = Self { namespace: format!("{}-{name}", self.namespace), ..self.clone() };
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": another.namespace}});
        self.create("/api/v1/namespaces", object).await;
        // The API server refuses pods until the default service account exists.
        another.until_found("/api/v1/namespaces/{ns}/serviceaccounts/default").await;
        another
    }

    /// Creates a [`deployment`] whose status has all its replicas.
    pub async fn deployment(&self, name: &str, replicas: usize) {
        self.create(DEPLOYMENTS, deployment(name, replicas)).await;
        self.set_ready_replicas(name, replicas).await;
    }

    /// Writes the status of a Deployment as its controller would.
    pub async fn set_ready_replicas(&self, name: &str, replicas: usize) {
        let status = json!({"replicas": replicas, "readyReplicas": replicas, "observedGeneration": 1});
        self.patch(&format!("{DEPLOYMENTS}/{name}/status"), json!({"status": status})).await;
    }

    /// `spec.replicas` of a Deployment.
    pub async fn replicas(&self, name: &str) -> i64 {
        let found = self.read(&format!("{DEPLOYMENTS}/{name}")).await;
        found["spec"]["replicas"].as_i64().unwrap_or_else(|| panic!("{name} has no replicas: {found}"))
    }

    /// Waits until `wanted` is true for `spec.replicas` of a Deployment. A failure shows the status of its HPA.
    pub async fn until_replicas_are(&self, name: &str, what: &str, wanted: impl Fn(i64) -> bool) {
        self.until(&format!("{name} at {what}"), async || {
            let found = self.replicas(name).await;
            if wanted(found) {
                return Ok(());
            }
            Err((found, self.get(&format!("{HPAS}/{name}")).await.1["status"].take()))
        })
        .await;
    }

    /// Waits until `spec.replicas` of a Deployment is this number.
    pub async fn until_replicas(&self, name: &str, wanted: i64) {
        self.until_replicas_are(name, &wanted.to_string(), |found| found == wanted).await;
    }

    /// Creates an [`hpa`].
    pub async fn hpa_with(&self, name: &str, spec: Value) {
        self.create(HPAS, hpa(name, spec)).await;
    }

    /// The stored HPA.
    pub async fn hpa_object(&self, name: &str) -> Value {
        self.read(&format!("{HPAS}/{name}")).await
    }

    /// `status reason` of a condition of an HPA.
    pub async fn condition(&self, name: &str, kind: &str) -> String {
        let [status, reason, _] = condition(&self.hpa_object(name).await, kind);
        format!("{status} {reason}").trim().to_owned()
    }

    /// Waits until a condition of an HPA has this `status reason`.
    pub async fn until_condition(&self, name: &str, kind: &str, wanted: &str) {
        self.until(&format!("{kind} {wanted} of {name}"), async || {
            let found = self.condition(name, kind).await;
            if found == wanted { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// `type/reason: message` of the events about an object, in the order of their writes.
    pub async fn events(&self, name: &str) -> Vec<String> {
        let list = self.read("/api/v1/namespaces/{ns}/events").await;
        let found = events_about(&list, name).into_iter();
        found.map(|[kind, reason, message]| format!("{kind}/{reason}: {message}")).collect()
    }
}
