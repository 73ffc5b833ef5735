//! Pods whose samples do not count, and why: facts for a diagnosis.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::pod_group::PodGroup;
use crate::pod::{ConditionStatus, Pod, PodPhase};

/// Number of pods that are recorded for one metric.
pub const MAX_UNCOUNTED_PODS: usize = 20;

/// A pod whose sample does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UncountedPod {
    /// Pod name.
    pub name: Arc<str>,
    /// Why it does not count.
    pub reason: UncountedReason,
    /// `status.startTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
}

/// Why the sample of a pod does not count (docs/spec/hpa.md 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UncountedReason {
    /// It is being deleted.
    Terminating,
    /// All of its containers ended, at least one with an error.
    Failed,
    /// Its containers do not run yet.
    Pending,
    /// It is not ready.
    NotReady,
    /// It is ready, but its cpu sample may still show the start of the pod.
    Starting,
    /// It has no sample.
    NoSample,
    /// It has no sample because all of its containers ended without an error.
    Completed,
}

impl UncountedPod {
    /// The record of a pod; absent if its sample counts.
    pub(super) fn of(pod: &Pod, group: PodGroup) -> Option<Self> {
        let is_unready = pod.ready.is_none_or(|ready| ready.status != ConditionStatus::True);
        let reason = match group {
            PodGroup::Ready => return None,
            PodGroup::Ignored if pod.deleting => UncountedReason::Terminating,
            PodGroup::Ignored => UncountedReason::Failed,
            PodGroup::Missing if pod.phase == PodPhase::Succeeded => UncountedReason::Completed,
            PodGroup::Missing => UncountedReason::NoSample,
            PodGroup::Unready if pod.phase == PodPhase::Pending => UncountedReason::Pending,
            PodGroup::Unready if is_unready => UncountedReason::NotReady,
            PodGroup::Unready => UncountedReason::Starting,
        };
        Some(Self { name: pod.name.clone(), reason, started: pod.started })
    }
}
