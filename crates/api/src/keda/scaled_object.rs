//! ScaledObject: a workload that is scaled by triggers, also to and from zero.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::annotations::{is_paused, is_set};
use super::{Conditions, Trigger, annotations};
use crate::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use crate::map::Map;
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// A workload that is scaled by triggers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaledObject {
    /// `ScaledObject`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `keda.sh/v1alpha1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name, namespace, labels and the like.
    #[serde(deserialize_with = "nullable")]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(deserialize_with = "nullable")]
    pub spec: ScaledObjectSpec,
    /// Current status.
    #[serde(deserialize_with = "nullable")]
    pub status: ScaledObjectStatus,
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaledObjectSpec {
    /// Scale target.
    #[serde(deserialize_with = "nullable")]
    pub scale_target_ref: ScaleTarget,
    /// Polling interval in seconds; absent means 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling_interval: Option<i32>,
    /// Seconds after creation before an object that was never active is scaled to zero; absent means 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_cooldown_period: Option<i32>,
    /// Seconds after the last activity before the object is scaled to zero; absent means 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_period: Option<i32>,
    /// Replicas while no trigger is active; below the minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_replica_count: Option<i32>,
    /// Lower bound; absent means 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replica_count: Option<i32>,
    /// Upper bound; absent means 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replica_count: Option<i32>,
    /// Advanced settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advanced: Option<Box<AdvancedConfig>>,
    /// Triggers.
    #[serde(deserialize_with = "nullable")]
    pub triggers: Vec<Trigger>,
    /// Fallback for failing triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
}

/// Scale target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaleTarget {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Group and version; empty means `apps/v1`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind; empty means Deployment.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The container whose environment `…FromEnv` parameters name; empty means the first.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub env_source_container_name: String,
}

/// Advanced settings: restoring of the replica count, name and behavior of the HPA, formula.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdvancedConfig {
    /// The generated HPA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizontal_pod_autoscaler_config: Option<HorizontalPodAutoscalerConfig>,
    /// Whether the original replica count is restored when the ScaledObject is deleted.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "std::ops::Not::not")]
    pub restore_to_original_replica_count: bool,
    /// A formula over the triggers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "ScalingModifiers::is_empty")]
    pub scaling_modifiers: ScalingModifiers,
}

/// Settings of the generated HPA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerConfig {
    /// Scaling rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
    /// Its name; empty means `keda-hpa-` and the name of the ScaledObject.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A formula over the triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalingModifiers {
    /// The formula.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// Target of its result.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Activation threshold; empty means 0.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub activation_target: String,
    /// `AverageValue` (the default) or `Value`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub metric_type: String,
}

impl ScalingModifiers {
    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Fallback for failing triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Fallback {
    /// Number of consecutive failures after which the fallback applies.
    #[serde(deserialize_with = "nullable")]
    pub failure_threshold: i32,
    /// Replicas of the fallback.
    #[serde(deserialize_with = "nullable")]
    pub replicas: i32,
    /// `static` (also if empty), `currentReplicas`, `currentReplicasIfHigher`, `currentReplicasIfLower` or
    /// `scalingModifiers`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub behavior: String,
}

/// Current status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaledObjectStatus {
    /// `apps/v1.Deployment`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub scale_target_kind: String,
    /// Group, version, kind and resource of the target.
    #[serde(rename = "scaleTargetGVKR", skip_serializing_if = "Option::is_none")]
    pub scale_target_gvkr: Option<GroupVersionKindResource>,
    /// Replicas before the ScaledObject was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_replica_count: Option<i32>,
    /// Time of the last activity.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub last_active_time: Option<Timestamp>,
    /// Names of all external metrics, in the order of the triggers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub external_metric_names: Vec<String>,
    /// Names of all resource metrics.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub resource_metric_names: Vec<String>,
    /// `composite-metric` if the object has or had a formula.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub composite_scaler_name: String,
    /// Conditions.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Failures per metric, for the fallback.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub health: Map<TriggerHealth>,
    /// Activity per metric.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub triggers_activity: Map<TriggerActivity>,
    /// Replicas at which it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_replica_count: Option<i32>,
    /// Name of the HPA.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub hpa_name: String,
    /// Types of triggers, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers_types: Option<String>,
    /// Names of authentications, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentications_types: Option<String>,
}

/// Group, version, kind and resource of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupVersionKindResource {
    /// Group; empty for the core.
    #[serde(deserialize_with = "nullable")]
    pub group: String,
    /// Version.
    #[serde(deserialize_with = "nullable")]
    pub version: String,
    /// Kind.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Plural.
    #[serde(deserialize_with = "nullable")]
    pub resource: String,
}

impl GroupVersionKindResource {
    /// `apps/v1`, or `v1`.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Health of a metric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TriggerHealth {
    /// Consecutive failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_failures: Option<i32>,
    /// `Happy` or `Failing`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub status: String,
}

/// Whether a metric is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TriggerActivity {
    /// Whether it is active.
    #[serde(deserialize_with = "nullable")]
    pub is_active: bool,
}

impl ScaledObject {
    /// Group and version of the target, as written or by default.
    pub fn target_api_version(&self) -> &str {
        match self.spec.scale_target_ref.api_version.as_str() {
            "" => "apps/v1",
            given => given,
        }
    }

    /// Kind of the target, as written or by default.
    pub fn target_kind(&self) -> &str {
        match self.spec.scale_target_ref.kind.as_str() {
            "" => "Deployment",
            given => given,
        }
    }

    /// The formula and its target, if any part of it is given.
    pub fn modifiers(&self) -> Option<&ScalingModifiers> {
        let modifiers = &self.spec.advanced.as_ref()?.scaling_modifiers;
        (!modifiers.is_empty()).then_some(modifiers)
    }

    /// Name of its HPA.
    pub fn hpa_name(&self) -> String {
        let config = self
            .spec
            .advanced
            .as_ref()
            .and_then(|advanced| advanced.horizontal_pod_autoscaler_config.as_ref());
        match config.map(|config| config.name.as_str()) {
            None | Some("") => format!("keda-hpa-{}", self.metadata.name),
            Some(name) => name.to_owned(),
        }
    }

    /// Lower bound of the HPA: never zero.
    pub fn hpa_min(&self) -> i32 {
        self.spec.min_replica_count.filter(|min| *min > 0).unwrap_or(1)
    }

    /// Upper bound.
    pub fn hpa_max(&self) -> i32 {
        self.spec.max_replica_count.unwrap_or(100)
    }

    /// Whether annotations pause the object.
    pub fn is_paused(&self) -> bool {
        is_paused(&self.metadata.annotations)
    }

    /// Whether annotations pause scaling in.
    pub fn is_scale_in_paused(&self) -> bool {
        is_set(&self.metadata.annotations, annotations::PAUSED_SCALE_IN)
    }

    /// Whether annotations pause scaling out.
    pub fn is_scale_out_paused(&self) -> bool {
        is_set(&self.metadata.annotations, annotations::PAUSED_SCALE_OUT)
    }

    /// Whether annotations force activation.
    pub fn is_forced(&self) -> bool {
        is_set(&self.metadata.annotations, annotations::FORCE_ACTIVATION)
    }
}
