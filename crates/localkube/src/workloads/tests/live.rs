//! The event loop on a cluster in this process, with paused time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Cluster, Options, Running, workloads};

/// In the cluster's time, which does not advance while there is work.
const WAIT_TIMEOUT: Duration = Duration::from_mins(10);

struct LiveFixture {
    cluster: Running,
    _workloads: workloads::Workloads,
}

impl LiveFixture {
    async fn new() -> Self {
        let cluster = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
        let clock = crate::clock::Clock::system();
        let workloads = workloads::start(cluster.client(), clock);
        let fixture = Self { cluster, _workloads: workloads };
        fixture.until("/api/v1/namespaces/default/serviceaccounts/default", |_| true).await;
        fixture
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value, kube::Error> {
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        self.cluster.client().request(request.body(body.to_string().into_bytes()).unwrap()).await
    }

    async fn get(&self, path: &str) -> Option<Value> {
        self.send("GET", path, "application/json", &Value::Null).await.ok()
    }

    async fn create(&self, path: &str, body: Value) {
        self.send("POST", path, "application/json", &body).await.unwrap();
    }

    async fn patch(&self, path: &str, patch: Value) {
        self.send("PATCH", path, "application/merge-patch+json", &patch).await.unwrap();
    }

    async fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let found = tokio::time::timeout(WAIT_TIMEOUT, async {
            loop {
                last = self.get(path).await;
                if let Some(value) = last.as_ref().filter(|value| is(value)) {
                    return value.clone();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("{path} is {last:#?}"))
    }

    async fn start_pods(&self) {
        let pods = self.get(PODS).await.unwrap();
        for pod in pods["items"].as_array().unwrap().iter().filter(|pod| pod["status"]["phase"] == "Pending")
        {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let ready =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            let status = json!({"status": {"phase": "Running", "conditions": ready}});
            self.patch(&format!("{PODS}/{name}/status"), status).await;
        }
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

fn deployment(replicas: i32) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
    });
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"replicas": replicas, "selector": selector, "template": template});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn deployment_rolls_out_on_a_cluster() {
    let fixture = LiveFixture::new().await;
    fixture.create(DEPLOYMENTS, deployment(3)).await;
    fixture
        .until(WEB, |web| web["status"]["unavailableReplicas"] == 3 && web["status"]["replicas"] == 3)
        .await;
    fixture.start_pods().await;
    fixture.until(WEB, |web| web["status"]["availableReplicas"] == 3).await;
    fixture.patch(WEB, json!({"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})).await;
    let done = |web: &Value| {
        web["status"]["observedGeneration"] == 2
            && web["status"]["updatedReplicas"] == 3
            && web["status"]["availableReplicas"] == 3
            && web["status"]["replicas"] == 3
    };
    while fixture.get(WEB).await.is_none_or(|web| !done(&web)) {
        fixture.start_pods().await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let web =
        fixture.until(WEB, |web| web["status"]["conditions"][1]["reason"] == "NewReplicaSetAvailable").await;
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!(web["metadata"]["generation"], 2, "the controller changes no spec of it");
    let events = "/api/v1/namespaces/default/events";
    let created = |event: &Value| event["message"].as_str().is_some_and(|text| text.ends_with("from 0 to 3"));
    fixture.until(events, |events| events["items"].as_array().unwrap().iter().any(created)).await;
}

#[tokio::test(start_paused = true)]
async fn each_of_many_pods_is_created_once() {
    let fixture = LiveFixture::new().await;
    fixture.create(DEPLOYMENTS, deployment(1000)).await;
    fixture.until(WEB, |web| web["status"]["replicas"] == 1000).await;
    fixture.patch(WEB, json!({"spec": {"replicas": 10}})).await;
    fixture.until(WEB, |web| web["status"]["replicas"] == 10).await;
    let pods = fixture.until(PODS, |pods| pods["items"].as_array().unwrap().len() == 10).await;
    assert_eq!(pods["items"].as_array().unwrap().len(), 10);
    let events = fixture.get("/api/v1/namespaces/default/events").await.unwrap();
    let count = events["items"].as_array().unwrap().len();
    assert!(count <= 25, "{count} events");
}

#[tokio::test(start_paused = true)]
async fn progress_deadline_is_checked_without_events() {
    let fixture = LiveFixture::new().await;
    let mut web = deployment(1);
    web["spec"]["progressDeadlineSeconds"] = json!(60);
    fixture.create(DEPLOYMENTS, web).await;
    fixture.until(WEB, |web| web["status"]["conditions"][1]["reason"] == "ProgressDeadlineExceeded").await;
}

#[tokio::test(start_paused = true)]
async fn stateful_set_and_job_run_on_a_cluster() {
    let fixture = LiveFixture::new().await;
    let mut set = deployment(3);
    set["kind"] = json!("StatefulSet");
    fixture.create("/apis/apps/v1/namespaces/default/statefulsets", set).await;
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"completions": 2, "template": {"spec": spec}}});
    fixture.create("/apis/batch/v1/namespaces/default/jobs", job).await;
    let set = "/apis/apps/v1/namespaces/default/statefulsets/web";
    for ready in 1..=3 {
        fixture.until(set, |set| set["status"]["replicas"] == ready).await;
        fixture.start_pods().await;
        fixture.until(set, |set| set["status"]["readyReplicas"] == ready).await;
    }
    for done in 1..=2 {
        let of_job = format!("{PODS}?labelSelector=job-name=once&fieldSelector=status.phase=Running");
        fixture.start_pods().await;
        let pods = fixture.until(&of_job, |pods| pods["items"].as_array().unwrap().len() == 1).await;
        let name = pods["items"][0]["metadata"]["name"].as_str().unwrap();
        fixture.patch(&format!("{PODS}/{name}/status"), json!({"status": {"phase": "Succeeded"}})).await;
        let job = "/apis/batch/v1/namespaces/default/jobs/once";
        fixture.until(job, |job| job["status"]["succeeded"] == done && job["status"]["active"] != 0).await;
        fixture.until(PODS, |pods| pods["items"].as_array().unwrap().len() == 3 + 2).await;
    }
    let complete = |job: &Value| job["status"]["conditions"][1]["type"] == "Complete";
    let job = fixture.until("/apis/batch/v1/namespaces/default/jobs/once", complete).await;
    let revision = &job["metadata"]["resourceVersion"];
    tokio::time::sleep(Duration::from_mins(10)).await;
    let later = fixture.get("/apis/batch/v1/namespaces/default/jobs/once").await.unwrap();
    assert_eq!(&later["metadata"]["resourceVersion"], revision, "nothing is written when nothing happens");
}
