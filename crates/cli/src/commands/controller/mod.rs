//! `plimsoll controller`: the HPA controller on a cluster.

mod gates;
mod idle_flags;
mod options;
mod reload;
mod run;
mod service;

use std::path::PathBuf;

use crate::failure::Outcome;
use crate::logs::LogArgs;
use idle_flags::ControllerManagerFlags;

pub(crate) use options::ControllerOptions;
#[cfg(feature = "desk")]
pub(crate) use run::{ControllerProcess, start};
pub(crate) use run::{recorded, stopped};
#[cfg(feature = "desk")]
pub(crate) use service::SERVICE;

/// Run the HPA controller: every HorizontalPodAutoscaler and Autoscaler once per period
///
/// Acts on autoscaling/v1 and v2 exactly as Kubernetes 1.36 or 1.37 does, and keeps a record of every decision for `plimsoll why`.
/// Run it instead of kube-controller-manager's own (--controllers=*,-horizontal-pod-autoscaler-controller), or beside it
/// with --mode shadow, which writes nothing and reports every difference.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll controller                                   # in a pod: the service account; on a desk: the kubeconfig
  plimsoll controller --mode shadow                     # beside the built-in controller, then: plimsoll shadow report
  plimsoll controller --namespaces shop,web --mode dry-run
  plimsoll controller --horizontal-pod-autoscaler-sync-period 5s --log-format json
  plimsoll controller --config controller.yaml          # re-read when it changes, or on SIGHUP

On one object, the annotation plimsoll.dev/mode: active|shadow|dry-run|off takes precedence over --mode.
Manifests for a cluster are in deploy/.")]
pub(crate) struct ControllerArgs {
    /// Kubeconfig; without it, $KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Configuration file; flags take precedence.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: ControllerOptions,
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    without_effect: ControllerManagerFlags,
}

pub(crate) fn run(args: &ControllerArgs) -> Outcome {
    args.logs.init()?;
    let options = reload::merged(&args.options, args.config.as_deref())?;
    for flag in args.without_effect.idle() {
        let flag = format!("--{flag}");
        tracing::info!(
            flag,
            "this flag of kube-controller-manager has no effect here; see docs/controller.md"
        );
    }
    for gate in options.idle_gates() {
        tracing::info!(gate, "this feature gate has no effect here; see docs/controller.md");
    }
    run::run(args, &options)
}
