//! ScaledJob: jobs that are created by events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Conditions, Trigger, TriggerActivity, annotations};
use crate::map::Map;
use crate::meta::ObjectMeta;
use crate::wire::nullable;

/// Jobs that are created by events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaledJob {
    /// `ScaledJob`.
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
    pub spec: ScaledJobSpec,
    /// Current status.
    #[serde(deserialize_with = "nullable")]
    pub status: ScaledJobStatus,
}

impl ScaledJob {
    /// Whether annotations pause the object.
    pub fn is_paused(&self) -> bool {
        annotations::is_set(&self.metadata.annotations, annotations::PAUSED)
    }
}

/// Desired state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaledJobSpec {
    /// The spec of a `batch/v1` Job, passed through as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_target_ref: Option<Value>,
    /// Polling interval in seconds; absent means 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling_interval: Option<i32>,
    /// Complete jobs that are kept; absent means 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,
    /// Failed jobs that are kept; absent means 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
    /// Deprecated form of `rollout.strategy`; takes precedence.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub rollout_strategy: String,
    /// What happens to jobs of an older generation.
    #[serde(deserialize_with = "nullable")]
    pub rollout: Rollout,
    /// The container whose environment `…FromEnv` parameters name; empty means the first.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub env_source_container_name: String,
    /// Minimum number of running jobs; absent means 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replica_count: Option<i32>,
    /// Maximum number of running jobs; absent means 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replica_count: Option<i32>,
    /// Scaling strategy.
    #[serde(deserialize_with = "nullable")]
    pub scaling_strategy: ScalingStrategy,
    /// Triggers.
    #[serde(deserialize_with = "nullable")]
    pub triggers: Vec<Trigger>,
}

/// What happens to jobs of an older generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rollout {
    /// `gradual` keeps them; anything else deletes them.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// `foreground`, or anything else for `background`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub propagation_policy: String,
}

/// Scaling strategy: how many jobs are created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScalingStrategy {
    /// `default`, `custom`, `accurate` or `eager`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// For `custom`: number of jobs to deduct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_scaling_queue_length_deduction: Option<i32>,
    /// For `custom`: share of the running jobs that counts.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub custom_scaling_running_job_percentage: String,
    /// Conditions that a pod must have for its job to have started.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub pending_pod_conditions: Vec<String>,
    /// `max` (also if empty), `min`, `avg` or `sum` over the triggers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub multiple_scalers_calculation: String,
}

/// Current status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaledJobStatus {
    /// Time of the last activity.
    #[serde(with = "crate::instant", skip_serializing_if = "Option::is_none")]
    pub last_active_time: Option<Timestamp>,
    /// Conditions.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Never written.
    #[serde(rename = "Paused", deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub paused: String,
    /// Types of triggers, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers_types: Option<String>,
    /// Names of authentications, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentications_types: Option<String>,
    /// Declared, but never written.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub external_metric_names: Vec<String>,
    /// Activity per metric.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub triggers_activity: Map<TriggerActivity>,
}
