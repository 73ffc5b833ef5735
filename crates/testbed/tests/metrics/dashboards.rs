//! Every query of the chart's dashboards and every alert returns data from a real Prometheus, which scrapes the three roles with the
//! relabeling of the ServiceMonitors while some autoscalers work and others have a problem.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::kubelets::{Behaviour, Measures, objects as nodes};
use testbed::program::{Program, Room};
use testbed::prometheus::Server;

use crate::env::subject::metrics_arguments;
use crate::env::{Caller, TestNamespace, direct, free_port, make_node, on_local, peers, program, until};
use crate::faults::{admin, identity};
use crate::shared::manifests::{apply, folder, objects, repository};

const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a role may take to become ready: two scrapes of kubelets on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(3);
const DASHBOARDS: &str = "charts/plimsoll/files/dashboards";
const ALERTS: &str = "charts/plimsoll/files/alerts.yaml";
const SERVICE_MONITORS: &str = "charts/plimsoll/templates/monitoring.yaml";
/// An upstream that nobody serves; no other metric is asked from it.
const UPSTREAMS: &str = "upstreams:
- {name: gone, group: external, url: 'https://127.0.0.1:1', tls: {insecure: true}, metrics: ['gone-*']}
";

/// A role as a process.
struct Role {
    job: &'static str,
    port: u16,
    _program: Program,
}

impl Role {
    async fn start(
        ns: &TestNamespace,
        job: &'static str,
        port: u16,
        arguments: &[String],
        room: Room,
    ) -> Self {
        let variables = [("POD_NAMESPACE", ns.namespace.as_str())];
        let mut started = Program::start_with("plimsoll", program(), arguments, &variables, room).unwrap();
        let ready = async || {
            direct(port, &Caller::nobody(), "/readyz").await.is_some_and(|answer| answer.code == 200)
        };
        started.until(READY_TIMEOUT, ready).await.unwrap();
        Self { job, port, _program: started }
    }

    async fn controller(ns: &TestNamespace) -> Self {
        let (room, port) = (Room::new().unwrap(), free_port());
        let kubeconfig = room.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespaces={}", ns.namespace),
            format!("--leader-elect-resource-namespace={}", ns.namespace),
            "--horizontal-pod-autoscaler-sync-period=1s".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
        ];
        Self::start(ns, "plimsoll-controller", port, &arguments, room).await
    }

    async fn metrics(ns: &TestNamespace) -> Self {
        let (room, port) = (Room::new().unwrap(), free_port());
        let (kubeconfig, kubelets) = (&ns.env.cluster.kubeconfig, &ns.env.kubelets);
        let mut arguments = metrics_arguments(&room, kubeconfig, port, kubelets, &ns.env.front.url());
        arguments.push(format!("--upstreams={}", room.write("upstreams.yaml", UPSTREAMS).unwrap().display()));
        Self::start(ns, "plimsoll-metrics", port, &arguments, room).await
    }

    async fn operator(ns: &TestNamespace) -> Self {
        let (room, port) = (Room::new().unwrap(), free_port());
        let kubeconfig = room.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
        let arguments = [
            "operator".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--watch-namespaces={}", ns.namespace),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--leader-elect".to_owned(),
            "--enable-webhook-patching=false".to_owned(),
            "--enable-apiservice-patching=false".to_owned(),
            "--metrics-service-bind-address=0".to_owned(),
            "--health-probe-bind-address=0".to_owned(),
            "--allow-source-cidr=127.0.0.0/8".to_owned(),
        ];
        Self::start(ns, "plimsoll-operator", port, &arguments, room).await
    }
}

/// A query, and where users see it.
struct Query {
    place: String,
    expression: String,
}

impl Query {
    /// With the variables of Grafana replaced.
    fn new(place: String, expression: &Value) -> Self {
        let expression = expression.as_str().unwrap();
        Self {
            place,
            expression: expression.replace("$job", "plimsoll-.+").replace("$__rate_interval", "1m"),
        }
    }

    /// Whether Prometheus has data. A comparison selects what is wrong: where nothing is, the series that it compares must exist.
    async fn has_data(&self, prometheus: &Server) -> bool {
        let is_number = |sample: &Value| sample["value"][1] != "NaN";
        for expression in [self.expression.clone(), without_comparisons(&self.expression)] {
            let found = prometheus.query(&expression).await.unwrap_or_default();
            if found.iter().any(is_number) {
                return true;
            }
        }
        false
    }
}

/// A query without its comparisons with numbers.
fn without_comparisons(query: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut is_compared = false;
    for word in query.split(' ') {
        if matches!(word, "==" | ">") {
            is_compared = true;
        } else if std::mem::take(&mut is_compared) {
            // Parentheses behind the number stay.
            let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
            kept.last_mut().unwrap().push_str(rest);
        } else {
            kept.push(word.to_owned());
        }
    }
    kept.join(" ")
}

#[test]
fn comparisons_with_numbers_are_removed() {
    assert_eq!(without_comparisons("topk(10, sum by (a) (b) > 0)"), "topk(10, sum by (a) (b))");
    assert_eq!(without_comparisons("a{b=~\"c\"} == 0"), "a{b=~\"c\"}");
    assert_eq!(without_comparisons("a > 3 and on (b) c"), "a and on (b) c");
    assert_eq!(without_comparisons("sum(a)"), "sum(a)");
}

fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object[field].as_array().unwrap().iter()
}

/// The queries of all dashboards and alerts.
fn queries() -> Vec<Query> {
    let mut all = Vec::new();
    for dashboard in folder(DASHBOARDS) {
        for panel in items(&dashboard, "panels") {
            for query in items(panel, "queries") {
                let place = format!("{}: {}", dashboard["title"], panel["title"]);
                all.push(Query::new(place, &query["expr"]));
            }
        }
    }
    let alerts = std::fs::read_to_string(repository().join(ALERTS)).unwrap();
    for file in objects(ALERTS, &alerts) {
        for rule in items(&file, "groups").flat_map(|group| items(group, "rules")) {
            all.push(Query::new(format!("alert {}", rule["alert"]), &rule["expr"]));
        }
    }
    assert!(all.len() >= 60, "{}", all.len());
    all
}

/// The relabeling of the ServiceMonitors, as Prometheus itself spells it.
fn relabeling() -> Value {
    let template = std::fs::read_to_string(repository().join(SERVICE_MONITORS)).unwrap();
    let (_, rest) = template.split_once("metricRelabelings:\n").unwrap();
    let (block, _) = rest.split_once("{{").unwrap();
    let block = block.replace("sourceLabels", "source_labels").replace("targetLabel", "target_label");
    objects(SERVICE_MONITORS, &block).remove(0)
}

/// A Prometheus that scrapes roles as the chart's ServiceMonitors say, as an administrator.
async fn scraping(ns: &TestNamespace, keys: &Room, roles: &[Role]) -> Server {
    let own = identity(ns);
    let certificate = keys.write("client.crt", &own.certificate).unwrap();
    let key = keys.write("client.key", &own.key).unwrap();
    let job = |role: &Role| {
        let job = json!({
            "job_name": role.job, "scheme": "https",
            "tls_config": {"insecure_skip_verify": true, "cert_file": certificate, "key_file": key},
            "static_configs": [{
                "targets": [format!("127.0.0.1:{}", role.port)],
                "labels": {"namespace": "plimsoll-system", "pod": format!("{}-0", role.job)}
            }],
            "metric_relabel_configs": relabeling()
        });
        format!("- {job}\n")
    };
    let jobs: Vec<String> = roles.iter().map(job).collect();
    Server::start_with(SCRAPE_INTERVAL, &jobs.concat()).await.unwrap()
}

/// HPAs of which each has another problem.
async fn make_hpas(ns: &TestNamespace) {
    ns.env.app.set_gauge(&format!("queue_depth{{queue=\"{}\"}}", ns.namespace), 100.0);
    let external = |name: &str| {
        json!([{"type": "External", "external": {
            "metric": {"name": name, "selector": {"matchLabels": {"queue": ns.namespace}}},
            "target": {"type": "AverageValue", "averageValue": "10"}
        }}])
    };
    let cpu = json!([{"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}
    }}]);
    let window = json!({"scaleUp": {"stabilizationWindowSeconds": 600}});
    let policy = json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}});
    let spec = |max: i32, metrics: &Value| json!({"maxReplicas": max, "metrics": metrics});
    let behaving = |behavior: &Value| json!({"maxReplicas": 20, "metrics": external("queue_depth"), "behavior": behavior});
    for (name, spec) in [
        ("capped", spec(3, &external("queue_depth"))),
        ("windowed", behaving(&window)),
        ("paced", behaving(&policy)),
        ("misspelt", spec(20, &external("queue_deep"))),
        ("podless", spec(20, &cpu)),
    ] {
        ns.deployment(name, 2).await;
        ns.hpa_with(name, spec).await;
    }
    ns.hpa_with("gone", spec(20, &external("queue_depth"))).await;
}

/// A ScaledObject that works, one and a ScaledJob whose source does not answer, and one that is paused.
async fn make_scaled_objects(ns: &TestNamespace) {
    apply(&ns.client, ns.cluster, &folder("deploy/crds/keda"), |_| true).await;
    for resource in ["scaledobjects", "scaledjobs"] {
        ns.until_found(&format!("/apis/keda.sh/v1alpha1/namespaces/{{ns}}/{resource}")).await;
    }
    let trigger = |address: String| {
        let query = format!("max(queue_depth{{queue=\"{}\"}})", ns.namespace);
        json!([{"type": "prometheus", "metadata": {"serverAddress": address, "query": query, "threshold": "10"}}])
    };
    let nobody = || "http://127.0.0.1:1".to_owned();
    for (name, address, annotations) in [
        ("queue", ns.env.front.url(), json!({})),
        ("failing", nobody(), json!({})),
        ("paused", nobody(), json!({"autoscaling.keda.sh/paused": "true"})),
    ] {
        ns.deployment(name, 1).await;
        let object = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"scaleTargetRef": {"name": name}, "pollingInterval": 1, "triggers": trigger(address)}
        });
        ns.create("/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledobjects", object).await;
    }
    let pods = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": "failing"},
        "spec": {"jobTargetRef": {"template": pods}, "pollingInterval": 1, "triggers": trigger(nobody())}
    });
    ns.create("/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledjobs", job).await;
}

/// Adds a node whose kubelet answers with an error.
async fn add_failing_node(ns: &TestNamespace) {
    let kubelets = &ns.env.kubelets;
    let address = kubelets.add_node("failing", Measures::Always).unwrap();
    kubelets.behave("failing", Behaviour::Status(500));
    make_node(&ns.client, &nodes::node("failing", address, kubelets.port(), 3)).await;
}

/// Asks the metrics server as the API server does for an HPA and for kubectl.
async fn ask(ns: &TestNamespace, port: u16) {
    let namespace = &ns.namespace;
    for path in [
        "/apis/metrics.k8s.io/v1beta1/pods".to_owned(),
        "/apis/metrics.k8s.io/v1beta1/nodes".to_owned(),
        format!(
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/queue_depth?labelSelector=queue%3D{namespace}"
        ),
    ] {
        direct(port, &admin(ns), &path).await;
    }
}

#[test]
#[ignore = "waits for scrapes, and breaks a node: make test-dashboards"]
fn every_query_of_dashboards_and_alerts_returns_data() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_local(async |ns| {
        make_hpas(&ns).await;
        make_scaled_objects(&ns).await;
        let (controller, metrics, operator) =
            tokio::join!(Role::controller(&ns), Role::metrics(&ns), Role::operator(&ns));
        add_failing_node(&ns).await;
        let port = metrics.port;
        let (roles, keys) = ([controller, metrics, operator], Room::new().unwrap());
        let prometheus = scraping(&ns, &keys, &roles).await;
        let mut missing = queries();
        until("data for every query", async || {
            ask(&ns, port).await;
            let mut without = Vec::new();
            for query in std::mem::take(&mut missing) {
                if !query.has_data(&prometheus).await {
                    without.push(query);
                }
            }
            missing = without;
            let named: Vec<String> =
                missing.iter().map(|query| format!("{}: {}", query.place, query.expression)).collect();
            if named.is_empty() { Ok(()) } else { Err(named) }
        })
        .await;
    })
}
