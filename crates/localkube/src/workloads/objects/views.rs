//! Specs and statuses with the needed fields.

use std::collections::BTreeMap;

use api::selector::LabelSelector;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ObjectMeta;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    pub(crate) restart_count: i32,
}

/// A condition of any kind; each kind uses some of the times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_probe_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_update_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeploymentSpec {
    pub(crate) replicas: Option<i32>,
    pub(crate) selector: LabelSelector,
    pub(crate) template: Value,
    pub(crate) strategy: DeploymentStrategy,
    pub(crate) min_ready_seconds: i32,
    pub(crate) revision_history_limit: Option<i32>,
    pub(crate) paused: bool,
    pub(crate) progress_deadline_seconds: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeploymentStrategy {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) rolling_update: Option<RollingUpdate>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RollingUpdate {
    pub(crate) max_surge: Option<IntOrPercent>,
    pub(crate) max_unavailable: Option<IntOrPercent>,
}

/// A number, or a percentage such as `25%`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum IntOrPercent {
    Number(i32),
    Percentage(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeploymentStatus {
    #[serde(skip_serializing_if = "zero")]
    pub(crate) observed_generation: i64,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) updated_replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) ready_replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) available_replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) unavailable_replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplicaSetSpec {
    pub(crate) replicas: Option<i32>,
    pub(crate) selector: LabelSelector,
    pub(crate) template: Value,
    pub(crate) min_ready_seconds: i32,
}

/// Counts that are written even if they are zero are options, so that the first status differs from none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplicaSetStatus {
    #[serde(skip_serializing_if = "zero")]
    pub(crate) observed_generation: i64,
    pub(crate) replicas: Option<i32>,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) fully_labeled_replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) ready_replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) available_replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSetSpec {
    pub(crate) replicas: Option<i32>,
    pub(crate) selector: LabelSelector,
    pub(crate) template: Value,
    pub(crate) service_name: String,
    pub(crate) pod_management_policy: String,
    pub(crate) update_strategy: StatefulSetStrategy,
    pub(crate) volume_claim_templates: Vec<ClaimTemplate>,
    pub(crate) min_ready_seconds: i32,
    pub(crate) ordinals: Ordinals,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSetStrategy {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) rolling_update: Option<Partition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Partition {
    pub(crate) partition: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClaimTemplate {
    pub(crate) metadata: ObjectMeta,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ordinals {
    pub(crate) start: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSetStatus {
    #[serde(skip_serializing_if = "zero")]
    pub(crate) observed_generation: i64,
    pub(crate) replicas: Option<i32>,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) ready_replicas: i32,
    pub(crate) available_replicas: Option<i32>,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) current_replicas: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) updated_replicas: i32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) current_revision: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) update_revision: String,
    pub(crate) collision_count: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JobSpec {
    pub(crate) parallelism: Option<i32>,
    pub(crate) completions: Option<i32>,
    pub(crate) completion_mode: String,
    pub(crate) backoff_limit: Option<i32>,
    pub(crate) active_deadline_seconds: Option<i64>,
    pub(crate) ttl_seconds_after_finished: Option<i64>,
    pub(crate) suspend: bool,
    pub(crate) managed_by: Option<String>,
    pub(crate) selector: LabelSelector,
    pub(crate) template: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JobStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completion_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) active: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminating: Option<i32>,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) succeeded: i32,
    #[serde(skip_serializing_if = "no_replicas")]
    pub(crate) failed: i32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) completed_indexes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uncounted_terminated_pods: Option<BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<Condition>,
}

/// For `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn zero(number: &i64) -> bool {
    *number == 0
}

/// For `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn no_replicas(number: &i32) -> bool {
    *number == 0
}
