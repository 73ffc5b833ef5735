//! Reads the facts of a diagnosis from a cluster: only those that can explain the decision, and only as far as the user may read
//! them. What cannot be read stays unknown.

use std::collections::{BTreeMap, BTreeSet};

use api::decisions::{DecisionRecord, MODE_ANNOTATION};
use api::diagnosis::{
    ApiServiceFact, ClusterFacts, NodeFact, PausedFact, PodFact, RivalFact, SelectedOwner, ServedMetrics,
};
use api::keda::annotations as keda_annotations;
use api::map::StringMap;
use cluster::AutoscalerKind;
use cluster::request::{below, with_query, within};
use engine::FailureCause;
use engine::evaluate::{Arithmetic, UncountedReason};
use engine::failure::RequestFailure;
use engine::spec::MetricSource;
use serde::Deserialize;
use serde_json::Value;

use super::objects::{Object, ObjectFilter};
use super::{AutoscalerName, ClusterClient, Scope};

/// Nodes that are read for one autoscaler.
const MAX_READ_NODES: usize = 20;
/// Pods that are read for one autoscaler.
const MAX_READ_PODS: usize = 500;
/// Kinds that own the pods that their selector matches, directly or through a ReplicaSet.
const OWNING_KINDS: [&str; 4] = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"];

/// A list of the API, of which only some fields are read.
#[derive(Deserialize)]
struct ItemList<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

/// The fields of a pod or ReplicaSet that are used.
#[derive(Deserialize)]
struct OwnedItem {
    metadata: OwnedMeta,
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnedMeta {
    name: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Clone, Deserialize)]
struct OwnerReference {
    kind: String,
    name: String,
    #[serde(default)]
    controller: bool,
}

/// What is known of the cluster about the latest decision of an autoscaler.
pub(crate) async fn read(
    client: &ClusterClient,
    named: &AutoscalerName,
    record: &DecisionRecord,
) -> ClusterFacts {
    let mut facts = ClusterFacts::default();
    let namespace = &record.metadata.namespace;
    let filter = ObjectFilter {
        kinds: &AutoscalerKind::ALL,
        scope: Scope::Namespace(namespace),
        labels: None,
        cached: false,
    };
    if let Ok(all) = client.objects(filter).await {
        if let Some(own) = all.iter().find(|object| object.named() == *named) {
            facts = of_annotations(named.kind, &own.hpa.metadata.annotations);
        }
        facts.rivals = Some(rivals(&all, named, record));
    }
    let selector = record.decision.scale.as_ref().map_or("", |scale| scale.selector.as_str());
    if !selector.is_empty() {
        pods(client, namespace, selector, record, &mut facts).await;
    }
    for (evaluation, metric) in record.decision.evaluations.iter().zip(&record.spec.metrics) {
        let Err(failure) = &evaluation.result else { continue };
        let Some(FailureCause::Request(request)) = &failure.cause else { continue };
        match request {
            RequestFailure::NotFound | RequestFailure::NoItems => {
                served(client, &metric.source, &mut facts).await;
            }
            RequestFailure::Unavailable | RequestFailure::NotServed | RequestFailure::Timeout
                if facts.api_services.is_none() =>
            {
                facts.api_services = api_services(client).await;
            }
            _ => {}
        }
    }
    facts
}

/// What the annotations of an object say; the rest is unknown.
pub(crate) fn of_annotations(kind: AutoscalerKind, annotations: &StringMap) -> ClusterFacts {
    ClusterFacts {
        paused: paused(kind, annotations),
        off: is_off(kind, annotations),
        ..ClusterFacts::default()
    }
}

/// Whether nothing is decided about an autoscaler because its annotation says so.
pub(crate) fn is_off(kind: AutoscalerKind, annotations: &StringMap) -> bool {
    !kind.has_triggers() && annotations.get(MODE_ANNOTATION).is_some_and(|mode| mode == "off")
}

/// Whether a ScaledObject or ScaledJob is paused, and at which count. A ScaledJob has none, so the annotation with a count has no
/// effect on it (docs/spec/keda.md 1.2).
pub(crate) fn paused(kind: AutoscalerKind, annotations: &StringMap) -> Option<PausedFact> {
    let replicas = annotations.get(keda_annotations::PAUSED_REPLICAS);
    let (is_paused, replicas) = match kind {
        AutoscalerKind::ScaledObject => (keda_annotations::is_paused(annotations), replicas),
        AutoscalerKind::ScaledJob => (keda_annotations::is_set(annotations, keda_annotations::PAUSED), None),
        AutoscalerKind::Hpa | AutoscalerKind::Autoscaler => (false, None),
    };
    is_paused.then(|| PausedFact { replicas: replicas.and_then(|count| count.trim().parse().ok()) })
}

/// Other autoscalers that act on the same target. The HPA of a ScaledObject and that ScaledObject are one.
fn rivals(all: &[Object], named: &AutoscalerName, record: &DecisionRecord) -> Vec<RivalFact> {
    let target = &record.spec.target;
    let owner_of = |object: &Object| {
        let owner = object.hpa.metadata.owner_references.iter().find(|owner| owner.kind == "ScaledObject");
        owner.map(|owner| owner.name.clone())
    };
    let own_owner = all.iter().find(|object| object.named() == *named).and_then(owner_of);
    let acts = |object: &Object| {
        let mode = object.hpa.metadata.annotations.get(MODE_ANNOTATION).map(String::as_str);
        !object.dry_run && !matches!(mode, Some("off" | "shadow" | "dry-run"))
    };
    let same_target = |object: &Object| {
        let other = &object.hpa.spec.scale_target_ref;
        (&other.kind, &other.name) == (&target.kind, &target.name)
    };
    let is_related = |object: &Object| {
        let is_scaled_object = object.kind == AutoscalerKind::ScaledObject;
        let generated_from_own =
            named.kind == AutoscalerKind::ScaledObject && owner_of(object).as_ref() == Some(&named.name);
        generated_from_own || (is_scaled_object && own_owner.as_ref() == Some(&object.hpa.metadata.name))
    };
    let others = all.iter().filter(|object| object.named() != *named);
    others
        .filter(|object| same_target(object) && acts(object) && !is_related(object))
        .map(|object| RivalFact { name: object.named().to_string() })
        .collect()
}

/// The selected pods, their owners, and the nodes of pods whose samples are missing or old.
async fn pods(
    client: &ClusterClient,
    namespace: &str,
    selector: &str,
    record: &DecisionRecord,
    facts: &mut ClusterFacts,
) {
    let limit = MAX_READ_PODS.to_string();
    let matching = |collection: &str| {
        with_query(&within(collection, namespace), [("labelSelector", selector), ("limit", &limit)])
    };
    let path = matching("/api/v1/pods");
    let Ok(listed) = client.get::<ItemList<OwnedItem>>(&path).await else { return };
    if OWNING_KINDS.contains(&record.spec.target.kind.as_str()) {
        let path = matching("/apis/apps/v1/replicasets");
        let sets = client.get::<ItemList<OwnedItem>>(&path).await.ok();
        facts.other_owners = sets.map(|sets| other_owners(record, &listed.items, &sets.items));
    }
    let node_of = |item: &OwnedItem| item.spec.get("nodeName").and_then(Value::as_str).map(str::to_owned);
    let known: Vec<PodFact> = listed
        .items
        .iter()
        .map(|item| PodFact { name: item.metadata.name.clone(), node: node_of(item) })
        .collect();
    if needs_nodes(record) {
        let names: BTreeSet<&str> = known.iter().filter_map(|pod| pod.node.as_deref()).collect();
        let mut nodes = Vec::new();
        for name in names.into_iter().take(MAX_READ_NODES) {
            if let Ok(node) = client.get::<Value>(&below("/api/v1/nodes", [name])).await {
                nodes.push(NodeFact { name: name.to_owned(), ready: is_ready(&node) });
            }
        }
        facts.nodes = Some(nodes);
    }
    facts.pods = Some(known);
}

/// Whether the readiness of nodes can explain something: samples are missing or old.
fn needs_nodes(record: &DecisionRecord) -> bool {
    let is_missing = |pod: &engine::evaluate::UncountedPod| pod.reason == UncountedReason::NoSample;
    record.decision.evaluations.iter().any(|evaluation| match &evaluation.result {
        Ok(proposal) => match &proposal.sum {
            Arithmetic::PerPod(sum) => sum.uncounted.iter().any(is_missing) || sum.oldest.is_some(),
            _ => false,
        },
        Err(failure) => failure.uncounted.iter().any(is_missing),
    })
}

fn is_ready(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    ready.is_some_and(|ready| ready["status"] == "True")
}

/// Owners of selected pods other than the target, with the number of their pods.
fn other_owners(record: &DecisionRecord, pods: &[OwnedItem], sets: &[OwnedItem]) -> Vec<SelectedOwner> {
    let controller =
        |item: &OwnedItem| item.metadata.owner_references.iter().find(|owner| owner.controller).cloned();
    let target = &record.spec.target;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller(pod) else { continue };
        let is_target = |owner: &OwnerReference| owner.kind == target.kind && owner.name == target.name;
        // A ReplicaSet that is not listed may belong to the target.
        let top = match owner.kind.as_str() {
            "ReplicaSet" if !is_target(&owner) => {
                match sets.iter().find(|set| set.metadata.name == owner.name) {
                    Some(set) => controller(set).unwrap_or(owner),
                    None => continue,
                }
            }
            _ => owner,
        };
        if !is_target(&top) {
            *counts.entry(format!("{}/{}", top.kind, top.name)).or_default() += 1;
        }
    }
    counts.into_iter().map(|(owner, pods)| SelectedOwner { owner, pods }).collect()
}

/// Adds the names that the API of a metric serves.
async fn served(client: &ClusterClient, source: &MetricSource, facts: &mut ClusterFacts) {
    let (group, versions): (&str, &[&str]) = match source {
        MetricSource::Pods(_) | MetricSource::Object { .. } => {
            ("custom.metrics.k8s.io", &["v1beta2", "v1beta1"])
        }
        MetricSource::External(_) => ("external.metrics.k8s.io", &["v1beta1"]),
        _ => return,
    };
    if facts.served.iter().any(|known| known.group == group) {
        return;
    }
    for version in versions {
        let Ok(list) = client.get::<Value>(&format!("/apis/{group}/{version}")).await else { continue };
        let resources = list.get("resources").and_then(Value::as_array);
        let names = resources.into_iter().flatten().filter_map(|resource| resource["name"].as_str());
        // Custom metrics are listed as `pods/requests_per_second`.
        let names =
            names.map(|name| name.split_once('/').map_or(name, |(_, metric)| metric).to_owned()).collect();
        facts.served.push(ServedMetrics { group: group.to_owned(), names });
        return;
    }
}

/// The APIServices of the metrics APIs.
async fn api_services(client: &ClusterClient) -> Option<Vec<ApiServiceFact>> {
    let list: ItemList<Value> = client.get("/apis/apiregistration.k8s.io/v1/apiservices").await.ok()?;
    let fact = |item: &Value| {
        let text =
            |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let conditions = item.pointer("/status/conditions").and_then(Value::as_array);
        let available = conditions.into_iter().flatten().find(|condition| condition["type"] == "Available");
        let of = |name: &str| available.and_then(|one| one[name].as_str()).unwrap_or_default().to_owned();
        let service = item.pointer("/spec/service").filter(|service| !service.is_null());
        ApiServiceFact {
            group: text("/spec/group"),
            available: of("status") == "True",
            reason: of("reason"),
            message: of("message"),
            service: service
                .map(|_| format!("{}/{}", text("/spec/service/namespace"), text("/spec/service/name"))),
        }
    };
    let all = list.items.iter().map(fact);
    Some(all.filter(|service| service.group.ends_with("metrics.k8s.io")).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::live::sample::record;

    fn item(name: &str, kind: &str, owner: &str) -> OwnedItem {
        let owners = json!([{"kind": kind, "name": owner, "controller": true}]);
        serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": owners}})).unwrap()
    }

    #[test]
    fn pods_of_another_deployment_are_counted_by_owner() {
        let record = record("2026-01-05T09:14:45Z", 2, &[100; 2]);
        let pods = [
            item("web-1-a", "ReplicaSet", "web-1"),
            item("api-1-a", "ReplicaSet", "api-1"),
            item("api-1-b", "ReplicaSet", "api-1"),
            item("new-1-a", "ReplicaSet", "new-1"),
            item("db-0", "StatefulSet", "db"),
        ];
        let sets = [item("web-1", "Deployment", "web"), item("api-1", "Deployment", "api")];
        let found = other_owners(&record, &pods, &sets);
        let expected = [("Deployment/api", 2), ("StatefulSet/db", 1)];
        assert_eq!(found, expected.map(|(owner, pods)| SelectedOwner { owner: owner.into(), pods }));
    }

    #[test]
    fn only_a_scaled_object_is_paused_at_a_count() {
        let annotations = |all: &[(&str, &str)]| -> StringMap {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let at_count = annotations(&[(keda_annotations::PAUSED_REPLICAS, "3")]);
        assert_eq!(paused(AutoscalerKind::ScaledObject, &at_count), Some(PausedFact { replicas: Some(3) }));
        assert_eq!(paused(AutoscalerKind::ScaledJob, &at_count), None);
        assert_eq!(paused(AutoscalerKind::Hpa, &at_count), None);
        let both =
            annotations(&[(keda_annotations::PAUSED_REPLICAS, "3"), (keda_annotations::PAUSED, "true")]);
        assert_eq!(paused(AutoscalerKind::ScaledJob, &both), Some(PausedFact { replicas: None }));
    }

    #[test]
    fn node_is_ready_only_by_its_condition() {
        let node = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        assert!(is_ready(&node("True")));
        assert!(!is_ready(&node("Unknown")));
        assert!(!is_ready(&json!({})));
    }
}
