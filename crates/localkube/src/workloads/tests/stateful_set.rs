use serde_json::{Value, json};

use super::fake_cluster::{FakeCluster, key_of};
use crate::workloads::objects::{ObjectRef, WorkloadKind};

fn set(replicas: i32, more: Value) -> Value {
    let mut spec = json!({
        "replicas": replicas,
        "serviceName": "svc",
        "selector": {"matchLabels": {"app": "st"}},
        "template": template(1),
    });
    let Value::Object(more) = more else { panic!("no object") };
    spec.as_object_mut().unwrap().extend(more);
    json!({"metadata": {"name": "st"}, "spec": spec})
}

fn template(version: i32) -> Value {
    let volumes = json!([{"name": "tmp", "emptyDir": {}}]);
    let containers = json!([{"name": "c", "image": version}]);
    json!({"metadata": {"labels": {"app": "st"}}, "spec": {"containers": containers, "volumes": volumes}})
}

/// Names and versions of the pods.
fn pods(cluster: &FakeCluster) -> Vec<(String, i64)> {
    let version = |pod: &Value| pod["spec"]["containers"][0]["image"].as_i64().unwrap();
    cluster.all(WorkloadKind::Pod).into_iter().map(|(key, pod)| (key.name, version(&pod))).collect()
}

fn is(pods: &[(String, i64)], expected: &[(&str, i64)]) -> bool {
    pods.iter().map(|(name, version)| (name.as_str(), *version)).eq(expected.iter().copied())
}

fn set_image(cluster: &mut FakeCluster, key: &ObjectRef, version: i32) {
    cluster.edit(key, &json!({"spec": {"template": template(version)}}));
}

#[test]
fn pods_are_created_and_deleted_in_order() {
    let mut cluster = FakeCluster::new();
    let key = cluster.add(WorkloadKind::StatefulSet, set(3, json!({})));
    for expected in 1..=3 {
        cluster.settle();
        assert_eq!(cluster.all(WorkloadKind::Pod).len(), expected, "each waits for the one before");
        cluster.start_pods(1);
    }
    cluster.settle();
    let (_, pod) = cluster.all(WorkloadKind::Pod).remove(1);
    let revision = cluster.get(&key)["status"]["updateRevision"].clone();
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"app": "st", "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": "st-1",
            "apps.kubernetes.io/pod-index": "1"})
    );
    assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("st-1"), &json!("svc")));
    assert_eq!(
        cluster.get(&key)["status"],
        json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "currentReplicas": 3, "updatedReplicas": 3, "currentRevision": revision, "updateRevision": revision,
            "collisionCount": 0})
    );
    assert_eq!(cluster.events[0], "SuccessfulCreate: Create Pod st-0 in StatefulSet st successful");

    cluster.events.clear();
    cluster.edit(&key, &json!({"spec": {"replicas": 1}}));
    cluster.settle();
    let deleted = |name| format!("SuccessfulDelete: Delete Pod {name} in StatefulSet st successful");
    assert_eq!(cluster.events, [deleted("st-2"), deleted("st-1")]);
    let first = key_of(WorkloadKind::Pod, "st-0");
    cluster.set_phase(&first, "Failed", false);
    cluster.settle();
    assert_eq!(cluster.get(&first)["status"]["phase"], "Pending", "what ended is made anew");
}

#[test]
fn parallel_policy_creates_and_deletes_all_at_once() {
    let mut cluster = FakeCluster::new();
    let claims = json!([{"metadata": {"name": "data"}}]);
    let more =
        json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}, "volumeClaimTemplates": claims});
    let key = cluster.add(WorkloadKind::StatefulSet, set(3, more));
    assert!(cluster.pass(&key));
    assert!(is(&pods(&cluster), &[("st-5", 1), ("st-6", 1), ("st-7", 1)]), "{:?}", pods(&cluster));
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-st-5"}},
        {"name": "tmp", "emptyDir": {}}]);
    assert_eq!(cluster.all(WorkloadKind::Pod)[0].1["spec"]["volumes"], volumes);
    cluster.edit(&key, &json!({"spec": {"replicas": 1}}));
    assert!(cluster.pass(&key));
    assert!(is(&pods(&cluster), &[("st-5", 1)]));
}

#[test]
fn updates_go_from_the_last_pod_to_the_first() {
    let mut cluster = FakeCluster::new();
    let key = cluster.add(WorkloadKind::StatefulSet, set(3, json!({})));
    cluster.run();
    let before = cluster.get(&key)["status"]["currentRevision"].clone();
    set_image(&mut cluster, &key, 2);
    cluster.settle();
    assert!(is(&pods(&cluster), &[("st-0", 1), ("st-1", 1), ("st-2", 2)]), "the next waits");
    let status = cluster.get(&key)["status"].clone();
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&json!(2), &json!(1)));
    assert_eq!(status["currentRevision"], before);
    let first = key_of(WorkloadKind::Pod, "st-0");
    cluster.remove(&first);
    cluster.settle();
    assert!(
        is(&pods(&cluster), &[("st-0", 1), ("st-1", 1), ("st-2", 2)]),
        "made anew as it was: {:?}",
        pods(&cluster)
    );
    cluster.run();
    assert!(is(&pods(&cluster), &[("st-0", 2), ("st-1", 2), ("st-2", 2)]));
    let status = &cluster.get(&key)["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_ne!(status["currentRevision"], before);
}

#[test]
fn partition_excludes_pods_from_updates() {
    let mut cluster = FakeCluster::new();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let key = cluster.add(WorkloadKind::StatefulSet, set(3, json!({"updateStrategy": strategy})));
    cluster.run();
    set_image(&mut cluster, &key, 2);
    cluster.run();
    assert!(is(&pods(&cluster), &[("st-0", 1), ("st-1", 1), ("st-2", 2)]));
    let pod = key_of(WorkloadKind::Pod, "st-1");
    cluster.remove(&pod);
    cluster.run();
    assert!(is(&pods(&cluster), &[("st-0", 1), ("st-1", 1), ("st-2", 2)]), "{:?}", pods(&cluster));
    cluster.edit(&key, &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}));
    cluster.run();
    assert!(is(&pods(&cluster), &[("st-0", 2), ("st-1", 2), ("st-2", 2)]));
}

#[test]
fn on_delete_strategy_updates_deleted_pods() {
    let mut cluster = FakeCluster::new();
    let key = cluster.add(WorkloadKind::StatefulSet, set(2, json!({"updateStrategy": {"type": "OnDelete"}})));
    cluster.run();
    set_image(&mut cluster, &key, 2);
    cluster.run();
    assert!(is(&pods(&cluster), &[("st-0", 1), ("st-1", 1)]));
    let pod = key_of(WorkloadKind::Pod, "st-0");
    cluster.remove(&pod);
    cluster.run();
    assert!(is(&pods(&cluster), &[("st-0", 2), ("st-1", 1)]));
    assert_eq!(cluster.get(&key)["status"]["updatedReplicas"], 1);
}
