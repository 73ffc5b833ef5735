//! `plimsoll metrics`: resource, custom and external metrics from one server, and its diagnosis.
//!
//! ```text
//! flags     the flags of metrics-server and prometheus-adapter, and our own: one table
//! options   validated flags
//! kubelets  settings of the scraper
//! prometheus  settings of the Prometheus client
//! operator_upstream  our operator behind the same API
//! run       the process: start, reload, stop
//! service   the server
//! reports   the API that doctor reads
//! lint      errors in a file of rules
//! explain   what rules discover, and the PromQL they become
//! doctor    who serves what, what is missing, why, and what to do
//! ```

mod doctor;
mod explain;
pub(crate) mod flags;
mod kubelets;
mod lint;
mod operator_upstream;
mod options;
mod prometheus;
mod query_targets;
mod reports;
mod run;
mod service;

use crate::failure::{CommandResult, Failure};
use crate::program::{Replaced, replaced};
use flags::MetricsFlags;
pub(crate) use options::MetricsOptions;
#[cfg(feature = "desk")]
pub(crate) use run::start;
pub(crate) use run::{API_SERVICES, MetricsProcess, OtherRoles, prepare};
pub(crate) use service::{SERVICE, server_options};

/// Serve resource, custom and external metrics, instead of metrics-server and prometheus-adapter
///
/// Accepts the flags of both, so that their manifests start it: kubelets are scraped for metrics.k8s.io; with --config, the
/// rules of prometheus-adapter define custom, external and, if they say so, resource metrics. Flags without effect
/// are accepted and named in the log.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_version_flag = true,
    subcommand_value_name = "COMMAND"
)]
#[command(after_help = "\
Examples:
  plimsoll metrics --metric-resolution=15s --secure-port=10250     # as metrics-server
  plimsoll metrics --config=rules.yaml --prometheus-url=http://prometheus:9090
  plimsoll metrics lint rules.yaml                                 # what is wrong with rules
  plimsoll metrics explain rules.yaml --rule 0                     # what they discover and ask
  plimsoll metrics doctor                                          # what is wrong on this cluster

Flags that are only taken for compatibility are in docs/metrics.md. Manifests are in deploy/metrics/.")]
pub(crate) struct MetricsArgs {
    #[command(subcommand)]
    command: Option<MetricsCommand>,
    #[command(flatten)]
    flags: MetricsFlags,
}

#[derive(clap::Subcommand)]
enum MetricsCommand {
    /// Serve, as without a command
    #[command(disable_version_flag = true)]
    Serve(ServeArgs),
    Doctor(doctor::DoctorArgs),
    Lint(lint::LintArgs),
    Explain(explain::ExplainArgs),
}

#[derive(clap::Args)]
struct ServeArgs {
    #[command(flatten)]
    flags: MetricsFlags,
}

pub(crate) fn run(args: &MetricsArgs) -> CommandResult {
    match &args.command {
        None => serve(&args.flags),
        Some(MetricsCommand::Serve(args)) => serve(&args.flags),
        Some(MetricsCommand::Doctor(args)) => doctor::run(args),
        Some(MetricsCommand::Lint(args)) => lint::run(args),
        Some(MetricsCommand::Explain(args)) => explain::run(args),
    }
}

fn serve(flags: &MetricsFlags) -> CommandResult {
    if flags.bool("version")? {
        return crate::output::text_out(&format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
    }
    let mut options = MetricsOptions::of(flags)?;
    match replaced() {
        Some(Replaced::Adapter) if options.config.is_none() => {
            return Err(Failure::input("prometheus-adapter needs --config: the file with its rules"));
        }
        Some(Replaced::Server) => options.speaks_of_kubelets = true,
        _ => {}
    }
    options.logs.init()?;
    run::run(&options)
}
