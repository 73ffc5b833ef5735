//! The arithmetic behind a proposal: every intermediate result, so that a person can redo the calculation.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::pod_group::PodGroup;
use super::uncounted::UncountedPod;

use crate::units::{MilliValue, Replicas};

/// The arithmetic behind a proposal, by type of target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arithmetic {
    /// One sample per pod, compared as average or utilization.
    PerPod(PerPodArithmetic),
    /// One value, compared with a target for the whole workload (`Value`).
    Total(TotalArithmetic),
    /// One value, compared with a target per replica (`AverageValue`).
    PerReplica(PerReplicaArithmetic),
}

/// Average or utilization over pods (docs/spec/hpa.md 5.4, 5.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerPodArithmetic {
    /// Number of pods in each group.
    pub pods: PodCounts,
    /// Sum of the samples of ready pods.
    pub usage: MilliValue,
    /// Sum of the requests of these pods; absent for averages.
    pub requests: Option<MilliValue>,
    /// Current average in thousandths, or utilization in whole percent, rounded down.
    pub found: i64,
    /// Target in the unit of `found`.
    pub target: i64,
    /// `found` divided by `target`.
    #[serde(with = "crate::float")]
    pub ratio: f64,
    /// The second calculation, made if pods without a sample or unready pods got assumed values.
    pub assumed: Option<AssumedUsage>,
    /// Number of pods by which the ratio was multiplied.
    pub count: i64,
    /// Why the current count is proposed, if it is.
    pub kept: Option<NoChangeReason>,
    /// Every pod, if [`crate::DecisionDetail::Pods`] was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Vec<ClassifiedPod>>,
    /// Some of the pods that were not counted, if [`crate::DecisionDetail::Uncounted`] was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedPod>,
    /// The time of the oldest sample that counts, if [`crate::DecisionDetail::Uncounted`] was requested.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::nanoseconds::serialize"
    )]
    pub oldest: Option<Timestamp>,
}

/// The second calculation of docs/spec/hpa.md 5.4, with assumed values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssumedUsage {
    /// Number of pods without a sample that got an assumed value.
    pub missing: i64,
    /// Sum of the assumed values of these pods.
    pub missing_usage: MilliValue,
    /// Number of unready pods, which count with a usage of zero.
    pub unready: i64,
    /// Sum of samples and assumed values.
    pub usage: MilliValue,
    /// Sum of the requests of all these pods; absent for averages.
    pub requests: Option<MilliValue>,
    /// Average in thousandths, or utilization in percent, with the assumed values.
    pub found: i64,
    /// The ratio with the assumed values.
    #[serde(with = "crate::float")]
    pub ratio: f64,
}

/// Why a metric proposes the current count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoChangeReason {
    /// The ratio is within tolerance.
    WithinTolerance,
    /// With assumed values the ratio is on the other side of 1, so the direction is uncertain.
    DirectionFlips,
    /// The new count would change in the direction opposite to the ratio.
    CountFlips,
}

/// Number of pods in each group (docs/spec/hpa.md 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCounts {
    /// Pods whose samples count.
    pub ready: i64,
    /// Pods that are not ready yet.
    pub unready: i64,
    /// Pods without a sample.
    pub missing: i64,
    /// Pods that failed or are being deleted.
    pub ignored: i64,
    /// Samples of pods that do not exist.
    pub stray: i64,
}

/// One pod and its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassifiedPod {
    /// Pod name.
    pub name: Arc<str>,
    /// Group.
    pub group: PodGroup,
    /// Its sample.
    pub usage: Option<MilliValue>,
    /// Its request.
    pub request: Option<MilliValue>,
}

/// One value and a target for the whole workload (docs/spec/hpa.md 5.7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TotalArithmetic {
    /// Current value.
    pub usage: MilliValue,
    /// Target value.
    pub target: MilliValue,
    /// `usage` divided by `target`.
    #[serde(with = "crate::float")]
    pub ratio: f64,
    /// Number of running and ready pods; absent if it was not needed (within tolerance, or scaled to zero).
    pub ready: Option<i64>,
    /// Why the current count is proposed, if it is.
    pub kept: Option<NoChangeReason>,
}

/// One value and a target per replica (docs/spec/hpa.md 5.8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerReplicaArithmetic {
    /// Current value.
    pub usage: MilliValue,
    /// Target value per replica.
    pub target: MilliValue,
    /// Replicas that exist (`status.replicas` of the scale).
    pub replicas: Replicas,
    /// `usage` divided by `target × replicas`; absent without replicas.
    pub ratio: Option<f64>,
    /// Why the current count is proposed, if it is.
    pub kept: Option<NoChangeReason>,
}
