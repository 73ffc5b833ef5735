//! `plimsoll operator`, the binary, as the service account of `deploy/operator`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use kube::config::Kubeconfig;
use serde_json::{Value, json};
use testbed::direct::{Caller, DirectClient};
use testbed::program::{Program, TempFolder};
use testbed::proxy::{Proxy, ProxyCaller, ProxyOptions};

use super::{TestNamespace, apply, folder, free_port, program, until};
use crate::shared;

/// The namespace of `deploy/operator`.
pub(crate) const SYSTEM_NAMESPACE: &str = "plimsoll-system";
/// Its service account, and the name of its Service.
pub(crate) const ACCOUNT: &str = "plimsoll-operator";
pub(crate) const SERVICE: &str = ACCOUNT;

/// Time limit to become ready on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(3);

/// A running operator, or one that was killed.
pub(crate) struct Operator {
    pub(crate) port: u16,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
    program: Mutex<PathBuf>,
    running: Mutex<Option<Program>>,
    idle: Mutex<Option<TempFolder>>,
    /// The only namespace that it watches.
    namespace: String,
}

impl Operator {
    /// Starts an operator that watches the namespace of a test only, and patches no webhook or APIService.
    pub(crate) async fn start(ns: &TestNamespace, flags: &[&str]) -> Self {
        Self::start_with(ns, flags, &[]).await
    }

    /// The same with environment variables.
    pub(crate) async fn start_with(
        ns: &TestNamespace,
        flags: &[&str],
        variables: &[(&'static str, &str)],
    ) -> Self {
        let alone = ["--enable-webhook-patching=false", "--enable-apiservice-patching=false"];
        let kubeconfig = with_token(&ns.env.cluster.kubeconfig, &token(ns).await);
        let flags = [&alone, flags].concat();
        Self::started(ns, program(), &kubeconfig, free_port(), &flags, variables).await
    }

    /// Starts an operator whose external metrics and webhook the API server uses, as in `deploy/operator`;
    /// its requests are recorded.
    pub(crate) async fn serving(ns: &TestNamespace) -> (Self, Proxy) {
        let port = free_port();
        let (mut objects, mut flags) = (vec![place(port)], Vec::new());
        for mut object in folder("deploy/operator") {
            match object["kind"].as_str() {
                Some("APIService") => object["spec"]["service"]["port"] = json!(port),
                Some("ValidatingWebhookConfiguration") => {
                    for webhook in object["webhooks"].as_array_mut().unwrap() {
                        webhook["clientConfig"]["service"]["port"] = json!(port);
                        let own = json!({"kubernetes.io/metadata.name": ns.namespace});
                        webhook["namespaceSelector"] = json!({"matchLabels": own});
                    }
                }
                Some("Deployment") => {
                    let given =
                        object["spec"]["template"]["spec"]["containers"][0]["args"].as_array().cloned();
                    let given = given.unwrap().into_iter().map(|flag| flag.as_str().unwrap().to_owned());
                    flags.extend(given.filter(|flag| !here(flag)));
                    continue;
                }
                _ => continue,
            }
            objects.push(object);
        }
        apply(&ns.env.cluster, &objects).await;
        let options = ProxyOptions { caller: ProxyCaller::Client, store_lists: false };
        let proxy = Proxy::start_with(&ns.env.cluster.kubeconfig, options).await.unwrap();
        let kubeconfig = proxy.kubeconfig_with(&token(ns).await);
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        // Needed with several replicas.
        if !flags.iter().any(|flag| flag.starts_with("--enable-cert-rotation")) {
            flags.push("--enable-cert-rotation");
        }
        let operator = Self::start_as(ns, &kubeconfig, port, &flags).await;
        until("external metrics through the API server", async || {
            let (code, body) = ns.get("/apis/external.metrics.k8s.io/v1beta1").await;
            if code == 200 { Ok(()) } else { Err((code, body, operator.log_end())) }
        })
        .await;
        (operator, proxy)
    }

    /// Starts an operator with this kubeconfig.
    pub(crate) async fn start_as(ns: &TestNamespace, kubeconfig: &str, port: u16, flags: &[&str]) -> Self {
        Self::started(ns, program(), kubeconfig, port, flags, &[]).await
    }

    /// Starts another version of the program as an administrator, as a replica that takes part in an election.
    pub(crate) async fn start_version(ns: &TestNamespace, program: &Path, flags: &[&str]) -> Self {
        let variables = [("POD_IP", "127.0.0.1"), ("KEDA_OPERATOR_LEADER_ELECTION_RETRY_PERIOD", "1s")];
        Self::started(ns, program, &ns.env.cluster.kubeconfig, free_port(), flags, &variables).await
    }

    async fn started(
        ns: &TestNamespace,
        program: &Path,
        kubeconfig: &str,
        port: u16,
        flags: &[&str],
        variables: &[(&'static str, &str)],
    ) -> Self {
        let temp_folder = TempFolder::new().unwrap();
        let file = temp_folder.write("kubeconfig", kubeconfig).unwrap();
        let mut arguments = vec![
            "operator".to_owned(),
            format!("--kubeconfig={}", file.display()),
            format!("--watch-namespaces={}", ns.namespace),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--secrets-check=1s".to_owned(),
            "--allow-source-cidr=127.0.0.0/8,::1".to_owned(),
            "--log-level=debug".to_owned(),
        ];
        if !flags.iter().any(|flag| flag.starts_with("--source-deadline=")) {
            arguments.push("--source-deadline=3s".to_owned());
        }
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let home = [("POD_NAMESPACE", SYSTEM_NAMESPACE)];
        let variables = home.iter().chain(variables).map(|(name, value)| (*name, (*value).to_owned()));
        let operator = Self {
            port,
            arguments,
            variables: variables.collect(),
            program: Mutex::new(program.to_owned()),
            running: Mutex::default(),
            idle: Mutex::new(Some(temp_folder)),
            namespace: ns.namespace.clone(),
        };
        operator.resume().await;
        operator
    }

    /// Kills the process, as the death of its node would.
    pub(crate) fn kill(&self) {
        self.check();
        let running = self.running.lock().unwrap().take();
        *self.idle.lock().unwrap() = running.map(Program::end);
    }

    /// Ends the process in order, as Kubernetes does, and starts another version in its place.
    pub(crate) async fn replace(&self, program: &Path) {
        self.signal("-TERM");
        let mut code = None;
        until("the end of a replica", async || {
            code = self.running.lock().unwrap().as_mut().and_then(Program::ended);
            code.map(drop).ok_or(())
        })
        .await;
        assert_eq!(code, Some(0), "{}", self.log_end());
        self.kill();
        program.clone_into(&mut self.program.lock().unwrap());
        self.resume().await;
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.running.lock().unwrap().as_ref().and_then(Program::pid).unwrap();
        let sent = std::process::Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
        assert!(sent.success(), "{name}");
    }

    /// Starts it again after [`Operator::kill`], and returns when it is ready.
    pub(crate) async fn resume(&self) {
        let temp_folder = self.idle.lock().unwrap().take().expect("one that was killed");
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let program = self.program.lock().unwrap().clone();
        let mut started =
            Program::start_with("plimsoll", &program, &self.arguments, &variables, temp_folder).unwrap();
        let direct = DirectClient::new(self.port, &Caller::anonymous()).unwrap();
        let ready = async || direct.get("/readyz").await.is_ok_and(|response| response.code == 200);
        started.until(READY_TIMEOUT, ready).await.unwrap();
        *self.running.lock().unwrap() = Some(started);
    }

    pub(crate) fn log(&self) -> String {
        self.running.lock().unwrap().as_ref().map(Program::log).unwrap_or_default()
    }

    /// The last lines of its log.
    pub(crate) fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Asserts that no request was forbidden and nothing panicked.
    pub(crate) fn check(&self) {
        check_log(&self.namespace, &self.log());
    }
}

/// Asserts that no request in this log was forbidden, except in a namespace that is being deleted, and that nothing panicked.
pub(crate) fn check_log(namespace: &str, log: &str) {
    let bad = |line: &&str| {
        let line = line.to_lowercase();
        (line.contains("forbidden") && !line.contains("being terminated")) || line.contains("panicked")
    };
    let bad: Vec<&str> = log.lines().filter(bad).collect();
    assert!(bad.is_empty(), "in {namespace}: {bad:#?}");
}

/// Whether the test sets this flag of the manifest itself.
fn here(flag: &str) -> bool {
    flag == "operator" || ["--secure-port", "--log-format"].iter().any(|other| flag.starts_with(other))
}

/// A Service that resolves to this machine, with this port.
pub(crate) fn place(port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": SYSTEM_NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    })
}

/// A token of the operator's account.
pub(crate) async fn token(ns: &TestNamespace) -> String {
    shared::token(ns.client(), SYSTEM_NAMESPACE, ACCOUNT).await
}

/// A kubeconfig whose user has this token and nothing else.
pub(crate) fn with_token(kubeconfig: &str, token: &str) -> String {
    let mut config = serde_json::to_value(Kubeconfig::from_yaml(kubeconfig).unwrap()).unwrap();
    for user in config["users"].as_array_mut().unwrap() {
        user["user"] = json!({"token": token});
    }
    config.to_string()
}
