use proptest::prelude::*;
use serde_json::{Value, json};

use super::fake_cluster::FakeCluster;
use crate::workloads::objects::{ObjectRef, WorkloadKind};

fn deployment(replicas: i32, more: Value) -> Value {
    let mut spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
        "template": template(1),
    });
    let Value::Object(more) = more else { panic!("no object") };
    spec.as_object_mut().unwrap().extend(more);
    json!({"metadata": {"name": "web", "annotations": {"team": "blue"}}, "spec": spec})
}

fn template(version: i32) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": version}]}})
}

fn cluster(replicas: i32, more: Value) -> (FakeCluster, ObjectRef) {
    let mut cluster = FakeCluster::new();
    let key = cluster.add(WorkloadKind::Deployment, deployment(replicas, more));
    (cluster, key)
}

fn set_image(cluster: &mut FakeCluster, key: &ObjectRef, version: i32) {
    cluster.edit(key, &json!({"spec": {"template": template(version)}}));
}

/// Versions and sizes of the replica sets.
fn sets(cluster: &FakeCluster) -> Vec<(i64, i64)> {
    let sets = cluster.all(WorkloadKind::ReplicaSet).into_iter().map(|(_, set)| {
        let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
        (image.as_i64().unwrap(), set["spec"]["replicas"].as_i64().unwrap())
    });
    let mut sets: Vec<_> = sets.collect();
    sets.sort_unstable();
    sets
}

fn set_of(cluster: &FakeCluster, version: i32) -> Value {
    let mut all = cluster.all(WorkloadKind::ReplicaSet).into_iter();
    all.find(|(_, set)| set["spec"]["template"]["spec"]["containers"][0]["image"] == version).unwrap().1
}

#[test]
fn deployment_creates_a_replica_set_and_pods() {
    let (mut cluster, key) = cluster(3, json!({}));
    cluster.settle();
    let set = set_of(&cluster, 1);
    let hash = set["metadata"]["labels"]["pod-template-hash"].as_str().unwrap().to_owned();
    assert_eq!(set["metadata"]["name"], format!("web-{hash}"));
    assert_eq!(set["spec"]["selector"]["matchLabels"], json!({"app": "web", "pod-template-hash": hash}));
    let annotations = json!({
        "team": "blue",
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    });
    assert_eq!(set["metadata"]["annotations"], annotations);
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], cluster.get(&key)["metadata"]["uid"]);
    assert_eq!(
        cluster.conditions(&key),
        ["Available=False (MinimumReplicasUnavailable)", "Progressing=True (ReplicaSetUpdated)"]
    );
    cluster.run();
    assert_eq!(cluster.get(&key)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let mut status = cluster.get(&key)["status"].clone();
    let conditions = status.as_object_mut().unwrap().remove("conditions").unwrap();
    assert_eq!(
        status,
        json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
            "availableReplicas": 3, "terminatingReplicas": 0})
    );
    assert_eq!(conditions[1]["message"], format!("ReplicaSet \"web-{hash}\" has successfully progressed."));
    assert_eq!(cluster.events[0], format!("ScalingReplicaSet: Scaled up replica set web-{hash} from 0 to 3"));
}

#[test]
fn rollout_waits_for_pods_and_can_be_scaled() {
    let (mut cluster, key) = cluster(4, json!({}));
    cluster.run();
    set_image(&mut cluster, &key, 2);
    cluster.settle();
    assert_eq!(sets(&cluster), [(1, 3), (2, 2)]);
    cluster.edit(&key, &json!({"spec": {"replicas": 10}}));
    cluster.settle();
    assert_eq!(sets(&cluster), [(1, 8), (2, 5)]);
    cluster.edit(&key, &json!({"spec": {"replicas": 5}}));
    cluster.settle();
    assert_eq!(sets(&cluster), [(1, 4), (2, 3)]);
    cluster.run();
    assert_eq!(sets(&cluster), [(1, 0), (2, 5)]);
    assert!(cluster.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
}

#[test]
fn rollback_reuses_the_old_replica_set() {
    let (mut cluster, key) = cluster(2, json!({"revisionHistoryLimit": 1}));
    for version in [1, 2, 1] {
        set_image(&mut cluster, &key, version);
        cluster.run();
    }
    assert_eq!(sets(&cluster), [(1, 2), (2, 0)]);
    let annotations = &set_of(&cluster, 1)["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    set_image(&mut cluster, &key, 3);
    cluster.run();
    assert_eq!(sets(&cluster), [(1, 0), (3, 2)], "the oldest revision is forgotten");
    assert_eq!(cluster.get(&key)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "4");
}

#[test]
fn recreate_waits_until_old_pods_are_gone() {
    let (mut cluster, key) = cluster(2, json!({"strategy": {"type": "Recreate"}}));
    cluster.run();
    let pods = cluster.all(WorkloadKind::Pod);
    for (pod, _) in &pods {
        cluster.edit(pod, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    }
    set_image(&mut cluster, &key, 2);
    cluster.settle();
    assert_eq!(sets(&cluster), [(1, 0)], "pods are stopping");
    assert_eq!(cluster.get(&key)["status"]["terminatingReplicas"], 2);
    for (pod, _) in &pods {
        cluster.remove(pod);
    }
    cluster.run();
    assert_eq!(sets(&cluster), [(1, 0), (2, 2)]);
}

#[test]
fn paused_deployment_scales_but_does_not_roll_out() {
    let (mut cluster, key) = cluster(2, json!({}));
    cluster.run();
    cluster.edit(&key, &json!({"spec": {"paused": true}}));
    set_image(&mut cluster, &key, 2);
    cluster.edit(&key, &json!({"spec": {"replicas": 3}}));
    cluster.run();
    assert_eq!(sets(&cluster), [(1, 3)]);
    assert!(cluster.conditions(&key).contains(&"Progressing=Unknown (DeploymentPaused)".to_owned()));
    cluster.edit(&key, &json!({"spec": {"paused": false}}));
    cluster.run();
    assert_eq!(sets(&cluster), [(1, 0), (2, 3)]);
    assert!(cluster.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
}

#[test]
fn progress_deadline_sets_a_condition() {
    let (mut cluster, key) = cluster(2, json!({"progressDeadlineSeconds": 10}));
    cluster.settle();
    cluster.wait(10);
    cluster.settle();
    assert!(cluster.conditions(&key).contains(&"Progressing=True (ReplicaSetUpdated)".to_owned()));
    cluster.wait(1);
    cluster.settle();
    assert!(cluster.conditions(&key).contains(&"Progressing=False (ProgressDeadlineExceeded)".to_owned()));
    cluster.run();
    assert!(cluster.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
    cluster.wait(1000);
    cluster.settle();
    assert!(cluster.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
}

#[test]
fn orphans_are_adopted_and_mismatches_released() {
    let (mut cluster, key) = cluster(2, json!({}));
    cluster.run();
    let (set, _) = cluster.all(WorkloadKind::ReplicaSet).remove(0);
    cluster.remove(&key);
    cluster.edit(&set, &json!({"metadata": {"ownerReferences": null}}));
    let key = cluster.add(WorkloadKind::Deployment, deployment(3, json!({})));
    cluster.run();
    assert_eq!(sets(&cluster), [(1, 3)]);
    assert_eq!(
        cluster.get(&set)["metadata"]["ownerReferences"][0]["uid"],
        cluster.get(&key)["metadata"]["uid"]
    );
    let (pod, _) = cluster.all(WorkloadKind::Pod).remove(0);
    cluster.edit(&pod, &json!({"metadata": {"labels": {"app": "other"}}}));
    cluster.run();
    assert_eq!(cluster.get(&pod)["metadata"]["ownerReferences"], json!([]));
    assert_eq!(cluster.all(WorkloadKind::Pod).len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any limits and start delays, there are never too many pods nor too few available ones, and in the end all
    /// are new.
    #[test]
    fn rollout_respects_surge_and_unavailability(replicas in 1..9_i32, surge in 0..4_i32, unavailable in 0..4_i32, starts in prop::collection::vec(0..3_usize, 0..20)) {
        let update = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": update});
        let (mut cluster, key) = cluster(replicas, json!({"strategy": strategy}));
        cluster.run();
        set_image(&mut cluster, &key, 2);
        // The controller allows one unavailable pod if both limits are zero.
        let missing = if surge == 0 { unavailable.max(1) } else { unavailable };
        let mut starts = starts.into_iter();
        for _ in 0..200 {
            let keys: Vec<ObjectRef> = [WorkloadKind::Deployment, WorkloadKind::ReplicaSet].into_iter()
                .flat_map(|kind| cluster.all(kind)).map(|(key, _)| key).collect();
            let mut busy = false;
            for key in keys {
                busy |= cluster.has(&key) && cluster.pass(&key);
                let pods = cluster.all(WorkloadKind::Pod);
                prop_assert!(pods.len() as i32 <= replicas + surge, "{} pods", pods.len());
                let ready = pods.iter().filter(|(_, pod)| pod["status"]["phase"] == "Running").count();
                prop_assert!(ready as i32 >= replicas - missing, "{ready} available");
            }
            let most = starts.next();
            let started = cluster.start_pods(most.unwrap_or(usize::MAX));
            // Nothing changes any more, although all pods may start.
            if !busy && started == 0 && most.is_none() {
                break;
            }
        }
        prop_assert_eq!(sets(&cluster), [(1, 0), (2, i64::from(replicas))]);
    }
}
