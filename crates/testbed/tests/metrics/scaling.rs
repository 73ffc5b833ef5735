//! An HPA on each kind of metric scales with the values of kubelets and the sample application: Kubernetes' own
//! controller on the real cluster, ours on the one in memory, and on both our controller in one process with a metrics server, which
//! passes the values without requests.

use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::program::{Program, TempFolder};

use crate::env::tested_server::{kubelet_flags, prometheus_flags, started};
use crate::env::{Scaler, TestNamespace, direct, free_port, milli, on_both, peers, program};
use crate::faults::admin;

/// Workloads of two pods, one for each kind of metric.
const WORKLOADS: [&str; 5] = ["resource", "container", "pods", "object", "external"];

fn average(value: &str) -> Value {
    json!({"type": "AverageValue", "averageValue": value})
}

fn half() -> Value {
    json!({"type": "Utilization", "averageUtilization": 50})
}

impl TestNamespace {
    fn metric(&self, workload: &str) -> Value {
        match workload {
            "resource" => json!({"type": "Resource", "resource": {"name": "cpu", "target": half()}}),
            "container" => json!({"type": "ContainerResource", "containerResource": {
                "name": "cpu", "container": "app", "target": half()
            }}),
            "pods" => json!({"type": "Pods", "pods": {
                "metric": {"name": "http_requests"}, "target": average("10")
            }}),
            "object" => json!({"type": "Object", "object": {
                "metric": {"name": "service_requests"}, "target": average("20"),
                "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "shop"}
            }}),
            _ => json!({"type": "External", "external": {
                "metric": {"name": "queue_depth", "selector": {"matchLabels": {"queue": self.namespace}}},
                "target": average("10")
            }}),
        }
    }

    /// Waits until every metric has samples; an HPA that runs earlier sees counters from their start.
    async fn until_known(&self) {
        let pods = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods";
        self.until_answer(pods, |_, response| {
            response["items"].as_array().is_some_and(|pods| pods.len() == 10)
        })
        .await;
        let least = |response: &Value, least: i64| {
            let values = response["items"].as_array().into_iter().flatten().map(|item| milli(&item["value"]));
            values.clone().count() > 0 && values.flatten().all(|value| value >= least)
        };
        let custom = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{ns}";
        let requests = format!("{custom}/pods/*/http_requests?labelSelector=app%3Dpods");
        self.until_answer(&requests, |_, response| least(response, 9_500)).await;
        let requests = format!("{custom}/services/shop/service_requests");
        self.until_answer(&requests, |_, response| least(response, 38_000)).await;
    }

    /// Half of the target, the target of two pods, or three times as much.
    async fn work(&self, times: f64) {
        for workload in ["resource", "container"] {
            let pods = [format!("{workload}-0"), format!("{workload}-1")];
            let pods = pods.each_ref().map(String::as_str);
            self.use_cpu(&pods, "app", (500.0 * times) as u64);
        }
        for pod in ["pods-0", "pods-1"] {
            self.serve(pod, 9.7 * times).await;
        }
        let app = &self.env.app;
        let series = format!("service_requests_total{{namespace=\"{}\",service=\"shop\"}}", self.namespace);
        app.set_counter(&series, 39.0 * times);
        app.set_gauge(&format!("queue_depth{{queue=\"{}\"}}", self.namespace), 20.0 * times);
    }
}

/// Creates the workloads, waits until their metrics are served, and returns when `start` has started the controller.
async fn prepare<S>(ns: &TestNamespace, start: impl AsyncFnOnce(&TestNamespace) -> S) -> S {
    let service = json!({"metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}});
    ns.create("/api/v1/namespaces/{ns}/services", &service).await;
    for workload in WORKLOADS {
        ns.deployment(workload, 2).await;
        for number in 0..2 {
            // The second container is idle, so that the usage of the whole pod is half as much.
            let other: &[(&str, u64, u64)] = &[("app", 500, 64 << 20), ("idle", 1, 1 << 20)];
            let containers = if workload == "container" { other } else { &other[..1] };
            ns.pod("busy", workload, &format!("{workload}-{number}"), containers).await;
        }
    }
    ns.work(1.0).await;
    ns.until_known().await;
    start(ns).await
}

/// Changes the load, and waits until every workload is scaled.
async fn check_scaling(ns: &TestNamespace) {
    for workload in WORKLOADS {
        ns.hpa(workload, json!([ns.metric(workload)])).await;
    }
    for workload in WORKLOADS {
        ns.until_condition(workload, "ScalingActive", "True ValidMetricFound").await;
        ns.until_replicas(workload, 2).await;
    }
    ns.work(3.0).await;
    for workload in WORKLOADS {
        ns.until_replicas(workload, 6).await;
    }
    ns.work(0.5).await;
    for workload in WORKLOADS {
        ns.until_replicas(workload, 1).await;
    }
}

#[test]
fn hpas_scale_on_every_kind_of_metric() -> Result<(), Failure> {
    on_both(async |ns| {
        let _scaler = prepare(&ns, async |ns| Scaler::start(ns).await).await;
        check_scaling(&ns).await;
    })
}

/// Starts `plimsoll run` with the controller for this namespace and a metrics server, and returns its port.
async fn one_process(ns: &TestNamespace) -> (Program, u16) {
    let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
    let kubeconfig = temp_folder.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
    let mut arguments: Vec<String> = [
        "run",
        "--roles=controller,metrics",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--health-probe-bind-address=0",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--horizontal-pod-autoscaler-downscale-stabilization=0s",
        "--prometheus-cache=1s",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--namespaces={}", ns.namespace));
    arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
    arguments.push(format!("--secure-port={port}"));
    arguments.extend(kubelet_flags(&temp_folder, &ns.env.kubelets));
    let rules = prometheus_flags(&temp_folder, &ns.env.prometheus_proxy.url());
    arguments.extend(rules.iter().map(|flag| flag.replace("--config=", "--metrics-config=")));
    (started("plimsoll", program(), &arguments, temp_folder, port).await.unwrap(), port)
}

#[test]
fn roles_in_one_process_scale_on_every_kind_of_metric_without_requests() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        let (_process, port) = prepare(&ns, async |ns| one_process(ns).await).await;
        check_scaling(&ns).await;
        let path = format!("/apis/decisions.plimsoll.dev/v1alpha1/namespaces/{}/decisions", ns.namespace);
        let decisions = direct(port, &admin(&ns), &path).await.unwrap();
        let text = String::from_utf8_lossy(&decisions.body).into_owned();
        assert!(text.matches("this process").count() >= WORKLOADS.len(), "{text}");
    })
}
