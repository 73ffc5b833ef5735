//! ScaledJobs that are created with kubectl.

use serde_json::{Value, json};
use testbed::direct::{Caller, DirectClient};
use testbed::harness::Failure;

use crate::env::{ACCOUNT, Operator, SYSTEM_NAMESPACE, SourceResponse, TestNamespace, deployment, on_both};

const NAME: &str = "batch";
const SCALED_JOB: &str = "/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledjobs/batch";
const JOBS: &str = "/apis/batch/v1/namespaces/{ns}/jobs";

impl TestNamespace {
    fn batch(&self, most: u32) -> Value {
        let mut object = self.scaled_job(NAME, most);
        object["metadata"]["labels"] = json!({"team": "a"});
        object["spec"]["successfulJobsHistoryLimit"] = json!(1);
        object
    }

    async fn jobs(&self) -> Vec<Value> {
        let all = self.get(JOBS).await.1["items"].as_array().unwrap().clone();
        all.into_iter().filter(|job| job["metadata"].get("deletionTimestamp").is_none()).collect()
    }

    async fn until_jobs(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let mut last = Vec::new();
        self.until(what, async || {
            last = self.jobs().await;
            if wanted(&last) {
                Ok(())
            } else {
                Err((last.len(), self.get(SCALED_JOB).await.1["status"].clone()))
            }
        })
        .await;
        last
    }

    /// What the operator recorded of the jobs in each poll, oldest first.
    async fn recorded_jobs(&self, operator: &Operator) -> Vec<Value> {
        let token = crate::shared::token(self.client(), SYSTEM_NAMESPACE, ACCOUNT).await;
        let direct = DirectClient::new(operator.port, &Caller::token(&token)).unwrap();
        let passes = format!("namespaces/{}/passes?detail=full", self.namespace);
        let path =
            format!("/apis/operator.plimsoll.dev/v1alpha1/{passes}&fieldSelector=metadata.name%3Dsj.{NAME}");
        let response = direct.get(&path).await.unwrap();
        assert_eq!(response.code, 200, "{}", response.text());
        let list = response.json();
        let jobs = |pass: &Value| pass["record"]["round"]["jobs"].clone();
        list["items"].as_array().unwrap().iter().map(jobs).collect()
    }

    async fn until_job_condition(&self, kind: &str, wanted: &str) {
        self.until(&format!("{kind} {wanted}"), async || {
            let found = self.get(SCALED_JOB).await.1;
            if Self::condition(&found, kind) == wanted { Ok(()) } else { Err(found["status"].clone()) }
        })
        .await;
    }

    /// Marks a job as complete, as the job controller would.
    async fn finish(&self, job: &Value) {
        let path = format!("{JOBS}/{}", job["metadata"]["name"].as_str().unwrap());
        self.until("the end of a job", async || {
            let found = self.get(&path).await.1;
            let now = api::instant::format(jiff::Timestamp::now());
            let condition = |kind: &str| {
                json!({
                    "type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now
                })
            };
            let mut status = json!({
                "completionTime": now, "succeeded": 1, "ready": 0, "active": 0, "terminating": 0,
                "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
            });
            // The job controller may have started the job.
            if found["status"].get("startTime").is_none() {
                status["startTime"] = json!(now);
            }
            let status = json!({"status": status});
            let (code, body) = self.send(http::Method::PATCH, &format!("{path}/status"), Some(&status)).await;
            if code == 200 { Ok(()) } else { Err(body) }
        })
        .await;
    }
}

#[test]
fn queue_length_creates_jobs_up_to_the_limit() -> Result<(), Failure> {
    on_both(async |ns| {
        let operator = Operator::start(&ns, &[]).await;
        let kubectl = ns.kubectl();
        kubectl.apply(&ns.batch(4));
        ns.until_job_condition("Ready", "True ScaledJobReady").await;
        ns.until_job_condition("Active", "False ScalerNotActive").await;
        let row = kubectl.words("get sj");
        assert_eq!(row[0].join(" "), "NAME MIN MAX READY ACTIVE PAUSED TRIGGERS AUTHENTICATIONS AGE");
        assert_eq!(row[1][..6], [NAME, "4", "True", "False", "False", "external"]);

        ns.set_response(NAME, SourceResponse::Value(20));
        let made = ns.until_jobs("two jobs", |jobs| jobs.len() == 2).await;
        let meta = &made[0]["metadata"];
        assert!(meta["name"].as_str().unwrap().starts_with("batch-"), "{meta}");
        let labels = &meta["labels"];
        assert_eq!((&labels["scaledjob.keda.sh/name"], &labels["team"]), (&json!(NAME), &json!("a")));
        assert_eq!(labels["app.kubernetes.io/managed-by"], "keda-operator");
        assert_eq!(meta["annotations"]["scaledjob.keda.sh/generation"], "1");
        assert_eq!(meta["ownerReferences"][0]["kind"], "ScaledJob");
        ns.until_job_condition("Active", "True ScalerActive").await;
        ns.until_event(NAME, "Normal KEDAJobsCreated: Created 2 jobs").await;
        ns.rounds(NAME, 8).await;
        assert_eq!(ns.jobs().await.len(), 2, "those that run count");
        ns.set_response(NAME, SourceResponse::Value(500));
        ns.until_jobs("four jobs", |jobs| jobs.len() == 4).await;
        ns.rounds(NAME, 8).await;
        assert_eq!(ns.jobs().await.len(), 4, "no more than allowed");
        let last = ns.recorded_jobs(&operator).await.pop().unwrap();
        assert_eq!((&last["running"], &last["wanted"], &last["queue"]), (&json!(4), &json!(0), &json!(500)));

        // Finished jobs are kept up to the history limit.
        ns.set_response(NAME, SourceResponse::Value(0));
        ns.until_job_condition("Active", "False ScalerNotActive").await;
        for job in &made {
            ns.finish(job).await;
        }
        ns.until_jobs("history", |jobs| jobs.len() == 3).await;

        // Jobs of an older generation are deleted.
        kubectl.apply(&ns.batch(3));
        ns.until_jobs("old ones go", <[Value]>::is_empty).await;
        ns.until_event(
            NAME,
            "Normal ScaledJobRolloutCleanupCompleted: Deleted 3 jobs owned by the previous version of the scaledJob",
        )
        .await;

        kubectl.run_ok(&format!("annotate sj {NAME} autoscaling.keda.sh/paused=true"));
        ns.until_job_condition("Paused", "True ScaledJobPaused").await;
        let queries = ns.env.sources.query_count(&ns.namespace, NAME);
        ns.set_response(NAME, SourceResponse::Value(20));
        // The object stays paused during several polls of another object.
        kubectl.apply(&deployment("other", 0));
        ns.set_response("other", SourceResponse::Value(1));
        kubectl.apply(&ns.scaled_object("other", &json!({})));
        ns.until_replicas("other", 1).await;
        ns.rounds("other", 6).await;
        assert!(
            ns.env.sources.query_count(&ns.namespace, NAME) <= queries + 2,
            "nobody asks while it is paused"
        );
        assert!(ns.jobs().await.is_empty());
        kubectl.run_ok(&format!("annotate sj {NAME} autoscaling.keda.sh/paused-"));
        ns.until_job_condition("Paused", "False ScaledJobUnpaused").await;
        let working = ns.until_jobs("jobs again", |jobs| jobs.len() == 2).await;

        // An error creates no jobs and deletes none.
        ns.set_response(NAME, SourceResponse::Fails("the queue is closed"));
        ns.until_job_condition("Ready", "False TriggerError").await;
        ns.rounds(NAME, 4).await;
        let uids = |jobs: &[Value]| -> Vec<Value> {
            jobs.iter().map(|job| job["metadata"]["uid"].clone()).collect()
        };
        assert_eq!(uids(&ns.jobs().await), uids(&working), "those that run are let alone");
        kubectl.run_ok(&format!("delete sj {NAME}"));
        assert_eq!(ns.get(SCALED_JOB).await.0, 404, "kubectl returns when the finalizer is gone");
        ns.until_jobs("jobs go with it", <[Value]>::is_empty).await;
        ns.until_event(NAME, "Warning ScaledJobDeleted: ScaledJob was deleted").await;
        operator.check();
    })
}
