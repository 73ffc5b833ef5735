//! `plimsoll up`: a local cluster that scales workloads, with nothing to install.

mod event_driven;
mod faults;
mod load_and_faults;
mod objects;
mod pod_metrics;
mod queue;
mod running_cluster;
mod speed;
mod table;
mod workloads;

use std::path::PathBuf;

use api::keda::KedaProfile;

use crate::commands::controller::stopped;
use crate::commands::profile::KubernetesProfileArg;
use crate::failure::{CommandResult, Failure};
use crate::logs::LogArgs;
use running_cluster::RunningCluster;
use speed::ClusterTime;
use workloads::{ChosenWorkloads, ExampleName};

/// Run a local cluster and watch it scale
///
/// Starts an embedded Kubernetes API with simulated nodes, creates the objects of the files, generates the load of their
/// Scenario, and runs controller, metrics server and operator on it over the API, in real time. kubectl works on it,
/// KEDA's resources included. Nothing is left behind.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll up                              # php-apache under load, and a queue worker from zero
  plimsoll up --workloads all              # and a sidecar, a custom metric and a schedule
  plimsoll up examples/php-apache.yaml     # any scenario, in real time
  plimsoll up my-scaledobject.yaml         # your ScaledObject with its target
  plimsoll up --speed 60                   # an hour per minute
  plimsoll up --nodes 10 -v                # and every decision, not only changes
  plimsoll up --kubernetes-profile 1.37    # a cluster of another release

Meanwhile, in another terminal:
  kubectl --kubeconfig .plimsoll/kubeconfig get hpa -w
  plimsoll why hpa/php-apache --kubeconfig .plimsoll/kubeconfig
  plimsoll why so/orders-worker --kubeconfig .plimsoll/kubeconfig")]
pub(crate) struct UpArgs {
    /// Manifests, with a Scenario for the load of their workloads; without them, the examples of --workloads.
    files: Vec<PathBuf>,
    /// Which examples run.
    #[arg(
        long,
        value_enum,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "php-apache,orders-worker",
        conflicts_with = "files"
    )]
    workloads: Vec<ExampleName>,
    /// How many times as fast as that of this machine the cluster's time runs.
    #[arg(long, value_name = "FACTOR", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    speed: u32,
    /// How many simulated nodes there are.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    nodes: u16,
    /// Where the kubeconfig is written; a file that exists is not overwritten.
    #[arg(long, value_name = "FILE", default_value = ".plimsoll/kubeconfig")]
    kubeconfig: PathBuf,
    #[command(flatten)]
    kubernetes: KubernetesProfileArg,
    /// Release of KEDA whose trigger parameters are read, where releases differ: 2.20 or 2.21.
    #[arg(long, value_name = "RELEASE", default_value_t)]
    keda_profile: KedaProfile,
    /// Print only addresses and file names.
    #[arg(short, long)]
    quiet: bool,
    /// Print every decision, not only changes.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// Stop after this time of the cluster; without it, on Ctrl-C.
    #[arg(long, value_name = "DURATION")]
    stop_after: Option<String>,
    #[command(flatten)]
    logs: LogArgs,
}

pub(crate) fn run(args: &UpArgs) -> CommandResult {
    LogArgs { log_level: quieter(&args.logs.log_level), ..args.logs.clone() }.init()?;
    let limit = args.stop_after.as_deref().map(duration).transpose()?;
    let kubernetes = args.kubernetes.version();
    let chosen = ChosenWorkloads::load(&args.files, &args.workloads, kubernetes, args.keda_profile)?;
    speed::runtime(args.speed)?.block_on(async {
        let time = ClusterTime::start(args.speed);
        // Dropping the half-built cluster removes what it has created.
        let cluster = tokio::select! {
            cluster = RunningCluster::build(args, chosen, &time) => cluster?,
            result = stopped() => return result,
        };
        cluster.introduce(args);
        let ended = async {
            match limit {
                Some(limit) => {
                    tokio::select! {
                        () = tokio::time::sleep(limit) => Ok(()),
                        result = stopped() => result,
                    }
                }
                None => stopped().await,
            }
        };
        let result = tokio::select! {
            result = ended => result,
            result = table::watch(&cluster, args) => result,
        };
        cluster.end().await;
        result
    })
}

/// The table already shows what the controller logs at `info`.
fn quieter(level: &str) -> String {
    if level == "info" { "warn".to_owned() } else { level.to_owned() }
}

fn duration(text: &str) -> Result<std::time::Duration, Failure> {
    let parsed = api::time::parse_go_duration(text).and_then(|d| std::time::Duration::try_from(d).ok());
    parsed.ok_or_else(|| Failure::input(format!("--stop-after {text}: write a duration such as 90s or 10m")))
}
