//! A control plane with two real nodes, on which the chart is installed.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use testbed::node::is_root;
use testbed::peer::{Peer, PeerOptions};
use testbed::{ControlPlane, Helm, NodeOptions, Options};
use tokio::runtime::Runtime;

/// The namespace of the installation.
pub(crate) const SYSTEM_NAMESPACE: &str = "plimsoll-system";
/// The Deployments of the chart.
pub(crate) const ROLES: [&str; 3] = ["plimsoll-controller", "plimsoll-metrics", "plimsoll-operator"];
/// The image that the chart installs.
const IMAGE_NAME: &str = concat!("ghcr.io/plimsoll/plimsoll:", env!("CARGO_PKG_VERSION"));
/// The Deployment with all roles in one process.
pub(crate) const ONE_PROCESS: &str = "plimsoll";

/// The timeout of a step, which is long because the machine may be busy.
const STEP_TIMEOUT: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The sync period of Kubernetes' own HPA controller.
const KUBERNETES_SYNC_PERIOD: Duration = Duration::from_secs(5);

/// Values that enable all roles, with an image that the nodes already have.
pub(crate) const VALUES: [&str; 4] = [
    "--set=controller.mode=active",
    "--set=metrics.enabled=true",
    "--set=operator.enabled=true",
    "--set=image.pullPolicy=Never",
];

/// A runtime for one call of a helper that is asynchronous.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) struct Cluster {
    plane: ControlPlane,
    helm: PathBuf,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        assert!(is_root(), "real nodes need root");
        let image = std::env::var_os("PLIMSOLL_IMAGE").map(PathBuf::from);
        let image =
            image.expect("PLIMSOLL_IMAGE names the OCI layout of our image; make test-install sets it");
        // Nodes pull no images, so pods of another version would never start.
        let index = std::fs::read_to_string(image.join("index.json")).unwrap();
        assert!(
            index.contains(&format!("\"{IMAGE_NAME}\"")),
            "not {IMAGE_NAME}; make image builds it: {index}"
        );
        let nodes = NodeOptions { count: 2, images: vec![image] };
        let options = Options { nodes: Some(nodes), deadline: STEP_TIMEOUT, ..Options::default() };
        let plane = ControlPlane::start(&options).unwrap();
        let cluster = Self { plane, helm: Helm::ensure().unwrap().helm };
        cluster.kubectl(&format!("create namespace {SYSTEM_NAMESPACE}"));
        let restricted = "pod-security.kubernetes.io/enforce=restricted";
        cluster.kubectl(&format!("label namespace {SYSTEM_NAMESPACE} {restricted}"));
        let mut arguments = vec!["install", "plimsoll", "charts/plimsoll"];
        arguments.extend(VALUES);
        cluster.helm(&arguments);
        cluster
    }

    /// Runs Helm in the repository and the namespace of the installation.
    pub(crate) fn helm(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.helm);
        command.current_dir(repository()).args(["--namespace", SYSTEM_NAMESPACE]).args(arguments);
        self.run(&mut command)
    }

    /// Runs a script with Helm and kubectl, until a command fails.
    pub(crate) fn shell(&self, script: &str) -> String {
        let access = self.plane.access();
        let folder = access.folder.join("scripts");
        std::fs::create_dir_all(&folder).unwrap();
        let programs = [&self.helm, &access.parts.kubectl].map(|program| program.parent().unwrap());
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", programs[0].display(), programs[1].display());
        let mut command = Command::new("sh");
        self.run(command.args(["-e", "-c", script]).env("PATH", path).current_dir(folder))
    }

    /// Runs a command with the cluster in its environment, and returns its output.
    fn run(&self, command: &mut Command) -> String {
        command.env("KUBECONFIG", self.kubeconfig()).env("KUBERC", "off");
        // These folders would be in the home folder of the user otherwise.
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "KUBECACHEDIR"] {
            command.env(variable, self.plane.access().folder.join("helm"));
        }
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.plane.access().kubeconfig
    }

    /// The address of the machine for pods.
    pub(crate) fn machine_address(&self) -> Ipv4Addr {
        self.plane.access().address
    }

    /// Starts Kubernetes' own HPA controller; it ends when it is dropped.
    pub(crate) fn kubernetes_controller(&self) -> Peer {
        let options = PeerOptions { sync_period: Some(KUBERNETES_SYNC_PERIOD), ..PeerOptions::default() };
        runtime().block_on(Peer::start(self.plane.access(), &options)).unwrap()
    }

    /// Runs kubectl, and returns its output or its error; arguments are separated by blanks.
    pub(crate) fn try_kubectl(&self, line: &str) -> Result<String, testbed::Error> {
        self.plane.access().run_kubectl(&line.split(' ').collect::<Vec<_>>())
    }

    /// Runs kubectl, which must succeed, and returns its output.
    pub(crate) fn kubectl(&self, line: &str) -> String {
        self.try_kubectl(line).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Reads an object or a list.
    pub(crate) fn get(&self, what: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("get {what} --output json"))).unwrap()
    }

    /// The pods of a role that are not being deleted.
    pub(crate) fn pods(&self, role: &str) -> Vec<Value> {
        let list = self
            .get(&format!("pods --namespace {SYSTEM_NAMESPACE} --selector app.kubernetes.io/name={role}"));
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        pods.into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect()
    }

    /// Applies manifests.
    pub(crate) fn apply(&self, manifests: &str) {
        self.try_apply(manifests).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Applies manifests, which may be rejected.
    pub(crate) fn try_apply(&self, manifests: &str) -> Result<String, testbed::Error> {
        self.try_kubectl(&format!("apply --filename {}", self.written(manifests).display()))
    }

    /// Deletes the objects of manifests that exist.
    pub(crate) fn delete(&self, manifests: &str) {
        self.kubectl(&format!("delete --ignore-not-found --filename {}", self.written(manifests).display()));
    }

    /// Creates an object at a path of the API server, which may refuse it.
    pub(crate) fn try_create(&self, path: &str, object: &Value) -> Result<String, testbed::Error> {
        let file = self.written(&object.to_string());
        self.try_kubectl(&format!("create --raw {path} --filename {}", file.display()))
    }

    /// Writes manifests to a file for kubectl.
    fn written(&self, manifests: &str) -> PathBuf {
        let path = self.plane.access().folder.join("manifests.yaml");
        std::fs::write(&path, manifests).unwrap();
        path
    }

    /// Waits until all pods of a role are those of its latest revision, and ready.
    pub(crate) fn rolled_out(&self, role: &str) {
        let status = format!("rollout status deployment/{role} --namespace {SYSTEM_NAMESPACE} --timeout 5m");
        if let Err(error) = self.try_kubectl(&status) {
            panic!("{error}\n{}", self.report(role));
        }
    }

    /// Waits until a role has no pods, not even one that is ending.
    pub(crate) fn until_gone(&self, role: &str) {
        let pods = format!(
            "get pods --namespace {SYSTEM_NAMESPACE} --selector app.kubernetes.io/name={role} --output name"
        );
        self.until(&format!("the pods of {role} end"), || self.kubectl(&pods).is_empty().then_some(()));
    }

    /// The state of the pods of a role, for the message of a failure.
    fn report(&self, role: &str) -> String {
        let chosen = format!("--namespace {SYSTEM_NAMESPACE} --selector app.kubernetes.io/name={role}");
        let part = |line: String| self.try_kubectl(&line).unwrap_or_else(|error| error.to_string());
        format!(
            "{}\n{}",
            part(format!("describe pods {chosen}")),
            part(format!("logs {chosen} --tail 30 --prefix"))
        )
    }

    /// Waits until `probe` returns a value.
    pub(crate) fn until<T>(&self, what: &str, condition: impl Fn() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(value) = condition() {
                return value;
            }
            let [controller, metrics, operator] = ROLES;
            let reports =
                || [controller, metrics, operator, ONE_PROCESS].map(|role| self.report(role)).join("\n");
            assert!(since.elapsed() < STEP_TIMEOUT, "not after {STEP_TIMEOUT:?}: {what}\n{}", reports());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Runs `action` while requests go through the API server to one of our APIs, and returns the errors of these requests.
    pub(crate) fn while_asking(&self, path: &str, act: impl FnOnce()) -> Vec<String> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut errors = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    if let Err(error) = self.try_kubectl(&format!("get --raw {path}")) {
                        errors.push(error.to_string());
                    }
                }
                errors
            });
            let end = SetOnDrop(&over);
            act();
            drop(end);
            asking.join().unwrap()
        })
    }
}

/// Sets the flag when it is dropped, also when a test fails, so that the task that polls the flag ends.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
