//! ScaledJobs create jobs.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::bench::{Bench, condition, trigger};
use super::script::Says;

const SCALED_JOB: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledjobs/sj";
const JOBS: &str = "/apis/batch/v1/namespaces/shop/jobs";

async fn scaled_job(bench: &Bench) {
    scaled_job_with(bench, json!({})).await;
}

/// One with more in its spec.
async fn scaled_job_with(bench: &Bench, more: Value) {
    let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut spec = json!({
        "jobTargetRef": {"template": pods}, "pollingInterval": 5, "maxReplicaCount": 5, "triggers": [trigger("orders")],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({"name": "sj", "labels": {"team": "a", "tier": "b"},
        "annotations": {"scaledjob.keda.sh/job-excluded-labels": "tier", "note": "x"}});
    let object =
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": metadata, "spec": spec});
    bench.create(SCALED_JOB.trim_end_matches("/sj"), object).await;
}

/// Marks a job as done or failed.
async fn finish(bench: &Bench, job: &Value, how: &str, second: u32) {
    let name = job["metadata"]["name"].as_str().unwrap();
    let time = format!("2026-01-01T00:00:{second:02}Z");
    let condition = json!({"type": how, "status": "True", "lastTransitionTime": time});
    let mut status = json!({"conditions": [condition]});
    if how == "Complete" {
        status["completionTime"] = json!(time);
    }
    bench.patch(&format!("{JOBS}/{name}/status"), json!({"status": status})).await;
}

async fn names(bench: &Bench) -> Vec<String> {
    jobs(bench).await.iter().map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn jobs(bench: &Bench) -> Vec<Value> {
    bench.get(JOBS).await.unwrap()["items"].as_array().unwrap().clone()
}

async fn state(bench: &Bench, type_: &str) -> (String, String, String) {
    condition(&bench.get(SCALED_JOB).await.unwrap()["status"], type_)
}

#[tokio::test(start_paused = true)]
async fn work_creates_jobs_and_no_more_than_that() {
    let bench = Bench::start().await;
    scaled_job(&bench).await;
    bench.until("it was polled", async || state(&bench, "Active").await.0 == "False").await;
    bench.script.say("orders", Says::Value(30));
    bench.until("there are jobs", async || jobs(&bench).await.len() == 3).await;
    sleep(Duration::from_mins(2)).await;
    let made = jobs(&bench).await;
    assert_eq!(made.len(), 3, "those that run count");
    assert_eq!(made[0]["metadata"]["labels"]["scaledjob.keda.sh/name"], "sj");
    assert_eq!(made[0]["metadata"]["ownerReferences"][0]["kind"], "ScaledJob");
    assert_eq!(made[0]["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    bench.until("it is told", async || bench.has_event("sj", "KEDAJobsCreated").await).await;
    bench.script.say("orders", Says::Value(1000));
    bench.until("no more than allowed", async || jobs(&bench).await.len() == 5).await;

    // Another generation: what was made for the last one goes.
    bench.script.say("orders", Says::Value(0));
    bench.patch(SCALED_JOB, json!({"spec": {"maxReplicaCount": 4}})).await;
    bench.until("old ones go", async || jobs(&bench).await.is_empty()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_one_creates_nothing_and_a_deleted_one_is_gone() {
    let bench = Bench::start().await;
    scaled_job(&bench).await;
    bench.until("it is ready", async || state(&bench, "Ready").await.0 == "True").await;
    bench
        .patch(SCALED_JOB, json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}}))
        .await;
    bench.until("it is paused", async || state(&bench, "Paused").await.0 == "True").await;
    bench.script.say("orders", Says::Value(30));
    sleep(Duration::from_mins(1)).await;
    assert!(jobs(&bench).await.is_empty());
    bench.delete(SCALED_JOB).await;
    bench.until("it is gone", async || bench.get(SCALED_JOB).await.is_none()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn so_many_finished_jobs_are_kept_the_newest() {
    let bench = Bench::start().await;
    scaled_job_with(&bench, json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0})).await;
    bench.script.say("orders", Says::Value(40));
    bench.until("there are jobs", async || jobs(&bench).await.len() == 4).await;
    bench.script.say("orders", Says::Value(0));
    bench.until("it rests", async || state(&bench, "Active").await.0 == "False").await;
    let made = jobs(&bench).await;
    // The one that ended last is not the one that is named last.
    for (job, (how, second)) in
        made.iter().zip([("Complete", 7), ("Complete", 9), ("Complete", 8), ("Failed", 5)])
    {
        finish(&bench, job, how, second).await;
    }
    let newest = vec![made[1]["metadata"]["name"].as_str().unwrap().to_owned()];
    bench.until("one is kept", async || names(&bench).await == newest).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(names(&bench).await, newest);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_gradual_rollout_keeps_what_runs() {
    let bench = Bench::start().await;
    scaled_job_with(&bench, json!({"rollout": {"strategy": "gradual"}})).await;
    bench.script.say("orders", Says::Value(20));
    bench.until("there are jobs", async || jobs(&bench).await.len() == 2).await;
    let before = names(&bench).await;
    bench.patch(SCALED_JOB, json!({"spec": {"maxReplicaCount": 3}})).await;
    bench.script.say("orders", Says::Value(100));
    bench.until("there is one more", async || jobs(&bench).await.len() == 3).await;
    assert!(before.iter().all(|name| !name.is_empty()));
    let after = names(&bench).await;
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    let generations: Vec<_> = jobs(&bench)
        .await
        .iter()
        .map(|job| job["metadata"]["annotations"]["scaledjob.keda.sh/generation"].clone())
        .collect();
    assert_eq!(generations.iter().filter(|own| **own == "2").count(), 1, "{generations:?}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn some_jobs_always_run_and_carry_the_labels_that_are_not_excluded() {
    let bench = Bench::start().await;
    scaled_job_with(&bench, json!({"minReplicaCount": 2})).await;
    bench.until("they run without work", async || jobs(&bench).await.len() == 2).await;
    let job = &jobs(&bench).await[0];
    let labels = &job["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["tier"]), (&json!("a"), &Value::Null));
    assert_eq!(labels["app.kubernetes.io/part-of"], "sj");
    assert_eq!(job["metadata"]["annotations"]["note"], "x");
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["scaledjob.keda.sh/name"], "sj");
    bench.until("it says so", async || state(&bench, "Active").await.0 == "True").await;
    assert_eq!(state(&bench, "Fallback").await.0, "Unknown");
    let status = bench.get(SCALED_JOB).await.unwrap()["status"].clone();
    assert_eq!((&status["triggersTypes"], &status["authenticationsTypes"]), (&json!("scripted"), &json!("")));
    // One is done: another takes its place.
    finish(&bench, job, "Complete", 1).await;
    bench.until("another one runs", async || jobs(&bench).await.len() == 3).await;
    bench.delete(SCALED_JOB).await;
    bench.until("it is gone", async || bench.get(SCALED_JOB).await.is_none()).await;
    for reason in ["ScaledJobDeleted", "KEDAScalersStopped"] {
        bench.until(reason, async || bench.has_event("sj", reason).await).await;
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_creates_nothing_and_is_said() {
    let bench = Bench::start().await;
    bench.script.say("orders", Says::Fails("connection refused"));
    scaled_job(&bench).await;
    bench.until("it says so", async || state(&bench, "Ready").await.1 == "TriggerError").await;
    bench.until("it is told", async || bench.has_event("sj", "KEDAScalerFailed").await).await;
    sleep(Duration::from_mins(1)).await;
    assert!(jobs(&bench).await.is_empty());
    let both = json!({"spec": {"triggers": [trigger("orders"), trigger("mails")]}});
    bench.patch(SCALED_JOB, both).await;
    bench.script.say("mails", Says::Value(10));
    bench.until("the other is heard", async || jobs(&bench).await.len() == 1).await;
    bench.until("it says so", async || state(&bench, "Ready").await.1 == "PartialTriggerError").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn where_no_job_is_let_in_few_are_tried() {
    let bench = Bench::start().await;
    bench.wire.refuse(Method::POST, "/jobs", 403, u32::MAX);
    bench.script.say("orders", Says::Value(100_000));
    scaled_job_with(&bench, json!({"maxReplicaCount": 1000})).await;
    bench.until("it was polled", async || bench.script.asked("orders") > 5).await;
    // A few per poll, of which there were a few.
    let tried = bench.wire.count(&Method::POST, "/jobs");
    assert!((1..1000).contains(&tried), "{tried}");
    bench.wire.let_through();
    bench.until("all are made once they are let in", async || jobs(&bench).await.len() == 1000).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_until_all_jobs_are_made() {
    let bench = Bench::start().await;
    bench.wire.slow(Method::POST, "/jobs", Duration::from_secs(1));
    bench.script.say("orders", Says::Value(100_000));
    scaled_job_with(&bench, json!({"maxReplicaCount": 1000})).await;
    bench.until("some are made", async || !jobs(&bench).await.is_empty()).await;
    let edit = json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}});
    bench.patch(SCALED_JOB, edit).await;
    let began = Instant::now();
    bench.until("it is paused", async || state(&bench, "Paused").await.0 == "True").await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(jobs(&bench).await.len() < 200);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_trigger_is_named_in_the_condition() {
    let bench = Bench::start().await;
    bench.script.say("orders", Says::Fails("connection refused"));
    scaled_job(&bench).await;
    bench.until("it says so", async || state(&bench, "Ready").await.1 == "TriggerError").await;
    let message =
        "Triggers defined in ScaledJob are not working correctly: trigger 0 (scripted): connection refused";
    assert_eq!(state(&bench, "Ready").await.2, message);
    bench.stop().await;
}
