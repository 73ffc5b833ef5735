//! A real control plane for tests: `cargo xtask real build | up | down`.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use localkube::clock::Clock;
use localkube::nodes::Nodes;
use testbed::progress::human;
use testbed::{
    Access, Cache, ControlPlane, KedaPrograms, MAX_NODES, NodeOptions, Options, Parts, Peers, Progress,
    Prometheus, Release, state,
};

use crate::local;

/// Build and run a real Kubernetes control plane on loopback.
#[derive(clap::Subcommand)]
pub(crate) enum Real {
    /// Build what is missing: Kubernetes, etcd and Prometheus. A second call is instant.
    Build(Build),
    /// Start etcd, kube-apiserver and kube-controller-manager, and print a kubeconfig.
    Up(Up),
    /// End what `up` has started.
    Down(Down),
}

#[derive(clap::Args)]
pub(crate) struct Build {
    /// Also build metrics-server, prometheus-adapter, KEDA and Helm.
    #[arg(long)]
    peers: bool,
    /// Also build this release of KEDA, for `differential keda --keda`.
    #[arg(long, value_name = "RELEASE", value_parser = testbed::keda::RELEASES)]
    keda: Option<String>,
    #[command(flatten)]
    release: ReleaseArg,
    /// Build nothing; exit with 3 if the release of Kubernetes or KEDA is missing.
    #[arg(long, conflicts_with = "peers")]
    check: bool,
}

#[derive(clap::Args)]
pub(crate) struct Up {
    #[command(flatten)]
    release: ReleaseArg,
    /// Run Kubernetes' own HPA controller too.
    #[arg(long)]
    hpa: bool,
    /// Simulated nodes, on which pods are placed and live; 0 leaves them pending.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    nodes: usize,
    /// Real nodes with kubelet, containerd and kube-proxy, one if no count is given, instead of simulated ones; needs root.
    #[arg(
        long = "node",
        value_name = "COUNT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_NODES)),
        conflicts_with_all = ["nodes", "without_controller_manager"]
    )]
    real_nodes: Option<u8>,
    /// An image for real nodes: an OCI layout, such as target/image/oci, or an archive; may be repeated.
    #[arg(long = "image", value_name = "PATH", requires = "real_nodes")]
    images: Vec<PathBuf>,
    /// Return when it is ready, and leave it running until `down`.
    #[arg(long)]
    detach: bool,
    /// Do without kube-controller-manager.
    #[arg(long)]
    without_controller_manager: bool,
    /// A flag to add to kube-apiserver's, such as --api-server-arg=--v=4; may be repeated.
    #[arg(long = "api-server-arg", value_name = "FLAG", allow_hyphen_values = true)]
    api_server_args: Vec<String>,
    /// A flag to add to kube-controller-manager's; may be repeated.
    #[arg(long = "controller-manager-arg", value_name = "FLAG", allow_hyphen_values = true)]
    controller_manager_args: Vec<String>,
    /// Feature gates of both, such as HPAScaleToZero=true,Other=false.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',', value_parser = feature_gate)]
    feature_gates: Vec<(String, bool)>,
    #[command(flatten)]
    place: StateFolderArg,
}

#[derive(clap::Args)]
pub(crate) struct Down {
    #[command(flatten)]
    place: StateFolderArg,
}

/// The release of Kubernetes.
#[derive(clap::Args)]
pub(crate) struct ReleaseArg {
    /// Version of Kubernetes: 1.36.4 or 1.37.1.
    #[arg(long = "kubernetes", value_name = "VERSION", default_value_t)]
    release: Release,
}

impl ReleaseArg {
    /// The chosen release.
    pub(crate) fn release(&self) -> Release {
        self.release
    }
}

#[derive(clap::Args)]
struct StateFolderArg {
    /// Where logs, certificates and data are [default: .plimsoll/real in the clone].
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

/// The timeout of `down`, which usually takes a tenth of a second.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);
/// Exit code of `build` where the tools, or with `--check` the programs, are missing, so that callers can skip the real cluster.
const OUT_OF_REACH_EXIT_CODE: u8 = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(real: &Real) -> anyhow::Result<ExitCode> {
    match real {
        Real::Build(args) => match build(args) {
            Err(error) if error.downcast_ref().is_some_and(testbed::Error::is_out_of_reach) => {
                eprintln!("error: {error}");
                return Ok(ExitCode::from(OUT_OF_REACH_EXIT_CODE));
            }
            built => built?,
        },
        Real::Up(args) if args.detach => detach(args)?,
        Real::Up(args) => up(args)?,
        Real::Down(args) => down(&args.place.folder())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn build(args: &Build) -> anyhow::Result<()> {
    let (cache, mut progress) = (Cache::of_user()?, Progress::stderr());
    if args.check {
        Parts::require_in(&cache, args.release.release())?;
        if let Some(release) = &args.keda {
            KedaPrograms::require_in(&cache, release)?;
        }
        return Ok(());
    }
    let parts = Parts::of_release(args.release.release(), &cache, &mut progress)?;
    let prometheus = Prometheus::ensure_in(&cache, &mut progress)?;
    let mut programs = vec![parts.etcd, parts.kube_apiserver, parts.kube_controller_manager, parts.kubectl];
    programs.extend([prometheus.prometheus, prometheus.promtool]);
    if args.peers {
        let peers = Peers::ensure_in(&cache, &mut progress)?;
        programs.extend([peers.metrics_server, peers.prometheus_adapter, peers.helm]);
        programs.extend([peers.keda_operator, peers.keda_adapter, peers.keda_webhooks]);
    }
    if let Some(release) = &args.keda {
        let keda = KedaPrograms::ensure_in(&cache, release, &mut progress)?;
        programs.extend([keda.operator, keda.adapter, keda.webhooks]);
    }
    for program in programs {
        println!("{}", program.display());
    }
    Ok(())
}

/// Builds what is missing before the time to start is measured, unless the start is bound to fail.
fn ensure(args: &Up) -> anyhow::Result<()> {
    if args.real_nodes.is_some() && !testbed::node::is_root() {
        return Err(testbed::Error::NotRoot.into());
    }
    Parts::of_release(args.release.release(), &Cache::of_user()?, &mut Progress::stderr())?;
    Ok(())
}

/// Runs in the foreground. Ctrl-C needs no handler: whatever ends this process ends what it started.
fn up(args: &Up) -> anyhow::Result<()> {
    ensure(args)?;
    let since = Instant::now();
    let mut plane = ControlPlane::start(&args.options())?;
    let (runtime, access) = (local::runtime()?, plane.access());
    let simulated = if args.real_nodes.is_some() { 0 } else { args.nodes };
    let nodes = runtime.block_on(nodes(access, simulated))?;
    print!(
        "{}",
        welcome(access, args.release.release(), since.elapsed(), "Ctrl-C, or `cargo xtask real down`")
    );
    std::io::stdout().flush()?;
    plane.watch().inspect_err(|error| {
        // The error is written to the log for `--detach`, which has no terminal.
        let _ = std::fs::write(plane.access().logs.join("up.log"), format!("{error}\n"));
    })?;
    drop(nodes);
    Ok(())
}

async fn nodes(access: &Access, count: usize) -> anyhow::Result<Option<Nodes>> {
    if count == 0 {
        return Ok(None);
    }
    let client = testbed::harness::connect(&access.kubeconfig_for(access.admin())).await?;
    local::nodes(client, count, Clock::system()).await.map(Some)
}

fn detach(args: &Up) -> anyhow::Result<()> {
    ensure(args)?;
    let folder = args.place.folder();
    if state::is_held(&folder)? {
        return Err(testbed::Error::Busy(folder).into());
    }
    let since = Instant::now();
    let log = std::env::temp_dir().join(format!("plimsoll-real-up-{}.log", std::process::id()));
    let out = File::create(&log).with_context(|| format!("failed to write {}", log.display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1).filter(|word| word != "--detach"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out).process_group(0);
    let mut child = command.spawn().context("failed to start in the background")?;
    while state::holder(&folder) != Some(child.id()) {
        if child.try_wait()?.is_some() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            // An error of the cleanup must not hide the first error.
            let _ = std::fs::remove_file(&log);
            bail!("{}", said.trim().trim_start_matches("Error: "));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    std::fs::remove_file(&log)?;
    print!(
        "{}",
        welcome(&Access::open(&folder)?, args.release.release(), since.elapsed(), "`cargo xtask real down`")
    );
    Ok(())
}

fn down(folder: &Path) -> anyhow::Result<()> {
    let since = Instant::now();
    match state::stop(folder, STOP_TIMEOUT) {
        Ok(()) => {
            println!("ended in {}; logs stay in {}", human(since.elapsed()), folder.join("logs").display());
        }
        Err(testbed::Error::NotRunning(_)) => println!("nothing runs in {}", folder.display()),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn welcome(access: &Access, version: Release, took: Duration, stop: &str) -> String {
    let bin = access.parts.kubectl.parent().unwrap_or(Path::new("."));
    format!(
        "kube-apiserver {version} ready in {took} at {server}

  kubectl     export KUBECONFIG={kubeconfig}
              export PATH={bin}:$PATH
  tests       export {attach}={folder}
  logs        {logs}
  stop        {stop}
",
        took = human(took),
        server = access.server,
        kubeconfig = access.kubeconfig.display(),
        bin = bin.display(),
        attach = testbed::ATTACH,
        folder = access.folder.display(),
        logs = access.logs.display(),
    )
}

impl Up {
    fn options(&self) -> Options {
        Options {
            state: Some(self.place.folder()),
            release: Some(self.release.release()),
            controller_manager: !self.without_controller_manager,
            hpa: self.hpa,
            nodes: self.real_nodes.map(|count| NodeOptions { count, images: self.images.clone() }),
            feature_gates: self.feature_gates.iter().cloned().collect(),
            api_server_args: self.api_server_args.clone(),
            controller_manager_args: self.controller_manager_args.clone(),
            ..Options::default()
        }
    }
}

impl StateFolderArg {
    fn folder(&self) -> PathBuf {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        self.state.clone().unwrap_or_else(|| clone.join(".plimsoll").join("real"))
    }
}

fn feature_gate(text: &str) -> anyhow::Result<(String, bool)> {
    let parsed = text.split_once('=').and_then(|(name, on)| Some((name.to_owned(), on.parse().ok()?)));
    parsed.filter(|(name, _)| !name.is_empty()).context("expected NAME=true or NAME=false")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        real: Real,
    }

    fn options(words: &[&str]) -> Options {
        match Line::try_parse_from(["real", "up"].iter().chain(words)).unwrap().real {
            Real::Up(up) => up.options(),
            _ => panic!("not up"),
        }
    }

    #[test]
    fn flags_become_options() {
        let plain = options(&[]);
        assert!(plain.controller_manager && !plain.hpa);
        assert!(plain.state.unwrap().ends_with(".plimsoll/real"));
        let all = options(&[
            "--hpa",
            "--controller-manager-arg=--v=4",
            "--controller-manager-arg",
            "--horizontal-pod-autoscaler-sync-period=1s",
            "--api-server-arg=--v=5",
            "--feature-gates=A=true,B=false",
            "--state=/x",
        ]);
        assert!(all.hpa);
        assert_eq!(all.controller_manager_args, ["--v=4", "--horizontal-pod-autoscaler-sync-period=1s"]);
        assert_eq!(all.api_server_args, ["--v=5"]);
        assert_eq!(all.feature_gates, [("A".to_owned(), true), ("B".to_owned(), false)].into());
        assert_eq!(all.state, Some("/x".into()));
        assert!(!options(&["--without-controller-manager"]).controller_manager);
    }

    #[test]
    fn real_nodes_replace_simulated_ones() {
        assert!(options(&[]).nodes.is_none());
        assert_eq!(options(&["--node"]).nodes.unwrap().count, 1);
        let two = options(&["--node=2", "--image", "a", "--image", "b"]).nodes.unwrap();
        assert_eq!((two.count, two.images.len()), (2, 2));
        for bad in [&["--node=9"][..], &["--image=a"], &["--node", "--nodes=3"]] {
            assert!(Line::try_parse_from(["real", "up"].iter().chain(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_release_is_chosen() {
        let release = |words: &[&str]| options(words).release.unwrap().to_string();
        assert_eq!(release(&[]), "1.36.4");
        assert_eq!(release(&["--kubernetes", "1.37.1"]), "1.37.1");
        assert!(Line::try_parse_from(["real", "build", "--kubernetes", "1.2.3"]).is_err());
    }

    #[test]
    fn feature_gate_values_are_parsed() {
        for bad in ["A", "=true", "A=yes", ""] {
            assert!(feature_gate(bad).is_err(), "{bad:?}");
        }
    }
}
