//! The guides of docs/switching.md: the commands of `plimsoll migrate plan` and of the way back, as they are printed. Our own pods serve the
//! API in between; pods of the replaced programs never run.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cluster::{Cluster, SYSTEM_NAMESPACE, repository};
use crate::{events, removal};

const READER_ROLE: &str = "clusterrole system:aggregated-metrics-reader";
const WEBHOOK: &str = "validatingwebhookconfiguration keda-admission";
/// Steps that are not run: the first scrapes have no rates yet, and without its Deployment there is no way back.
const SKIPPED_STEPS: [&str; 2] = ["See that ", "When you do not want to go back"];
/// The step whose way back may wait for pods of the replaced program.
const STOP_STEP: &str = "Stop what is not asked any more";

/// The switch from one program.
struct Guide {
    /// The name of the program in `plimsoll migrate plan --from`.
    from: &'static str,
    /// The objects of the program.
    manifests: &'static str,
    /// The APIService that is switched.
    api: &'static str,
    /// The Service to which the APIService leads before the switch, and after the way back.
    theirs: &'static str,
    /// The Service and Deployment of Plimsoll.
    ours: &'static str,
}

pub(crate) fn from_metrics_server(cluster: &Cluster) {
    let guide = Guide {
        from: "metrics-server",
        manifests: include_str!("guides/metrics-server.yaml"),
        api: "v1beta1.metrics.k8s.io",
        theirs: "metrics-server",
        ours: "plimsoll-metrics",
    };
    let is_switched = || {
        cluster.until("kubectl top nodes", || cluster.try_kubectl("top nodes").ok());
        let role = cluster.get(READER_ROLE);
        assert_eq!(role["metadata"]["annotations"]["meta.helm.sh/release-name"], "plimsoll", "{role}");
    };
    // Users of metrics-server still need the role.
    let is_back = || drop(cluster.get(READER_ROLE));
    guide.run(cluster, is_switched, is_back);
}

pub(crate) fn from_prometheus_adapter(cluster: &Cluster) {
    let guide = Guide {
        from: "prometheus-adapter",
        manifests: include_str!("guides/prometheus-adapter.yaml"),
        api: "v1beta1.custom.metrics.k8s.io",
        theirs: "prometheus-adapter",
        ours: "plimsoll-metrics",
    };
    let list = "get --raw /apis/custom.metrics.k8s.io/v1beta1";
    let is_switched = || drop(cluster.until("a list of custom metrics", || cluster.try_kubectl(list).ok()));
    guide.run(cluster, is_switched, || {});
}

/// While our operator replaces KEDA, Kubernetes' HPA controller reads its metrics.
pub(crate) fn from_keda(cluster: &Cluster) {
    let guide = Guide {
        from: "keda",
        manifests: include_str!("guides/keda.yaml"),
        api: "v1beta1.external.metrics.k8s.io",
        theirs: "keda-operator-metrics-apiserver",
        ours: "plimsoll-operator",
    };
    let webhook = || {
        let found = cluster.get(WEBHOOK);
        found["webhooks"][0]["clientConfig"]["service"]["name"].as_str().unwrap_or_default().to_owned()
    };
    let has_ca = || {
        let found = cluster.get(WEBHOOK);
        let ca = found["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        (!ca.is_empty()).then_some(())
    };
    let is_switched = || {
        assert_eq!(webhook(), "plimsoll-operator");
        // The operator checks the APIService every 30 s; until then the API server cannot reach it.
        cluster.until("the webhook has our CA", has_ca);
        let _theirs = cluster.kubernetes_controller();
        events::wake_a_worker(cluster);
    };
    guide.run(cluster, is_switched, || assert_eq!(webhook(), "keda-admission-webhooks"));
}

impl Guide {
    /// Runs the plan, then `is_switched`, the way back, and `is_back`.
    fn run(&self, cluster: &Cluster, is_switched: impl FnOnce(), is_back: impl FnOnce()) {
        // The guide begins without Plimsoll, whose APIService has the name of the one that is switched.
        removal::uninstall(cluster);
        cluster.apply(self.manifests);
        let steps = plan(cluster, self.from);
        for step in &steps {
            cluster.shell(&script(step, "commands"));
        }
        self.check_api(cluster, self.ours);
        // Not plimsoll-shadow, which the chart installs by default: no plan but that from Kubernetes' HPA controller adds a controller.
        assert_eq!(deployments(cluster), [format!("deployment.apps/{}", self.ours)]);
        is_switched();
        for step in steps.iter().rev().filter(|step| step["title"] != STOP_STEP) {
            cluster.shell(&script(step, "back"));
        }
        cluster.until_gone(self.ours);
        assert!(deployments(cluster).is_empty(), "left behind: {:?}", deployments(cluster));
        let api = self.check_api(cluster, self.theirs);
        assert_eq!(api["spec"]["insecureSkipTLSVerify"], true, "{api}");
        is_back();
        cluster.delete(self.manifests);
    }

    /// Asserts that the APIService leads to a Service, and returns it.
    fn check_api(&self, cluster: &Cluster, service: &str) -> Value {
        let api = cluster.get(&format!("apiservice {}", self.api));
        assert_eq!(api["spec"]["service"]["name"], service, "{api}");
        api
    }
}

/// The Deployments of Plimsoll.
fn deployments(cluster: &Cluster) -> Vec<String> {
    let names = cluster.kubectl(&format!("get deployments --namespace {SYSTEM_NAMESPACE} --output name"));
    names.lines().map(str::to_owned).collect()
}

/// The steps of the plan that are run here.
fn plan(cluster: &Cluster, from: &str) -> Vec<Value> {
    let own = std::env::current_exe().unwrap();
    // The path of this program is …/debug/deps/name-0123; that of plimsoll is …/debug/plimsoll.
    let program: PathBuf = own.parent().and_then(Path::parent).unwrap().join("plimsoll");
    let mut command = Command::new(program);
    command.args(["migrate", "plan", "--from", from, "--output", "json"]);
    command.arg("--chart").arg(repository().join("charts/plimsoll"));
    let output = command.arg("--kubeconfig").arg(cluster.kubeconfig()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plans: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = plans[0]["steps"].as_array().unwrap().iter();
    let is_run = |step: &&Value| {
        let title = step["title"].as_str().unwrap();
        !SKIPPED_STEPS.iter().any(|left_out| title.starts_with(*left_out))
    };
    steps.filter(is_run).cloned().collect()
}

/// The commands of a step, or those of its way back, as one script, because a command may use a variable of a previous one.
fn script(step: &Value, part: &str) -> String {
    let commands = step[part].as_array().unwrap().iter();
    commands.map(|command| command.as_str().unwrap()).collect::<Vec<&str>>().join("\n")
}
