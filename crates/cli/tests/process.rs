//! The long-running commands as processes: they start, log what they do, reload settings, and stop gracefully.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use localkube::{Cluster, Options};
use serde_json::Value;

/// The timeout of a wait, which is much longer than any wait here takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A process whose output is read line by line.
struct Going {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Going {
    fn start(words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(words).env_remove("KUBECONFIG").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        for source in [Box::new(out) as Box<dyn Read + Send>, Box::new(err)] {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(source).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Self { child, lines, seen: Vec::new() }
    }

    /// Reads lines until one has all of these words.
    fn until(&mut self, words: &[&str]) -> String {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line =
                line.unwrap_or_else(|_| panic!("no line with {words:?} among\n{}", self.seen.join("\n")));
            self.seen.push(line.clone());
            if words.iter().all(|word| line.contains(word)) {
                return line;
            }
        }
    }

    /// A line with all of these words that was read already, or the next.
    fn sees(&mut self, words: &[&str]) -> String {
        let found = self.seen.iter().find(|line| words.iter().all(|word| line.contains(word))).cloned();
        found.unwrap_or_else(|| self.until(words))
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(name).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Waits until the process has ended, and returns its exit code.
    fn end(mut self) -> Option<i32> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it did not end; it said\n{}", self.seen.join("\n"));
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The example of `up` with decisions every second, and a load that begins immediately.
fn hurried() -> String {
    let example = include_str!("../../../examples/up.yaml");
    let load = example.find("    load:\n").unwrap();
    let text = example.get(..load).unwrap().to_owned() + "    load:\n    - constant: 20\n";
    text.replace(
        "  duration: 20m\n",
        "  duration: 20m\n  controller:\n    syncPeriod: 1s\n    cpuInitializationPeriod: 0s\n",
    )
}

#[test]
fn up_scales_prints_and_cleans_up() {
    let folder = folder("up");
    let (file, kubeconfig) = (folder.join("up.yaml"), folder.join("kubeconfig"));
    std::fs::write(&file, hurried()).unwrap();
    let mut up = Going::start(&["up", file.to_str().unwrap(), "--kubeconfig", kubeconfig.to_str().unwrap()]);
    up.until(&["localkube ready in", "3 nodes", "1 workload"]);
    up.until(&["console", "http://127.0.0.1:", "/?token="]);
    up.until(&["ask why", "why hpa/php-apache"]);
    // A second process does not change the kubeconfig of the first.
    let second = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["up", "--kubeconfig", kubeconfig.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(second.status.code() == Some(2) && text.contains("exists and is not overwritten"), "{second:?}");
    assert!(text.contains("remedy: stop the other `plimsoll up`"), "{text}");
    up.until(&["hpa/php-apache", "1 → "]);
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["why", "hpa/php-apache", "--since", "10m", "--kubeconfig", kubeconfig.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 → "), "{output:?}");
    up.signal("-INT");
    assert_eq!(up.end(), Some(0));
    assert!(!kubeconfig.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn up_that_cannot_start_leaves_nothing_behind() {
    let folder = folder("failing");
    let (file, made) = (folder.join("up.yaml"), folder.join("made"));
    for (object, expected) in [
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: nowhere}\n",
            ["namespaces \"nowhere\" not found", "add the Namespace to the files"],
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\n",
            ["does not serve Ingress of networking.k8s.io/v1", "leave it out"],
        ),
        (
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec:\n  scaleTargetRef: {name: a}\n  \
             triggers: [{type: corn, metadata: {}}]\n",
            ["there is no trigger type \"corn\"", "did you mean `cron`?"],
        ),
    ] {
        std::fs::write(&file, hurried() + "---\n" + object).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["up", file.to_str().unwrap(), "--kubeconfig", made.join("kubeconfig").to_str().unwrap()])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(expected.iter().all(|part| text.contains(part)) && text.contains("up.yaml:"), "{text}");
        assert!(!made.exists());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A ScaledObject that reads the simulated queue, before everything that it refers to.
const MAILS: &str = "\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: mails, namespace: post, annotations: {plimsoll.dev/act: direct}}
spec:
  scaleTargetRef: {name: mailer}
  pollingInterval: 5
  triggers:
  - type: metrics-api
    name: queue
    metadata:
      url: http://127.0.0.1:7438/queues/orders
      valueLocation: messages
      targetValue: '20'
      activationTargetValue: '5'
      authMode: bearer
    authenticationRef: {name: login}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: login, namespace: post}
spec: {secretTargetRef: [{parameter: token, name: login, key: token}]}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: post}
stringData: {token: secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mailer, namespace: post}
spec:
  replicas: 0
  selector: {matchLabels: {app: mailer}}
  template:
    metadata: {labels: {app: mailer}}
    spec: {containers: [{name: mailer, image: example.org/mailer}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: post}
";

#[test]
fn up_scales_a_scaled_object_of_its_files() {
    let folder = folder("own");
    let (file, kubeconfig) = (folder.join("mails.yaml"), folder.join("kubeconfig"));
    std::fs::write(&file, MAILS).unwrap();
    let words = [&file, &kubeconfig].map(|path| path.to_str().unwrap());
    let mut up = Going::start(&["up", words[0], "--speed", "20", "--kubeconfig", words[1]]);
    up.until(&["localkube ready in", "1 workload"]);
    up.until(&["ask why", "why so/mails -n post"]);
    up.until(&["so/mails", "at rest: queue has 0 messages (activation 5)"]);
    up.until(&["so/mails", "0 → 1", "/s"]);
    let why = stdout_of(&["why", "so/mails", "-n", "post", "--kubeconfig", words[1]]);
    assert!(why.starts_with("so/mails in post · "), "{why}");
    up.signal("-INT");
    assert_eq!(up.end(), Some(0));
    assert!(!kubeconfig.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs a command, and returns its output.
fn stdout_of(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Creates an object over the API.
async fn create(client: &kube::Client, path: &str, object: Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let _: Value = client.request(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap();
}

#[test]
fn faster_up_scales_all_workloads() {
    let folder = folder("all");
    let file = folder.join("kubeconfig");
    let words = ["up", "--workloads", "all", "--speed", "20", "--kubeconfig", file.to_str().unwrap()];
    let mut up = Going::start(&words);
    up.until(&["localkube ready in", "5 workloads"]);
    up.until(&["why so/report"]);
    up.until(&["time", "20 times as fast"]);
    for name in ["hpa/php-apache", "hpa/checkout", "hpa/shop", "so/orders-worker", "so/report"] {
        up.sees(&[name, " → "]);
    }
    up.signal("-INT");
    assert_eq!(up.end(), Some(0));
    assert!(!file.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn up_scales_a_worker_from_zero_when_orders_arrive() {
    let folder = folder("orders");
    let kubeconfig = folder.join("kubeconfig");
    let file = kubeconfig.to_str().unwrap().to_owned();
    let mut up = Going::start(&["up", "--kubeconfig", &file]);
    let mut up = tokio::task::spawn_blocking(move || {
        up.until(&["localkube ready in", "2 workloads", "roles: controller, metrics, operator"]);
        up.until(&["why so/orders-worker"]);
        up.until(&["so/orders-worker", "at rest: queue has 0 messages (activation 5)"]);
        up
    })
    .await
    .unwrap();
    let why = stdout_of(&["why", "so/orders-worker", "--kubeconfig", &file]);
    assert!(
        why.starts_with("so/orders-worker in default · ")
            && why.contains(" UTC · stayed at 0: no trigger is active"),
        "{why}"
    );
    assert!(why.contains("wakes when queue has more than 5 messages\n"), "{why}");

    // As with KEDA, an HPA scales from one to many unless the object says otherwise; `why` explains both.
    let target = cluster::connect::ConnectTarget { kubeconfig: Some(kubeconfig.clone()), context: None };
    let client = cluster::connect::connect(&target).await.unwrap().client;
    let labels = serde_json::json!({"app": "mails"});
    let template = serde_json::json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let spec = serde_json::json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
    let deployment = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mails"}, "spec": spec});
    create(&client, "/apis/apps/v1/namespaces/default/deployments", deployment).await;
    let trigger = serde_json::json!({"type": "kubernetes-workload", "metadata": {"podSelector": "run=php-apache", "value": "1"}});
    let spec =
        serde_json::json!({"scaleTargetRef": {"name": "mails"}, "pollingInterval": 1, "triggers": [trigger]});
    let object = serde_json::json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "mails"}, "spec": spec});
    create(&client, "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects", object).await;
    let up = tokio::task::spawn_blocking(move || {
        up.sees(&["so/mails", "0 → 1", "kubernetes-workload has "]);
        // The order of these two lines is undefined.
        let line = up.sees(&["so/orders-worker", "0 → ", "queue has ", " messages (activation 5)"]);
        up.sees(&["hpa/keda-hpa-mails", "s0-workload-default"]);
        assert!(line.contains("queue: "), "{line}");
        up
    })
    .await
    .unwrap();
    let why = stdout_of(&["why", "so/mails", "--kubeconfig", &file]);
    assert!(why.contains("next       hpa/keda-hpa-mails decides between 1 and 100\n"), "{why}");
    assert!(why.contains("\nhpa/keda-hpa-mails in default · "), "{why}");
    let json: Value =
        serde_json::from_str(&stdout_of(&["why", "so/mails", "-o", "json", "--kubeconfig", &file])).unwrap();
    assert_eq!(json.pointer("/hpa/autoscaler").unwrap(), "hpa/keda-hpa-mails");
    assert_eq!(json.pointer("/round/triggers/0/type").unwrap(), "kubernetes-workload");
    let since = stdout_of(&["why", "so/orders-worker", "--since", "10m", "--kubeconfig", &file]);
    assert!(since.contains("0 → ") && since.contains("at rest: queue has "), "{since}");
    let got = stdout_of(&["get", "--kubeconfig", &file]);
    for name in ["hpa/php-apache", "hpa/keda-hpa-mails", "so/mails", "so/orders-worker"] {
        assert!(got.contains(name), "{got}");
    }
    assert!(
        stdout_of(&["get", "so", "-o", "name", "--kubeconfig", &file])
            .contains("scaledobject.keda.sh/orders-worker\n")
    );
    assert!(stdout_of(&["top", "--once", "--kubeconfig", &file]).contains("so/orders-worker"));
    up.signal("-INT");
    assert_eq!(tokio::task::spawn_blocking(move || up.end()).await.unwrap(), Some(0));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_leads_reloads_settings_and_releases_its_lease() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let server = cluster.serve().await.unwrap();
    let folder = folder("controller");
    let (kubeconfig, config) = (folder.join("kubeconfig"), folder.join("controller.yaml"));
    std::fs::write(&kubeconfig, &server.kubeconfig).unwrap();
    std::fs::write(&config, "horizontalPodAutoscalerSyncPeriod: 1s\n").unwrap();
    let words = [
        "controller",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
        "--secure-port=0",
        "--health-probe-bind-address=127.0.0.1:0",
        "--enable-cert-rotation",
        "--log-format=json",
    ];
    let (mut going, file) = (Going::start(&words), config.clone());
    let going = tokio::task::spawn_blocking(move || {
        let probes: Value =
            serde_json::from_str(&going.sees(&["\"serving\"", "health-probe-bind-address"])).unwrap();
        let address = probes.get("address").and_then(Value::as_str).unwrap();
        assert!(get(address, "/livez").starts_with("HTTP/1.1 200"));
        let line = going.sees(&["\"message\":\"leading\""]);
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.get("level").unwrap(), "INFO");
        std::fs::write(&file, "horizontalPodAutoscalerSyncPeriod: -1s\n").unwrap();
        going.signal("-HUP");
        going.until(&["ERROR", "the old one stays", "-1s"]);
        std::fs::write(&file, "horizontalPodAutoscalerSyncPeriod: 2s\n").unwrap();
        going.signal("-HUP");
        going.until(&["new settings are in force"]);
        going
    })
    .await
    .unwrap();
    let lease = || async {
        let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll-controller";
        let text =
            cluster.client().request_text(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        let lease: Value = serde_json::from_str(&text).unwrap();
        lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    assert!(!lease().await.is_empty());
    let secret = "/api/v1/namespaces/kube-system/secrets/plimsoll-controller-certs";
    let secret = cluster.client().request_text(http::Request::get(secret).body(Vec::new()).unwrap()).await;
    assert!(secret.unwrap().contains("\"ca.crt\""));
    going.signal("-TERM");
    let code = tokio::task::spawn_blocking(move || going.end()).await.unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(lease().await, "", "the lease was given back");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Sends a request without TLS, and returns the response.
fn get(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn invalid_flags_and_files_fail_at_start() {
    let folder = folder("flags");
    let config = folder.join("controller.yaml");
    std::fs::write(&config, "horizontalPodAutoscalerSyncPeriode: 1s\n").unwrap();
    let config = config.to_str().unwrap();
    for (words, wanted) in [
        (vec!["--config", config], "did you mean `horizontalPodAutoscalerSyncPeriod`?"),
        (vec!["--concurrent-horizontal-pod-autoscaler-syncs", "0"], "must be greater than 0, but got 0"),
        (vec!["--horizontal-pod-autoscaler-sync-period", "soon"], "write for example 15s"),
        (vec!["--feature-gates", "HPAScaleToZeroo=true"], "did you mean HPAScaleToZero?"),
        (vec!["--mode", "shy"], "possible values"),
        (vec!["--health-probe-bind-address", "8081"], "such as :8080"),
        (vec!["--leader-elect-lease-duration", "1s"], "leader-elect"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg("controller")
            .args(["--kubeconfig", "absent"])
            .args(&words)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(wanted), "{words:?}: {text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
