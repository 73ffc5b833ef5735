//! ScaledJobs create jobs.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::env::{TestEnv, condition, trigger};
use super::sources::SourceResponse;

const SCALED_JOB: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledjobs/sj";
const JOBS: &str = "/apis/batch/v1/namespaces/shop/jobs";

async fn scaled_job(env: &TestEnv) {
    scaled_job_with(env, json!({})).await;
}

/// A ScaledJob with these fields in its spec.
async fn scaled_job_with(env: &TestEnv, more: Value) {
    let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut spec = json!({
        "jobTargetRef": {"template": pods}, "pollingInterval": 5, "maxReplicaCount": 5, "triggers": [trigger("orders")],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({"name": "sj", "labels": {"team": "a", "tier": "b"},
        "annotations": {"scaledjob.keda.sh/job-excluded-labels": "tier", "note": "x"}});
    let object =
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": metadata, "spec": spec});
    env.create(SCALED_JOB.trim_end_matches("/sj"), object).await;
}

/// Marks a job as done or failed.
async fn finish(env: &TestEnv, job: &Value, how: &str, second: u32) {
    let name = job["metadata"]["name"].as_str().unwrap();
    let time = format!("2026-01-01T00:00:{second:02}Z");
    let condition = json!({"type": how, "status": "True", "lastTransitionTime": time});
    let mut status = json!({"conditions": [condition]});
    if how == "Complete" {
        status["completionTime"] = json!(time);
    }
    env.patch(&format!("{JOBS}/{name}/status"), json!({"status": status})).await;
}

async fn names(env: &TestEnv) -> Vec<String> {
    jobs(env).await.iter().map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn jobs(env: &TestEnv) -> Vec<Value> {
    env.get(JOBS).await.unwrap()["items"].as_array().unwrap().clone()
}

async fn state(env: &TestEnv, type_: &str) -> (String, String, String) {
    condition(&env.get(SCALED_JOB).await.unwrap()["status"], type_)
}

#[tokio::test(start_paused = true)]
async fn polls_are_recorded() {
    let env = TestEnv::start().await;
    let records = || env.handle.records().of("shop", "sj.sj");
    let sentences = || {
        let line = |record: &api::decisions::DecisionRecord| {
            let decision = &record.decision;
            format!("{} → {}: {}", decision.current(), decision.desired, record.sentence())
        };
        records().iter().map(line).collect::<Vec<_>>()
    };
    scaled_job(&env).await;
    env.until("nothing is active", async || !sentences().is_empty()).await;
    assert_eq!(sentences(), ["0 → 0: nothing active: scripted is 0"]);
    env.sources.set("orders", SourceResponse::Value(30));
    env.until("jobs are created", async || sentences().len() >= 2).await;
    assert_eq!(sentences()[1], "0 → 3: scripted is 30; created 3 jobs");
    env.until("jobs that run are enough", async || sentences().len() >= 3).await;
    assert!(
        sentences()[2].starts_with("3 → 3: scripted is 30; 3 of at most 5 jobs run"),
        "{:?}",
        sentences()
    );
    let record = records().pop().unwrap();
    let words = record.explain("sj").to_string();
    assert!(words.contains("strategy   default: the less of work for 3 − 3 running"), "{words}");
    assert_eq!((record.spec.max.get(), record.period.as_secs()), (5, 5));
    let read = record.round.as_ref().unwrap().triggers[0].metrics[0].read.unwrap();
    assert!(read.at <= record.decision.at && read.took.as_millis() >= 2 && !read.shared, "{read:?}");
    assert!(words.contains(" ms\n") && words.contains("\n           read "), "{words}");
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    let failed = "3 → 3: scripted cannot be read: no jobs are created";
    env.until("an error is reported", async || sentences().last().is_some_and(|line| line == failed)).await;
    env.delete(SCALED_JOB).await;
    env.until("it is forgotten", async || sentences().is_empty()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn queue_length_limits_created_jobs() {
    let env = TestEnv::start().await;
    scaled_job(&env).await;
    env.until("it was polled", async || state(&env, "Active").await.0 == "False").await;
    env.sources.set("orders", SourceResponse::Value(30));
    env.until("there are jobs", async || jobs(&env).await.len() == 3).await;
    sleep(Duration::from_mins(2)).await;
    let made = jobs(&env).await;
    assert_eq!(made.len(), 3, "those that run count");
    assert_eq!(made[0]["metadata"]["labels"]["scaledjob.keda.sh/name"], "sj");
    assert_eq!(made[0]["metadata"]["ownerReferences"][0]["kind"], "ScaledJob");
    assert_eq!(made[0]["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    env.until("it is reported", async || env.has_event("sj", "KEDAJobsCreated").await).await;
    env.sources.set("orders", SourceResponse::Value(1000));
    env.until("no more than allowed", async || jobs(&env).await.len() == 5).await;

    // Jobs of an older generation are deleted.
    env.sources.set("orders", SourceResponse::Value(0));
    env.patch(SCALED_JOB, json!({"spec": {"maxReplicaCount": 4}})).await;
    env.until("old ones go", async || jobs(&env).await.is_empty()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn paused_scaled_job_creates_nothing_and_deleted_one_is_finalized() {
    let env = TestEnv::start().await;
    scaled_job(&env).await;
    env.until("it is ready", async || state(&env, "Ready").await.0 == "True").await;
    env.patch(SCALED_JOB, json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}})).await;
    env.until("it is paused", async || state(&env, "Paused").await.0 == "True").await;
    env.sources.set("orders", SourceResponse::Value(30));
    sleep(Duration::from_mins(1)).await;
    assert!(jobs(&env).await.is_empty());
    env.delete(SCALED_JOB).await;
    env.until("it is gone", async || env.get(SCALED_JOB).await.is_none()).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pause_during_a_query_creates_no_jobs() {
    let env = TestEnv::start().await;
    env.sources.set("orders", SourceResponse::Delayed(Duration::from_secs(8), 30));
    scaled_job(&env).await;
    env.until("the source is queried", async || env.sources.queries("orders") > 0).await;
    env.patch(SCALED_JOB, json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}})).await;
    env.until("it is paused", async || state(&env, "Paused").await.0 == "True").await;
    assert!(jobs(&env).await.is_empty());
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn history_limits_keep_the_newest_finished_jobs() {
    let env = TestEnv::start().await;
    scaled_job_with(&env, json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0})).await;
    env.sources.set("orders", SourceResponse::Value(40));
    env.until("there are jobs", async || jobs(&env).await.len() == 4).await;
    env.sources.set("orders", SourceResponse::Value(0));
    env.until("it rests", async || state(&env, "Active").await.0 == "False").await;
    let made = jobs(&env).await;
    // The order of ends differs from the order of names.
    for (job, (how, second)) in
        made.iter().zip([("Complete", 7), ("Complete", 9), ("Complete", 8), ("Failed", 5)])
    {
        finish(&env, job, how, second).await;
    }
    let newest = vec![made[1]["metadata"]["name"].as_str().unwrap().to_owned()];
    env.until("one is kept", async || names(&env).await == newest).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(names(&env).await, newest);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gradual_rollout_keeps_running_jobs() {
    let env = TestEnv::start().await;
    scaled_job_with(&env, json!({"rollout": {"strategy": "gradual"}})).await;
    env.sources.set("orders", SourceResponse::Value(20));
    env.until("there are jobs", async || jobs(&env).await.len() == 2).await;
    let before = names(&env).await;
    env.patch(SCALED_JOB, json!({"spec": {"maxReplicaCount": 3}})).await;
    env.sources.set("orders", SourceResponse::Value(100));
    env.until("there is one more", async || jobs(&env).await.len() == 3).await;
    assert!(before.iter().all(|name| !name.is_empty()));
    let after = names(&env).await;
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    let generations: Vec<_> = jobs(&env)
        .await
        .iter()
        .map(|job| job["metadata"]["annotations"]["scaledjob.keda.sh/generation"].clone())
        .collect();
    assert_eq!(generations.iter().filter(|own| **own == "2").count(), 1, "{generations:?}");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn minimum_jobs_run_and_carry_labels_that_are_not_excluded() {
    let env = TestEnv::start().await;
    scaled_job_with(&env, json!({"minReplicaCount": 2})).await;
    env.until("they run without work", async || jobs(&env).await.len() == 2).await;
    let job = &jobs(&env).await[0];
    let labels = &job["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["tier"]), (&json!("a"), &Value::Null));
    assert_eq!(labels["app.kubernetes.io/part-of"], "sj");
    assert_eq!(job["metadata"]["annotations"]["note"], "x");
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["scaledjob.keda.sh/name"], "sj");
    env.until("it says so", async || state(&env, "Active").await.0 == "True").await;
    assert_eq!(state(&env, "Fallback").await.0, "Unknown");
    let status = env.get(SCALED_JOB).await.unwrap()["status"].clone();
    assert_eq!((&status["triggersTypes"], &status["authenticationsTypes"]), (&json!("scripted"), &json!("")));
    // One job has finished, and another one replaces it.
    finish(&env, job, "Complete", 1).await;
    env.until("another one runs", async || jobs(&env).await.len() == 3).await;
    env.delete(SCALED_JOB).await;
    env.until("it is gone", async || env.get(SCALED_JOB).await.is_none()).await;
    for reason in ["ScaledJobDeleted", "KEDAScalersStopped"] {
        env.until(reason, async || env.has_event("sj", reason).await).await;
    }
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failing_source_creates_no_jobs_and_is_reported() {
    let env = TestEnv::start().await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    scaled_job(&env).await;
    env.until("it says so", async || state(&env, "Ready").await.1 == "TriggerError").await;
    env.until("it is reported", async || env.has_event("sj", "KEDAScalerFailed").await).await;
    sleep(Duration::from_mins(1)).await;
    assert!(jobs(&env).await.is_empty());
    let both = json!({"spec": {"triggers": [trigger("orders"), trigger("mails")]}});
    env.patch(SCALED_JOB, both).await;
    env.sources.set("mails", SourceResponse::Value(10));
    env.until("the other is heard", async || jobs(&env).await.len() == 1).await;
    env.until("it says so", async || state(&env, "Ready").await.1 == "PartialTriggerError").await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn refused_job_creations_are_not_repeated_in_one_poll() {
    let env = TestEnv::start().await;
    env.client_faults.refuse(Method::POST, "/jobs", 403, u32::MAX);
    env.sources.set("orders", SourceResponse::Value(100_000));
    scaled_job_with(&env, json!({"maxReplicaCount": 1000})).await;
    env.until("it was polled", async || env.sources.queries("orders") > 5).await;
    // One batch per poll, in a few polls.
    let tried = env.client_faults.count(&Method::POST, "/jobs");
    assert!((1..1000).contains(&tried), "{tried}");
    env.client_faults.clear_refusals();
    env.until("all are made once they are let in", async || jobs(&env).await.len() == 1000).await;
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unclear_creations_do_not_stop_an_operator_that_may_not_get_jobs() {
    let env = TestEnv::start().await;
    env.client_faults.refuse(Method::GET, "/jobs/", 403, u32::MAX);
    env.client_faults.refuse(Method::POST, "/jobs", 500, 2);
    env.sources.set("orders", SourceResponse::Value(30));
    scaled_job(&env).await;
    env.until("all are made", async || jobs(&env).await.len() == 3).await;
    let polled = env.sources.queries("orders");
    env.until("it was polled again", async || env.sources.queries("orders") > polled + 3).await;
    assert_eq!(jobs(&env).await.len(), 3, "those that run count");
    assert!(
        env.client_faults.count(&Method::GET, "/jobs/") > 0,
        "it requests the job whose creation was unclear"
    );
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn edit_stops_a_long_creation_of_jobs() {
    let env = TestEnv::start().await;
    env.client_faults.slow(Method::POST, "/jobs", Duration::from_secs(1));
    env.sources.set("orders", SourceResponse::Value(100_000));
    scaled_job_with(&env, json!({"maxReplicaCount": 1000})).await;
    env.until("some are made", async || !jobs(&env).await.is_empty()).await;
    let edit = json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}});
    env.patch(SCALED_JOB, edit).await;
    let began = Instant::now();
    env.until("it is paused", async || state(&env, "Paused").await.0 == "True").await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(jobs(&env).await.len() < 200);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_trigger_is_named_in_the_condition() {
    let env = TestEnv::start().await;
    env.sources.set("orders", SourceResponse::Fails("connection refused"));
    scaled_job(&env).await;
    env.until("it says so", async || state(&env, "Ready").await.1 == "TriggerError").await;
    let message =
        "Triggers defined in ScaledJob are not working correctly: trigger 0 (scripted): connection refused";
    assert_eq!(state(&env, "Ready").await.2, message);
    env.stop().await;
}
