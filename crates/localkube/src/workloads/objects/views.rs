//! Specs and statuses with the needed fields.

use std::collections::BTreeMap;

use api::selector::LabelSelector;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ObjectMeta;

/// Declares specs, which are only read.
macro_rules! specs {
    ($(struct $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(crate) struct $name { $(pub(crate) $field: $type,)* }
    )*};
}

/// Declares statuses, which are read and written: fields with default values are omitted. Counts that are written even if
/// they are zero are options, so that the first status differs from none.
macro_rules! statuses {
    ($($(#[$attribute:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(crate) struct $name {
            $(#[serde(skip_serializing_if = "is_default")] pub(crate) $field: $type,)*
        }
    )*};
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

specs! {
    struct PodSpec {
        node_name: String,
    }
    struct PodStatus {
        phase: String,
        conditions: Vec<Condition>,
        container_statuses: Vec<ContainerStatus>,
    }
    struct ContainerStatus {
        restart_count: i32,
    }
    struct DeploymentSpec {
        replicas: Option<i32>,
        selector: LabelSelector,
        template: Value,
        strategy: DeploymentStrategy,
        min_ready_seconds: i32,
        revision_history_limit: Option<i32>,
        paused: bool,
        progress_deadline_seconds: Option<i32>,
    }
    struct DeploymentStrategy {
        r#type: String,
        rolling_update: Option<RollingUpdate>,
    }
    struct RollingUpdate {
        max_surge: Option<IntOrPercent>,
        max_unavailable: Option<IntOrPercent>,
    }
    struct ReplicaSetSpec {
        replicas: Option<i32>,
        selector: LabelSelector,
        template: Value,
        min_ready_seconds: i32,
    }
    struct StatefulSetSpec {
        replicas: Option<i32>,
        selector: LabelSelector,
        template: Value,
        service_name: String,
        pod_management_policy: String,
        update_strategy: StatefulSetStrategy,
        volume_claim_templates: Vec<ClaimTemplate>,
        min_ready_seconds: i32,
        ordinals: Ordinals,
    }
    struct StatefulSetStrategy {
        r#type: String,
        rolling_update: Option<Partition>,
    }
    struct Partition {
        partition: Option<i32>,
    }
    struct ClaimTemplate {
        metadata: ObjectMeta,
    }
    struct Ordinals {
        start: i32,
    }
    struct JobSpec {
        parallelism: Option<i32>,
        completions: Option<i32>,
        completion_mode: String,
        backoff_limit: Option<i32>,
        active_deadline_seconds: Option<i64>,
        ttl_seconds_after_finished: Option<i64>,
        suspend: bool,
        managed_by: Option<String>,
        selector: LabelSelector,
        template: Value,
    }
}

/// A number, or a percentage such as `25%`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum IntOrPercent {
    Number(i32),
    Percentage(String),
}

statuses! {
    /// A condition of any kind; each kind uses some of the times.
    struct Condition {
        r#type: String,
        status: String,
        last_probe_time: Option<Timestamp>,
        last_update_time: Option<Timestamp>,
        last_transition_time: Option<Timestamp>,
        reason: String,
        message: String,
    }
    struct DeploymentStatus {
        observed_generation: i64,
        replicas: i32,
        updated_replicas: i32,
        ready_replicas: i32,
        available_replicas: i32,
        unavailable_replicas: i32,
        terminating_replicas: Option<i32>,
        conditions: Vec<Condition>,
    }
    struct ReplicaSetStatus {
        observed_generation: i64,
        replicas: Option<i32>,
        fully_labeled_replicas: i32,
        ready_replicas: i32,
        available_replicas: i32,
        terminating_replicas: Option<i32>,
        conditions: Vec<Condition>,
    }
    struct StatefulSetStatus {
        observed_generation: i64,
        replicas: Option<i32>,
        ready_replicas: i32,
        available_replicas: Option<i32>,
        current_replicas: i32,
        updated_replicas: i32,
        current_revision: String,
        update_revision: String,
        collision_count: Option<i32>,
    }
    struct JobStatus {
        start_time: Option<Timestamp>,
        completion_time: Option<Timestamp>,
        active: i32,
        ready: Option<i32>,
        terminating: Option<i32>,
        succeeded: i32,
        failed: i32,
        completed_indexes: String,
        uncounted_terminated_pods: Option<BTreeMap<String, Vec<String>>>,
        conditions: Vec<Condition>,
    }
}
