//! A cluster, its folder, and the objects of the tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use api::yaml::{SourceFile, parse};
use http::Request;
use localkube::{Cluster, Options, Running, Server};
use serde_json::{Value, json};

use super::WAIT_TIMEOUT;

/// The pause between two reads of an object.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// KEDA's kinds.
const DEFINITIONS: [&str; 6] = [
    include_str!("../../../../deploy/crds/keda/scaledobjects.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/scaledjobs.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/triggerauthentications.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/clustertriggerauthentications.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/cloudeventsources.eventing.keda.sh.yaml"),
    include_str!("../../../../deploy/crds/keda/clustercloudeventsources.eventing.keda.sh.yaml"),
];

pub(crate) struct TestCluster {
    running: Running,
    _server: Server,
    folder: PathBuf,
}

impl TestCluster {
    pub(crate) async fn start() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
        let server = running.serve().await.unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hostile-{}-{number}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("kubeconfig"), &server.kubeconfig).unwrap();
        Self { running, _server: server, folder }
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    async fn create(&self, path: &str, object: &Value) {
        let creating = async {
            loop {
                let request = Request::post(path).header("content-type", "application/json");
                let request = request.body(object.to_string().into_bytes()).unwrap();
                match self.running.client().request::<Value>(request).await {
                    Ok(_) => return,
                    // The kind was defined just before, so the request is repeated until it is served.
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        tokio::time::sleep(READ_PAUSE).await;
                    }
                    Err(error) => panic!("{path}: {error}"),
                }
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, creating).await.unwrap();
    }

    /// Reads an object until a condition is true.
    pub(crate) async fn until(&self, what: &str, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let reading = async {
            loop {
                let request = Request::get(path).body(Vec::new()).unwrap();
                match self.running.client().request::<Value>(request).await {
                    Ok(object) if fits(&object) => return object,
                    found => last = Some(found.map_err(|error| error.to_string())),
                }
                tokio::time::sleep(READ_PAUSE).await;
            }
        };
        match tokio::time::timeout(WAIT_TIMEOUT, reading).await {
            Ok(object) => object,
            Err(late) => panic!("{late}: {what}; {last:?}"),
        }
    }

    pub(crate) async fn define_scaled_objects(&self) {
        for text in DEFINITIONS {
            let file = SourceFile::from_bytes("definition.yaml", text.as_bytes()).unwrap();
            for document in parse(&file).unwrap() {
                let object: Value = document.decode_lenient().unwrap();
                self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &object).await;
            }
        }
    }

    /// Creates a Deployment without pods, and a ScaledObject with this trigger. `connection` is an environment variable of the container.
    pub(crate) async fn scaled_object(&self, name: &str, trigger: &Value, connection: &str) {
        let labels = json!({"app": name});
        let container =
            json!({"name": "a", "image": "a", "env": [{"name": "CONNECTION", "value": connection}]});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
        self.create("/apis/apps/v1/namespaces/default/deployments", &deployment).await;
        let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"name": name}, "pollingInterval": 1, "cooldownPeriod": 1,
                "triggers": [trigger]}});
        self.create("/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects", &object).await;
    }

    /// Creates a node whose kubelet listens on this local port.
    pub(crate) async fn node(&self, name: &str, port: u16) {
        let status = json!({
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        self.create("/api/v1/nodes", &node).await;
        let request = Request::patch(format!("/api/v1/nodes/{name}/status"));
        let request = request.header("content-type", "application/merge-patch+json");
        let body = json!({"status": status}).to_string().into_bytes();
        let _: Value = self.running.client().request(request.body(body).unwrap()).await.unwrap();
    }

    /// Registers the server on a local port as the server of version `v1beta1` of an API group.
    pub(crate) async fn register_api(&self, group: &str, port: u16) {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
        self.create("/api/v1/namespaces/default/services", &service).await;
        let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("v1beta1.{group}")},
            "spec": {"group": group, "version": "v1beta1", "groupPriorityMinimum": 100,
                "versionPriority": 100, "insecureSkipTLSVerify": true,
                "service": {"name": "metrics", "namespace": "default", "port": port}}});
        self.create("/apis/apiregistration.k8s.io/v1/apiservices", &api).await;
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
