//! `plimsoll operator`: ScaledObjects and ScaledJobs, instead of KEDA.
//!
//! ```text
//! flags      the flags of KEDA's operator, and our own: one table
//! options    validated flags and environment
//! identity   where credentials of the operator go
//! outbound   addresses that scalers may connect to
//! run        the process: start and orderly stop
//! service    the listeners: external metrics, admission, health, exported metrics
//! admission  the admission webhook
//! metrics_service  gRPC for KEDA's own adapter
//! raw_metrics      publishes every value to subscribers
//! ```

mod admission;
pub(crate) mod flags;
mod identity;
mod metrics_service;
mod options;
mod outbound;
mod raw_metrics;
mod run;
mod service;
#[cfg(test)]
mod tests;

use crate::failure::CommandResult;
use flags::OperatorFlags;
pub(crate) use options::OperatorOptions;
pub(crate) use run::IDLE_VARIABLES;
#[cfg(feature = "desk")]
pub(crate) use run::start;
pub(crate) use run::{OperatorProcess, log_options, prepare};

/// The name of the operator's Service, in manifests and in `plimsoll up`.
pub(crate) const SERVICE: &str = "plimsoll-operator";

/// Scale on events, instead of KEDA: ScaledObjects and ScaledJobs, external metrics, admission
///
/// Accepts the flags of KEDA's operator and its variables (WATCH_NAMESPACE, KEDA_…); flags without effect are accepted
/// and named in the log. One process does what KEDA's operator, metrics adapter and webhooks do.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll operator                                  # as KEDA: HPAs do 1 to N
  plimsoll operator --act direct                     # 0 to N by ourselves, without HPAs
  plimsoll operator --leader-elect --watch-namespaces shop,web
  plimsoll scalers describe prometheus               # what a trigger accepts
  plimsoll scalers check my-scaledobject.yaml        # ask the real source what would be served

Flags that are only taken for compatibility are in docs/operator.md. Manifests are in deploy/operator/.")]
pub(crate) struct OperatorArgs {
    #[command(flatten)]
    flags: OperatorFlags,
}

pub(crate) fn run(args: &OperatorArgs) -> CommandResult {
    let options = OperatorOptions::of(&args.flags, |name| std::env::var(name).ok())?;
    options.logs.init()?;
    run::run(&options)
}
