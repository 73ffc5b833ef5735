//! The long-running commands as processes: they start, say what they do, take new settings, and stop in order.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use localkube::{Cluster, Options};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_mins(1);

/// A process whose lines are read as they come.
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
        let (tell, lines) = channel();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        for source in [Box::new(out) as Box<dyn Read + Send>, Box::new(err)] {
            let tell = tell.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(source).lines().map_while(Result::ok) {
                    if tell.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Self { child, lines, seen: Vec::new() }
    }

    /// Reads on until a line has all of these words.
    fn until(&mut self, words: &[&str]) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line =
                line.unwrap_or_else(|_| panic!("no line with {words:?} among\n{}", self.seen.join("\n")));
            self.seen.push(line.clone());
            if words.iter().all(|word| line.contains(word)) {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(name).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end; its exit code.
    fn end(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
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

/// The example of `up`, hurried: decisions every second, and a load that is there at once.
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
fn up_scales_tells_and_leaves_nothing_behind() {
    let folder = folder("up");
    let (file, kubeconfig) = (folder.join("up.yaml"), folder.join("kubeconfig"));
    std::fs::write(&file, hurried()).unwrap();
    let mut up = Going::start(&["up", file.to_str().unwrap(), "--kubeconfig", kubeconfig.to_str().unwrap()]);
    up.until(&["localkube ready in", "3 nodes", "1 workload"]);
    up.until(&["ask why", "why hpa/php-apache"]);
    up.until(&["hpa/php-apache", "1 → "]);
    let asked = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["why", "hpa/php-apache", "--since", "10m", "--kubeconfig", kubeconfig.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&asked.stdout);
    assert!(asked.status.success() && text.contains("1 → "), "{asked:?}");
    up.signal("-INT");
    assert_eq!(up.end(), Some(0));
    assert!(!kubeconfig.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_leads_takes_new_settings_and_gives_its_lease_back() {
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
        "--log-format=json",
    ];
    let (mut going, file) = (Going::start(&words), config.clone());
    let going = tokio::task::spawn_blocking(move || {
        let line = going.until(&["\"message\":\"leading\""]);
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
    going.signal("-TERM");
    let code = tokio::task::spawn_blocking(move || going.end()).await.unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(lease().await, "", "the lease was given back");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_flags_and_files_are_told_at_once() {
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
