//! `plimsoll operator`: ScaledObjects and ScaledJobs, in the place of KEDA.
//!
//! ```text
//! flags      the flags of KEDA's operator, and our own: one table
//! options    flags and environment, checked
//! run        the process: started, and stopped in order
//! service    what it serves: external metrics, admission, health, figures
//! admission  answers the webhook
//! metrics_service  answers KEDA's own adapter
//! raw_metrics      tells those who have subscribed every value as it is read
//! certificates     the certificate that replicas share
//! trust      tells the cluster whom to trust
//! ```

mod admission;
mod certificates;
mod flags;
mod metrics_service;
mod options;
mod raw_metrics;
mod run;
mod service;
#[cfg(test)]
mod tests;
mod trust;

use crate::failure::Outcome;
use flags::Flags;
pub(crate) use options::Options;
pub(crate) use run::{Process, start};
pub(crate) use service::SERVICE;

/// Scale on events, in the place of KEDA: ScaledObjects and ScaledJobs, external metrics, admission
///
/// Takes the flags of KEDA's operator and its variables (WATCH_NAMESPACE, KEDA_…); flags that have no meaning here are taken
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
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let options = Options::of(&args.flags, |name| std::env::var(name).ok())?;
    options.logs.init()?;
    run::run(&options)
}
