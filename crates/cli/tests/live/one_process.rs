//! `plimsoll run`: all roles in one process, on a cluster with simulated nodes.
#![allow(clippy::panic)]

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use api::yaml::{SourceFile, parse};
use http::Request;
use localkube::Options;
use localkube::nodes::{Nodes, Plan};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::setting::{Setting, free_port};

/// The timeout of a wait. Two scrapes take 20 seconds; the rest is for busy machines.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
const READ_PAUSE: Duration = Duration::from_millis(100);
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// KEDA's kinds.
const DEFINITIONS: [&str; 6] = [
    include_str!("../../../../deploy/crds/keda/scaledobjects.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/scaledjobs.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/triggerauthentications.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/clustertriggerauthentications.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/cloudeventsources.eventing.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/clustercloudeventsources.eventing.keda.sh.yaml"),
];

/// The APIs of all roles.
const APIS: [(&str, &str); 5] = [
    ("metrics.k8s.io", "v1beta1"),
    ("external.metrics.k8s.io", "v1beta1"),
    ("metrics.plimsoll.dev", "v1alpha1"),
    ("decisions.plimsoll.dev", "v1alpha1"),
    ("operator.plimsoll.dev", "v1alpha1"),
];

/// Repeats a request until it succeeds.
async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let attempt = async {
        loop {
            if let Some(found) = poll().await {
                return found;
            }
            tokio::time::sleep(READ_PAUSE).await;
        }
    };
    match tokio::time::timeout(WAIT_TIMEOUT, attempt).await {
        Ok(found) => found,
        Err(late) => panic!("{late}: {what}"),
    }
}

async fn get(setting: &Setting, path: &str) -> Option<Value> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    setting.client().request::<Value>(request).await.ok()
}

/// Creates an object. The request is repeated, because its kind may have been defined just before.
async fn create(setting: &Setting, path: &str, object: &Value) {
    until(path, async || {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        match setting.client().request::<Value>(request).await {
            Ok(_) => Some(()),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{path}: {error}"),
        }
    })
    .await;
}

async fn deployment(setting: &Setting, name: &str, replicas: i32) {
    let labels = json!({"app": name});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    let object =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
    create(setting, DEPLOYMENTS, &object).await;
}

async fn until_replicas(setting: &Setting, name: &str, replicas: i32) {
    until(&format!("{replicas} replicas of {name}"), async || {
        let found = get(setting, &format!("{DEPLOYMENTS}/{name}")).await?;
        (found["spec"]["replicas"] == replicas).then_some(())
    })
    .await;
}

/// Sends a request to the listener of probes, and returns the response.
async fn probe(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

fn flags(port: u16, probes: u16, authority: &Path) -> Vec<String> {
    let mut flags: Vec<String> = [
        "run",
        "--roles=controller,metrics,operator",
        "--bind-address=127.0.0.1",
        "--log-level=error",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
        "--kubelet-use-node-status-port",
        "--kubelet-preferred-address-types=InternalIP",
        "--metrics-service-bind-address=0",
        "--enable-webhook-patching=false",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.push(format!("--secure-port={port}"));
    flags.push(format!("--health-probe-bind-address=127.0.0.1:{probes}"));
    flags.push(format!("--kubelet-certificate-authority={}", authority.display()));
    flags
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_serves_and_scales_for_all_roles() {
    let setting = Setting::with(Options::default()).await;
    let nodes = Nodes::start(setting.client(), Plan { count: 2, ..Plan::default() }).await.unwrap();
    let authority = setting.folder.join("kubelets.pem");
    std::fs::write(&authority, nodes.ca_pem()).unwrap();
    for text in DEFINITIONS {
        let file = SourceFile::from_bytes("definition.yaml", text.as_bytes()).unwrap();
        for document in parse(&file).unwrap() {
            let definition: Value = document.decode_lenient().unwrap();
            create(&setting, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        }
    }
    deployment(&setting, "web", 1).await;
    deployment(&setting, "worker", 0).await;
    // The target is one byte of memory, so the HPA scales to its maximum.
    let target = json!({"type": "AverageValue", "averageValue": "1"});
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}]}});
    create(&setting, "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers", &hpa).await;
    // One worker for each pod of web.
    let trigger =
        json!({"type": "kubernetes-workload", "metadata": {"podSelector": "app=web", "value": "1"}});
    let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "worker"},
        "spec": {"scaleTargetRef": {"name": "worker"}, "pollingInterval": 1, "triggers": [trigger]}});
    let scaled_objects = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects";
    create(&setting, scaled_objects, &object).await;

    let (port, probes) = (free_port(), free_port());
    let flags = flags(port, probes, &authority);
    let going = setting.start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    for (group, version) in APIS {
        setting.register_api(group, version, "plimsoll", port).await;
    }
    let page = until("a ready process", async || {
        probe(probes, "/readyz?verbose").await.filter(|page| page.starts_with("HTTP/1.1 200"))
    })
    .await;
    for check in ["controller/watches", "metrics/metric-storage-ready", "operator/watches"] {
        assert!(page.contains(&format!("[+]{check} ok")), "{page}");
    }
    until_replicas(&setting, "web", 3).await;
    until_replicas(&setting, "worker", 3).await;

    let served = async |path: &str| until(path, async || get(&setting, path).await).await;
    assert_eq!(served("/apis/metrics.k8s.io/v1beta1/nodes").await["items"].as_array().unwrap().len(), 2);
    let scaled = served(&format!("{scaled_objects}/worker")).await;
    let metric = scaled["status"]["externalMetricNames"][0].as_str().unwrap();
    let path = format!(
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{metric}?labelSelector=scaledobject.keda.sh%2Fname%3Dworker"
    );
    assert_eq!(served(&path).await["items"][0]["value"], "3");
    let decisions = served("/apis/decisions.plimsoll.dev/v1alpha1/namespaces/shop/decisions").await;
    assert!(decisions.to_string().contains("this process"), "samples are handed over in memory: {decisions}");
    served("/apis/operator.plimsoll.dev/v1alpha1/decisions").await;

    let holder = async |name: &str| {
        let lease = served(&format!("{LEASES}/{name}")).await;
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    for name in ["plimsoll-controller", "operator.keda.sh"] {
        assert_ne!(holder(name).await, "", "{name} is held");
    }
    going.terminate();
    assert_eq!(going.end().await, Some(0));
    for name in ["plimsoll-controller", "operator.keda.sh"] {
        assert_eq!(holder(name).await, "", "{name} is released");
    }
}
