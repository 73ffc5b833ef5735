//! Requests, and the backlog in responses, without IO.

use super::Parameters;
use super::protocol::{
    ACTIVITY, CountWorkflowsRequest, DeploymentVersion, DescribeDeploymentRequest,
    DescribeDeploymentResponse, DescribeTaskQueueRequest, DescribeTaskQueueResponse, ENHANCED, NEXUS,
    NORMAL_QUEUE, TaskQueue, TaskQueueStats, VersionSelection, WORKFLOW,
};
use crate::ScalerError;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BacklogMode {
    /// A version of a worker deployment.
    Deployment,
    /// Versions of rules-based versioning.
    Rules,
    /// The queue without versions.
    Unversioned,
}

impl Parameters {
    /// What is counted.
    pub(super) fn mode(&self) -> BacklogMode {
        if !self.deployment.is_empty() {
            BacklogMode::Deployment
        } else if !self.build_id.is_empty() || self.select_all_active || self.select_unversioned {
            BacklogMode::Rules
        } else {
            BacklogMode::Unversioned
        }
    }

    /// The types of task queues that count; none if all do.
    fn given_types(&self) -> Vec<i32> {
        let known = |name: &String| match &**name {
            "workflow" => Some(WORKFLOW),
            "activity" => Some(ACTIVITY),
            "nexus" => Some(NEXUS),
            _ => None,
        };
        self.queue_types.iter().filter_map(known).collect()
    }

    /// The types of task queues that are requested.
    pub(super) fn types(&self) -> Vec<i32> {
        match self.given_types() {
            none if none.is_empty() => vec![ACTIVITY, WORKFLOW, NEXUS],
            given => given,
        }
    }

    /// The request for the queue of one type.
    pub(super) fn queue_request(&self, queue_type: i32) -> DescribeTaskQueueRequest {
        DescribeTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: Some(TaskQueue { name: self.task_queue.clone(), kind: NORMAL_QUEUE }),
            task_queue_type: queue_type,
            report_stats: true,
            ..DescribeTaskQueueRequest::default()
        }
    }

    /// The request for the versions of rules-based versioning.
    pub(super) fn rules_request(&self) -> DescribeTaskQueueRequest {
        DescribeTaskQueueRequest {
            api_mode: ENHANCED,
            versions: Some(VersionSelection {
                build_ids: vec![self.build_id.clone()],
                unversioned: self.select_unversioned,
                all_active: self.select_all_active,
            }),
            task_queue_types: self.types(),
            ..self.queue_request(0)
        }
    }

    /// The request for the version of the worker deployment.
    pub(super) fn deployment_request(&self) -> DescribeDeploymentRequest {
        DescribeDeploymentRequest {
            namespace: self.namespace.clone(),
            version: Some(DeploymentVersion {
                build_id: self.deployment_build.clone(),
                deployment_name: self.deployment.clone(),
            }),
            report_stats: true,
        }
    }

    /// The request for the number of running workflows.
    pub(super) fn running_request(&self) -> CountWorkflowsRequest {
        let queue = if self.running_queue.is_empty() { &self.task_queue } else { &self.running_queue };
        let version = match &*self.deployment {
            "" => "TemporalWorkerDeploymentVersion is null".to_owned(),
            name => format!("TemporalWorkerDeploymentVersion = '{name}:{}'", self.deployment_build),
        };
        let query = format!("ExecutionStatus = 'Running' AND TaskQueue = '{queue}' AND {version}");
        CountWorkflowsRequest { namespace: self.namespace.clone(), query }
    }

    /// The tasks that wait in the queues of a version of a worker deployment. A version without such a queue has none, as in KEDA.
    pub(super) fn deployment_backlog(&self, answer: &DescribeDeploymentResponse) -> Result<i64, ScalerError> {
        let types = self.given_types();
        // As in KEDA, words that are no type leave out every queue.
        let is_counted = |kind: i32| self.queue_types.is_empty() || types.contains(&kind);
        let queues =
            answer.queues.iter().filter(|queue| is_counted(queue.kind) && queue.name == self.task_queue);
        let stats: Vec<Option<&TaskQueueStats>> = queues.map(|queue| queue.stats.as_ref()).collect();
        if stats.is_empty() { Ok(0) } else { sum(stats) }
    }
}

/// The tasks that wait in the queues of all types.
pub(super) fn unversioned_backlog(answers: &[DescribeTaskQueueResponse]) -> Result<i64, ScalerError> {
    sum(answers.iter().map(|answer| answer.stats.as_ref()))
}

/// The tasks that wait for the selected versions.
pub(super) fn rules_backlog(answer: &DescribeTaskQueueResponse) -> Result<i64, ScalerError> {
    sum(answer.versions.values().flat_map(|version| version.types.values()).map(|one| one.stats.as_ref()))
}

/// Adds up statistics. It is an error if there are none at all: servers that are too old for them would look idle.
fn sum<'a>(all: impl IntoIterator<Item = Option<&'a TaskQueueStats>>) -> Result<i64, ScalerError> {
    let reported: Vec<i64> = all.into_iter().flatten().map(|stats| stats.backlog).collect();
    if reported.is_empty() {
        bail!("the answer has no statistics of the task queue: the server may be too old for them");
    }
    Ok(reported.into_iter().fold(0, i64::saturating_add))
}
