//! localkube's workload controllers, compared with those of kube-controller-manager: on a real API server and on localkube they create the
//! same objects from the same manifests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod view;

use std::time::Duration;

use kube::Client;
use localkube::clock::Clock;
use localkube::workloads::{self, Workloads};
use localkube::{Cluster, Running};
use serde_json::{Value, json};
use testbed::harness::connect;
use testbed::{Access, ControlPlane, Options};
use tokio::time::Instant;
use view::GeneratedNames;

/// The timeout of a wait, which is far longer than any wait here takes, because machines may be busy.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
const DISABLED_CONTROLLERS_FLAG: &str = "--controllers=-deployment-controller,-replicaset-controller,-statefulset-controller,\
    -job-controller,-ttl-after-finished-controller";
const APPS_PATH: &str = "/apis/apps/v1/namespaces/{ns}";
const CORE_PATH: &str = "/api/v1/namespaces/{ns}";
const BATCH_PATH: &str = "/apis/batch/v1/namespaces/{ns}";

/// A namespace on one of the compared clusters.
struct ComparedNamespace {
    name: &'static str,
    client: Client,
    namespace: String,
}

/// The three clusters: real controllers; our controllers on a real API server; our controllers on localkube.
struct ThreeClusters {
    sides: [ComparedNamespace; 3],
    plane: ControlPlane,
    _held: ([Workloads; 2], Running),
}

async fn client(access: &Access) -> Client {
    connect(&access.kubeconfig_for(access.admin())).await.unwrap()
}

impl ThreeClusters {
    async fn new() -> Self {
        let real = testbed::shared().unwrap();
        let options = Options {
            controller_manager_args: vec![DISABLED_CONTROLLERS_FLAG.to_owned()],
            ..Options::default()
        };
        let plane = ControlPlane::start(&options).unwrap();
        let ours = client(plane.access()).await;
        let workloads = workloads::start(ours.clone(), Clock::system());
        let quiet = localkube::Options { workloads: false, ..localkube::Options::default() };
        let local = Cluster::start(quiet).await.unwrap();
        let locally = workloads::start(local.client(), Clock::system());
        let sides = [
            ComparedNamespace {
                name: "the real one",
                client: client(real).await,
                namespace: real.namespace("workloads").unwrap(),
            },
            ComparedNamespace {
                name: "ours",
                client: ours,
                namespace: plane.access().namespace("workloads").unwrap(),
            },
            ComparedNamespace {
                name: "localkube",
                client: local.client(),
                namespace: "workloads".to_owned(),
            },
        ];
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "workloads"}});
        sides[2].send("POST", "/api/v1/namespaces", &namespace).await;
        Self { sides, plane, _held: ([workloads, locally], local) }
    }

    async fn post(&self, path: &str, object: Value) {
        for side in &self.sides {
            side.send("POST", path, &object).await;
        }
    }

    async fn patch(&self, path: &str, patch: Value) {
        for side in &self.sides {
            side.send("PATCH", path, &patch).await;
        }
    }

    async fn delete(&self, path: &str) {
        for side in &self.sides {
            side.send("DELETE", path, &json!({"propagationPolicy": "Background"})).await;
        }
        self.agree("deleted", ROLLOUT_STARTED, <[Value]>::is_empty).await;
    }

    async fn end_pods(&self, phase: &str) {
        for side in &self.sides {
            for pod in side.pods("Running").await {
                side.set_phase(&pod, phase).await;
            }
        }
    }

    /// Starts pods until `done`, then waits until all sides show the same.
    async fn agree(&self, step: &str, look: Expectation, done: impl Fn(&[Value]) -> bool) {
        let until = Instant::now() + WAIT_TIMEOUT;
        loop {
            let mut views = Vec::new();
            let mut is_done = true;
            for side in &self.sides {
                if look.starts {
                    side.start_pods().await;
                }
                let objects = side.objects().await;
                is_done &= done(&objects);
                views.push(side.view(&objects, look).await);
            }
            if is_done && views[1..].iter().all(|view| *view == views[0]) {
                return;
            }
            if Instant::now() > until {
                for (side, view) in self.sides.iter().zip(&views).skip(1) {
                    let differs = view.lines().zip(views[0].lines()).find(|(ours, real)| ours != real);
                    eprintln!("{step}: {} differs at {differs:#?}\n{view}", side.name);
                }
                panic!(
                    "{step}: not alike (done: {is_done}) after {WAIT_TIMEOUT:?}; the real one:\n{}",
                    views[0]
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// What a step does and compares.
#[derive(Clone, Copy)]
struct Expectation {
    /// Whether pods are started meanwhile.
    starts: bool,
    /// Whether generations and events are compared. They are not where the steps of a rollout depend on when pods start.
    exact: bool,
}

const PODS_NOT_STARTED: Expectation = Expectation { starts: false, exact: true };
const PODS_STARTED: Expectation = Expectation { starts: true, exact: true };
const ROLLOUT_STARTED: Expectation = Expectation { starts: true, exact: false };

impl ComparedNamespace {
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let path = path.replace("{ns}", &self.namespace);
        let request = http::Request::builder().method(method).uri(&path).header("content-type", kind);
        let body = if method == "GET" { Vec::new() } else { body.to_string().into_bytes() };
        let response = self.client.request(request.body(body).unwrap()).await;
        response.unwrap_or_else(|error| panic!("{method} {path} on {}: {error}", self.name))
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.send("GET", path, &Value::Null).await;
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    async fn pods(&self, phase: &str) -> Vec<String> {
        let pods = self.list(&format!("{CORE_PATH}/pods")).await;
        let found = pods.iter().filter(|pod| pod["status"]["phase"] == phase);
        found.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn set_phase(&self, pod: &str, phase: &str) {
        let ready = json!([{"type": "Ready", "status": if phase == "Running" { "True" } else { "False" },
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let patch = json!({"status": {"phase": phase, "conditions": ready}}).to_string();
        let path = format!("{CORE_PATH}/pods/{pod}/status").replace("{ns}", &self.namespace);
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
        // The object may have been deleted already.
        let _ = self.client.request::<Value>(request.body(patch.into_bytes()).unwrap()).await;
    }

    async fn start_pods(&self) {
        for pod in self.pods("Pending").await {
            self.set_phase(&pod, "Running").await;
        }
    }

    async fn objects(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        for path in [
            format!("{APPS_PATH}/deployments"),
            format!("{APPS_PATH}/replicasets"),
            format!("{APPS_PATH}/statefulsets"),
            format!("{BATCH_PATH}/jobs"),
            format!("{CORE_PATH}/pods"),
        ] {
            objects.extend(self.list(&path).await);
        }
        objects
    }

    /// The state of the namespace, with placeholders for values that differ between clusters.
    async fn view(&self, objects: &[Value], look: Expectation) -> String {
        let names = GeneratedNames::of(objects);
        let mut lines: Vec<String> = objects.iter().map(|object| names.clean(object, look.exact)).collect();
        if look.exact {
            let events = self.list(&format!("{CORE_PATH}/events")).await;
            let is_there =
                |event: &&Value| event["involvedObject"]["uid"].as_str().is_some_and(|uid| names.knows(uid));
            for event in events.iter().filter(is_there) {
                let reported = ["type", "reason", "message", "count"].map(|field| event[field].clone());
                lines.push(names.text(&format!("Event {} {reported:?}", event["involvedObject"]["name"])));
            }
        }
        lines.sort();
        lines.join("\n")
    }
}

fn spec(name: &str, replicas: i32, image: &str) -> Value {
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
    })
}

fn workload(kind: &str, name: &str, spec: &Value) -> Value {
    let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    let annotations = json!({"team": "blue"});
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "annotations": annotations}, "spec": spec})
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn status<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let owner = objects.iter().find(|object| object["kind"] == kind || kind == kind_of(object));
    owner.map_or(&Value::Null, |object| &object["status"])
}

/// The items of lists have no kind.
fn kind_of(object: &Value) -> &'static str {
    let spec = &object["spec"];
    match () {
        () if !spec["strategy"].is_null() => "Deployment",
        () if !spec["updateStrategy"].is_null() => "StatefulSet",
        () if !spec["parallelism"].is_null() => "Job",
        () if !spec["template"].is_null() => "ReplicaSet",
        () => "Pod",
    }
}

fn count(objects: &[Value], kind: &str, field: &str) -> i64 {
    status(objects, kind)[field].as_i64().unwrap_or_default()
}

async fn deployments(trio: &ThreeClusters) {
    let web = format!("{APPS_PATH}/deployments/web");
    let deployment = |field: &'static str, wanted: i64| {
        move |objects: &[Value]| count(objects, "Deployment", field) == wanted
    };
    trio.post(&format!("{APPS_PATH}/deployments"), workload("Deployment", "web", &spec("web", 4, "web:1")))
        .await;
    trio.agree("created", PODS_NOT_STARTED, deployment("unavailableReplicas", 4)).await;
    trio.agree("ready", PODS_STARTED, deployment("availableReplicas", 4)).await;
    trio.patch(&web, image("web:2")).await;
    trio.agree("a rollout that waits", PODS_NOT_STARTED, deployment("updatedReplicas", 2)).await;
    trio.patch(&web, json!({"spec": {"replicas": 10}})).await;
    trio.agree("scaled up in the middle", PODS_NOT_STARTED, deployment("replicas", 13)).await;
    trio.patch(&web, json!({"spec": {"replicas": 5}})).await;
    trio.agree("scaled down in the middle", PODS_NOT_STARTED, deployment("replicas", 7)).await;
    let rolled_out = |objects: &[Value]| {
        ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|f| count(objects, "Deployment", f) == 5)
    };
    trio.agree("rolled out", ROLLOUT_STARTED, rolled_out).await;
    trio.patch(&web, image("web:1")).await;
    trio.agree("rolled back", ROLLOUT_STARTED, |objects| {
        rolled_out(objects)
            && objects
                .iter()
                .any(|o| o["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3")
    })
    .await;
    trio.patch(&web, json!({"spec": {"paused": true, "replicas": 3}})).await;
    trio.agree("paused", ROLLOUT_STARTED, deployment("replicas", 3)).await;
    trio.patch(
        &web,
        json!({"spec": {"paused": false, "strategy": {"type": "Recreate", "rollingUpdate": null}}}),
    )
    .await;
    trio.patch(&web, image("web:3")).await;
    trio.agree("recreated", ROLLOUT_STARTED, |objects| {
        count(objects, "Deployment", "availableReplicas") == 3
            && count(objects, "Deployment", "updatedReplicas") == 3
    })
    .await;
    trio.delete(&web).await;
}

async fn stateful_sets(trio: &ThreeClusters) {
    let path = format!("{APPS_PATH}/statefulsets/st");
    let mut wanted = spec("st", 3, "st:1");
    wanted["serviceName"] = json!("svc");
    trio.post(&format!("{APPS_PATH}/statefulsets"), workload("StatefulSet", "st", &wanted)).await;
    trio.agree("the first pod", PODS_NOT_STARTED, |objects| count(objects, "StatefulSet", "replicas") == 1)
        .await;
    trio.agree("all pods", PODS_STARTED, |objects| count(objects, "StatefulSet", "availableReplicas") == 3)
        .await;
    trio.patch(&path, json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}})).await;
    trio.patch(&path, image("st:2")).await;
    trio.agree("updated in part", ROLLOUT_STARTED, |objects| {
        count(objects, "StatefulSet", "updatedReplicas") == 2
            && count(objects, "StatefulSet", "readyReplicas") == 3
    })
    .await;
    trio.patch(&path, json!({"spec": {"replicas": 1}})).await;
    trio.agree("scaled down", ROLLOUT_STARTED, |objects| count(objects, "StatefulSet", "replicas") == 1)
        .await;
    trio.delete(&path).await;
}

async fn jobs(trio: &ThreeClusters) {
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}});
    let ended =
        |objects: &[Value]| status(objects, "Job")["conditions"].as_array().is_some_and(|c| c.len() == 2);
    for (name, phase, parallelism) in [("good", "Succeeded", 2), ("bad", "Failed", 1)] {
        let wanted =
            json!({"completions": 3, "parallelism": parallelism, "backoffLimit": 0, "template": template});
        trio.post(&format!("{BATCH_PATH}/jobs"), workload("Job", name, &wanted)).await;
        trio.agree("pods run", PODS_STARTED, |objects| count(objects, "Job", "ready") == parallelism).await;
        trio.end_pods(phase).await;
        if phase == "Succeeded" {
            trio.agree("one is left", PODS_STARTED, |objects| count(objects, "Job", "ready") == 1).await;
            trio.end_pods(phase).await;
        }
        trio.agree("ended", PODS_NOT_STARTED, ended).await;
        trio.delete(&format!("{BATCH_PATH}/jobs/{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_controllers_match_the_real_ones() {
    let trio = ThreeClusters::new().await;
    deployments(&trio).await;
    stateful_sets(&trio).await;
    jobs(&trio).await;
    let inside = ["-n", trio.sides[1].namespace.as_str()];
    let kubectl =
        |arguments: &[&str]| trio.plane.access().run_kubectl(&[&inside[..], arguments].concat()).unwrap();
    kubectl(&["create", "deployment", "web", "--image=web:1", "--replicas=2"]);
    let starting = tokio::spawn({
        let side = ComparedNamespace {
            name: "ours",
            client: trio.sides[1].client.clone(),
            namespace: trio.sides[1].namespace.clone(),
        };
        async move {
            loop {
                side.start_pods().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
    let response_body =
        tokio::task::block_in_place(|| kubectl(&["rollout", "status", "deployment/web", "--timeout=2m"]));
    assert!(response_body.ends_with("deployment \"web\" successfully rolled out\n"), "{response_body}");
    starting.abort();
    let described = kubectl(&["describe", "deployment", "web"]);
    assert!(
        described.contains("2 desired | 2 updated | 2 total | 2 available | 0 unavailable"),
        "{described}"
    );
    assert!(described.contains("(2/2 replicas created)"), "{described}");
    for side in &trio.sides[..2] {
        side.send("DELETE", "/api/v1/namespaces/{ns}", &json!({})).await;
    }
}
