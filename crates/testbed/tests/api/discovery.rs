//! Discovery. Only entries of kinds that localkube serves are compared.

use localkube::kinds::KINDS;
use serde_json::{Value, json};
use testbed::cases;
use testbed::harness::{Case, Session};

pub(crate) const CASES: &[Case] = cases![
    versions_of_the_core,
    groups,
    one_group,
    resources_of_the_core,
    resources_of_groups,
    all_at_once,
    all_at_once_of_the_core,
    groups_with_definitions,
    the_version,
    health,
    the_root,
];

/// Keeps the items of a list for which `wanted` is true.
fn keep(list: &mut Value, wanted: impl Fn(&Value) -> bool) {
    if let Some(items) = list.as_array_mut() {
        items.retain(wanted);
    }
}

fn is_ours(group: &str, entry: &str) -> bool {
    let (plural, part) = entry.split_once('/').unwrap_or((entry, ""));
    let kind = KINDS.iter().find(|kind| kind.group == group && kind.plural == plural);
    kind.is_some() && matches!(part, "" | "status" | "scale")
}

fn has_group(group: &str) -> bool {
    KINDS.iter().any(|kind| kind.group == group)
}

/// The groups and versions that localkube serves.
fn versions() -> Vec<(&'static str, &'static str)> {
    let mut pairs: Vec<_> =
        KINDS.iter().flat_map(|kind| kind.versions.iter().map(|version| (kind.group, *version))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

async fn versions_of_the_core(s: Session) {
    s.get("/api").await;
}

async fn groups(s: Session) {
    let mut all = s.request(http::Method::GET, "/apis").send_unrecorded().await.body;
    keep(&mut all["groups"], |group| has_group(group["name"].as_str().unwrap_or_default()));
    keep(&mut all["groups"], |group| group["name"] != "");
    s.note("GET /apis, our groups", all);
}

async fn one_group(s: Session) {
    for group in [
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "admissionregistration.k8s.io",
    ] {
        let mut response =
            s.request(http::Method::GET, &format!("/apis/{group}")).send_unrecorded().await.body;
        // These versions have no kind that localkube serves.
        keep(&mut response["versions"], |version| {
            versions().iter().any(|(g, v)| *g == group && version["version"] == *v)
        });
        s.note(&format!("GET /apis/{group}, our versions"), response);
    }
}

async fn resources_of_the_core(s: Session) {
    let mut all = s.request(http::Method::GET, "/api/v1").send_unrecorded().await.body;
    keep(&mut all["resources"], |entry| is_ours("", entry["name"].as_str().unwrap_or_default()));
    s.note("GET /api/v1, our kinds", all);
}

async fn resources_of_groups(s: Session) {
    for (group, version) in versions().into_iter().filter(|(group, _)| !group.is_empty()) {
        let path = format!("/apis/{group}/{version}");
        let mut all = s.request(http::Method::GET, &path).send_unrecorded().await.body;
        keep(&mut all["resources"], |entry| is_ours(group, entry["name"].as_str().unwrap_or_default()));
        s.note(&format!("GET {path}, our kinds"), all);
    }
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn ours(mut all: Value) -> Value {
    keep(&mut all["items"], |item| has_group(item["metadata"]["name"].as_str().unwrap_or_default()));
    for item in all["items"].as_array_mut().into_iter().flatten() {
        let group = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        keep(&mut item["versions"], |version| {
            versions().iter().any(|(g, v)| *g == group && version["version"] == *v)
        });
        for version in item["versions"].as_array_mut().into_iter().flatten() {
            keep(&mut version["resources"], |entry| {
                is_ours(&group, entry["resource"].as_str().unwrap_or_default())
            });
            for resource in version["resources"].as_array_mut().into_iter().flatten() {
                keep(&mut resource["subresources"], |part| {
                    matches!(part["subresource"].as_str(), Some("status" | "scale"))
                });
                if resource["subresources"].as_array().is_some_and(Vec::is_empty) {
                    resource.as_object_mut().unwrap().remove("subresources");
                }
            }
        }
    }
    all
}

async fn all_at_once(s: Session) {
    let all = s.request(http::Method::GET, "/apis").header("accept", AGGREGATED).send_unrecorded().await.body;
    s.note("GET /apis at once, our kinds", ours(all));
}

async fn all_at_once_of_the_core(s: Session) {
    // The `Accept` header of kubectl: several media types, the preferred first.
    let accept = format!(
        "{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    );
    let all = s.request(http::Method::GET, "/api").header("accept", &accept).send_unrecorded().await.body;
    s.note("GET /api at once, our kinds", ours(all));
}

async fn groups_with_definitions(s: Session) {
    crate::widgets::define(&s, &crate::widgets::definition()).await;
    let group = format!("{}.example.com", s.namespace());
    let find = |all: &Value, list: &str, name: &str| {
        all[list]
            .as_array()
            .into_iter()
            .flatten()
            .find(|item| item.pointer(name) == Some(&json!(group)))
            .cloned()
    };
    s.wait("/apis", |response| find(&response.body, "groups", "/name").is_some()).await;
    let all = s.request(http::Method::GET, "/apis").send_unrecorded().await.body;
    s.note("GET /apis, the group of the definition", find(&all, "groups", "/name").unwrap_or_default());
    let found = |response: &testbed::harness::ApiResponse| find(&response.body, "items", "/metadata/name");
    let mut entry = Value::Null;
    for _ in 0..200 {
        let response =
            s.request(http::Method::GET, "/apis").header("accept", AGGREGATED).send_unrecorded().await;
        if let Some(item) = found(&response) {
            entry = item;
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    s.note("GET /apis at once, the group of the definition", entry);
}

async fn the_version(s: Session) {
    let response = s.request(http::Method::GET, "/version").send_unrecorded().await;
    for field in ["/major", "/minor", "/gitVersion", "/platform"] {
        s.note(&format!("GET /version, {field}"), response.text(field).into());
    }
}

async fn health(s: Session) {
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping"] {
        s.get(path).await;
    }
}

async fn the_root(s: Session) {
    let response = s.request(http::Method::GET, "/").send_unrecorded().await;
    let mut paths = response.body["paths"].clone();
    keep(&mut paths, |path| {
        let path = path.as_str().unwrap_or_default();
        matches!(
            path,
            "/api"
                | "/api/v1"
                | "/apis"
                | "/healthz"
                | "/livez"
                | "/readyz"
                | "/version"
                | "/openapi/v3"
                | "/apis/apps/v1"
                | "/apis/autoscaling/v2"
        )
    });
    s.note("GET /, some paths", paths);
}
