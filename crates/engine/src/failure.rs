//! Typed causes of failures. They are recorded together with the texts of Kubernetes, so that a diagnosis reads facts and never a text.

use serde::{Deserialize, Serialize};

pub use crate::request_failure::{DeniedAccess, RequestFailure};
use crate::spec::UtilizationBase;

/// Number of names that are kept of containers in a record.
pub const MAX_RECORDED_CONTAINERS: usize = 16;

/// Why a metric has no proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FailureCause {
    /// The samples could not be fetched.
    Request(RequestFailure),
    /// The selector matches no pods.
    NoPods,
    /// No pod has a sample that counts.
    NoSamples,
    /// No pod, or this pod, has no container of this name.
    ContainerNotFound {
        /// The container that the metric names.
        container: String,
        /// A pod without it.
        pod: String,
        /// Whether no pod has it.
        everywhere: bool,
        /// The containers of that pod.
        existing: Vec<String>,
    },
    /// A container or a whole pod has no request, or no limit, for the resource.
    MissingRequest {
        /// The resource.
        resource: String,
        /// The container; absent for pod-level requests.
        container: Option<String>,
        /// The pod.
        pod: String,
        /// Whether the request or the limit is missing.
        base: UtilizationBase,
    },
    /// The requests of all pods that count are zero, so that there is no utilization.
    ZeroRequests,
    /// The target's type and value do not fit the metric.
    InvalidTarget,
    /// The metric's label selector is invalid.
    InvalidSelector,
    /// The type of the metric is unknown.
    UnknownSourceType,
}

/// Why the target's pods cannot be identified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SelectionFailure {
    /// The scale has no selector.
    Missing,
    /// The selector cannot be parsed.
    Invalid,
    /// Several autoscalers select the same pods; holds their keys.
    Shared(Vec<String>),
}

/// Why a trigger could not be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TriggerFailure {
    /// The scaler could not be built: parameters or their references are wrong.
    Parameters,
    /// The source refused the connection.
    Refused,
    /// The name of the source's host does not resolve.
    UnknownHost,
    /// The source did not answer in time.
    Timeout,
    /// The source does not accept the credentials.
    Authentication,
    /// The API server did not serve what the scaler is built from: credentials, the workload.
    ApiServer,
    /// The source does not know the named object: queue, topic, metric, table.
    UnknownName,
    /// Another error of the source, or a cause that only a later version knows: records of other versions stay readable.
    #[serde(other)]
    Source,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_of_a_later_version_is_read_as_another_error() {
        for (text, expected) in
            [("\"apiServer\"", TriggerFailure::ApiServer), ("\"laterCause\"", TriggerFailure::Source)]
        {
            assert_eq!(serde_json::from_str::<TriggerFailure>(text).unwrap(), expected);
        }
        assert_eq!(serde_json::to_string(&TriggerFailure::Source).unwrap(), "\"source\"");
    }
}
