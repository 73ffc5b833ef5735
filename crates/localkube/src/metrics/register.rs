//! Registers the APIs with a cluster's aggregation layer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::script::MetricsGroup;
use super::serve::SERVED_BY_HEADER;
use super::{MetricsApi, MetricsApiError};

/// The name of the Service and of the field manager.
const SERVICE: &str = "simulated-metrics";

const APISERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// How long registration may take; the real aggregator checks a new API every few seconds.
const REGISTRATION_TIMEOUT: Duration = Duration::from_mins(1);
const REGISTRATION_POLL_INTERVAL: Duration = Duration::from_millis(50);

impl MetricsApi {
    /// Registers the APIs, with a Service in an existing namespace, and returns when clients can use them. A cluster
    /// has one server for them: the last registration wins.
    pub async fn register(&self, client: &Client, namespace: &str) -> Result<(), MetricsApiError> {
        self.register_groups(client, namespace, &MetricsGroup::ALL).await
    }

    /// Registers some of the APIs, as [`MetricsApi::register`] does with all of them.
    pub async fn register_groups(
        &self,
        client: &Client,
        namespace: &str,
        groups: &[MetricsGroup],
    ) -> Result<(), MetricsApiError> {
        self.endpoint.also_called(&format!("{SERVICE}.{namespace}.svc"))?;
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port()}]},
        });
        apply(client, &format!("/api/v1/namespaces/{namespace}/services/{SERVICE}"), &service).await?;
        for (group, version) in versions(groups) {
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
        for (group, version) in versions(groups) {
            let found = tokio::time::timeout(REGISTRATION_TIMEOUT, async {
                while !self.is_known(client, group, version).await {
                    tokio::time::sleep(REGISTRATION_POLL_INTERVAL).await;
                }
            });
            let api = || format!("{}/{version}", group.name());
            found
                .await
                .map_err(|_| MetricsApiError::Unavailable { api: api(), patience: REGISTRATION_TIMEOUT })?;
        }
        Ok(())
    }

    /// Removes what [`MetricsApi::register`] created; missing objects are not an error.
    pub async fn unregister(&self, client: &Client, namespace: &str) {
        let api_services = versions(&MetricsGroup::ALL)
            .map(|(group, version)| format!("{APISERVICES}/{version}.{}", group.name()));
        let service = format!("/api/v1/namespaces/{namespace}/services/{SERVICE}");
        for path in api_services.chain([service]) {
            send(client, Method::DELETE, &path, Value::Null).await;
        }
    }

    /// Whether the API is available, shown in discovery, and served by this server.
    async fn is_known(&self, client: &Client, group: MetricsGroup, version: &str) -> bool {
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

fn versions(groups: &[MetricsGroup]) -> impl Iterator<Item = (MetricsGroup, &'static str)> {
    groups.iter().flat_map(|group| group.versions().iter().map(move |version| (*group, *version)))
}

async fn apply(client: &Client, path: &str, object: &Value) -> Result<(), MetricsApiError> {
    let failed = |source| MetricsApiError::Register { object: path.to_owned(), source };
    let request = Request::patch(format!("{path}?fieldManager={SERVICE}&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(object.to_string().into_bytes());
    let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
    client.request::<serde::de::IgnoredAny>(request).await.map(|_| ()).map_err(failed)
}

/// The port of our server that responded, if one did, and the response.
async fn send(client: &Client, method: Method, path: &str, body: Value) -> (Option<u16>, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let Ok(request) = Request::builder().method(method).uri(path).body(Body::from(body)) else {
        return (None, Value::Null);
    };
    let Ok(answer) = client.send(request).await else { return (None, Value::Null) };
    let port = answer.headers().get(SERVED_BY_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
    let Ok(body) = answer.into_body().collect().await else { return (port, Value::Null) };
    (port, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
}
