//! Makes the APIs known to a cluster, through its aggregation layer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::script::Group;
use super::serve::SERVED_BY;
use super::{Error, MetricsApi};

/// The name of the Service, and who owns its fields.
const SERVICE: &str = "simulated-metrics";

const APISERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// How long a cluster may take; the real one looks at a new API every few seconds.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

impl MetricsApi {
    /// Makes the APIs known to a cluster, with a Service in a namespace that exists, and returns when clients can use
    /// them. There is one server of them in a cluster: whoever registers last is asked.
    pub async fn register(&self, client: &Client, namespace: &str) -> Result<(), Error> {
        self.door.also_called(&format!("{SERVICE}.{namespace}.svc"))?;
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port()}]},
        });
        apply(client, &format!("/api/v1/namespaces/{namespace}/services/{SERVICE}"), &service).await?;
        for (group, version) in versions() {
            let name = format!("{version}.{}", group.name());
            let object = json!({
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": name},
                "spec": {
                    "group": group.name(),
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": if version == "v1beta2" { 200 } else { 100 },
                    "caBundle": STANDARD.encode(self.ca_pem()),
                    "service": {"name": SERVICE, "namespace": namespace, "port": self.port()},
                },
            });
            apply(client, &format!("{APISERVICES}/{name}"), &object).await?;
        }
        for (group, version) in versions() {
            let found = tokio::time::timeout(PATIENCE, async {
                while !self.is_known(client, group, version).await {
                    tokio::time::sleep(POLL).await;
                }
            });
            let api = || format!("{}/{version}", group.name());
            found.await.map_err(|_| Error::Unavailable { api: api(), patience: PATIENCE })?;
        }
        Ok(())
    }

    /// Takes back what [`MetricsApi::register`] made; what is gone already is no error.
    pub async fn unregister(&self, client: &Client, namespace: &str) {
        let api_services =
            versions().map(|(group, version)| format!("{APISERVICES}/{version}.{}", group.name()));
        let service = format!("/api/v1/namespaces/{namespace}/services/{SERVICE}");
        for path in api_services.chain([service]) {
            send(client, Method::DELETE, &path, Value::Null).await;
        }
    }

    /// Whether the cluster says that the API is there, shows it to clients, and leads to us.
    async fn is_known(&self, client: &Client, group: Group, version: &str) -> bool {
        let name = format!("{APISERVICES}/{version}.{}", group.name());
        let (_, object) = send(client, Method::GET, &name, Value::Null).await;
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let available = |condition: &Value| {
            condition.get("type").is_some_and(|kind| kind == "Available")
                && condition.get("status").is_some_and(|status| status == "True")
        };
        if !conditions.is_some_and(|all| all.iter().any(available)) {
            return false;
        }
        let (_, groups) = send(client, Method::GET, "/apis", Value::Null).await;
        let groups = groups.get("groups").and_then(Value::as_array).into_iter().flatten();
        let mut preferred = groups.filter(|known| known.get("name").is_some_and(|name| name == group.name()));
        let preferred = preferred.next().and_then(|group| group.pointer("/preferredVersion/version"));
        if preferred.and_then(Value::as_str) != group.versions().first().copied() {
            return false;
        }
        let (port, _) =
            send(client, Method::GET, &format!("/apis/{}/{version}", group.name()), Value::Null).await;
        port == Some(self.port())
    }
}

fn versions() -> impl Iterator<Item = (Group, &'static str)> {
    Group::ALL.into_iter().flat_map(|group| group.versions().iter().map(move |version| (group, *version)))
}

async fn apply(client: &Client, path: &str, object: &Value) -> Result<(), Error> {
    let failed = |source| Error::Register { object: path.to_owned(), source };
    let request = Request::patch(format!("{path}?fieldManager={SERVICE}&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(object.to_string().into_bytes());
    let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
    client.request::<serde::de::IgnoredAny>(request).await.map(|_| ()).map_err(failed)
}

/// Which of our servers answered, if any did, and what.
async fn send(client: &Client, method: Method, path: &str, body: Value) -> (Option<u16>, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let Ok(request) = Request::builder().method(method).uri(path).body(Body::from(body)) else {
        return (None, Value::Null);
    };
    let Ok(answer) = client.send(request).await else { return (None, Value::Null) };
    let port = answer.headers().get(SERVED_BY).and_then(|value| value.to_str().ok()?.parse().ok());
    let Ok(body) = answer.into_body().collect().await else { return (port, Value::Null) };
    (port, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
}
