use serde_json::{Value, json};

use super::fake_cluster::FakeCluster;
use crate::workloads::objects::{ObjectRef, WorkloadKind};

fn world(spec: Value) -> (FakeCluster, ObjectRef) {
    let mut world = FakeCluster::new();
    let mut job = json!({
        "metadata": {"name": "job"},
        "spec": {
            "parallelism": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-00001"}},
            "template": {
                "metadata": {"labels": {"batch.kubernetes.io/controller-uid": "uid-00001"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}, {"name": "d", "env": []}]},
            },
        },
    });
    let Value::Object(spec) = spec else { panic!("no object") };
    job["spec"].as_object_mut().unwrap().extend(spec);
    let key = world.add(WorkloadKind::Job, job);
    world.run();
    (world, key)
}

/// Ends all running pods.
fn end(world: &mut FakeCluster, phase: &str) {
    for (pod, value) in world.all(WorkloadKind::Pod) {
        if value["status"]["phase"] == "Running" {
            world.set_phase(&pod, phase, false);
        }
    }
    world.run();
}

/// Active, ready, succeeded and failed.
fn counts(world: &FakeCluster, key: &ObjectRef) -> [i64; 4] {
    let status = &world.get(key)["status"];
    ["active", "ready", "succeeded", "failed"].map(|field| status[field].as_i64().unwrap_or_default())
}

#[test]
fn job_runs_until_all_completions_succeeded() {
    let (mut world, key) = world(json!({"completions": 3, "parallelism": 2}));
    assert_eq!(counts(&world, &key), [2, 2, 0, 0]);
    end(&mut world, "Succeeded");
    assert_eq!(counts(&world, &key), [1, 1, 2, 0]);
    world.wait(7);
    end(&mut world, "Succeeded");
    assert_eq!(counts(&world, &key), [0, 0, 3, 0]);
    let done = "Complete=True (CompletionsReached)";
    assert_eq!(world.conditions(&key), ["SuccessCriteriaMet=True (CompletionsReached)", done]);
    let status = &world.get(&key)["status"];
    assert_eq!(
        (&status["startTime"], &status["completionTime"]),
        (&json!("2026-01-01T00:00:00Z"), &json!("2026-01-01T00:00:07Z"))
    );
    assert_eq!(world.told.last().unwrap(), "Completed: Job completed");
    assert_eq!(world.all(WorkloadKind::Pod).len(), 3);
    world.wait(1000);
    world.run();
    assert!(world.has(&key));
}

#[test]
fn work_queue_job_completes_after_one_success_when_all_pods_ended() {
    let (mut world, key) = world(json!({"parallelism": 3}));
    let (first, _) = world.all(WorkloadKind::Pod).remove(0);
    world.set_phase(&first, "Succeeded", false);
    world.run();
    assert_eq!(counts(&world, &key), [2, 2, 1, 0], "nobody is sent after it");
    end(&mut world, "Succeeded");
    assert_eq!(counts(&world, &key), [0, 0, 3, 0]);
    assert_eq!(world.conditions(&key).len(), 2);
}

#[test]
fn failed_pods_are_retried_with_backoff_up_to_the_limit() {
    let (mut world, key) = world(json!({"completions": 1, "backoffLimit": 1}));
    end(&mut world, "Failed");
    assert_eq!((counts(&world, &key), world.all(WorkloadKind::Pod).len()), ([0, 0, 0, 1], 1));
    world.wait(9);
    world.run();
    assert_eq!(world.all(WorkloadKind::Pod).len(), 1, "not yet");
    world.wait(1);
    world.run();
    assert_eq!(counts(&world, &key), [1, 1, 0, 1]);
    end(&mut world, "Failed");
    assert_eq!(counts(&world, &key), [0, 0, 0, 2]);
    let failed = "Failed=True (BackoffLimitExceeded)";
    assert_eq!(world.conditions(&key), ["FailureTarget=True (BackoffLimitExceeded)", failed]);
    assert_eq!(
        world.told.last().unwrap(),
        "BackoffLimitExceeded: Job has reached the specified backoff limit"
    );
}

#[test]
fn active_deadline_fails_the_job() {
    let (mut world, key) = world(json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 30}));
    world.wait(29);
    world.run();
    assert_eq!(counts(&world, &key), [2, 2, 0, 0]);
    world.wait(1);
    world.run();
    assert_eq!(counts(&world, &key), [0, 0, 0, 2]);
    assert_eq!(world.conditions(&key)[1], "Failed=True (DeadlineExceeded)");
    assert_eq!(world.all(WorkloadKind::Pod), []);
}

#[test]
fn job_is_suspended_and_resumed() {
    let (mut world, key) = world(json!({"completions": 1, "suspend": true}));
    assert_eq!(world.all(WorkloadKind::Pod), []);
    assert_eq!(world.conditions(&key), ["Suspended=True (JobSuspended)"]);
    world.wait(60);
    world.edit(&key, &json!({"spec": {"suspend": false}}));
    world.run();
    assert_eq!(counts(&world, &key), [1, 1, 0, 0]);
    assert_eq!(world.conditions(&key), ["Suspended=False (JobResumed)"]);
    assert_eq!(world.get(&key)["status"]["startTime"], "2026-01-01T00:01:00Z");
    world.edit(&key, &json!({"spec": {"suspend": true}}));
    world.run();
    assert_eq!(counts(&world, &key), [0; 4]);
    assert_eq!(world.get(&key)["status"]["startTime"], Value::Null);
    let told: Vec<_> = world.told.iter().filter(|text| !text.contains("pod")).collect();
    assert_eq!(told, ["Suspended: Job suspended", "Resumed: Job resumed", "Suspended: Job suspended"]);
}

#[test]
fn indexed_job_completes_each_index_once() {
    let (mut world, key) = world(json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"}));
    let index =
        |pod: &Value| pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].clone();
    let pods = world.all(WorkloadKind::Pod);
    assert_eq!(pods.iter().map(|(_, pod)| index(pod)).collect::<Vec<_>>(), ["0", "1", "2"]);
    let pod = &pods[1].1;
    assert_eq!(
        (&pod["metadata"]["generateName"], &pod["spec"]["hostname"]),
        (&json!("job-1-"), &json!("job-1"))
    );
    for container in [0, 1] {
        assert_eq!(pod["spec"]["containers"][container]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    }
    world.set_phase(&pods[0].0, "Succeeded", false);
    world.set_phase(&pods[2].0, "Failed", false);
    world.wait(60);
    world.run();
    assert_eq!(world.get(&key)["status"]["completedIndexes"], "0");
    let running =
        world.all(WorkloadKind::Pod).into_iter().filter(|(_, pod)| pod["status"]["phase"] == "Running");
    let mut running: Vec<_> = running.map(|(_, pod)| index(&pod)).collect();
    running.sort_by_key(ToString::to_string);
    assert_eq!(running, ["1", "2", "3"], "what failed is tried again");
    end(&mut world, "Succeeded");
    assert_eq!(world.get(&key)["status"]["completedIndexes"], "0-3");
    assert_eq!(counts(&world, &key), [0, 0, 4, 1]);
}

#[test]
fn finished_job_is_deleted_after_its_ttl() {
    let (mut world, key) = world(json!({"completions": 1, "ttlSecondsAfterFinished": 5}));
    end(&mut world, "Succeeded");
    world.wait(4);
    world.run();
    assert!(world.has(&key));
    world.wait(1);
    world.run();
    assert!(!world.has(&key));
}

#[test]
fn jobs_managed_by_others_are_ignored() {
    let (world, key) = world(json!({"completions": 1, "managedBy": "example.com/other"}));
    assert_eq!(world.all(WorkloadKind::Pod), []);
    assert_eq!(world.get(&key)["status"], Value::Null);
}
