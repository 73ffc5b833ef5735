//! `plimsoll migrate`: what a switch to Plimsoll would change, its commands, and the values of its chart.
//!
//! ```text
//! look        reads the cluster                                    needs a cluster
//! installed   recognizes the replaced programs by their images      pure
//! arguments   flags and variables that have another effect here     pure
//! deployment  the network and the owners of their Deployments       pure
//! objects     KEDA's objects and prometheus-adapter's rules         pure
//! problem     what would not be as before                           pure
//! report      what would change and what would break                pure
//! page        prints the report                                     pure
//! plan        the steps of a switch, and of the way back            pure
//! commands    commands in these steps                               pure
//! values      chart values of the replaced programs                 pure
//! ```

mod arguments;
mod commands;
mod deployment;
mod installed;
mod objects;
mod page;
mod plan;
mod problem;
mod read;
mod report;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;

use serde::Serialize;

use self::read::ClusterState;
use crate::failure::{CommandResult, Failure};
use crate::live::page::Page;
use crate::live::{ClusterArgs, ClusterClient};
use crate::output::{self, Format};

/// Switch to Plimsoll from KEDA, metrics-server, prometheus-adapter or Kubernetes' HPA controller
///
/// Nothing is written to the cluster by these commands.
#[derive(clap::Args)]
pub(crate) struct MigrateArgs {
    #[command(subcommand)]
    command: MigrateCommand,
}

#[derive(clap::Subcommand)]
enum MigrateCommand {
    Check(MigrateCheckArgs),
    Plan(PlanArgs),
    Values(values::ValuesArgs),
}

/// What Plimsoll replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Peer {
    /// metrics-server.
    MetricsServer,
    /// prometheus-adapter.
    PrometheusAdapter,
    /// KEDA: its operator, metrics adapter and webhooks.
    Keda,
    /// The HPA controller of kube-controller-manager.
    Hpa,
}

impl Peer {
    /// All, in the order in which a cluster is switched.
    const ALL: [Self; 4] = [Self::MetricsServer, Self::PrometheusAdapter, Self::Keda, Self::Hpa];

    /// Its name in sentences.
    fn title(self) -> &'static str {
        match self {
            Self::MetricsServer => "metrics-server",
            Self::PrometheusAdapter => "prometheus-adapter",
            Self::Keda => "KEDA",
            Self::Hpa => "Kubernetes' HPA controller",
        }
    }
}

/// The cluster of the options.
#[derive(Clone, Debug, clap::Args)]
struct MigrationCluster {
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Report what is installed, who serves which API, what would change, and what would break
///
/// Recognizes metrics-server, prometheus-adapter and KEDA by the images of Deployments, and reads their flags, prometheus-adapter's
/// rules and all of KEDA's objects. Unknown trigger types, parameters that cannot be read, rules that do not compile and flags that
/// do not exist here break; flags without effect differ.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll migrate check
  plimsoll migrate check --from keda -o json

Exit codes: 0 nothing would break, 3 something would, 1 something could not be read, 2 the input was wrong.")]
pub(super) struct MigrateCheckArgs {
    /// Only what concerns this one; may be given several times.
    #[arg(long, value_enum, value_name = "PEER")]
    from: Vec<Peer>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: MigrationCluster,
}

/// Print the commands of a switch step by step, each with the way back
///
/// Reads the cluster for the names of what is installed. Every API is switched by one patch of its APIService, after the new server
/// is ready, so that autoscalers do not wait for metrics; the way back is the patch to what is there now.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll migrate plan --from metrics-server
  plimsoll migrate plan --from keda --back          # only the way back
  plimsoll migrate plan -o json")]
pub(super) struct PlanArgs {
    /// Switch from this one only; without it, from everything that is installed.
    #[arg(long, value_enum, value_name = "PEER")]
    from: Option<Peer>,
    /// Print only the way back, in its order.
    #[arg(long)]
    back: bool,
    /// Namespace of Plimsoll.
    #[arg(short, long, value_name = "NAME", default_value = plan::NAMESPACE)]
    namespace: String,
    /// The chart: a folder, an archive or an OCI address.
    #[arg(long, value_name = "CHART", default_value = "charts/plimsoll")]
    chart: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: MigrationCluster,
}

pub(crate) fn run(args: &MigrateArgs) -> CommandResult {
    match &args.command {
        MigrateCommand::Check(args) => check(args),
        MigrateCommand::Plan(args) => plan(args),
        MigrateCommand::Values(args) => values::run(args),
    }
}

fn check(args: &MigrateCheckArgs) -> CommandResult {
    let report = report::report(&read(&args.cluster)?, &args.from);
    match args.output {
        Format::Json | Format::Yaml => output::value(args.output, &report)?,
        Format::Table | Format::Wide => output::text_out(&page::report(&report, Page::stdout()))?,
    }
    match (report.breaks(), report.unread.is_empty()) {
        (true, _) => Err(Failure::Printed(3)),
        (false, false) => Err(Failure::Printed(1)),
        (false, true) => Ok(()),
    }
}

fn plan(args: &PlanArgs) -> CommandResult {
    crate::live::named::check("namespace", &args.namespace)?;
    let state = read(&args.cluster)?;
    let place = commands::Destination { namespace: &args.namespace, chart: &args.chart };
    let plans = plan::plans(&state, args.from, &place);
    if plans.is_empty() && !state.unread.is_empty() {
        return Err(Failure::Outside(format!(
            "failed to read what is installed: {}\n  remedy: ask for the right to read it; `kubectl auth can-i --list` shows what you \
             may do",
            state.unread.join("; ")
        )));
    }
    for unread in &state.unread {
        eprintln!("warning: the plan may lack steps, because this could not be read: {unread}");
    }
    if plans.is_empty() {
        return Err(Failure::input(match args.from {
            Some(peer) => {
                format!("{} is not installed here; `plimsoll migrate check` shows what is", peer.title())
            }
            None => "nothing that Plimsoll replaces is installed here".to_owned(),
        }));
    }
    match args.output {
        Format::Json | Format::Yaml => output::value(args.output, &plans),
        Format::Table | Format::Wide => output::text_out(&page::plans(&plans, args.back)),
    }
}

/// Reads the cluster. The state is evaluated after the runtime has ended, because scalers that are built for a check start one.
fn read(cluster: &MigrationCluster) -> Result<ClusterState, Failure> {
    let mut state = ClusterState::default();
    crate::live::run(async {
        let place = ClusterArgs {
            kubeconfig: cluster.kubeconfig.clone(),
            context: cluster.context.clone(),
            ..ClusterArgs::default()
        };
        state = read::cluster_state(&ClusterClient::open(&place).await?).await?;
        Ok(())
    })?;
    Ok(state)
}
