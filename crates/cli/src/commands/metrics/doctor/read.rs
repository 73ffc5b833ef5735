//! Reads the APIServices of the metrics APIs and the report of our own server.

use api::reports::{API_VERSION, CURRENT, RESOURCE, ServerReport};
use cluster::request::{with_query, within};
use serde::Deserialize;

use super::finding::{self, ApiService, Findings, GROUPS, OPERATOR, OWN, Reference};
use crate::failure::Failure;
use crate::live::{ClusterClient, RequestError};

/// Reads everything; failures are recorded as unknown.
pub(super) async fn findings(client: &ClusterClient) -> Result<Findings, Failure> {
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let listed: ApiServiceList =
        client.get(path).await.map_err(|error| client.failure("list APIServices", &error))?;
    let wanted = |found: &Item| {
        let group = found.spec.group.as_str();
        GROUPS.contains(&group) || group == OWN || group == OPERATOR
    };
    let services: Vec<ApiService> =
        listed.items.into_iter().filter(wanted).map(Item::into_api_service).collect();
    let registered = services.iter().any(|service| service.group == OWN);
    let report: Option<Result<ServerReport, RequestError>> = if registered {
        Some(client.get(&format!("/apis/{API_VERSION}/{RESOURCE}/{CURRENT}")).await)
    } else {
        None
    };
    let mut findings = finding::findings(&services, report);
    if let Some(ours) = findings.ours.clone() {
        findings.ready_replicas = replicas(client, &ours).await;
    }
    Ok(findings)
}

/// How many pods behind a Service are ready, if that is known.
async fn replicas(client: &ClusterClient, service: &Reference) -> Option<u64> {
    let selector = format!("kubernetes.io/service-name={}", service.name);
    let path = within("/apis/discovery.k8s.io/v1/endpointslices", &service.namespace);
    let slices: Slices = client.get(&with_query(&path, [("labelSelector", &*selector)])).await.ok()?;
    let endpoints = slices.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|endpoint| endpoint.conditions.ready.unwrap_or(true)).count();
    u64::try_from(ready).ok().filter(|ready| *ready > 0)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiServiceList {
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    spec: Spec,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    group: String,
    version: String,
    service: Option<Reference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Slices {
    items: Vec<Slice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Slice {
    endpoints: Option<Vec<Endpoint>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    conditions: Readiness,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Readiness {
    ready: Option<bool>,
}

impl Item {
    fn into_api_service(self) -> ApiService {
        let conditions = self.status.and_then(|status| status.conditions).unwrap_or_default();
        let available =
            conditions.into_iter().find(|condition| condition.r#type == "Available").unwrap_or_default();
        ApiService {
            group: self.spec.group,
            version: self.spec.version,
            service: self.spec.service,
            available: available.status == "True",
            reason: available.reason,
            message: available.message,
        }
    }
}
