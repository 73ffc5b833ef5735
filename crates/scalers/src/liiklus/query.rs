//! Messages of Liiklus, and the lag in them, without IO.

use std::collections::HashMap;

use crate::ScalerError;

/// Methods.
pub(super) const GET_OFFSETS: &str = "/com.github.bsideup.liiklus.LiiklusService/GetOffsets";
pub(super) const GET_END_OFFSETS: &str = "/com.github.bsideup.liiklus.LiiklusService/GetEndOffsets";

/// The request of [`GET_OFFSETS`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GroupOffsetsRequest {
    #[prost(string, tag = "1")]
    pub(super) topic: String,
    #[prost(string, tag = "2")]
    pub(super) group: String,
    #[prost(uint32, tag = "3")]
    pub(super) group_version: u32,
}

/// The request of [`GET_END_OFFSETS`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EndOffsetsRequest {
    #[prost(string, tag = "1")]
    pub(super) topic: String,
}

/// The response of both methods: offsets by partition.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OffsetsReply {
    #[prost(map = "uint32, uint64", tag = "1")]
    pub(super) offsets: HashMap<u32, u64>,
}

/// The lag of all partitions, at most the threshold for each of them. A partition that was never read is read from offset 0.
pub(super) fn total_lag(read: &OffsetsReply, end: &OffsetsReply, threshold: i64) -> Result<u64, ScalerError> {
    // A topic that does not exist has no partitions.
    if end.offsets.is_empty() {
        bail!("Liiklus knows no partition of the topic");
    }
    let position = |partition: &u32| read.offsets.get(partition).copied().unwrap_or_default();
    // KEDA lets a group that is ahead of a stale end offset overflow; it has read everything.
    let lags = end.offsets.iter().map(|(partition, end)| end.saturating_sub(position(partition)));
    let total = lags.fold(0, u64::saturating_add);
    let partitions = end.offsets.len() as u64;
    let Some(threshold) = u64::try_from(threshold).ok().filter(|threshold| *threshold > 0) else {
        bail!("lagThreshold must be greater than 0");
    };
    Ok(if total / threshold > partitions { threshold.saturating_mul(partitions) } else { total })
}
