//! The guides for metrics-server and prometheus-adapter (docs/switching.md), as far as API objects go: the patches of `plimsoll migrate plan`
//! lead every metrics API to another server and back, while an HPA controller reads it. Nothing is scaled by that, and the HPA stays as
//! it is. `make test-switch` also checks that with the default sync period it misses at most one sync. The servers before the switch are
//! metrics-server and prometheus-adapter where they are built (`cargo xtask real build --peers`); elsewhere Plimsoll stands in for them.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::Peers;
use testbed::harness::Failure;
use testbed::program::TempFolder;

use crate::env::tested_server::{metrics_arguments, started, theirs};
use crate::env::{
    Kubectl, Scaler, TestNamespace, TestedServer, alone_on_both, direct, free_port, peers, program, register,
    until,
};
use crate::faults::admin;
use crate::shared::outage_watch::{DEFAULT_SYNC_PERIOD, OutageWatch};
use crate::shared::program::json_of;

/// All APIServices.
pub(crate) const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/kube-system/deployments";
const SERVICES: &str = "/api/v1/namespaces/kube-system/services";
/// The API that stays with the tested server until the switch, because metrics-server does not serve it.
const OWN_API: &str = "v1.metrics.k8s.io";
/// Names and images of Deployments that are recognized as installed programs, whose pods do not run here. A Service of the same name selects
/// them, and leads to the program that runs as a process.
const PROGRAMS: [(&str, &str); 2] = [
    ("metrics-server", "registry.k8s.io/metrics-server/metrics-server:v0.8.0"),
    ("prometheus-adapter", "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0"),
];
/// The APIs of custom and external metrics.
const OTHER_APIS: [&str; 2] =
    ["/apis/custom.metrics.k8s.io/v1beta1", "/apis/external.metrics.k8s.io/v1beta1"];
/// The number of reads by the HPA controller that shows that a server is in use.
const READS_PER_SERVER: u64 = 3;

/// The patches of all plans, or those of the way back.
fn patches(plans: &Value, part: &str) -> Vec<String> {
    let steps = plans.as_array().unwrap().iter().flat_map(|plan| plan["steps"].as_array().unwrap());
    let commands = steps.flat_map(|step| step[part].as_array().unwrap()).map(|line| line.as_str().unwrap());
    commands.filter_map(|line| line.strip_prefix("kubectl patch ")).map(str::to_owned).collect()
}

/// Runs a patch, without the quotes of the shell.
fn patch(kubectl: &Kubectl, line: &str) {
    tokio::task::block_in_place(|| kubectl.run_ok(&format!("patch {}", line.replace('\'', ""))));
}

/// The Service of every metrics API, and how its certificate is verified.
async fn registered(ns: &TestNamespace) -> Vec<Value> {
    let list = ns.read(API_SERVICES).await;
    let items = list["items"].as_array().unwrap().iter();
    let metrics =
        items.filter(|item| item["spec"]["group"].as_str().unwrap_or_default().ends_with("metrics.k8s.io"));
    let of = |item: &Value| {
        json!([item["metadata"]["name"], item["spec"]["service"], item["spec"]["insecureSkipTLSVerify"]])
    };
    let mut found: Vec<Value> = metrics.map(of).collect();
    found.sort_by_key(Value::to_string);
    found
}

/// The number of requests for pod metrics that a server has served.
async fn reads(ns: &TestNamespace, port: u16) -> u64 {
    let Some(page) = direct(port, &admin(ns), "/metrics").await else { return 0 };
    let page = String::from_utf8_lossy(&page.body);
    let lines = page.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    let of_pods =
        lines.filter(|line| line.contains("resource=\"pods\"") && line.contains("group=\"metrics.k8s.io\""));
    of_pods.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

async fn until_read(ns: &TestNamespace, port: u16) {
    let before = reads(ns, port).await;
    until("reads of the HPA controller", async || {
        let found = reads(ns, port).await;
        if found >= before + READS_PER_SERVER { Ok(()) } else { Err((before, found)) }
    })
    .await;
}

/// An HPA without the fields that its controller writes.
async fn hpa_without_status(ns: &TestNamespace, name: &str) -> Value {
    let mut hpa = ns.hpa_object(name).await;
    hpa["status"] = Value::Null;
    hpa["metadata"]["resourceVersion"] = Value::Null;
    hpa["metadata"]["managedFields"] = Value::Null;
    // The controller keeps its windows in an annotation.
    hpa["metadata"]["annotations"] = Value::Null;
    hpa
}

#[test]
fn plan_leads_every_metrics_api_to_another_server_and_back() -> Result<(), Failure> {
    switch_there_and_back(Duration::MAX)
}

#[test]
#[ignore = "measures a time, which a busy machine prolongs: make test-switch"]
fn switch_of_metrics_apis_misses_at_most_one_sync() -> Result<(), Failure> {
    switch_there_and_back(DEFAULT_SYNC_PERIOD)
}

/// Starts metrics-server and prometheus-adapter; none if the tested server is already the server before the switch.
async fn real_servers(ns: &TestNamespace) -> Option<TestedServer> {
    if peers() {
        return None;
    }
    let Some(programs) = Peers::built().unwrap() else {
        eprintln!("on {}: metrics-server is not built, so Plimsoll is also the old server", ns.cluster);
        return None;
    };
    let (kubeconfig, kubelets) = (&ns.env.cluster.kubeconfig, &ns.env.kubelets);
    Some(theirs(&programs, kubeconfig, kubelets, &ns.env.prometheus_proxy.url()).await)
}

/// Leads the APIs to the servers before the switch, by a Service for each program.
async fn lead_to(ns: &TestNamespace, old: &TestedServer) {
    let ports = [old.resource_port, old.custom_port];
    for ((name, image), port) in PROGRAMS.into_iter().zip(ports) {
        let labels = json!({"app": name});
        let pod =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}});
        let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": pod});
        ns.create(DEPLOYMENTS, &json!({"metadata": {"name": name}, "spec": spec})).await;
        let spec = json!({
            "type": "ExternalName", "externalName": "localhost", "selector": labels, "ports": [{"port": port}]
        });
        ns.create(SERVICES, &json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    for api in registered(ns).await {
        let name = api[0].as_str().unwrap();
        let (service, port) = match name {
            OWN_API => continue,
            "v1beta1.metrics.k8s.io" => ("metrics-server", old.resource_port),
            _ => ("prometheus-adapter", old.custom_port),
        };
        let service = json!({"name": service, "namespace": "kube-system", "port": port});
        ns.patch(&format!("{API_SERVICES}/{name}"), &json!({"spec": {"service": service}})).await;
    }
}

/// Leads the APIs to the tested server again, as the other tests expect.
async fn restore(ns: &TestNamespace) {
    register(&ns.client, &ns.env.tested_server).await;
    for (name, _) in PROGRAMS {
        ns.delete(&format!("{DEPLOYMENTS}/{name}")).await;
        ns.delete(&format!("{SERVICES}/{name}")).await;
    }
}

/// Asserts that `plimsoll migrate check` names the program that serves each API before the switch.
fn check_owners(report: &Value) {
    let apis = report["apis"].as_array().unwrap().iter().filter(|api| api["name"] != OWN_API);
    let mut owners = Vec::new();
    for api in apis {
        let owner = api["owner"].as_str().unwrap_or_default();
        assert_eq!(api["service"], format!("kube-system/{owner}"), "{report}");
        owners.push(owner);
    }
    owners.sort_unstable();
    assert_eq!(owners, ["metrics-server", "prometheus-adapter", "prometheus-adapter", "prometheus-adapter"]);
}

fn switch_there_and_back(max_outage: Duration) -> Result<(), Failure> {
    alone_on_both(async |ns| {
        let Some(kubectl) = ns.kubectl() else { return };
        ns.deployment("web", 2).await;
        for name in ["web-0", "web-1"] {
            ns.pod("busy", "web", name, &[("app", 500, 64 << 20)]).await;
        }
        let real = real_servers(&ns).await;
        let old = real.as_ref().unwrap_or(&ns.env.tested_server);
        lead_to(&ns, old).await;
        let pods = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods";
        ns.until_answer(pods, |_, response| response["items"].as_array().is_some_and(|pods| pods.len() == 2))
            .await;
        let _scaler = Scaler::start(&ns).await;
        let target = json!({"type": "Utilization", "averageUtilization": 50});
        ns.hpa("web", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])).await;
        ns.until_condition("web", "ScalingActive", "True ValidMetricFound").await;
        let outage = OutageWatch::start(&ns.client, &ns.namespace, "web");

        let (temp_folder, port) = (TempFolder::new().unwrap(), free_port());
        let (kubeconfig, kubelets) = (&ns.env.cluster.kubeconfig, &ns.env.kubelets);
        let arguments =
            metrics_arguments(&temp_folder, kubeconfig, port, kubelets, &ns.env.prometheus_proxy.url());
        let server = started("plimsoll", program(), &arguments, temp_folder, port).await.unwrap();
        let service = json!({"metadata": {"name": "plimsoll-metrics"}, "spec": {
            "type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]
        }});
        ns.create("/api/v1/namespaces/{ns}/services", &service).await;

        let (_, report) =
            json_of(&ns.env.cluster.kubeconfig, &["migrate", "check", "--from", "metrics-server"]);
        check_owners(&report);
        let (_, plans) =
            json_of(&ns.env.cluster.kubeconfig, &["migrate", "plan", "--namespace", &ns.namespace]);
        let (before, hpa) = (registered(&ns).await, hpa_without_status(&ns, "web").await);
        let generation =
            ns.read("/apis/apps/v1/namespaces/{ns}/deployments/web").await["metadata"]["generation"].clone();
        let there = patches(&plans, "commands");
        assert_eq!(there.len(), before.len(), "one patch for each API: {there:?}");
        for line in &there {
            // Ports and certificates of this machine.
            let line = line.replace("\"port\":443", &format!("\"port\":{port}"));
            let line = line.replace("\"insecureSkipTLSVerify\":false", "\"insecureSkipTLSVerify\":true");
            patch(&kubectl, &line.replace("'\"$CA\"'", ""));
        }
        until_read(&ns, port).await;
        let now = registered(&ns).await;
        assert!(now.iter().all(|api| api[1]["name"] == "plimsoll-metrics"), "{now:?}");
        for path in OTHER_APIS {
            ns.until_answer(path, |code, _| code == 200).await;
        }

        for line in patches(&plans, "back") {
            patch(&kubectl, &line);
        }
        assert_eq!(registered(&ns).await, before);
        until_read(&ns, old.resource_port).await;
        for path in OTHER_APIS {
            ns.until_answer(path, |code, _| code == 200).await;
        }
        println!("{}: metrics could not be read for at most {:.1?}", ns.cluster, outage.longest());
        assert!(outage.longest() < max_outage, "on {}: {:?}", ns.cluster, outage.longest());
        assert_eq!(hpa_without_status(&ns, "web").await, hpa);
        let deployment = ns.read("/apis/apps/v1/namespaces/{ns}/deployments/web").await;
        assert_eq!(
            (&deployment["metadata"]["generation"], &deployment["spec"]["replicas"]),
            (&generation, &json!(2))
        );
        restore(&ns).await;
        drop(server);
    })
}
