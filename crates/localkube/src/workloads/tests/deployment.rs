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

fn world(replicas: i32, more: Value) -> (FakeCluster, ObjectRef) {
    let mut world = FakeCluster::new();
    let key = world.add(WorkloadKind::Deployment, deployment(replicas, more));
    (world, key)
}

fn set_image(world: &mut FakeCluster, key: &ObjectRef, version: i32) {
    world.edit(key, &json!({"spec": {"template": template(version)}}));
}

/// Versions and sizes of the replica sets.
fn sets(world: &FakeCluster) -> Vec<(i64, i64)> {
    let sets = world.all(WorkloadKind::ReplicaSet).into_iter().map(|(_, set)| {
        let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
        (image.as_i64().unwrap(), set["spec"]["replicas"].as_i64().unwrap())
    });
    let mut sets: Vec<_> = sets.collect();
    sets.sort_unstable();
    sets
}

fn set_of(world: &FakeCluster, version: i32) -> Value {
    let mut all = world.all(WorkloadKind::ReplicaSet).into_iter();
    all.find(|(_, set)| set["spec"]["template"]["spec"]["containers"][0]["image"] == version).unwrap().1
}

#[test]
fn deployment_creates_a_replica_set_and_pods() {
    let (mut world, key) = world(3, json!({}));
    world.settle();
    let set = set_of(&world, 1);
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
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], world.get(&key)["metadata"]["uid"]);
    assert_eq!(
        world.conditions(&key),
        ["Available=False (MinimumReplicasUnavailable)", "Progressing=True (ReplicaSetUpdated)"]
    );
    world.run();
    assert_eq!(world.get(&key)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let mut status = world.get(&key)["status"].clone();
    let conditions = status.as_object_mut().unwrap().remove("conditions").unwrap();
    assert_eq!(
        status,
        json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
            "availableReplicas": 3, "terminatingReplicas": 0})
    );
    assert_eq!(conditions[1]["message"], format!("ReplicaSet \"web-{hash}\" has successfully progressed."));
    assert_eq!(world.told[0], format!("ScalingReplicaSet: Scaled up replica set web-{hash} from 0 to 3"));
}

#[test]
fn rollout_waits_for_pods_and_can_be_scaled() {
    let (mut world, key) = world(4, json!({}));
    world.run();
    set_image(&mut world, &key, 2);
    world.settle();
    assert_eq!(sets(&world), [(1, 3), (2, 2)]);
    world.edit(&key, &json!({"spec": {"replicas": 10}}));
    world.settle();
    assert_eq!(sets(&world), [(1, 8), (2, 5)]);
    world.edit(&key, &json!({"spec": {"replicas": 5}}));
    world.settle();
    assert_eq!(sets(&world), [(1, 4), (2, 3)]);
    world.run();
    assert_eq!(sets(&world), [(1, 0), (2, 5)]);
    assert!(world.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
}

#[test]
fn rollback_reuses_the_old_replica_set() {
    let (mut world, key) = world(2, json!({"revisionHistoryLimit": 1}));
    for version in [1, 2, 1] {
        set_image(&mut world, &key, version);
        world.run();
    }
    assert_eq!(sets(&world), [(1, 2), (2, 0)]);
    let annotations = &set_of(&world, 1)["metadata"]["annotations"];
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    set_image(&mut world, &key, 3);
    world.run();
    assert_eq!(sets(&world), [(1, 0), (3, 2)], "the oldest revision is forgotten");
    assert_eq!(world.get(&key)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "4");
}

#[test]
fn recreate_waits_until_old_pods_are_gone() {
    let (mut world, key) = world(2, json!({"strategy": {"type": "Recreate"}}));
    world.run();
    let pods = world.all(WorkloadKind::Pod);
    for (pod, _) in &pods {
        world.edit(pod, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    }
    set_image(&mut world, &key, 2);
    world.settle();
    assert_eq!(sets(&world), [(1, 0)], "pods are stopping");
    assert_eq!(world.get(&key)["status"]["terminatingReplicas"], 2);
    for (pod, _) in &pods {
        world.remove(pod);
    }
    world.run();
    assert_eq!(sets(&world), [(1, 0), (2, 2)]);
}

#[test]
fn paused_deployment_scales_but_does_not_roll_out() {
    let (mut world, key) = world(2, json!({}));
    world.run();
    world.edit(&key, &json!({"spec": {"paused": true}}));
    set_image(&mut world, &key, 2);
    world.edit(&key, &json!({"spec": {"replicas": 3}}));
    world.run();
    assert_eq!(sets(&world), [(1, 3)]);
    assert!(world.conditions(&key).contains(&"Progressing=Unknown (DeploymentPaused)".to_owned()));
    world.edit(&key, &json!({"spec": {"paused": false}}));
    world.run();
    assert_eq!(sets(&world), [(1, 0), (2, 3)]);
    assert!(world.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
}

#[test]
fn progress_deadline_sets_a_condition() {
    let (mut world, key) = world(2, json!({"progressDeadlineSeconds": 10}));
    world.settle();
    world.wait(10);
    world.settle();
    assert!(world.conditions(&key).contains(&"Progressing=True (ReplicaSetUpdated)".to_owned()));
    world.wait(1);
    world.settle();
    assert!(world.conditions(&key).contains(&"Progressing=False (ProgressDeadlineExceeded)".to_owned()));
    world.run();
    assert!(world.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
    world.wait(1000);
    world.settle();
    assert!(world.conditions(&key).contains(&"Progressing=True (NewReplicaSetAvailable)".to_owned()));
}

#[test]
fn orphans_are_adopted_and_mismatches_released() {
    let (mut world, key) = world(2, json!({}));
    world.run();
    let (set, _) = world.all(WorkloadKind::ReplicaSet).remove(0);
    world.remove(&key);
    world.edit(&set, &json!({"metadata": {"ownerReferences": null}}));
    let key = world.add(WorkloadKind::Deployment, deployment(3, json!({})));
    world.run();
    assert_eq!(sets(&world), [(1, 3)]);
    assert_eq!(world.get(&set)["metadata"]["ownerReferences"][0]["uid"], world.get(&key)["metadata"]["uid"]);
    let (pod, _) = world.all(WorkloadKind::Pod).remove(0);
    world.edit(&pod, &json!({"metadata": {"labels": {"app": "other"}}}));
    world.run();
    assert_eq!(world.get(&pod)["metadata"]["ownerReferences"], json!([]));
    assert_eq!(world.all(WorkloadKind::Pod).len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any limits and start delays, there are never too many pods nor too few available ones, and in the end all
    /// are new.
    #[test]
    fn rollout_respects_surge_and_unavailability(replicas in 1..9_i32, surge in 0..4_i32, unavailable in 0..4_i32, starts in prop::collection::vec(0..3_usize, 0..20)) {
        let update = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": update});
        let (mut world, key) = world(replicas, json!({"strategy": strategy}));
        world.run();
        set_image(&mut world, &key, 2);
        // The controller allows one unavailable pod if both limits are zero.
        let missing = if surge == 0 { unavailable.max(1) } else { unavailable };
        let mut starts = starts.into_iter();
        for _ in 0..200 {
            let keys: Vec<ObjectRef> = [WorkloadKind::Deployment, WorkloadKind::ReplicaSet].into_iter()
                .flat_map(|kind| world.all(kind)).map(|(key, _)| key).collect();
            let mut busy = false;
            for key in keys {
                busy |= world.has(&key) && world.pass(&key);
                let pods = world.all(WorkloadKind::Pod);
                prop_assert!(pods.len() as i32 <= replicas + surge, "{} pods", pods.len());
                let ready = pods.iter().filter(|(_, pod)| pod["status"]["phase"] == "Running").count();
                prop_assert!(ready as i32 >= replicas - missing, "{ready} available");
            }
            let most = starts.next();
            let started = world.start_pods(most.unwrap_or(usize::MAX));
            // Nothing changes any more, although all pods may start.
            if !busy && started == 0 && most.is_none() {
                break;
            }
        }
        prop_assert_eq!(sets(&world), [(1, 0), (2, i64::from(replicas))]);
    }
}
