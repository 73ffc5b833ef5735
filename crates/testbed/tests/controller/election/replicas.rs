//! Controllers as processes.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use cluster::Clock;
use cluster::connect::{ConnectTarget, connect};
use cluster::lease::{Election, LeaseSettings};
use controllers::hpa::HpaSettings;
use http::Method;
use serde::{Deserialize, Serialize};
use testbed::proxy::{LogEntry, Proxy};
use tokio::signal::unix::{SignalKind, signal};

use crate::env::{ControllerEnv, PERIOD, RunningController, unique};

pub(super) const LEASE_DURATION: Duration = Duration::from_secs(3);
const RENEW_DEADLINE: Duration = Duration::from_secs(2);
pub(super) const RETRY_PERIOD: Duration = Duration::from_millis(500);
const NAME: &str = "plimsoll-controller";
/// The environment variable with the role of a process of this binary.
const ROLE_VARIABLE: &str = "PLIMSOLL_TEST_CONTROLLER";
/// The binary to run instead.
const BINARY: &str = "PLIMSOLL_BIN";

/// Controllers of one namespace.
pub(super) struct ControllerReplicas {
    members: Vec<Member>,
}

struct Member {
    proxy: Proxy,
    kubeconfig: PathBuf,
    child: Option<Child>,
}

/// Settings of a process.
#[derive(Deserialize, Serialize)]
struct ReplicaOptions {
    kubeconfig: PathBuf,
    namespace: String,
    identity: String,
}

/// A random time up to `most`.
pub(super) fn chance(most: Duration) -> Duration {
    most.mul_f64(RandomState::new().hash_one(0) as f64 / u64::MAX as f64)
}

impl ControllerReplicas {
    pub(super) async fn start(env: &ControllerEnv, count: usize) -> Self {
        let mut crew = Self { members: Vec::new() };
        for _ in 0..count {
            let proxy = Proxy::start(&env.kubeconfig).await.unwrap();
            let kubeconfig =
                std::env::temp_dir().join(format!("plimsoll-crew-{}-{}", std::process::id(), unique()));
            std::fs::write(&kubeconfig, proxy.kubeconfig()).unwrap();
            let child = Some(spawn(&kubeconfig, &env.namespace));
            crew.members.push(Member { proxy, kubeconfig, child });
        }
        crew
    }

    /// The leader: the replica that last renewed the lease.
    pub(super) async fn leader(&self, env: &ControllerEnv) -> usize {
        self.next(env, |_| true).await
    }

    /// The leader after `old`.
    pub(super) async fn next_leader(&self, env: &ControllerEnv, old: usize) -> usize {
        self.next(env, |number| number != old).await
    }

    async fn next(&self, env: &ControllerEnv, wanted: impl Fn(usize) -> bool) -> usize {
        let mut found = 0;
        env.until("a leader", async || {
            let renewed = self.members.iter().enumerate().map(|(number, member)| (member.renewed(), number));
            match renewed.max() {
                Some((Some(_), number)) if wanted(number) => {
                    found = number;
                    Ok(())
                }
                other => Err(other),
            }
        })
        .await;
        found
    }

    /// Kills a process with SIGKILL.
    pub(super) fn kill(&mut self, number: usize) {
        let mut child = self.members[number].child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Stops a process gracefully and waits for its end.
    pub(super) async fn terminate(&mut self, number: usize) {
        let mut child = self.members[number].child.take().unwrap();
        let signalled = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(signalled.success());
        // Waiting would close standard input, which ends the process.
        let _held = child.stdin.take();
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        assert!(ended.success(), "{ended}");
    }

    pub(super) async fn restart(&mut self, env: &ControllerEnv, number: usize) {
        let member = &mut self.members[number];
        member.child = Some(spawn(&member.kubeconfig, &env.namespace));
        // The process is a candidate after its first read of the lease.
        let since = SystemTime::now();
        let looked = |entry: &LogEntry| entry.path.contains("/leases/") && entry.at >= since;
        env.until("a candidate", async || {
            if member.proxy.rules().log().iter().any(looked) { Ok(()) } else { Err(()) }
        })
        .await;
    }

    /// How often a replica read the lease since `since`, until it took it.
    pub(super) fn lease_reads(&self, number: usize, since: SystemTime) -> usize {
        let log = self.members[number].proxy.rules().log();
        let requests = log.iter().filter(|entry| entry.path.contains("/leases") && entry.at >= since);
        requests.take_while(|entry| entry.method == Method::GET).count()
    }

    /// How many writes of all replicas to paths with this suffix succeeded.
    pub(super) fn written(&self, suffix: &str) -> usize {
        let all = self.members.iter().flat_map(|member| member.proxy.rules().log());
        all.filter(|entry| {
            entry.method == Method::PUT && entry.path.ends_with(suffix) && entry.status == Some(200)
        })
        .count()
    }
}

impl Member {
    /// The time at which a replica last acquired or renewed the lease.
    fn renewed(&self) -> Option<SystemTime> {
        let log = self.proxy.rules().log();
        let taken = |entry: &&LogEntry| {
            entry.path.contains("/leases")
                && entry.method != Method::GET
                && matches!(entry.status, Some(200 | 201))
        };
        log.iter().rev().find(taken).map(|entry| entry.at)
    }
}

impl Drop for ControllerReplicas {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(child) = &mut member.child {
                let _ = child.kill();
                let _ = child.wait();
            }
            let _ = std::fs::remove_file(&member.kubeconfig);
        }
    }
}

fn spawn(kubeconfig: &Path, namespace: &str) -> Child {
    let mut command = match std::env::var_os(BINARY) {
        Some(binary) => {
            let mut command = Command::new(binary);
            command.arg("controller").arg("--kubeconfig").arg(kubeconfig);
            let seconds = |time: Duration| format!("{}ms", time.as_millis());
            command.args([
                format!("--namespaces={namespace}"),
                format!("--leader-elect-resource-namespace={namespace}"),
                format!("--leader-elect-lease-duration={}", seconds(LEASE_DURATION)),
                format!("--leader-elect-renew-deadline={}", seconds(RENEW_DEADLINE)),
                format!("--leader-elect-retry-period={}", seconds(RETRY_PERIOD)),
                format!("--horizontal-pod-autoscaler-sync-period={}", seconds(PERIOD)),
                "--horizontal-pod-autoscaler-downscale-stabilization=0s".to_owned(),
                "--secure-port=-1".to_owned(),
            ]);
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let identity = format!("controller-{}", unique());
            let part = ReplicaOptions {
                kubeconfig: kubeconfig.to_owned(),
                namespace: namespace.to_owned(),
                identity,
            };
            command.args(["--exact", "election::replicas::controller_process", "--nocapture"]);
            command.env(ROLE_VARIABLE, serde_json::to_string(&part).unwrap());
            command
        }
    };
    // The process ends when its standard input is closed, which the kernel does when this process ends.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Not a test: the controller process, if this binary was started as one.
#[test]
fn controller_process() {
    let Ok(part) = std::env::var(ROLE_VARIABLE) else { return };
    let part: ReplicaOptions = serde_json::from_str(&part).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let target = ConnectTarget { kubeconfig: Some(part.kubeconfig), context: None };
        let client = connect(&target).await.unwrap().client;
        let lease = LeaseSettings {
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
            ..LeaseSettings::new(&part.namespace, NAME, &part.identity)
        };
        lease.validate().unwrap();
        let (election, leadership) = Election::start(client.clone(), lease, Clock::system());
        let config = engine::ControllerConfig {
            downscale_stabilization: jiff::SignedDuration::ZERO,
            ..engine::ControllerConfig::default()
        };
        let settings = HpaSettings {
            config: config.into(),
            period: PERIOD,
            namespaces: vec![part.namespace],
            ..HpaSettings::default()
        };
        let ours = RunningController::start_with(client, settings, leadership, Clock::system());
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        // The parent process holds the other end of standard input.
        std::thread::spawn(|| {
            let _ = std::io::stdin().read(&mut [0]);
            std::process::exit(1);
        });
        terminate.recv().await;
        ours.stop().await;
        election.release().await;
    });
}
