//! Requests, definitions, and waiting.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use testbed::harness::TestNamespace;

/// How long something may take to come true.
const PATIENCE: Duration = Duration::from_mins(3);

/// What a server said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Said {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// What is told to whoever uses kubectl.
    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Sends a request.
pub(crate) async fn ask(client: &Client, method: Method, uri: &str, body: Option<&Value>) -> Said {
    let content = if method == Method::PATCH { "application/apply-patch+yaml" } else { "application/json" };
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(uri).header("content-type", content);
    let answer = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (code, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&text).unwrap_or_else(|_| json!(String::from_utf8_lossy(&text)));
    Said { code, headers, body }
}

/// Where objects of a kind are, in the namespace of a test or outside of any.
pub(crate) fn place(ns: &TestNamespace, kind: &str) -> String {
    let group = if kind.ends_with("CloudEventSource") { "eventing.keda.sh" } else { "keda.sh" };
    let root = format!("/apis/{group}/v1alpha1");
    let plural = format!("{}s", kind.to_lowercase());
    if kind.starts_with("Cluster") {
        format!("{root}/{plural}")
    } else {
        format!("{root}/namespaces/{}/{plural}", ns.namespace)
    }
}

/// Waits for something to come true.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Result<T, String>) -> T {
    let begin = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(error) if begin.elapsed() > PATIENCE => panic!("{what} did not come: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Applies KEDA's definitions as `kubectl apply --server-side` does, and waits until they are served.
pub(crate) async fn define(ns: &TestNamespace) {
    for entry in std::fs::read_dir(repository().join("deploy/crds/keda")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let source = api::yaml::SourceFile::new(path.display().to_string(), text);
        let definition = api::yaml::parse(&source).unwrap()[0].root.to_json();
        let name = definition["metadata"]["name"].as_str().unwrap();
        let uri = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=test&force=true&fieldValidation=Strict"
        );
        let said = ask(&ns.client, Method::PATCH, &uri, Some(&definition)).await;
        assert!(matches!(said.code, 200 | 201), "{name} on {}: {said:?}", ns.cluster);
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let list = place(ns, kind);
        until(kind, async || {
            let said = ask(&ns.client, Method::GET, &list, None).await;
            if said.code == 200 { Ok(()) } else { Err(said.message().to_owned()) }
        })
        .await;
    }
}
