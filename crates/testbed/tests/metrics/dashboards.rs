//! Every query of the chart's dashboards and every alert returns data from a real Prometheus, which scrapes the three roles with the
//! relabeling of the ServiceMonitors while some autoscalers work and others have a problem.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::kubelets::{Behaviour, Measures, objects as nodes};
use testbed::program::{Program, TempFolder};
use testbed::prometheus::Server;

use crate::env::tested_server::metrics_arguments;
use crate::env::{Caller, TestNamespace, direct, free_port, make_node, on_local, peers, program, until};
use crate::faults::{admin, identity};
use crate::shared::manifests::{apply, folder, objects, repository};

const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a role may take to become ready: two scrapes of kubelets on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(3);
const DASHBOARDS: &str = "charts/plimsoll/files/dashboards";
const ALERTS: &str = "charts/plimsoll/files/alerts.yaml";
const SERVICE_MONITORS: &str = "charts/plimsoll/templates/monitoring.yaml";
/// An upstream that does not run; no other metric is read from it.
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
        temp_folder: TempFolder,
    ) -> Self {
        let variables = [("POD_NAMESPACE", ns.namespace.as_str())];
        let mut started =
            Program::start_with("plimsoll", program(), arguments, &variables, temp_folder).unwrap();
        let ready = async || {
            direct(port, &Caller::anonymous(), "/readyz").await.is_some_and(|response| response.code == 200)
        };
        started.until(READY_TIMEOUT, ready).await.unwrap();
        Self { job, port, _program: started }
    }

    async fn controller(ns: &TestNamespace) -> Self {
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let kubeconfig = temp_folder.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespaces={}", ns.namespace),
            format!("--leader-elect-resource-namespace={}", ns.namespace),
            "--horizontal-pod-autoscaler-sync-period=1s".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
        ];
        Self::start(ns, "plimsoll-controller", port, &arguments, temp_folder).await
    }

    async fn metrics(ns: &TestNamespace) -> Self {
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let (kubeconfig, kubelets) = (&ns.env.cluster.kubeconfig, &ns.env.kubelets);
        let mut arguments =
            metrics_arguments(&temp_folder, kubeconfig, port, kubelets, &ns.env.prometheus_proxy.url());
        arguments.push(format!(
            "--upstreams={}",
            temp_folder.write("upstreams.yaml", UPSTREAMS).unwrap().display()
        ));
        Self::start(ns, "plimsoll-metrics", port, &arguments, temp_folder).await
    }

    async fn operator(ns: &TestNamespace) -> Self {
        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let kubeconfig = temp_folder.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
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
        Self::start(ns, "plimsoll-operator", port, &arguments, temp_folder).await
    }
}

/// A query, and the panel or alert that contains it.
struct DashboardQuery {
    place: String,
    expression: String,
}

impl DashboardQuery {
    /// The query with Grafana's variables replaced.
    fn new(place: String, expression: &Value) -> Self {
        let expression = expression.as_str().unwrap();
        Self {
            place,
            expression: expression.replace("$job", "plimsoll-.+").replace("$__rate_interval", "1m"),
        }
    }

    /// Whether Prometheus has data. A query with a comparison may select no series, so the query without its comparisons must return data.
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
            // Parentheses after the number are kept.
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
fn queries() -> Vec<DashboardQuery> {
    let mut all = Vec::new();
    for dashboard in folder(DASHBOARDS) {
        for panel in items(&dashboard, "panels") {
            for query in items(panel, "queries") {
                let place = format!("{}: {}", dashboard["title"], panel["title"]);
                all.push(DashboardQuery::new(place, &query["expr"]));
            }
        }
    }
    let alerts = std::fs::read_to_string(repository().join(ALERTS)).unwrap();
    for file in objects(ALERTS, &alerts) {
        for rule in items(&file, "groups").flat_map(|group| items(group, "rules")) {
            all.push(DashboardQuery::new(format!("alert {}", rule["alert"]), &rule["expr"]));
        }
    }
    assert!(all.len() >= 60, "{}", all.len());
    all
}

/// The relabeling of the ServiceMonitors in the format of Prometheus.
fn relabeling() -> Value {
    let template = std::fs::read_to_string(repository().join(SERVICE_MONITORS)).unwrap();
    let (_, rest) = template.split_once("metricRelabelings:\n").unwrap();
    let (block, _) = rest.split_once("{{").unwrap();
    let block = block.replace("sourceLabels", "source_labels").replace("targetLabel", "target_label");
    objects(SERVICE_MONITORS, &block).remove(0)
}

/// Starts a Prometheus that scrapes roles with the settings of the chart's ServiceMonitors, as an administrator.
async fn scraping(ns: &TestNamespace, keys: &TempFolder, roles: &[Role]) -> Server {
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

/// Creates HPAs, each with another problem.
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

/// Creates a ScaledObject that works, a ScaledObject and a ScaledJob whose source does not respond, and a paused ScaledObject.
async fn make_scaled_objects(ns: &TestNamespace) {
    apply(&ns.client, ns.cluster, &folder("deploy/crds/keda"), |_| true).await;
    for resource in ["scaledobjects", "scaledjobs"] {
        ns.until_found(&format!("/apis/keda.sh/v1alpha1/namespaces/{{ns}}/{resource}")).await;
    }
    let trigger = |address: String| {
        let query = format!("max(queue_depth{{queue=\"{}\"}})", ns.namespace);
        json!([{"type": "prometheus", "metadata": {"serverAddress": address, "query": query, "threshold": "10"}}])
    };
    let anonymous = || "http://127.0.0.1:1".to_owned();
    for (name, address, annotations) in [
        ("queue", ns.env.prometheus_proxy.url(), json!({})),
        ("failing", anonymous(), json!({})),
        ("paused", anonymous(), json!({"autoscaling.keda.sh/paused": "true"})),
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
        "spec": {"jobTargetRef": {"template": pods}, "pollingInterval": 1, "triggers": trigger(anonymous())}
    });
    ns.create("/apis/keda.sh/v1alpha1/namespaces/{ns}/scaledjobs", job).await;
}

/// Adds a node whose kubelet responds with an error.
async fn add_failing_node(ns: &TestNamespace) {
    let kubelets = &ns.env.kubelets;
    let address = kubelets.add_node("failing", Measures::Always).unwrap();
    kubelets.set_behaviour("failing", Behaviour::Status(500));
    make_node(&ns.client, &nodes::node("failing", address, kubelets.port(), 3)).await;
}

/// Sends the requests of an HPA and of kubectl to the metrics server.
async fn send_request(ns: &TestNamespace, port: u16) {
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
        let (roles, keys) = ([controller, metrics, operator], TempFolder::new().unwrap());
        let prometheus = scraping(&ns, &keys, &roles).await;
        let mut missing = queries();
        until("data for every query", async || {
            send_request(&ns, port).await;
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
