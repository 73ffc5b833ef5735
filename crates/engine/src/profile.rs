//! The releases of Kubernetes whose behavior is reproduced, and the table of their differences.
//!
//! Nothing else in Plimsoll compares versions: code that behaves differently reads a field of [`KubernetesProfile`] or a gate
//! of [`Gates`]. A new release is one more constant here.

mod gates;
#[cfg(test)]
mod tests;
mod version;

pub use gates::{FeatureGate, GateError, GateStage, Gates};
pub use version::{KubernetesVersion, UnknownKubernetesVersion};

use GateStage::{Alpha, Beta, Ga};
use gates::{
    CONFIGURABLE_TOLERANCE, DECLARATIVE_VALIDATION, GENERATION, OPTIMIZED_SELECTOR_STORE,
    POD_LEVEL_RESOURCES, SCALE_TO_ZERO, STALE_CONSISTENCY,
};

/// What differs between the supported releases of Kubernetes (docs/spec/hpa.md 11).
#[derive(Debug)]
pub struct KubernetesProfile {
    /// The release.
    pub version: KubernetesVersion,
    /// The full version of the release that was compared, as in `gitVersion`.
    pub git_version: &'static str,
    /// The feature gates of the release that concern autoscaling, with their stages and defaults.
    pub feature_gates: &'static [FeatureGate],
    /// Whether new autoscalers, all autoscalers at the start of the controller and changed specs are reconciled at once,
    /// instead of after one sync period.
    pub reconciles_at_once: bool,
    /// Whether an error keeps the class of the first metric that failed. Else the class is always `internal`.
    pub keeps_error_class: bool,
    /// Whether a reconcile ends with an error if the autoscaler is deleted before its pods are selected. Else it goes on.
    pub notices_deletion: bool,
    /// Whether conditions have the field `observedGeneration`.
    pub condition_generation: bool,
    /// Whether the bounds of replicas are validated by declarative rules: their errors come last and have other texts.
    pub declarative_bounds: bool,
    /// Whether the paths of owner references have an index, and empty fields are `Required` instead of `Invalid`.
    pub indexed_owner_references: bool,
    /// Whether the metadata of a submitted Scale is validated.
    pub validates_scale_metadata: bool,
    /// The error of a target whose pods other autoscalers select as well.
    pub ambiguous_selector: fn(selector: &str, keys: &[String]) -> String,
    /// The error of an Object metric that could not be fetched.
    pub object_metric_failure: fn(&ObjectMetricFailure<'_>) -> String,
}

/// An Object metric that could not be fetched.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMetricFailure<'a> {
    /// Name of the metric.
    pub metric: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// The error of the metrics API.
    pub error: &'a str,
}

/// Kubernetes 1.36.
pub const V1_36: KubernetesProfile = KubernetesProfile {
    version: KubernetesVersion::V1_36,
    git_version: "v1.36.4",
    feature_gates: &[
        SCALE_TO_ZERO.at(Alpha, false),
        CONFIGURABLE_TOLERANCE.at(Beta, true),
        POD_LEVEL_RESOURCES.at(Beta, true),
        DECLARATIVE_VALIDATION.at(Beta, true),
    ],
    reconciles_at_once: false,
    keeps_error_class: false,
    notices_deletion: false,
    condition_generation: false,
    declarative_bounds: false,
    indexed_owner_references: false,
    validates_scale_metadata: true,
    ambiguous_selector: |selector, keys| {
        format!("pods by selector {selector} are controlled by multiple HPAs: [{}]", keys.join(" "))
    },
    object_metric_failure: |ObjectMetricFailure { metric, kind, namespace, name, error }| {
        format!("unable to get metric {metric}: {kind} on {namespace} {name}/{error}")
    },
};

/// Kubernetes 1.37.
pub const V1_37: KubernetesProfile = KubernetesProfile {
    version: KubernetesVersion::V1_37,
    git_version: "v1.37.1",
    feature_gates: &[
        SCALE_TO_ZERO.at(Beta, true),
        CONFIGURABLE_TOLERANCE.at(Ga, true),
        GENERATION.at(Beta, true),
        STALE_CONSISTENCY.at(Beta, true),
        OPTIMIZED_SELECTOR_STORE.at(Beta, true),
        POD_LEVEL_RESOURCES.at(Beta, true),
        DECLARATIVE_VALIDATION.at(Beta, true),
    ],
    reconciles_at_once: true,
    keeps_error_class: true,
    notices_deletion: true,
    condition_generation: true,
    declarative_bounds: true,
    indexed_owner_references: true,
    validates_scale_metadata: false,
    ambiguous_selector: |selector, keys| {
        format!("pods by selector {selector} are controlled by more than one HPA (e.g. [{}])", keys.join(" "))
    },
    object_metric_failure: |ObjectMetricFailure { metric, kind, namespace, name, error }| {
        format!("unable to get metric {metric} on {kind} {namespace}/{name}: {error}")
    },
};

/// How many keys `AmbiguousSelector` names with the gate `HPAOptimizedSelectorStore`: the search ends at the second.
const KEYS_OF_OPTIMIZED_STORE: usize = 2;

impl KubernetesVersion {
    /// The differences of this release.
    pub fn profile(self) -> &'static KubernetesProfile {
        match self {
            Self::V1_36 => &V1_36,
            Self::V1_37 => &V1_37,
        }
    }
}

impl KubernetesProfile {
    /// The gates as the release comes.
    pub fn default_gates(&self) -> Gates {
        let mut gates = Gates::OFF;
        for gate in self.feature_gates {
            *(gate.field)(&mut gates) = gate.default;
        }
        gates
    }

    /// The gate of this name, if the release has it.
    pub fn feature_gate(&self, name: &str) -> Option<&'static FeatureGate> {
        self.feature_gates.iter().find(|gate| gate.name == name)
    }

    /// Sets a gate. `AllAlpha` and `AllBeta` set every gate of their stage.
    pub fn set_gate(&self, gates: &mut Gates, name: &str, on: bool) -> Result<(), GateError> {
        let stage = match name {
            "AllAlpha" => Some(Alpha),
            "AllBeta" => Some(Beta),
            _ => None,
        };
        if let Some(stage) = stage {
            for gate in self.feature_gates.iter().filter(|gate| gate.stage == stage) {
                *(gate.field)(gates) = on;
            }
            return Ok(());
        }
        let gate = self
            .feature_gate(name)
            .ok_or_else(|| GateError::Unknown { name: name.to_owned(), version: self.version })?;
        if gate.is_locked() && gate.default != on {
            return Err(GateError::Locked { name: gate.name, on, default: gate.default });
        }
        *(gate.field)(gates) = on;
        Ok(())
    }

    /// The text of `AmbiguousSelector` with these gates.
    pub(crate) fn ambiguity(&self, gates: Gates, selector: &str, keys: &[String]) -> String {
        let max_keys = gates.optimized_selector_store.then_some(KEYS_OF_OPTIMIZED_STORE);
        let shown = max_keys.and_then(|max_keys| keys.get(..max_keys)).unwrap_or(keys);
        (self.ambiguous_selector)(selector, shown)
    }
}
