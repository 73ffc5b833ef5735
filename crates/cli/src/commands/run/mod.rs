//! `plimsoll run`: several roles in one process, with one server and one watch of pods.
//!
//! ```text
//! flags    the flags of the roles: which are shared, and whose the others are
//! logs     the log flags
//! options  validated flags
//! process  start, reload and orderly stop of all roles
//! ```

mod flags;
mod logs;
mod options;
mod process;
#[cfg(test)]
mod tests;

use crate::failure::CommandResult;
use flags::{Role, RoleFlags};
use logs::RunLogs;
use options::RunOptions;

/// Run several roles in one process: controller, metrics server and operator
///
/// The roles share one TLS server with one certificate and one watch of pods, and samples are handed over in memory. Takes the flags of the roles under their names; shared ones are given once, and --config and --record,
/// which mean something else in each role, have the role in front. Each role has a lease of its own, except the metrics
/// server, which needs none. Flags without effect are not accepted, except those of logs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll run                                                     # all roles
  plimsoll run --roles controller,metrics                          # without the operator
  plimsoll run --secure-port 6443 --enable-cert-rotation           # one port and one certificate
  plimsoll run --metric-resolution 15s --act direct --mode shadow  # flags of the roles
  plimsoll run --metrics-config rules.yaml --prometheus-url http://prometheus:9090

docs/one-process.md says what the roles share. In the chart, singleProcess.enabled=true runs them like this.")]
pub(crate) struct RunArgs {
    /// The roles to run.
    #[arg(
        long,
        value_enum,
        value_name = "ROLE,…",
        value_delimiter = ',',
        default_value = "controller,metrics,operator"
    )]
    roles: Vec<Role>,
    #[command(flatten)]
    logs: RunLogs,
    #[command(flatten)]
    flags: RoleFlags,
}

pub(crate) fn run(args: &RunArgs) -> CommandResult {
    let options = RunOptions::of(&args.roles, &args.flags, |name| std::env::var(name).ok())?;
    args.logs.0.init()?;
    process::run(&options)
}
