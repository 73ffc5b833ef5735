//! Kubernetes' own HPA controller, alone: what Plimsoll's is compared with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::access::Access;
use crate::error::{Error, make_folder, read};
use crate::pki::write_private;
use crate::process::{Component, processes_mentioning};
use crate::proxy::{Fault, Proxy, ProxyOptions, Rewrite, Rule, Rules};

/// How the controller is started; what is absent is left to Kubernetes.
#[derive(Clone, Debug, Default)]
pub struct PeerOptions {
    /// The only namespace whose autoscalers it sees; absent: all.
    pub namespace: Option<String>,
    /// Whether its requests go through a proxy that counts them, also without a namespace.
    pub counted: bool,
    /// How often each autoscaler is looked at.
    pub sync_period: Option<Duration>,
    /// How long higher recommendations are remembered.
    pub downscale_stabilization: Option<Duration>,
    /// Which deviation is ignored, such as 0.1.
    pub tolerance: Option<f64>,
    /// How long after its start a pod's cpu is not trusted.
    pub cpu_initialization_period: Option<Duration>,
    /// How long after its start a pod may become unready as if it had never been ready.
    pub initial_readiness_delay: Option<Duration>,
    /// How many autoscalers are looked at together.
    pub concurrent_syncs: Option<u32>,
    /// Feature gates.
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags; they come last.
    pub args: Vec<String>,
}

impl PeerOptions {
    /// For a test: one namespace, several autoscalers together, each as often as this.
    pub fn of_test(namespace: &str, period: Duration) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            sync_period: Some(period),
            concurrent_syncs: Some(5),
            ..Self::default()
        }
    }
}

/// A running controller; it ends when this is dropped, and also when the process that holds it is killed.
pub struct Peer {
    component: Component,
    folder: PathBuf,
    program: PathBuf,
    proxy: Option<Proxy>,
}

/// What a process has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Time on processors, for itself and in the kernel.
    pub cpu: Duration,
    /// Memory in use, in bytes.
    pub resident: u64,
    /// The most memory that was ever in use, in bytes.
    pub peak: u64,
}

const NAME: &str = "kube-controller-manager";
/// What it writes when it knows all autoscalers and pods and begins.
const READY: &str = "Caches are synced";
const DEADLINE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(20);
/// The kernel counts in hundredths of a second for programs, whatever it does itself.
const TICK: Duration = Duration::from_millis(10);

impl Peer {
    /// Starts the controller on a real cluster and returns when it begins.
    pub async fn start(access: &Access, options: &PeerOptions) -> Result<Self, Error> {
        let mut kubeconfig = access.kubeconfig_for(access.admin());
        let mut proxy = None;
        if options.namespace.is_some() || options.counted {
            let settings = ProxyOptions { remember_lists: false, ..ProxyOptions::default() };
            let started = Proxy::start_with(&kubeconfig, settings).await?;
            if let Some(namespace) = &options.namespace {
                started.rules().add(only(namespace));
            }
            kubeconfig = started.kubeconfig();
            proxy = Some(started);
        }
        Self::launch(access, &kubeconfig, options, proxy).await
    }

    async fn launch(
        access: &Access,
        kubeconfig: &str,
        options: &PeerOptions,
        proxy: Option<Proxy>,
    ) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = access.folder.join("peers").join(format!("{}-{number}", std::process::id()));
        make_folder(&folder.join("logs"))?;
        let file = folder.join("kubeconfig");
        write_private(&file, kubeconfig)?;
        let program = access.parts.kube_controller_manager.clone();
        let component = Component::start(NAME, &program, &arguments(&file, options), &folder, None)?;
        let mut peer = Self { component, folder, program, proxy };
        let until = Instant::now() + DEADLINE;
        while !read(&peer.component.log).is_ok_and(|log| log.contains(READY)) {
            if let Some(status) = peer.component.ended() {
                return Err(peer.component.failure(format!("ended by itself ({status})")));
            }
            if Instant::now() > until {
                return Err(peer.component.failure(format!("was not ready after {} s", DEADLINE.as_secs())));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(peer)
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.component.log
    }

    /// The proxy it goes through, which counts its requests and can make faults.
    pub fn rules(&self) -> Option<Rules> {
        self.proxy.as_ref().map(Proxy::rules)
    }

    /// Its process (Linux only; elsewhere none).
    pub fn pid(&self) -> Option<u32> {
        // Among those that know the folder are also the shells that hold it.
        let program = self.program.canonicalize().ok()?;
        let is_it = |id: &u32| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|link| link == program);
        processes_mentioning(&self.folder).into_iter().find(is_it)
    }

    /// What it has used so far (Linux only; elsewhere nothing is known).
    pub fn usage(&self) -> Option<ProcessUsage> {
        ProcessUsage::of(self.pid()?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.component.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl ProcessUsage {
    /// What a process has used so far (Linux only; elsewhere nothing is known).
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Self::parse(&stat, &status)
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The name in parentheses may hold anything; behind it, the 12th and 13th fields are the two times.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
        let size = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
        };
        Some(Self { cpu: TICK * (ticks(11)? + ticks(12)?), resident: size("VmRSS:")?, peak: size("VmHWM:")? })
    }
}

/// Rewrites requests for the autoscalers of all namespaces to one namespace.
fn only(namespace: &str) -> Rule {
    let namespace = namespace.to_owned();
    let rewrite: Rewrite = Arc::new(move |path| narrowed(path, &namespace));
    Rule::new(Fault::RewritePath(rewrite)).prefix("/apis/autoscaling/")
}

fn narrowed(path: &str, namespace: &str) -> String {
    for version in ["v1", "v2"] {
        let root = format!("/apis/autoscaling/{version}/");
        if let Some(rest) =
            path.strip_prefix(&root).filter(|rest| rest.starts_with("horizontalpodautoscalers"))
        {
            return format!("{root}namespaces/{namespace}/{rest}");
        }
    }
    path.to_owned()
}

fn arguments(kubeconfig: &Path, options: &PeerOptions) -> Vec<String> {
    let config = |flag: &str| format!("--{flag}={}", kubeconfig.display());
    let mut arguments = vec![
        config("kubeconfig"),
        config("authentication-kubeconfig"),
        config("authorization-kubeconfig"),
        "--controllers=horizontal-pod-autoscaler-controller".into(),
        "--use-service-account-credentials=false".into(),
        "--leader-elect=false".into(),
        // No client needs its server.
        "--secure-port=0".into(),
        // Its own default of 20 a second is not what is compared.
        "--kube-api-qps=500".into(),
        "--kube-api-burst=1000".into(),
    ];
    let durations = [
        ("sync-period", options.sync_period),
        ("downscale-stabilization", options.downscale_stabilization),
        ("cpu-initialization-period", options.cpu_initialization_period),
        ("initial-readiness-delay", options.initial_readiness_delay),
    ];
    for (name, given) in durations {
        arguments.extend(
            given.map(|given| format!("--horizontal-pod-autoscaler-{name}={}s", given.as_secs_f64())),
        );
    }
    arguments.extend(options.tolerance.map(|given| format!("--horizontal-pod-autoscaler-tolerance={given}")));
    let syncs = options.concurrent_syncs;
    arguments.extend(syncs.map(|given| format!("--concurrent-horizontal-pod-autoscaler-syncs={given}")));
    let gates: Vec<String> = options.feature_gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
    if !gates.is_empty() {
        arguments.push(format!("--feature-gates={}", gates.join(",")));
    }
    arguments.extend(options.args.iter().cloned());
    arguments
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_lists_of_all_autoscalers_are_narrowed() {
        let cases = [
            (
                "/apis/autoscaling/v2/horizontalpodautoscalers?watch=true",
                "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers?watch=true",
            ),
            (
                "/apis/autoscaling/v1/horizontalpodautoscalers",
                "/apis/autoscaling/v1/namespaces/a/horizontalpodautoscalers",
            ),
            (
                "/apis/autoscaling/v2/namespaces/b/horizontalpodautoscalers/x/status",
                "/apis/autoscaling/v2/namespaces/b/horizontalpodautoscalers/x/status",
            ),
            ("/apis/autoscaling/v2", "/apis/autoscaling/v2"),
            ("/api/v1/pods", "/api/v1/pods"),
        ];
        for (path, expected) in cases {
            assert_eq!(narrowed(path, "a"), expected);
        }
    }

    #[test]
    fn flags_say_what_was_asked_and_nothing_else() {
        let plain = arguments(Path::new("/k"), &PeerOptions::default());
        assert!(plain.iter().all(|argument| !argument.starts_with("--horizontal")), "{plain:?}");
        let options = PeerOptions {
            sync_period: Some(Duration::from_millis(1500)),
            tolerance: Some(0.05),
            feature_gates: [("HPAScaleToZero".to_owned(), true)].into(),
            ..PeerOptions::default()
        };
        let some = arguments(Path::new("/k"), &options);
        for wanted in [
            "--horizontal-pod-autoscaler-sync-period=1.5s",
            "--horizontal-pod-autoscaler-tolerance=0.05",
            "--feature-gates=HPAScaleToZero=true",
        ] {
            assert!(some.iter().any(|argument| argument == wanted), "{some:?}");
        }
    }

    #[test]
    fn usage_is_read_from_the_kernel() {
        let stat = "7 (kube) manager) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 9 0 1 1 1";
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";
        let expected = ProcessUsage { cpu: Duration::from_secs(3), resident: 1 << 20, peak: 2 << 20 };
        assert_eq!(ProcessUsage::parse(stat, status), Some(expected));
        assert_eq!(ProcessUsage::parse("7 (x", status), None);
    }
}
