//! A cluster in memory with an operator on it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::diagnosis::CAUSES_ANNOTATION;
use api::yaml::{SourceFile, parse};
use cluster::Clock;
use cluster::discovery::Discovery;
use cluster::events::EventRecorder;
use cluster::lease::Leadership;
use cluster::request::{self, Request};
use http::Method;
use jiff::SignedDuration;
use kube::Client;
use localkube::{Cluster, Options, Running};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::client_faults::ClientFaults;
use super::sources::TestSources;
use crate::faulty_client::FaultyClient;
use crate::operator::{Operator, OperatorHandle, OperatorParts, OperatorSettings};

/// Time limit of every wait, in the cluster's time.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

pub(super) struct TestEnv {
    pub(super) running: Arc<Running>,
    pub(super) client: Client,
    pub(super) sources: TestSources,
    pub(super) client_faults: ClientFaults,
    pub(super) handle: OperatorHandle,
    /// The difference between the machine's clock and the cluster's.
    offset: Arc<Mutex<SignedDuration>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Our definitions of KEDA's resources.
pub(super) fn definitions() -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/keda");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let source = SourceFile::new(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        for document in parse(&source).unwrap() {
            found.push(document.decode_lenient::<Value>().unwrap());
        }
    }
    found
}

/// A cluster with the definitions and the namespace `shop`.
async fn cluster() -> Arc<Running> {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in definitions() {
        post(&client, crds, &definition).await;
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    post(&client, "/api/v1/namespaces", &namespace).await;
    Arc::new(running)
}

impl TestEnv {
    pub(super) async fn start() -> Self {
        Self::with(OperatorSettings::default()).await
    }

    pub(super) async fn with(settings: OperatorSettings) -> Self {
        Self::led(settings, |_, _| Leadership::without_election()).await
    }

    /// Starts an operator with this leadership.
    pub(super) async fn led(
        settings: OperatorSettings,
        leadership: impl FnOnce(Client, Clock) -> Leadership,
    ) -> Self {
        let running = cluster().await;
        let client_faults = ClientFaults::default();
        let own = client_faults.client(&running.client());
        Self::join(running, own, client_faults, TestSources::default(), settings, leadership).await
    }

    /// Starts an operator with random faults.
    pub(super) async fn behind(
        faults: &FaultyClient,
        leadership: impl FnOnce(Client, Clock) -> Leadership,
    ) -> Self {
        let running = cluster().await;
        let own = faults.client(&running.client());
        let (sources, settings) = (TestSources::default(), OperatorSettings::default());
        Self::join(running, own, ClientFaults::default(), sources, settings, leadership).await
    }

    /// Another operator on the same cluster with the same sources, which has a client and a leadership of its own.
    pub(super) async fn another(
        &self,
        faults: &FaultyClient,
        leadership: impl FnOnce(Client, Clock) -> Leadership,
    ) -> Self {
        let (running, sources, settings) =
            (Arc::clone(&self.running), self.sources.clone(), OperatorSettings::default());
        let own = faults.client(&running.client());
        Self::join(running, own, ClientFaults::default(), sources, settings, leadership).await
    }

    async fn join(
        running: Arc<Running>,
        own: Client,
        client_faults: ClientFaults,
        sources: TestSources,
        settings: OperatorSettings,
        leadership: impl FnOnce(Client, Clock) -> Leadership,
    ) -> Self {
        let client = running.client();
        let time = running.clock();
        let offset = Arc::new(Mutex::new(SignedDuration::ZERO));
        let jumped = offset.clone();
        let clock = Clock::new(move || time.now().checked_add(*jumped.lock().unwrap()).unwrap());
        let parts = OperatorParts {
            client: own.clone(),
            discovery: Discovery::new(own),
            leadership: leadership(client.clone(), clock.clone()),
            recorder: EventRecorder::start(client.clone(), "keda-operator", clock.clone()),
            clock,
            settings,
            web: scalers::web::HttpSettings::allowing_loopback(),
            auth: None,
            samples: None,
            build: Some(sources.build()),
            records: crate::hpa::Records::default(),
        };
        let (operator, handle) = Operator::new(parts);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(operator.run(stopped));
        let env = Self { running, client, sources, client_faults, handle, offset, stop, task };
        env.until("the operator sees the cluster", async || env.handle.synced()).await;
        env
    }

    /// Sets the machine's clock.
    pub(super) fn jump(&self, by: SignedDuration) {
        *self.offset.lock().unwrap() += by;
    }

    /// Stops the operator.
    pub(super) async fn stop(self) {
        self.stop.send(true).unwrap();
        self.task.await.unwrap();
    }

    /// Waits for something, in the cluster's time.
    pub(super) async fn until(&self, what: &str, mut so: impl AsyncFnMut() -> bool) {
        let began = Instant::now();
        while !so().await {
            if began.elapsed() > WAIT_TIMEOUT {
                let objects = self.get(&objects("")).await.unwrap_or_default();
                let events = self.get("/api/v1/namespaces/shop/events").await.unwrap_or_default();
                let events: Vec<&Value> =
                    events["items"].as_array().into_iter().flatten().map(|event| &event["message"]).collect();
                panic!("in vain: {what}\n{objects:#}\n{events:#?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        let request = Request::get(path, "", Duration::from_secs(5));
        let response = request::send(&self.client, request).await.ok()?;
        Some(serde_json::from_slice(&response).unwrap())
    }

    pub(super) async fn create(&self, collection: &str, object: Value) {
        post(&self.client, collection, &object).await;
    }

    pub(super) async fn patch(&self, path: &str, patch: Value) {
        send(&self.client, Method::PATCH, path, "application/merge-patch+json", &patch).await;
    }

    pub(super) async fn delete(&self, path: &str) {
        send(&self.client, Method::DELETE, path, "application/json", &json!({})).await;
    }

    /// Creates a deployment.
    pub(super) async fn deployment(&self, name: &str, replicas: i32) {
        let labels = json!({"app": name});
        let template =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
        self.create("/apis/apps/v1/namespaces/shop/deployments", object).await;
    }

    /// Creates a ScaledObject for the deployment with the same name.
    pub(super) async fn scaled_object(&self, name: &str, spec: Value) {
        let mut spec = spec;
        if spec.get("scaleTargetRef").is_none() {
            spec["scaleTargetRef"] = json!({"name": name});
        }
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": name, "labels": {"team": "a"}, "annotations": {"note": "x"}},
            "spec": spec,
        });
        self.create(&objects(""), object).await;
    }

    pub(super) async fn status(&self, name: &str) -> Value {
        let found = self.get(&objects(name)).await.unwrap_or_default();
        found.get("status").cloned().unwrap_or_default()
    }

    /// Status, reason and message of a condition; empty if it is not there.
    pub(super) async fn condition(&self, name: &str, type_: &str) -> (String, String, String) {
        condition(&self.status(name).await, type_)
    }

    pub(super) async fn replicas(&self, name: &str) -> i64 {
        self.get(&deployments(name)).await.unwrap()["spec"]["replicas"].as_i64().unwrap()
    }

    pub(super) async fn hpa(&self, name: &str) -> Option<Value> {
        self.get(&hpas(name)).await
    }

    /// Reasons of all events about an object, with their notes.
    pub(super) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let all = self.get("/api/v1/namespaces/shop/events").await.unwrap();
        let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
        let about = |event: &&Value| event["involvedObject"]["name"] == name;
        let events = all["items"].as_array().unwrap().iter().filter(about);
        events.map(|event| (text(event, "reason"), text(event, "message"))).collect()
    }

    /// Whether there is an event with this reason and this one cause.
    pub(super) async fn has_event_with_cause(&self, reason: &str, cause: &str) -> bool {
        let all = self.get("/api/v1/namespaces/shop/events").await.unwrap();
        let events = all["items"].as_array().unwrap();
        events.iter().any(|event| {
            event["reason"] == reason && event["metadata"]["annotations"][CAUSES_ANNOTATION] == cause
        })
    }

    pub(super) async fn has_event(&self, name: &str, reason: &str) -> bool {
        self.events(name).await.iter().any(|(own, _)| own == reason)
    }
}

/// The patch that adds an annotation, or removes it.
pub(super) fn annotate(key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {key: value.into()}}})
}

pub(super) fn objects(name: &str) -> String {
    format!("/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/{name}").trim_end_matches('/').to_owned()
}

pub(super) fn deployments(name: &str) -> String {
    format!("/apis/apps/v1/namespaces/shop/deployments/{name}")
}

pub(super) fn hpas(name: &str) -> String {
    format!("/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/{name}")
}

pub(super) fn condition(status: &Value, type_: &str) -> (String, String, String) {
    let empty = Vec::new();
    let all = status["conditions"].as_array().unwrap_or(&empty);
    let found = all.iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// A trigger on a scripted source.
pub(super) fn trigger(source: &str) -> Value {
    json!({"type": "scripted", "metadata": {"source": source}})
}

async fn post(client: &Client, path: &str, object: &Value) {
    send(client, Method::POST, path, "application/json", object).await;
}

pub(super) async fn send(client: &Client, method: Method, path: &str, kind: &'static str, body: &Value) {
    let body = Some((kind, body.to_string().into_bytes()));
    let request = Request { method, body, ..Request::get(path, "", Duration::from_secs(5)) };
    request::send(client, request).await.unwrap();
}
