//! Errors about containers and requests, with their causes.

use super::EvaluationError;
use crate::failure::{FailureCause, MAX_RECORDED_CONTAINERS};
use crate::pod::{MissingRequest, Pod};
use crate::spec::UtilizationBase;

/// A request or limit that a metric needs of each pod.
#[derive(Clone, Copy)]
pub(super) struct RequestedResource<'a> {
    pub(super) resource: &'a str,
    pub(super) container: Option<&'a str>,
    pub(super) base: UtilizationBase,
}

impl RequestedResource<'_> {
    /// The error for a `pod` of `pods` without it, in the words of Kubernetes.
    pub(super) fn error(self, pods: &[Pod], pod: &Pod, missing: &MissingRequest<'_>) -> EvaluationError {
        let Self { resource, container: wanted, base } = self;
        let noun = match base {
            UtilizationBase::Requests => "request",
            UtilizationBase::Limits => "limit",
        };
        let without = |container: Option<&str>| FailureCause::MissingRequest {
            resource: resource.to_owned(),
            container: container.map(str::to_owned),
            pod: pod.name.to_string(),
            base,
        };
        let (text, cause) = match missing {
            MissingRequest::Container(container) => (
                format!("missing {noun} for {resource} in container {container} of Pod {}", pod.name),
                without(Some(container)),
            ),
            MissingRequest::Absent => {
                let container = wanted.unwrap_or_default();
                let cause = absent_container(pods, wanted);
                (
                    format!("container {container} not found in Pod {}", pod.name),
                    cause.unwrap_or_else(|| container_not_found(pod, container, false)),
                )
            }
            MissingRequest::Pod => {
                (format!("missing pod-level {noun} for {resource} in Pod {}", pod.name), without(None))
            }
        };
        EvaluationError::from(text).with_cause(cause)
    }
}

/// The cause if no pod has this container: its samples cannot come.
pub(super) fn absent_container(pods: &[Pod], container: Option<&str>) -> Option<FailureCause> {
    let container = container?;
    let pod = pods.first()?;
    let has = |pod: &Pod| pod.shape.container_names().any(|name| name == container);
    (!pods.iter().any(has)).then(|| container_not_found(pod, container, true))
}

fn container_not_found(pod: &Pod, container: &str, everywhere: bool) -> FailureCause {
    let existing = pod.shape.container_names().take(MAX_RECORDED_CONTAINERS).map(str::to_owned).collect();
    FailureCause::ContainerNotFound {
        container: container.to_owned(),
        pod: pod.name.to_string(),
        everywhere,
        existing,
    }
}
