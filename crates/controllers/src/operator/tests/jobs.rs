//! ScaledJobs create jobs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::bench::{Bench, condition, trigger};
use super::script::Says;

const SCALED_JOB: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledjobs/sj";
const JOBS: &str = "/apis/batch/v1/namespaces/shop/jobs";

async fn scaled_job(bench: &Bench) {
    let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({
        "jobTargetRef": {"template": pods}, "pollingInterval": 5, "maxReplicaCount": 5, "triggers": [trigger("orders")],
    });
    let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": "sj"}, "spec": spec});
    bench.create(SCALED_JOB.trim_end_matches("/sj"), object).await;
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
