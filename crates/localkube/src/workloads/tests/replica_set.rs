use std::sync::Arc;

use serde_json::{Value, json};

use super::fake_cluster::FakeCluster;
use crate::workloads::objects::{ObjectRef, ReplicaSet, WorkloadKind};
use crate::workloads::replica_set::plan;

fn set(replicas: i32) -> Value {
    let template =
        json!({"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": {"containers": []}});
    let selector = json!({"matchLabels": {"app": "web"}});
    json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas, "selector": selector, "template": template}})
}

fn status(cluster: &FakeCluster, key: &ObjectRef) -> Value {
    cluster.get(key)["status"].clone()
}

#[test]
fn replica_set_keeps_the_desired_number_of_pods() {
    let mut cluster = FakeCluster::new();
    let key = cluster.add(WorkloadKind::ReplicaSet, set(3));
    cluster.settle();
    let pods = cluster.all(WorkloadKind::Pod);
    assert_eq!(pods.len(), 3);
    let pod = &pods[0].1;
    assert_eq!(pod["metadata"]["generateName"], "web-");
    assert_eq!(pod["metadata"]["labels"], json!({"app": "web", "tier": "front"}));
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-00001",
        "controller": true, "blockOwnerDeletion": true});
    assert_eq!(pod["metadata"]["ownerReferences"], json!([owner]));
    let expected =
        json!({"observedGeneration": 1, "replicas": 3, "fullyLabeledReplicas": 3, "terminatingReplicas": 0});
    assert_eq!(status(&cluster, &key), expected);
    assert_eq!(cluster.events[0], format!("SuccessfulCreate: Created pod: {}", pods[0].0.name));

    cluster.start_pods(2);
    cluster.edit(&pods[1].0, &json!({"metadata": {"labels": {"tier": null}}}));
    cluster.edit(&key, &json!({"spec": {"minReadySeconds": 5}}));
    cluster.settle();
    let expected = json!({"observedGeneration": 2, "replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2,
        "terminatingReplicas": 0});
    assert_eq!(status(&cluster, &key), expected);
    cluster.wait(5);
    cluster.settle();
    assert_eq!(status(&cluster, &key)["availableReplicas"], 2);

    cluster.edit(&key, &json!({"spec": {"replicas": 2}}));
    cluster.settle();
    assert!(!cluster.has(&pods[2].0), "the one that is not ready goes");
    cluster.set_phase(&pods[0].0, "Failed", false);
    cluster.settle();
    assert_eq!(cluster.all(WorkloadKind::Pod).len(), 3, "one that failed is replaced, and stays");
    cluster.edit(&pods[1].0, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    cluster.settle();
    assert_eq!(cluster.all(WorkloadKind::Pod).len(), 4, "one that is stopping is replaced at once");
    assert_eq!(status(&cluster, &key)["terminatingReplicas"], 1);
    cluster.edit(&key, &json!({"spec": {"replicas": 0}}));
    cluster.settle();
    let expected = json!({"observedGeneration": 4, "replicas": 0, "terminatingReplicas": 1});
    assert_eq!(status(&cluster, &key), expected);
}

#[test]
fn deleted_replica_set_creates_no_pods() {
    let mut cluster = FakeCluster::new();
    let mut going = set(3);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    cluster.add(WorkloadKind::ReplicaSet, going);
    cluster.settle();
    assert_eq!(cluster.all(WorkloadKind::Pod), []);
}

#[test]
fn failed_pod_creation_sets_a_condition() {
    let now = FakeCluster::new().now;
    let set: ReplicaSet = serde_json::from_value(set(2)).unwrap();
    let failing = plan(&set, &[], Some("pods are forbidden"), now);
    let conditions = &failing.status.as_ref().unwrap()["status"]["conditions"];
    let expected = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "pods are forbidden", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    assert_eq!(*conditions, expected);
    assert_eq!(failing.writes.len(), 2, "it goes on trying");
    let mut failed = set.clone();
    failed.status.conditions = serde_json::from_value(expected).unwrap();
    failed.spec.replicas = Some(0);
    let done = plan(&failed, &[], Some("pods are forbidden"), now);
    assert_eq!(done.status.unwrap()["status"]["conditions"], Value::Null, "there is nothing left to fail");
    assert_eq!(plan(&set, &[], None, now).writes.len(), 2);
    let pods: Vec<_> = (0..2).map(|_| Arc::default()).collect();
    assert_eq!(plan(&set, &pods, None, now).writes.len(), 0);
}
