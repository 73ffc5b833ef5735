//! The messages of Temporal's API that are used here, with the fields that are read or written (`temporal.api.workflowservice.v1`).

/// Methods.
pub(super) const DESCRIBE_TASK_QUEUE: &str =
    "/temporal.api.workflowservice.v1.WorkflowService/DescribeTaskQueue";
pub(super) const DESCRIBE_DEPLOYMENT_VERSION: &str =
    "/temporal.api.workflowservice.v1.WorkflowService/DescribeWorkerDeploymentVersion";
pub(super) const COUNT_WORKFLOWS: &str =
    "/temporal.api.workflowservice.v1.WorkflowService/CountWorkflowExecutions";

/// Kind of task queues that are no sticky ones.
pub(super) const NORMAL_QUEUE: i32 = 1;
/// Types of task queues.
pub(super) const WORKFLOW: i32 = 1;
pub(super) const ACTIVITY: i32 = 2;
pub(super) const NEXUS: i32 = 3;
/// The mode of [`DescribeTaskQueueRequest`] that reports versions.
pub(super) const ENHANCED: i32 = 1;
/// States of a version of a worker deployment.
pub(super) const CURRENT: i32 = 2;
pub(super) const RAMPING: i32 = 3;
pub(super) const DRAINING: i32 = 4;

/// A task queue.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TaskQueue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, tag = "2")]
    pub(super) kind: i32,
}

/// Versions of rules-based versioning.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct VersionSelection {
    #[prost(string, repeated, tag = "1")]
    pub(super) build_ids: Vec<String>,
    #[prost(bool, tag = "2")]
    pub(super) unversioned: bool,
    #[prost(bool, tag = "3")]
    pub(super) all_active: bool,
}

/// The request of [`DESCRIBE_TASK_QUEUE`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DescribeTaskQueueRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(super) task_queue: Option<TaskQueue>,
    #[prost(int32, tag = "3")]
    pub(super) task_queue_type: i32,
    #[prost(int32, tag = "5")]
    pub(super) api_mode: i32,
    #[prost(message, optional, tag = "6")]
    pub(super) versions: Option<VersionSelection>,
    #[prost(int32, repeated, tag = "7")]
    pub(super) task_queue_types: Vec<i32>,
    #[prost(bool, tag = "8")]
    pub(super) report_stats: bool,
}

/// The response of [`DESCRIBE_TASK_QUEUE`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DescribeTaskQueueResponse {
    #[prost(map = "string, message", tag = "3")]
    pub(super) versions: std::collections::HashMap<String, VersionInfo>,
    #[prost(message, optional, tag = "5")]
    pub(super) stats: Option<TaskQueueStats>,
}

/// A version, by type of task queue.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct VersionInfo {
    #[prost(map = "int32, message", tag = "1")]
    pub(super) types: std::collections::HashMap<i32, TypeInfo>,
}

/// One type of task queue.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TypeInfo {
    #[prost(message, optional, tag = "2")]
    pub(super) stats: Option<TaskQueueStats>,
}

/// How many tasks wait.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TaskQueueStats {
    #[prost(int64, tag = "1")]
    pub(super) backlog: i64,
}

/// A version of a worker deployment.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeploymentVersion {
    #[prost(string, tag = "1")]
    pub(super) build_id: String,
    #[prost(string, tag = "2")]
    pub(super) deployment_name: String,
}

/// The request of [`DESCRIBE_DEPLOYMENT_VERSION`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DescribeDeploymentRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "3")]
    pub(super) version: Option<DeploymentVersion>,
    #[prost(bool, tag = "4")]
    pub(super) report_stats: bool,
}

/// The response of [`DESCRIBE_DEPLOYMENT_VERSION`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DescribeDeploymentResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) info: Option<DeploymentInfo>,
    #[prost(message, repeated, tag = "2")]
    pub(super) queues: Vec<DeploymentQueue>,
}

/// The state of a version.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeploymentInfo {
    #[prost(int32, tag = "14")]
    pub(super) status: i32,
}

/// A task queue of a version.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeploymentQueue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, tag = "2")]
    pub(super) kind: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) stats: Option<TaskQueueStats>,
}

/// The request of [`COUNT_WORKFLOWS`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CountWorkflowsRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(string, tag = "2")]
    pub(super) query: String,
}

/// The response of [`COUNT_WORKFLOWS`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CountWorkflowsResponse {
    #[prost(int64, tag = "1")]
    pub(super) count: i64,
}
