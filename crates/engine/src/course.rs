//! Which path a step takes: metrics, activation, or neither.

use serde::{Deserialize, Serialize};

use crate::config::ControllerConfig;
use crate::observe::{Observation, Scale, ScaleReadError};
use crate::report::{Status, condition};
use crate::spec::Spec;

/// The path that a step takes (docs/spec/hpa.md 3.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Course {
    /// The scale could not be read.
    NoScale(ScaleReadError),
    /// The target was scaled to zero by another client: autoscaling is disabled.
    Disabled,
    /// Above the upper bound: scale to the bound without evaluating metrics.
    AboveMax,
    /// Below the lower bound: scale to the bound without evaluating metrics.
    BelowMin,
    /// Metrics decide.
    Metrics,
    /// The activation phase decides: inactive, activating or deactivating ([`crate::Decision::activation`]).
    Activity,
}

impl Course {
    /// The path of a step whose scale is known (docs/spec/hpa.md 3.4).
    pub fn choose(config: &ControllerConfig, spec: &Spec, status: &Status, scale: &Scale) -> Self {
        let current = scale.spec_replicas;
        if current == 0 {
            let ours = scales_to_zero(config, spec, status) && status.is_true(condition::SCALED_TO_ZERO);
            return if ours && (spec.min != 0 || spec.can_leave_zero()) {
                Self::Metrics
            } else {
                Self::Disabled
            };
        }
        if current > spec.max {
            Self::AboveMax
        } else if current < spec.min {
            Self::BelowMin
        } else {
            Self::Metrics
        }
    }
}

/// Whether this controller scales the target to zero and back (docs/spec/hpa.md 3.4). Without the gate `HPAScaleToZero` the API
/// of HPAs refuses a lower bound of zero. That of Autoscalers accepts it, so that they need no gate to scale up again.
pub(crate) fn scales_to_zero(config: &ControllerConfig, spec: &Spec, status: &Status) -> bool {
    let without_gate = spec.min == 0 || status.is_true(condition::SCALED_TO_ZERO);
    config.gates.scale_to_zero || (spec.zero_without_gate && without_gate)
}

impl Observation {
    /// Whether a step with this spec, stored status and scale evaluates metrics. Callers check it before fetching any.
    pub fn needs_metrics(config: &ControllerConfig, spec: &Spec, status: &Status, scale: &Scale) -> bool {
        matches!(Course::choose(config, spec, status, scale), Course::Metrics) && !scale.selector.is_empty()
    }
}
