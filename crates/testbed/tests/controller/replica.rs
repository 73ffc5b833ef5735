//! A controller as a process, which serves its history to the other replicas, and its decision log.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use testbed::direct::{Caller, DirectClient};
use testbed::program::{Program, TempFolder};

use crate::env::{ControllerEnv, PERIOD};
use crate::shared;
use crate::shared::program::{free_port, program};

/// Time limit to become ready on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(3);
const ACCOUNT: &str = "takeover";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A controller as a process.
pub(crate) struct Replica {
    program: Program,
    /// A client of the controller's server, with the controller's own token.
    server: DirectClient,
    /// The path of the decision log.
    pub(crate) log: PathBuf,
}

impl Replica {
    pub(crate) async fn start(env: &ControllerEnv, token: &str) -> Self {
        Self::start_version(env, token, program(), PERIOD).await
    }

    /// Starts a version of the program with this sync period.
    pub(crate) async fn start_version(
        env: &ControllerEnv,
        token: &str,
        program: &Path,
        period: Duration,
    ) -> Self {
        let temp_folder = TempFolder::new().unwrap();
        let token_file = temp_folder.write("token", token).unwrap();
        let mut config = serde_json::to_value(Kubeconfig::from_yaml(&env.kubeconfig).unwrap()).unwrap();
        for user in config["users"].as_array_mut().unwrap() {
            user["user"] = json!({"tokenFile": token_file});
        }
        let kubeconfig = temp_folder.write("kubeconfig", &config.to_string()).unwrap();
        let (port, log) = (free_port(), temp_folder.path("decisions.log"));
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespaces={}", env.namespace),
            format!("--leader-elect-resource-namespace={}", env.namespace),
            // The lease lasts long enough for a busy machine, on which a leader renews late.
            "--leader-elect-lease-duration=10s".to_owned(),
            "--leader-elect-renew-deadline=8s".to_owned(),
            "--leader-elect-retry-period=1s".to_owned(),
            format!("--horizontal-pod-autoscaler-sync-period={}ms", period.as_millis()),
            "--horizontal-pod-autoscaler-downscale-stabilization=0s".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--enable-cert-rotation".to_owned(),
            format!("--cert-secret-name={}", env.namespace),
            format!("--decision-log={}", log.display()),
            "--decision-log-all".to_owned(),
        ];
        let variables = [("POD_IP", "127.0.0.1")];
        let mut program =
            Program::start_with("plimsoll", program, &arguments, &variables, temp_folder).unwrap();
        let server = DirectClient::new(port, &Caller::token(token)).unwrap();
        let ready = async || server.get("/readyz").await.is_ok_and(|response| response.code == 200);
        program.until(READY_TIMEOUT, ready).await.unwrap();
        Self { program, server, log }
    }

    /// The history that `plimsoll why --at` reads from this replica.
    pub(crate) async fn decision_at(&self, namespace: &str, at: Timestamp) -> Value {
        let group = api::decisions::API_VERSION;
        let path = format!("/apis/{group}/namespaces/{namespace}/decisions/hpa.web?at={at}");
        match self.server.get(&path).await {
            Ok(response) if response.code == 200 => response.json()["items"][0].clone(),
            Ok(response) => response.json(),
            Err(error) => json!(error.to_string()),
        }
    }

    /// Sends SIGTERM to the process, as Kubernetes does, and waits for its end.
    pub(crate) async fn terminate(&mut self, env: &ControllerEnv) {
        self.program.terminate();
        let mut code = None;
        env.until("the end of a replica", async || {
            code = self.program.ended();
            code.map(drop).ok_or(())
        })
        .await;
        assert_eq!(code, Some(0), "{}", self.program.log());
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub(crate) async fn kill(&mut self, env: &ControllerEnv) {
        let pid = self.program.pid().unwrap().to_string();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        env.until("the end of the leader", async || self.program.ended().map(drop).ok_or(())).await;
    }
}

/// The decisions in a decision log; the last line of a killed process may be cut.
pub(crate) fn logged(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub(crate) fn time(pass: &Value) -> Timestamp {
    pass["decision"]["at"].as_str().unwrap().parse().unwrap()
}

/// Creates a service account with all permissions, and returns its token. On localkube every account has all permissions.
pub(crate) async fn account(env: &ControllerEnv) -> String {
    let name = &env.namespace;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    env.create("/api/v1/namespaces/{ns}/serviceaccounts", account).await;
    if env.is_real() {
        let group = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]}
            ]
        });
        env.create(ROLES, role).await;
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name}]
        });
        env.create(BINDINGS, binding).await;
    }
    shared::token(&env.client, name, ACCOUNT).await
}

/// Removes the cluster-scoped objects of a test's replicas.
pub(crate) async fn forget(env: &ControllerEnv) {
    let name = &env.namespace;
    if env.is_real() {
        env.delete(&format!("{BINDINGS}/{name}")).await;
        env.delete(&format!("{ROLES}/{name}")).await;
    }
    env.delete(&format!("/api/v1/namespaces/kube-system/secrets/{name}")).await;
}
