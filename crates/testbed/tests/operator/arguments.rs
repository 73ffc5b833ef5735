//! KEDA's own Deployment with our binary: its command, flags, variables, probes and roles. No pods run here, so the test passes to a process
//! what a pod would get.

use http::Method;
use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::program::{Program, TempFolder};

use crate::env::{
    SourceResponse, TestNamespace, apply, check_log, deployment, folder, free_port, on_both, program, until,
    with_token,
};
use crate::exported_metrics::plain;
use crate::shared::environments::on_one;
use crate::shared::token;

/// The command of the Deployment of KEDA 2.20.
const KEDA_COMMAND: [&str; 6] = [
    "/keda",
    "--leader-elect",
    "--zap-log-level=info",
    "--zap-encoder=console",
    "--zap-time-encoding=rfc3339",
    "--enable-cert-rotation=true",
];
/// The environment variables of that Deployment, except the namespace of the pod.
const VARIABLES: [(&str, &str); 2] = [("WATCH_NAMESPACE", ""), ("KEDA_HTTP_DEFAULT_TIMEOUT", "")];

/// Every other flag of KEDA's operator (docs/spec/keda.md Appendix A, and those of zap), except addresses and
/// names that other tests use too.
const KEDA_FLAGS: [&str; 20] = [
    "--enable-prometheus-metrics=true",
    "--enable-opentelemetry-metrics=false",
    "--leader-election-id=operator.keda.sh",
    "--disable-compression=true",
    "--cert-secret-name=kedaorg-certs",
    "--cert-dir=/certs",
    "--operator-service-name=keda-operator",
    "--metrics-server-service-name=keda-metrics-apiserver",
    "--webhooks-service-name=keda-admission-webhooks",
    "--k8s-cluster-name=kubernetes-default",
    "--k8s-cluster-domain=cluster.local",
    "--enable-webhook-patching=true",
    "--filepath-auth-root-path=/nowhere",
    "--profiling-bind-address=127.0.0.1:0",
    "--kube-api-qps=50",
    "--kube-api-burst=100",
    "--http-max-idle-conns=10",
    "--http-max-idle-conns-per-host=10",
    "--http-idle-conn-timeout=30s",
    "--zap-devel=true",
];
/// The flags of [`KEDA_FLAGS`] that differ from the default and have no effect.
const FLAGS_WITHOUT_EFFECT: [&str; 8] = [
    "--profiling-bind-address",
    "--kube-api-qps",
    "--kube-api-burst",
    "--http-max-idle-conns",
    "--http-max-idle-conns-per-host",
    "--http-idle-conn-timeout",
    "--zap-devel",
    "--zap-time-encoding",
];
/// Environment variables of KEDA's operator that have an effect.
const VARIABLES_WITH_EFFECT: [(&str, &str); 10] = [
    ("KEDA_HTTP_DEFAULT_TIMEOUT", "3000"),
    ("KEDA_HTTP_DISABLE_KEEP_ALIVE", "false"),
    ("KEDA_HTTP_MIN_TLS_VERSION", "TLS12"),
    ("KEDA_RESTRICT_SECRET_ACCESS", "false"),
    ("KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY", "1h"),
    ("KEDA_OUTBOUND_FILTER", "{hashiCorpVault: {mode: enforce, allowedEndpoints: ['https://vault:8200']}}"),
    ("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES", "[{audience: vault}]"),
    ("KEDA_OPERATOR_LEADER_ELECTION_LEASE_DURATION", "15s"),
    ("KEDA_OPERATOR_LEADER_ELECTION_RENEW_DEADLINE", "10s"),
    ("KEDA_OPERATOR_LEADER_ELECTION_RETRY_PERIOD", "2s"),
];
const VARIABLES_WITHOUT_EFFECT: [(&str, &str); 6] = [
    ("KEDA_HTTP_TLS_CIPHER_LIST", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("KEDA_SERVICE_MIN_TLS_VERSION", "TLS13"),
    ("KEDA_SERVICE_TLS_CIPHER_LIST", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("KEDA_SCALEDOBJECT_CTRL_MAX_RECONCILES", "5"),
    ("KEDA_SCALEDJOB_CTRL_MAX_RECONCILES", "1"),
    ("KEDA_CHECK_UNEXPECTED_SCALERS_PARAMS", "enabled"),
];

/// A process in place of a pod of that Deployment, and the address of its health checks.
struct Pod {
    process: Program,
    health: u16,
}

impl Pod {
    /// Starts the process in the namespace of a test, with its own ports, because other tests run on this machine too.
    async fn start(ns: &TestNamespace, kubeconfig: &str, more: &[&str], variables: &[(&str, &str)]) -> Self {
        let temp_folder = TempFolder::new().unwrap();
        let [health, service, port] = [free_port(), free_port(), free_port()];
        let kubeconfig = temp_folder.write("kubeconfig", kubeconfig).unwrap().display().to_string();
        let [name, flags @ ..] = KEDA_COMMAND;
        let link = temp_folder.path(name.trim_start_matches('/'));
        std::os::unix::fs::symlink(program(), &link).unwrap();
        let mut arguments: Vec<String> = flags.iter().chain(more).map(|flag| (*flag).to_owned()).collect();
        arguments.extend([
            format!("--health-probe-bind-address=:{health}"),
            format!("--metrics-service-bind-address=127.0.0.1:{service}"),
            format!("--secure-port={port}"),
            // The sources of tests are on this machine.
            "--allow-source-cidr=127.0.0.0/8,::1".to_owned(),
        ]);
        // A pod has the token of its service account; a process has this kubeconfig.
        let own = [("POD_NAMESPACE", ns.namespace.as_str()), ("KUBECONFIG", kubeconfig.as_str())];
        let variables = [&own[..], variables].concat();
        let mut process =
            Program::start_with("plimsoll", &link, &arguments, &variables, temp_folder).unwrap();
        let ready = async || plain(health, "/readyz").await.is_some_and(|(code, _)| code == 200);
        process.until(testbed::harness::WAIT_TIMEOUT, ready).await.unwrap();
        Self { process, health }
    }

    /// Sends SIGTERM and waits until it ends.
    async fn end(mut self) {
        self.process.terminate();
        let mut code = None;
        until("its end", async || {
            code = self.process.ended();
            if code.is_some() { Ok(()) } else { Err(self.process.log()) }
        })
        .await;
        assert_eq!(code, Some(0), "{}", self.process.log());
    }

    /// The flags and variables that the log reports as having no effect.
    fn without_effect(&self) -> Vec<String> {
        let log = self.process.log();
        let reported = log.lines().filter(|line| line.contains("has no effect here"));
        reported.map(str::to_owned).collect()
    }
}

fn names(line: &str, word: &str) -> bool {
    line.split(|letter: char| !(letter.is_alphanumeric() || "-_".contains(letter))).any(|own| own == word)
}

impl TestNamespace {
    /// Activates a ScaledObject.
    async fn wake(&self, name: &str) {
        let kubectl = self.kubectl();
        kubectl.apply(&deployment(name, 0));
        self.set_response(name, SourceResponse::Value(5));
        kubectl.apply(&self.scaled_object(name, &json!({})));
        self.until_replicas(name, 1).await;
    }

    /// Asserts that the lease and the Secret have the same names as KEDA's.
    async fn is_kept_as_by_keda(&self) -> Value {
        let lease = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/operator.keda.sh";
        let lease = self.get(lease).await.1;
        assert!(lease["spec"]["holderIdentity"].is_string(), "{lease}");
        let secret = self.get("/api/v1/namespaces/{ns}/secrets/kedaorg-certs").await.1;
        let parts: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
        assert_eq!(parts, ["ca.crt", "ca.key", "tls.crt", "tls.key"]);
        secret
    }

    /// Creates KEDA's roles for a service account in this namespace; returns its token.
    async fn account_of_keda(&self) -> String {
        const ACCOUNT: &str = "keda-operator";
        let kubectl = self.kubectl();
        kubectl.run_ok(&format!("create serviceaccount {ACCOUNT}"));
        if self.env.cluster.access.is_some() {
            let subjects = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}]);
            for (kind, rules) in [("ClusterRole", cluster_rules()), ("Role", rules())] {
                let version = "rbac.authorization.k8s.io/v1";
                let meta = json!({"name": self.namespace});
                kubectl
                    .apply(&json!({"apiVersion": version, "kind": kind, "metadata": meta, "rules": rules}));
                kubectl.apply(&json!({
                    "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": meta, "subjects": subjects,
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.namespace}
                }));
            }
            let account = format!("system:serviceaccount:{}:{ACCOUNT}", self.namespace);
            for what in ["list scaledobjects.keda.sh", "create leases.coordination.k8s.io"] {
                self.until(what, async || {
                    let (good, response) = kubectl.run(&format!("auth can-i --as={account} {what}"));
                    if good { Ok(()) } else { Err(response) }
                })
                .await;
            }
        }
        token(self.client(), &self.namespace, ACCOUNT).await
    }
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

/// The cluster role of KEDA's operator (docs/spec/keda.md Appendix A).
fn cluster_rules() -> Value {
    const READ: [&str; 3] = ["get", "list", "watch"];
    const WRITE: [&str; 5] = ["get", "list", "watch", "update", "patch"];
    const ALL: [&str; 7] = ["get", "list", "watch", "update", "patch", "create", "delete"];
    let own = [
        "scaledobjects",
        "scaledobjects/status",
        "scaledobjects/finalizers",
        "scaledjobs",
        "scaledjobs/status",
        "scaledjobs/finalizers",
        "triggerauthentications",
        "triggerauthentications/status",
        "clustertriggerauthentications",
        "clustertriggerauthentications/status",
    ];
    let events = [
        "cloudeventsources",
        "cloudeventsources/status",
        "clustercloudeventsources",
        "clustercloudeventsources/status",
    ];
    json!([
        rule(&[""], &["configmaps", "configmaps/status", "external", "pods", "secrets", "services"], &READ),
        rule(&[""], &["limitranges", "serviceaccounts"], &["list", "watch"]),
        rule(&["", "events.k8s.io"], &["events"], &["create", "patch"]),
        rule(&["*"], &["*"], &["get"]),
        rule(&["*"], &["*/scale"], &WRITE),
        rule(&["apps"], &["deployments", "replicasets", "statefulsets"], &["list", "watch"]),
        rule(&["autoscaling"], &["horizontalpodautoscalers"], &ALL),
        rule(&["batch"], &["jobs"], &ALL),
        rule(&["discovery.k8s.io"], &["endpointslices"], &READ),
        rule(&["admissionregistration.k8s.io"], &["validatingwebhookconfigurations"], &WRITE),
        rule(&["apiregistration.k8s.io"], &["apiservices"], &WRITE),
        rule(&["keda.sh"], &own, &WRITE),
        rule(&["eventing.keda.sh"], &events, &WRITE),
    ])
}

/// The role of KEDA's operator in its own namespace.
fn rules() -> Value {
    let all = ["get", "list", "watch", "update", "patch", "create", "delete"];
    json!([rule(&[""], &["secrets"], &all), rule(&["coordination.k8s.io"], &["leases"], &all)])
}

/// This test has its own cluster, because the operator watches all namespaces.
#[test]
fn command_of_keda_deployment_starts_the_operator() -> Result<(), Failure> {
    on_one(async {
        let Some(ns) = TestNamespace::alone().await else { return Ok(()) };
        let webhooks = folder("deploy/operator").into_iter();
        let webhooks = webhooks.filter(|object| object["kind"] == "ValidatingWebhookConfiguration");
        let mut webhooks: Vec<Value> = webhooks.collect();
        for configuration in &mut webhooks {
            for webhook in configuration["webhooks"].as_array_mut().unwrap() {
                webhook["clientConfig"]["service"]["namespace"] = json!(ns.namespace);
            }
        }
        apply(&ns.env.cluster, &webhooks).await;
        let pod = Pod::start(&ns, &ns.env.cluster.kubeconfig, &[], &VARIABLES).await;
        for path in ["/healthz", "/readyz"] {
            assert_eq!(plain(pod.health, path).await, Some((200, "ok".to_owned())), "{path}");
        }
        let other = ns.another().await;
        for place in [&ns, &other] {
            place.wake("web").await;
        }
        let secret = ns.is_kept_as_by_keda().await;
        ns.until("a webhook that knows whom to trust", async || {
            let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/keda-admission";
            let found = ns.get(path).await.1;
            let bundle = &found["webhooks"][0]["clientConfig"]["caBundle"];
            if *bundle == secret["data"]["ca.crt"] { Ok(()) } else { Err(found) }
        })
        .await;
        let reported = pod.without_effect();
        assert!(reported.len() == 1 && names(&reported[0], "--zap-time-encoding"), "{reported:#?}");
        check_log(&ns.namespace, &pod.process.log());
        pod.end().await;
        Ok(())
    })
}

#[test]
fn flags_variables_and_roles_of_keda_are_accepted() -> Result<(), Failure> {
    on_both(async |ns| {
        let kubeconfig = with_token(&ns.env.cluster.kubeconfig, &ns.account_of_keda().await);
        // Other tests on this cluster use these names.
        let apart = format!("--validating-webhook-name={}", ns.namespace);
        let metrics_address = format!("--metrics-bind-address=127.0.0.1:{}", free_port());
        let authorities = TempFolder::new().unwrap();
        let folder = format!("--ca-dir={}", authorities.root().display());
        let own = [apart.as_str(), &metrics_address, &folder, "--enable-apiservice-patching=false"];
        let flags = [&KEDA_FLAGS[..], &own].concat();
        let places = [("WATCH_NAMESPACE", ns.namespace.as_str()), ("KEDA_CLUSTER_OBJECT_NAMESPACE", "keda")];
        let variables = [&places[..], &VARIABLES_WITH_EFFECT, &VARIABLES_WITHOUT_EFFECT].concat();
        let pod = Pod::start(&ns, &kubeconfig, &flags, &variables).await;

        ns.wake("web").await;
        let kubectl = ns.kubectl();
        kubectl.apply(&ns.scaled_object("web", &json!({"maxReplicaCount": 7})));
        ns.until_hpa("keda-hpa-web", "an edit", |hpa| hpa["spec"]["maxReplicas"] == 7).await;
        kubectl.run_ok("annotate so web autoscaling.keda.sh/paused-replicas=0");
        ns.until_hpa("keda-hpa-web", "the end", Value::is_null).await;
        kubectl.run_ok("delete so web");
        ns.set_response("batch", SourceResponse::Value(10));
        kubectl.apply(&ns.scaled_job("batch", 1));
        ns.until("a job", async || {
            let jobs = ns.get("/apis/batch/v1/namespaces/{ns}/jobs").await.1;
            if jobs["items"].as_array().is_some_and(|jobs| jobs.len() == 1) { Ok(()) } else { Err(jobs) }
        })
        .await;
        kubectl.run_ok("delete sj batch");
        ns.is_kept_as_by_keda().await;

        // The log names exactly the flags and variables without effect.
        let reported = pod.without_effect();
        let idle = FLAGS_WITHOUT_EFFECT.into_iter().chain(VARIABLES_WITHOUT_EFFECT.map(|(name, _)| name));
        let missing: Vec<&str> =
            idle.clone().filter(|idle| !reported.iter().any(|line| names(line, idle))).collect();
        assert!(missing.is_empty() && reported.len() == idle.count(), "{missing:?} is not in\n{reported:#?}");
        check_log(&ns.namespace, &pod.process.log());
        pod.end().await;
        for kind in ["clusterroles", "clusterrolebindings"] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{}", ns.namespace);
            ns.send(Method::DELETE, &path, None).await;
        }
    })
}

#[test]
fn unknown_flag_is_refused_and_the_nearest_is_named() {
    let cases = [
        ("--leader-elekt", "'--leader-elect'"),
        ("--metrics-service-address=keda-operator:9666", "'--metrics-service-bind-address'"),
        ("--kube-api-qps=many", "kube-api-qps"),
        ("--http-idle-conn-timeout=soon", "http-idle-conn-timeout"),
        ("--zap-encoder=xml", "console"),
        ("--zap-log-level=loud", "write debug, info, error or a number"),
    ];
    for (flag, words) in cases {
        let output = std::process::Command::new(program()).args(["operator", flag]).output().unwrap();
        let response = String::from_utf8_lossy(&output.stderr).into_owned();
        let name = flag.split('=').next().unwrap();
        assert!(
            !output.status.success() && response.contains(name) && response.contains(words),
            "{flag}: {response}"
        );
    }
}
