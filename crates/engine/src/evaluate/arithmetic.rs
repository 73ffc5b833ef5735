//! The arithmetic behind a proposal, kept so that a person can redo it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The arithmetic behind a proposal, so that a person can redo it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arithmetic {
    /// A number per pod, averaged or as a percentage.
    PerPod(PerPodArithmetic),
    /// One number against a target for the whole.
    Total(TotalArithmetic),
    /// One number against a target per replica.
    PerReplica(PerReplicaArithmetic),
}

/// Pods averaged (docs/spec/hpa.md 5.4, 5.5). Values in thousandths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerPodArithmetic {
    /// How the pods were sorted.
    pub pods: PodCounts,
    /// Sum over the pods that count.
    pub usage: i64,
    /// Sum of what they request; absent for plain averages.
    pub requests: Option<i64>,
    /// Average or percentage, cut to a whole number.
    pub found: i64,
    /// What it should be.
    pub target: i64,
    /// Found by target.
    #[serde(with = "crate::float")]
    pub ratio: f64,
    /// The second look, when pods without a sample or not ready were given assumed values.
    pub assumed: Option<AssumedUsage>,
    /// Pods the ratio was multiplied by.
    pub count: i64,
    /// Why the current count was kept, if it was.
    pub kept: Option<NoChangeReason>,
    /// Each pod, only when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Vec<ClassifiedPod>>,
}

/// The second look of docs/spec/hpa.md 5.4: what was assumed, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssumedUsage {
    /// Pods without a sample that were filled in.
    pub missing: i64,
    /// What they were filled in with, together.
    pub missing_usage: i64,
    /// Pods not ready that were taken as idle.
    pub unready: i64,
    /// Sum with the assumed values.
    pub usage: i64,
    /// Requests of all of them.
    pub requests: Option<i64>,
    /// Average or percentage with the assumed values.
    pub found: i64,
    /// The ratio with the assumed values.
    #[serde(with = "crate::float")]
    pub ratio: f64,
}

/// Why a metric proposes the current count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoChangeReason {
    /// The ratio is too close to 1.
    WithinTolerance,
    /// With assumed values the ratio is on the other side of 1.
    DirectionFlips,
    /// The count would move against the ratio.
    CountFlips,
}

/// How pods were sorted (docs/spec/hpa.md 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodCounts {
    /// They count.
    pub ready: i64,
    /// Not ready yet.
    pub unready: i64,
    /// Without a sample.
    pub missing: i64,
    /// Ended, or being deleted.
    pub ignored: i64,
    /// Samples without a pod.
    pub stray: i64,
}

/// How one pod was sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassifiedPod {
    /// Pod.
    pub name: Arc<str>,
    /// Group.
    pub group: PodGroup,
    /// Its sample in thousandths.
    pub usage: Option<i64>,
    /// Its request in thousandths.
    pub request: Option<i64>,
}

/// Groups of pods (docs/spec/hpa.md 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodGroup {
    /// Counts.
    Ready,
    /// Not ready yet.
    Unready,
    /// Without a sample.
    Missing,
    /// Ended, or being deleted.
    Ignored,
}

/// One number against a target for the whole (docs/spec/hpa.md 5.7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TotalArithmetic {
    /// The number in thousandths.
    pub usage: i64,
    /// What it should be.
    pub target: i64,
    /// Usage by target.
    #[serde(with = "crate::float")]
    pub ratio: f64,
    /// Pods that run and are ready; not counted within tolerance or at zero.
    pub ready: Option<i64>,
    /// Why the current count was kept, if it was.
    pub kept: Option<NoChangeReason>,
}

/// One number against a target per replica (docs/spec/hpa.md 5.8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PerReplicaArithmetic {
    /// The number in thousandths.
    pub usage: i64,
    /// What each replica should have of it.
    pub target: i64,
    /// Replicas that exist.
    pub replicas: i32,
    /// Usage by target and replicas; absent where there are none.
    pub ratio: Option<f64>,
    /// Why the current count was kept, if it was.
    pub kept: Option<NoChangeReason>,
}
