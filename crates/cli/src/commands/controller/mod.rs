//! `plimsoll controller`: the HPA controller on a cluster.

mod gates;
mod idle_flags;
mod options;
mod reload;
mod run;
mod service;

use std::path::PathBuf;

use crate::failure::{CommandResult, Failure};
use crate::logs::LogArgs;
use idle_flags::ControllerManagerFlags;

pub(crate) use options::ControllerOptions;
#[cfg(feature = "desk")]
pub(crate) use run::start;
pub(crate) use run::{API_SERVICES, ControllerProcess, prepare, recorded, stopped, traces};
pub(crate) use service::SERVICE;

/// Run the HPA controller: every HorizontalPodAutoscaler and Autoscaler once per period
///
/// Acts on autoscaling/v1 and v2 exactly as Kubernetes 1.36 or 1.37 does, and keeps a record of every decision for `plimsoll why`.
/// Run it instead of kube-controller-manager's own (--controllers=*,-horizontal-pod-autoscaler-controller), or beside it
/// with --mode shadow, which scales nothing and reports every difference.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll controller                                   # in a pod, or with a kubeconfig
  plimsoll controller --mode shadow                     # beside the built-in controller, then:
  plimsoll shadow report                                # would it have decided the same?
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

pub(crate) fn run(args: &ControllerArgs) -> CommandResult {
    args.logs.init()?;
    let options = args.merged_options()?;
    args.log_options(&options);
    run::run(args, &options)
}

impl ControllerArgs {
    /// The flags, and the configuration file where they are not given.
    pub(crate) fn merged_options(&self) -> Result<ControllerOptions, Failure> {
        reload::merged(&self.options, self.config.as_deref())
    }

    /// Follows the configuration file.
    pub(crate) fn reloader(&self) -> reload::Reloader {
        reload::Reloader::new(self.options.clone(), self.config.clone())
    }

    /// Names flags and feature gates without effect.
    pub(crate) fn log_options(&self, options: &ControllerOptions) {
        for flag in self.without_effect.idle() {
            let flag = format!("--{flag}");
            tracing::info!(
                flag,
                "this flag of kube-controller-manager has no effect here; see docs/controller.md"
            );
        }
        for gate in options.idle_gates() {
            tracing::info!(gate, "this feature gate has no effect here; see docs/controller.md");
        }
    }
}
