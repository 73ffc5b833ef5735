//! localkube's workload controllers in the place of kube-controller-manager's: on a real API server and on localkube they
//! make of the same manifests what the real ones make.
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
use view::Names;

/// Far more than anything here takes, on a machine that is busy with other things.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
const OFF: &str = "--controllers=-deployment-controller,-replicaset-controller,-statefulset-controller,\
    -job-controller,-ttl-after-finished-controller";
const APPS: &str = "/apis/apps/v1/namespaces/{ns}";
const CORE: &str = "/api/v1/namespaces/{ns}";
const BATCH: &str = "/apis/batch/v1/namespaces/{ns}";

/// A namespace on one cluster.
struct Side {
    name: &'static str,
    client: Client,
    namespace: String,
}

/// The three clusters: real; ours on a real API server; ours on localkube.
struct Trio {
    sides: [Side; 3],
    plane: ControlPlane,
    _held: ([Workloads; 2], Running),
}

async fn client(access: &Access) -> Client {
    connect(&access.kubeconfig_for(access.admin())).await.unwrap()
}

impl Trio {
    async fn new() -> Self {
        let real = testbed::shared().unwrap();
        let options = Options { controller_manager_args: vec![OFF.to_owned()], ..Options::default() };
        let plane = ControlPlane::start(&options).unwrap();
        let ours = client(plane.access()).await;
        let workloads = workloads::start(ours.clone(), Clock::system());
        let quiet = localkube::Options { workloads: false, ..localkube::Options::default() };
        let local = Cluster::start(quiet).await.unwrap();
        let locally = workloads::start(local.client(), Clock::system());
        let sides = [
            Side {
                name: "the real one",
                client: client(real).await,
                namespace: real.namespace("workloads").unwrap(),
            },
            Side { name: "ours", client: ours, namespace: plane.access().namespace("workloads").unwrap() },
            Side { name: "localkube", client: local.client(), namespace: "workloads".to_owned() },
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
        self.agree("deleted", ROLLING, <[Value]>::is_empty).await;
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

/// What to do and compare at a step.
#[derive(Clone, Copy)]
struct Expectation {
    /// Whether pods are started meanwhile.
    starts: bool,
    /// Whether generations and events are compared: not where the steps of a rollout depend on when pods start.
    exact: bool,
}

const STILL: Expectation = Expectation { starts: false, exact: true };
const RUNNING: Expectation = Expectation { starts: true, exact: true };
const ROLLING: Expectation = Expectation { starts: true, exact: false };

impl Side {
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let path = path.replace("{ns}", &self.namespace);
        let request = http::Request::builder().method(method).uri(&path).header("content-type", kind);
        let body = if method == "GET" { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.client.request(request.body(body).unwrap()).await;
        answer.unwrap_or_else(|error| panic!("{method} {path} on {}: {error}", self.name))
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.send("GET", path, &Value::Null).await;
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    async fn pods(&self, phase: &str) -> Vec<String> {
        let pods = self.list(&format!("{CORE}/pods")).await;
        let found = pods.iter().filter(|pod| pod["status"]["phase"] == phase);
        found.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn set_phase(&self, pod: &str, phase: &str) {
        let ready = json!([{"type": "Ready", "status": if phase == "Running" { "True" } else { "False" },
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let patch = json!({"status": {"phase": phase, "conditions": ready}}).to_string();
        let path = format!("{CORE}/pods/{pod}/status").replace("{ns}", &self.namespace);
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
        // It may be gone by now.
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
            format!("{APPS}/deployments"),
            format!("{APPS}/replicasets"),
            format!("{APPS}/statefulsets"),
            format!("{BATCH}/jobs"),
            format!("{CORE}/pods"),
        ] {
            objects.extend(self.list(&path).await);
        }
        objects
    }

    /// What there is to see, with what differs from cluster to cluster taken out.
    async fn view(&self, objects: &[Value], look: Expectation) -> String {
        let names = Names::of(objects);
        let mut lines: Vec<String> = objects.iter().map(|object| names.clean(object, look.exact)).collect();
        if look.exact {
            let events = self.list(&format!("{CORE}/events")).await;
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

/// Lists do not say the kind of their items.
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

async fn deployments(trio: &Trio) {
    let web = format!("{APPS}/deployments/web");
    let deployment = |field: &'static str, wanted: i64| {
        move |objects: &[Value]| count(objects, "Deployment", field) == wanted
    };
    trio.post(&format!("{APPS}/deployments"), workload("Deployment", "web", &spec("web", 4, "web:1"))).await;
    trio.agree("created", STILL, deployment("unavailableReplicas", 4)).await;
    trio.agree("ready", RUNNING, deployment("availableReplicas", 4)).await;
    trio.patch(&web, image("web:2")).await;
    trio.agree("a rollout that waits", STILL, deployment("updatedReplicas", 2)).await;
    trio.patch(&web, json!({"spec": {"replicas": 10}})).await;
    trio.agree("scaled up in the middle", STILL, deployment("replicas", 13)).await;
    trio.patch(&web, json!({"spec": {"replicas": 5}})).await;
    trio.agree("scaled down in the middle", STILL, deployment("replicas", 7)).await;
    let rolled_out = |objects: &[Value]| {
        ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|f| count(objects, "Deployment", f) == 5)
    };
    trio.agree("rolled out", ROLLING, rolled_out).await;
    trio.patch(&web, image("web:1")).await;
    trio.agree("rolled back", ROLLING, |objects| {
        rolled_out(objects)
            && objects
                .iter()
                .any(|o| o["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3")
    })
    .await;
    trio.patch(&web, json!({"spec": {"paused": true, "replicas": 3}})).await;
    trio.agree("paused", ROLLING, deployment("replicas", 3)).await;
    trio.patch(
        &web,
        json!({"spec": {"paused": false, "strategy": {"type": "Recreate", "rollingUpdate": null}}}),
    )
    .await;
    trio.patch(&web, image("web:3")).await;
    trio.agree("recreated", ROLLING, |objects| {
        count(objects, "Deployment", "availableReplicas") == 3
            && count(objects, "Deployment", "updatedReplicas") == 3
    })
    .await;
    trio.delete(&web).await;
}

async fn stateful_sets(trio: &Trio) {
    let path = format!("{APPS}/statefulsets/st");
    let mut wanted = spec("st", 3, "st:1");
    wanted["serviceName"] = json!("svc");
    trio.post(&format!("{APPS}/statefulsets"), workload("StatefulSet", "st", &wanted)).await;
    trio.agree("the first pod", STILL, |objects| count(objects, "StatefulSet", "replicas") == 1).await;
    trio.agree("all pods", RUNNING, |objects| count(objects, "StatefulSet", "availableReplicas") == 3).await;
    trio.patch(&path, json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}})).await;
    trio.patch(&path, image("st:2")).await;
    trio.agree("updated in part", ROLLING, |objects| {
        count(objects, "StatefulSet", "updatedReplicas") == 2
            && count(objects, "StatefulSet", "readyReplicas") == 3
    })
    .await;
    trio.patch(&path, json!({"spec": {"replicas": 1}})).await;
    trio.agree("scaled down", ROLLING, |objects| count(objects, "StatefulSet", "replicas") == 1).await;
    trio.delete(&path).await;
}

async fn jobs(trio: &Trio) {
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}});
    let ended =
        |objects: &[Value]| status(objects, "Job")["conditions"].as_array().is_some_and(|c| c.len() == 2);
    for (name, phase, parallelism) in [("good", "Succeeded", 2), ("bad", "Failed", 1)] {
        let wanted =
            json!({"completions": 3, "parallelism": parallelism, "backoffLimit": 0, "template": template});
        trio.post(&format!("{BATCH}/jobs"), workload("Job", name, &wanted)).await;
        trio.agree("pods run", RUNNING, |objects| count(objects, "Job", "ready") == parallelism).await;
        trio.end_pods(phase).await;
        if phase == "Succeeded" {
            trio.agree("one is left", RUNNING, |objects| count(objects, "Job", "ready") == 1).await;
            trio.end_pods(phase).await;
        }
        trio.agree("ended", STILL, ended).await;
        trio.delete(&format!("{BATCH}/jobs/{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_controllers_match_the_real_ones() {
    let trio = Trio::new().await;
    deployments(&trio).await;
    stateful_sets(&trio).await;
    jobs(&trio).await;
    let inside = ["-n", trio.sides[1].namespace.as_str()];
    let kubectl =
        |arguments: &[&str]| trio.plane.access().run_kubectl(&[&inside[..], arguments].concat()).unwrap();
    kubectl(&["create", "deployment", "web", "--image=web:1", "--replicas=2"]);
    let starting = tokio::spawn({
        let side = Side {
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
    let said =
        tokio::task::block_in_place(|| kubectl(&["rollout", "status", "deployment/web", "--timeout=2m"]));
    assert!(said.ends_with("deployment \"web\" successfully rolled out\n"), "{said}");
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
