//! Simulated nodes on the real control plane: pods are scheduled, started, measured and deleted.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;
use std::time::Duration;

use kube::Client;
use localkube::nodes::{Nodes, Plan};
use serde_json::{Value, json};
use testbed::Access;
use testbed::harness::{connect, until};

/// The namespace of one test, with its own nodes.
struct NodesEnv {
    access: &'static Access,
    namespace: String,
    client: Client,
    nodes: Nodes,
}

impl NodesEnv {
    async fn new(name: &str, change: impl FnOnce(&mut Plan)) -> Self {
        let access = testbed::shared().unwrap();
        let namespace = access.namespace(name).unwrap();
        let client = connect(&access.kubeconfig_for(access.admin())).await.unwrap();
        let mut plan =
            Plan { prefix: namespace.clone(), namespace: Some(namespace.clone()), ..Plan::default() };
        plan.delays.start = "200ms".parse().unwrap();
        plan.delays.ready = "300ms".parse().unwrap();
        plan.delays.stop = "200ms".parse().unwrap();
        change(&mut plan);
        let nodes = Nodes::start(client.clone(), plan).await.unwrap();
        Self { access, namespace, client, nodes }
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.access.run_kubectl(&[&["-n", &self.namespace], arguments].concat()).unwrap()
    }

    async fn get(&self, path: &str) -> Result<Value, kube::Error> {
        let path = path.replace("{ns}", &self.namespace);
        self.client.request(http::Request::get(path).body(Vec::new()).unwrap()).await
    }

    async fn create(&self, path: &str, object: Value) {
        let path = path.replace("{ns}", &self.namespace);
        let request = http::Request::post(path).header("content-type", "application/json");
        self.client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap();
    }

    async fn pods(&self) -> Vec<Value> {
        let list = self.get("/api/v1/namespaces/{ns}/pods").await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Waits until `probe` returns a value.
    async fn eventually<T>(&self, what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
        until(what, async || probe().await.ok_or_else(|| self.nodes.last_error())).await
    }

    async fn pods_are(&self, what: &str, fine: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        self.eventually(what, async || Some(self.pods().await).filter(|pods| fine(pods))).await
    }

    async fn end(self) {
        self.nodes.stop().await;
        let delete = ["delete", "namespace", &self.namespace, "--wait=false"];
        self.access.run_kubectl(&delete).unwrap();
    }
}

fn pod(name: &str, cpu: &str, annotations: &Value) -> Value {
    let resources = json!({"requests": {"cpu": cpu}, "limits": {"memory": "64Mi"}});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "nowhere.invalid/main:1", "resources": resources}]},
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn deployment_runs_scales_and_ends_on_simulated_nodes() {
    let env = NodesEnv::new("nodes-deployment", |_| {}).await;
    for name in env.nodes.names() {
        let node = env.get(&format!("/api/v1/nodes/{name}")).await.unwrap();
        assert_eq!(condition(&node, "Ready")["status"], "True");
        assert_eq!(node["spec"].get("taints"), None);
    }
    let image = "--image=nowhere.invalid/web:1";
    tokio::task::block_in_place(|| {
        env.kubectl(&["create", "deployment", "web", image, "--replicas=5"]);
        env.kubectl(&["rollout", "status", "deployment/web", "--timeout=2m"]);
    });
    let pods = env.pods_are("five ready pods", |pods| {
        pods.len() == 5 && pods.iter().all(|pod| condition(pod, "Ready")["status"] == "True")
    });
    let pods = pods.await;
    let mut addresses: Vec<&str> = pods.iter().map(|pod| pod["status"]["podIP"].as_str().unwrap()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 5);
    for pod in &pods {
        let status = &pod["status"];
        assert_eq!((&status["phase"], &status["hostIP"]), (&json!("Running"), &json!("127.0.0.1")));
        for kind in ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"] {
            assert_eq!(condition(pod, kind)["status"], "True", "{kind}");
        }
        assert_eq!(condition(pod, "Ready").get("message"), None);
        assert!(status["containerStatuses"][0]["state"]["running"]["startedAt"].is_string());
        assert_eq!(status["qosClass"], "BestEffort");
    }
    tokio::task::block_in_place(|| env.kubectl(&["scale", "deployment/web", "--replicas=2"]));
    env.pods_are("two pods", |pods| pods.len() == 2).await;
    tokio::task::block_in_place(|| env.kubectl(&["delete", "deployment/web"]));
    env.pods_are("no pods", <[Value]>::is_empty).await;
    let (client, name) = (env.client.clone(), env.nodes.names()[0].clone());
    env.end().await;
    let path = format!("/api/v1/nodes/{name}");
    let gone = client.request::<Value>(http::Request::get(path).body(Vec::new()).unwrap()).await;
    assert!(matches!(gone, Err(kube::Error::Api(status)) if status.code == 404));
}

#[tokio::test(flavor = "multi_thread")]
async fn unschedulable_pod_waits_with_a_reason() {
    let env = NodesEnv::new("nodes-room", |plan| {
        plan.count = 1;
        plan.capacity.cpu = serde_json::from_value(json!("1")).unwrap();
    });
    let env = env.await;
    for (name, placed) in [("first", "True"), ("second", "False")] {
        env.create("/api/v1/namespaces/{ns}/pods", pod(name, "600m", &Value::Null)).await;
        let is = |pod: &Value| condition(pod, "PodScheduled")["status"] == placed;
        env.pods_are(&format!("{name} is looked at"), |pods| pods.iter().any(is)).await;
    }
    let second = env.get("/api/v1/namespaces/{ns}/pods/second").await.unwrap();
    let says = "0/1 nodes are available: 1 Insufficient cpu.";
    let scheduled = condition(&second, "PodScheduled");
    assert_eq!((&scheduled["reason"], &scheduled["message"]), (&json!("Unschedulable"), &json!(says)));
    // The first pod may have been created before the node, which leaves an event.
    let events =
        "/api/v1/namespaces/{ns}/events?fieldSelector=reason%3DFailedScheduling,involvedObject.name%3Dsecond";
    let reported = async || {
        let events = env.get(events).await.unwrap()["items"].as_array().unwrap().clone();
        events.into_iter().next()
    };
    let event = env.eventually("an event", reported).await;
    assert_eq!(event["message"], says);
    tokio::task::block_in_place(|| env.kubectl(&["delete", "pod", "first"]));
    let ready = |pods: &[Value]| pods.len() == 1 && condition(&pods[0], "Ready")["status"] == "True";
    let pods = env.pods_are("the second pod in its place", ready).await;
    assert_eq!(condition(&pods[0], "PodScheduled").get("message"), None);
    env.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_end_with_the_exit_codes_of_their_pods() {
    let env = NodesEnv::new("nodes-jobs", |plan| plan.run_for = "300ms".parse().unwrap()).await;
    let job = |name: &str, code: &str| {
        let template = json!({
            "metadata": {"annotations": {"plimsoll.dev/run-for": "1s", "plimsoll.dev/exit-code": code}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nowhere.invalid/main:1"}]},
        });
        let spec = json!({"completions": 2, "parallelism": 2, "backoffLimit": 0, "template": template});
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
    };
    for (name, code, ending) in [("good", "0", "Complete"), ("bad", "3", "Failed")] {
        env.create("/apis/batch/v1/namespaces/{ns}/jobs", job(name, code)).await;
        let path = format!("/apis/batch/v1/namespaces/{{ns}}/jobs/{name}");
        let ended = async || {
            let job = env.get(&path).await.unwrap();
            (condition(&job, ending)["status"] == "True").then_some(())
        };
        env.eventually(&format!("{name} {ending}"), ended).await;
    }
    let pods = env.pods().await;
    let bad = pods.iter().find(|pod| pod["metadata"]["labels"]["job-name"] == "bad").unwrap();
    assert_eq!(bad["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    tokio::task::block_in_place(|| env.kubectl(&["delete", "jobs", "--all"]));
    env.pods_are("no pods", <[Value]>::is_empty).await;
    env.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_serve_kubelet_metrics_and_renew_leases() {
    let env = NodesEnv::new("nodes-kubelet", |plan| plan.heartbeat = Some(Duration::from_millis(300))).await;
    env.create("/api/v1/namespaces/{ns}/pods", pod("web", "100m", &Value::Null)).await;
    let ready = |pods: &[Value]| condition(&pods[0], "Ready")["status"] == "True";
    let pods = env.pods_are("a ready pod", ready).await;
    let name = pods[0]["spec"]["nodeName"].as_str().unwrap();
    let node = env.get(&format!("/api/v1/nodes/{name}")).await.unwrap();
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64().unwrap();
    assert_eq!(env.nodes.port(name).map(u64::from), Some(port));

    let authority = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.pem", env.namespace));
    std::fs::write(&authority, env.nodes.ca_pem()).unwrap();
    let (anonymous, authorized) =
        (kubelet(port, &authority, None).await, kubelet(port, &authority, Some("any")).await);
    std::fs::remove_file(&authority).unwrap();
    let send_request = async |client: &Client, path: &str| {
        client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await
    };
    let refused = send_request(&anonymous, "/metrics/resource").await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 401), "{refused:?}");
    let page = send_request(&authorized, "/metrics/resource").await.unwrap();
    let series = format!("{{container=\"main\",namespace=\"{}\",pod=\"web\"}}", env.namespace);
    for family in ["container_cpu_usage_seconds_total", "container_memory_working_set_bytes"] {
        assert!(page.contains(&format!("{family}{series} ")), "{page}");
    }
    assert!(page.contains("\nnode_memory_working_set_bytes ") && page.ends_with("resource_scrape_error 0\n"));
    assert_eq!(send_request(&authorized, "/healthz").await.unwrap(), "ok");
    let missing = send_request(&authorized, "/stats").await;
    assert!(matches!(&missing, Err(kube::Error::Api(status)) if status.code == 404), "{missing:?}");

    let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}");
    let renewed = async || Some(env.get(&path).await.ok()?["spec"]["renewTime"].as_str()?.to_owned());
    let first = env.eventually("a lease", &renewed).await;
    let later = async || renewed().await.filter(|time| *time != first);
    env.eventually("another heartbeat", later).await;
    env.end().await;
}

/// Sends a request to a kubelet, with or without a bearer token.
async fn kubelet(port: u64, authority: &Path, token: Option<&str>) -> Client {
    let user = token.map(|token| json!({"token": token})).unwrap_or(json!({}));
    let cluster = json!({"server": format!("https://127.0.0.1:{port}"), "certificate-authority": authority});
    let text = json!({
        "clusters": [{"name": "node", "cluster": cluster}],
        "users": [{"name": "somebody", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "node", "user": "somebody"}}],
        "current-context": "it",
    });
    connect(&text.to_string()).await.unwrap()
}
