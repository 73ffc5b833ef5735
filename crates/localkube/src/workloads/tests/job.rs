use serde_json::{Value, json};

use super::fake_cluster::FakeCluster;
use crate::workloads::objects::{ObjectRef, WorkloadKind};

fn cluster(spec: Value) -> (FakeCluster, ObjectRef) {
    let mut cluster = FakeCluster::new();
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
    let key = cluster.add(WorkloadKind::Job, job);
    cluster.run();
    (cluster, key)
}

/// Ends all running pods.
fn end(cluster: &mut FakeCluster, phase: &str) {
    for (pod, value) in cluster.all(WorkloadKind::Pod) {
        if value["status"]["phase"] == "Running" {
            cluster.set_phase(&pod, phase, false);
        }
    }
    cluster.run();
}

/// Active, ready, succeeded and failed.
fn counts(cluster: &FakeCluster, key: &ObjectRef) -> [i64; 4] {
    let status = &cluster.get(key)["status"];
    ["active", "ready", "succeeded", "failed"].map(|field| status[field].as_i64().unwrap_or_default())
}

#[test]
fn job_runs_until_all_completions_succeeded() {
    let (mut cluster, key) = cluster(json!({"completions": 3, "parallelism": 2}));
    assert_eq!(counts(&cluster, &key), [2, 2, 0, 0]);
    end(&mut cluster, "Succeeded");
    assert_eq!(counts(&cluster, &key), [1, 1, 2, 0]);
    cluster.wait(7);
    end(&mut cluster, "Succeeded");
    assert_eq!(counts(&cluster, &key), [0, 0, 3, 0]);
    let done = "Complete=True (CompletionsReached)";
    assert_eq!(cluster.conditions(&key), ["SuccessCriteriaMet=True (CompletionsReached)", done]);
    let status = &cluster.get(&key)["status"];
    assert_eq!(
        (&status["startTime"], &status["completionTime"]),
        (&json!("2026-01-01T00:00:00Z"), &json!("2026-01-01T00:00:07Z"))
    );
    assert_eq!(cluster.events.last().unwrap(), "Completed: Job completed");
    assert_eq!(cluster.all(WorkloadKind::Pod).len(), 3);
    cluster.wait(1000);
    cluster.run();
    assert!(cluster.has(&key));
}

#[test]
fn work_queue_job_completes_after_one_success_when_all_pods_ended() {
    let (mut cluster, key) = cluster(json!({"parallelism": 3}));
    let (first, _) = cluster.all(WorkloadKind::Pod).remove(0);
    cluster.set_phase(&first, "Succeeded", false);
    cluster.run();
    assert_eq!(counts(&cluster, &key), [2, 2, 1, 0], "nobody is sent after it");
    end(&mut cluster, "Succeeded");
    assert_eq!(counts(&cluster, &key), [0, 0, 3, 0]);
    assert_eq!(cluster.conditions(&key).len(), 2);
}

#[test]
fn failed_pods_are_retried_with_backoff_up_to_the_limit() {
    let (mut cluster, key) = cluster(json!({"completions": 1, "backoffLimit": 1}));
    end(&mut cluster, "Failed");
    assert_eq!((counts(&cluster, &key), cluster.all(WorkloadKind::Pod).len()), ([0, 0, 0, 1], 1));
    cluster.wait(9);
    cluster.run();
    assert_eq!(cluster.all(WorkloadKind::Pod).len(), 1, "not yet");
    cluster.wait(1);
    cluster.run();
    assert_eq!(counts(&cluster, &key), [1, 1, 0, 1]);
    end(&mut cluster, "Failed");
    assert_eq!(counts(&cluster, &key), [0, 0, 0, 2]);
    let failed = "Failed=True (BackoffLimitExceeded)";
    assert_eq!(cluster.conditions(&key), ["FailureTarget=True (BackoffLimitExceeded)", failed]);
    assert_eq!(
        cluster.events.last().unwrap(),
        "BackoffLimitExceeded: Job has reached the specified backoff limit"
    );
}

#[test]
fn active_deadline_fails_the_job() {
    let (mut cluster, key) =
        cluster(json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 30}));
    cluster.wait(29);
    cluster.run();
    assert_eq!(counts(&cluster, &key), [2, 2, 0, 0]);
    cluster.wait(1);
    cluster.run();
    assert_eq!(counts(&cluster, &key), [0, 0, 0, 2]);
    assert_eq!(cluster.conditions(&key)[1], "Failed=True (DeadlineExceeded)");
    assert_eq!(cluster.all(WorkloadKind::Pod), []);
}

#[test]
fn job_is_suspended_and_resumed() {
    let (mut cluster, key) = cluster(json!({"completions": 1, "suspend": true}));
    assert_eq!(cluster.all(WorkloadKind::Pod), []);
    assert_eq!(cluster.conditions(&key), ["Suspended=True (JobSuspended)"]);
    cluster.wait(60);
    cluster.edit(&key, &json!({"spec": {"suspend": false}}));
    cluster.run();
    assert_eq!(counts(&cluster, &key), [1, 1, 0, 0]);
    assert_eq!(cluster.conditions(&key), ["Suspended=False (JobResumed)"]);
    assert_eq!(cluster.get(&key)["status"]["startTime"], "2026-01-01T00:01:00Z");
    cluster.edit(&key, &json!({"spec": {"suspend": true}}));
    cluster.run();
    assert_eq!(counts(&cluster, &key), [0; 4]);
    assert_eq!(cluster.get(&key)["status"]["startTime"], Value::Null);
    let events: Vec<_> = cluster.events.iter().filter(|text| !text.contains("pod")).collect();
    assert_eq!(events, ["Suspended: Job suspended", "Resumed: Job resumed", "Suspended: Job suspended"]);
}

#[test]
fn indexed_job_completes_each_index_once() {
    let (mut cluster, key) =
        cluster(json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"}));
    let index =
        |pod: &Value| pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].clone();
    let pods = cluster.all(WorkloadKind::Pod);
    assert_eq!(pods.iter().map(|(_, pod)| index(pod)).collect::<Vec<_>>(), ["0", "1", "2"]);
    let pod = &pods[1].1;
    assert_eq!(
        (&pod["metadata"]["generateName"], &pod["spec"]["hostname"]),
        (&json!("job-1-"), &json!("job-1"))
    );
    for container in [0, 1] {
        assert_eq!(pod["spec"]["containers"][container]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    }
    cluster.set_phase(&pods[0].0, "Succeeded", false);
    cluster.set_phase(&pods[2].0, "Failed", false);
    cluster.wait(60);
    cluster.run();
    assert_eq!(cluster.get(&key)["status"]["completedIndexes"], "0");
    let running =
        cluster.all(WorkloadKind::Pod).into_iter().filter(|(_, pod)| pod["status"]["phase"] == "Running");
    let mut running: Vec<_> = running.map(|(_, pod)| index(&pod)).collect();
    running.sort_by_key(ToString::to_string);
    assert_eq!(running, ["1", "2", "3"], "what failed is tried again");
    end(&mut cluster, "Succeeded");
    assert_eq!(cluster.get(&key)["status"]["completedIndexes"], "0-3");
    assert_eq!(counts(&cluster, &key), [0, 0, 4, 1]);
}

#[test]
fn finished_job_is_deleted_after_its_ttl() {
    let (mut cluster, key) = cluster(json!({"completions": 1, "ttlSecondsAfterFinished": 5}));
    end(&mut cluster, "Succeeded");
    cluster.wait(4);
    cluster.run();
    assert!(cluster.has(&key));
    cluster.wait(1);
    cluster.run();
    assert!(!cluster.has(&key));
}

#[test]
fn jobs_managed_by_others_are_ignored() {
    let (cluster, key) = cluster(json!({"completions": 1, "managedBy": "example.com/other"}));
    assert_eq!(cluster.all(WorkloadKind::Pod), []);
    assert_eq!(cluster.get(&key)["status"], Value::Null);
}
