//! Reads the cluster for a bundle. What cannot be read is named in `errors.txt`.

use api::decisions::{API_VERSION as DECISIONS, OPERATOR_API_VERSION as OPERATOR};
use api::reports::{API_VERSION as REPORTS, CURRENT, RESOURCE};
use cluster::request::{with_query, within};
use jiff::Timestamp;
use runtime::build_info;
use serde_json::{Value, json};

use super::archive::BundleFile;
use super::redact;
use crate::failure::Failure;
use crate::live::{ClusterClient, RequestError};

/// The label of everything that the chart installs.
const PART_OF: &str = "app.kubernetes.io/part-of=plimsoll";
/// Objects and events, by file name; all of them may be in namespaces.
const NAMESPACED: [(&str, &str); 10] = [
    ("objects/horizontalpodautoscalers", "/apis/autoscaling/v2/horizontalpodautoscalers"),
    ("objects/autoscalers", "/apis/plimsoll.dev/v1alpha1/autoscalers"),
    ("objects/scaledobjects", "/apis/keda.sh/v1alpha1/scaledobjects"),
    ("objects/scaledjobs", "/apis/keda.sh/v1alpha1/scaledjobs"),
    ("objects/triggerauthentications", "/apis/keda.sh/v1alpha1/triggerauthentications"),
    ("objects/cloudeventsources", "/apis/eventing.keda.sh/v1alpha1/cloudeventsources"),
    (
        "events/horizontalpodautoscalers",
        "/api/v1/events?fieldSelector=involvedObject.kind%3DHorizontalPodAutoscaler",
    ),
    ("events/autoscalers", "/api/v1/events?fieldSelector=involvedObject.kind%3DAutoscaler"),
    ("events/scaledobjects", "/api/v1/events?fieldSelector=involvedObject.kind%3DScaledObject"),
    ("events/scaledjobs", "/api/v1/events?fieldSelector=involvedObject.kind%3DScaledJob"),
];
/// The Services of the roles.
const ROLES: [&str; 4] = ["plimsoll-controller", "plimsoll-shadow", "plimsoll-metrics", "plimsoll-operator"];

/// Reads everything.
pub(super) async fn all(
    client: &ClusterClient,
    all_namespaces: bool,
    now: Timestamp,
) -> Result<Vec<BundleFile>, Failure> {
    let server: Value = client
        .get("/version")
        .await
        .map_err(|error| client.failure("ask for the version of the cluster", &error))?;
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    let mut keep = |name: &str, found: Result<Value, RequestError>| match found {
        Ok(mut value) => {
            redact::object(&mut value);
            files.push(BundleFile { name: format!("{name}.json"), text: format!("{value:#}\n") });
        }
        // What is not installed is not missing.
        Err(error) if error.code() == Some(404) => {}
        Err(error) => errors.push(format!("{name}: {}", redact::text(&error.to_string()))),
    };
    let version = json!({
        "plimsoll": build_info::VERSION, "revision": build_info::REVISION,
        "kubernetes": server, "time": now.to_string()
    });
    keep("version", Ok(version));
    let scope = client.scope(all_namespaces).namespace();
    for (name, path) in NAMESPACED {
        let (collection, query) = path.split_once('?').unwrap_or((path, ""));
        let separator = if query.is_empty() { "" } else { "?" };
        keep(name, client.get(&format!("{}{separator}{query}", within(collection, scope))).await);
    }
    for (name, version) in [("decisions/controller", DECISIONS), ("decisions/operator", OPERATOR)] {
        keep(name, client.get(&within(&format!("/apis/{version}/decisions"), scope)).await);
    }
    keep(
        "objects/clustertriggerauthentications",
        client.get("/apis/keda.sh/v1alpha1/clustertriggerauthentications").await,
    );
    keep("objects/apiservices", client.get("/apis/apiregistration.k8s.io/v1/apiservices").await);
    let labelled = |path: &str| with_query(path, [("labelSelector", PART_OF)]);
    let deployments: Result<Value, RequestError> = client.get(&labelled("/apis/apps/v1/deployments")).await;
    let namespaces = deployments.as_ref().map(namespaces).unwrap_or_default();
    keep("roles/deployments", deployments);
    keep("roles/pods", client.get(&labelled("/api/v1/pods")).await);
    keep("roles/metrics-report", client.get(&format!("/apis/{REPORTS}/{RESOURCE}/{CURRENT}")).await);
    for namespace in namespaces {
        let leases = within("/apis/coordination.k8s.io/v1/leases", &namespace);
        keep(&format!("roles/{namespace}/leases"), client.get(&leases).await);
        // Why a pod does not start: image, quota, node, volume.
        let events = within("/api/v1/events", &namespace);
        keep(&format!("roles/{namespace}/events"), client.get(&events).await);
        for role in ROLES {
            let ready =
                format!("/api/v1/namespaces/{namespace}/services/https:{role}:443/proxy/readyz?verbose");
            let health = client.get_plain(&ready).await;
            let health = health.map(|text| json!({"checks": text.lines().collect::<Vec<_>>()}));
            keep(&format!("roles/{namespace}/{role}-health"), health);
        }
    }
    if !errors.is_empty() {
        files.push(BundleFile { name: "errors.txt".to_owned(), text: errors.join("\n") + "\n" });
    }
    Ok(files)
}

/// The namespaces of listed objects.
fn namespaces(list: &Value) -> Vec<String> {
    let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
    let named = items.filter_map(|item| item.pointer("/metadata/namespace")?.as_str());
    let mut found: Vec<String> = named.map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}
