//! `--feature-gates`, as kube-apiserver and kube-controller-manager accept them.

use api::autoscaling::FeatureGates;
use api::yaml::nearest;

use crate::failure::Failure;

const KNOWN: [&str; 2] = ["HPAScaleToZero", "HPAConfigurableTolerance"];

/// The option, for commands that check objects.
#[derive(clap::Args)]
pub(crate) struct GatesArg {
    /// Kubernetes feature gates, for example HPAScaleToZero=true.
    #[arg(long, value_name = "NAME=BOOL,…", value_delimiter = ',')]
    feature_gates: Vec<String>,
}

impl GatesArg {
    /// The gates of Kubernetes 1.36 with the user's changes.
    pub(crate) fn gates(&self) -> Result<FeatureGates, Failure> {
        let mut gates = FeatureGates::default();
        for given in &self.feature_gates {
            let (name, value) = given.split_once('=').ok_or_else(|| {
                Failure::input(format!("--feature-gates {given}: write NAME=true or NAME=false"))
            })?;
            let on = value.parse::<bool>().map_err(|_| {
                Failure::input(format!("--feature-gates {given}: {value} is neither true nor false"))
            })?;
            match name {
                "HPAScaleToZero" => gates.scale_to_zero = on,
                "HPAConfigurableTolerance" => gates.configurable_tolerance = on,
                _ => {
                    let near =
                        nearest(name, KNOWN).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
                    let known = KNOWN.join(", ");
                    return Err(Failure::input(format!(
                        "--feature-gates: unknown gate {name} (known: {known}){near}"
                    )));
                }
            }
        }
        Ok(gates)
    }
}
