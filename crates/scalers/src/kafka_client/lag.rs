//! The lag of a consumer group (docs/spec/keda.md 7.2, kafka), without IO.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::messages::NO_OFFSET;
use super::sample::{GroupSample, PartitionSample};
use crate::ScalerError;

/// Maximum number of committed offsets that are remembered for `excludePersistentLag`.
const MAX_REMEMBERED_OFFSETS: usize = 200_000;

/// How the lag of partitions is counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct LagPolicy {
    /// Target lag per replica; greater than zero.
    pub(crate) threshold: i64,
    /// Whether a group without committed offset starts at the oldest record.
    pub(crate) from_earliest: bool,
    /// Whether such a group then has the lag of the retained records only, as since KEDA 2.21.
    pub(crate) only_retained: bool,
    /// Whether a partition without committed offset has no lag.
    pub(crate) zero_without_offset: bool,
    /// Whether there may be more replicas than partitions.
    pub(crate) allow_idle_consumers: bool,
    /// Whether a partition whose committed offset lies beyond its end reduces the lag of the others, as in KEDA. Records of a topic that
    /// was created again would count only after as many as before.
    pub(crate) subtracts_lost_records: bool,
    /// Whether lag counts only if the committed offset has moved.
    pub(crate) exclude_persistent: bool,
    /// Whether only partitions with lag bound the number of replicas.
    pub(crate) limit_to_partitions_with_lag: bool,
    /// Whether the number of replicas divides the number of partitions.
    pub(crate) even_distribution: bool,
    /// The partitions that count; all if there is no list.
    pub(crate) partitions: Option<HashSet<i32>>,
}

/// The lag of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupLag {
    /// The value of the metric.
    pub(crate) value: i64,
    /// The value that is compared with the activation threshold.
    pub(crate) activation: i64,
}

/// Committed offsets of earlier samples, for `excludePersistentLag`.
#[derive(Debug, Default)]
pub(crate) struct PreviousOffsets {
    /// When the latest sample was taken. One sample may be read several times and is compared with the one before it.
    taken: Option<Instant>,
    before: HashMap<(Arc<str>, i32), i64>,
    latest: HashMap<(Arc<str>, i32), i64>,
}

impl PreviousOffsets {
    fn advance(&mut self, taken: Instant) {
        if self.taken != Some(taken) {
            self.taken = Some(taken);
            if self.before.len() > MAX_REMEMBERED_OFFSETS {
                // Most of them are of topics that are gone.
                self.before.clear();
            }
            self.before.extend(self.latest.drain());
        }
    }

    /// Whether the committed offset is that of the sample before.
    fn is_same(&mut self, key: (Arc<str>, i32), committed: i64) -> bool {
        let same = self.before.get(&key) == Some(&committed);
        self.latest.insert(key, committed);
        same
    }
}

impl LagPolicy {
    /// The lag of a sample that was taken at this time.
    pub(crate) fn lag(
        &self,
        sample: &GroupSample,
        taken: Instant,
        previous: &mut PreviousOffsets,
    ) -> Result<GroupLag, ScalerError> {
        previous.advance(taken);
        let counts = |index: i32| self.partitions.as_ref().is_none_or(|some| some.contains(&index));
        let (mut total, mut with_persistent) = (0_i64, 0_i64);
        let (mut partitions, mut with_lag) = (0_i64, 0_i64);
        for topic in &sample.topics {
            let before = partitions;
            for partition in topic.partitions.iter().filter(|one| counts(one.index)) {
                let (lag, full) = self.partition(&topic.name, partition, previous)?;
                total = total.saturating_add(lag);
                with_persistent = with_persistent.saturating_add(full);
                partitions += 1;
                with_lag += i64::from(lag > 0);
            }
            if partitions == before {
                bail!("expected at least one active partition within the topic '{}'", topic.name);
            }
        }
        Ok(GroupLag { value: self.capped(total, partitions, with_lag), activation: with_persistent })
    }

    /// The lag of a partition that counts for the metric, and the one that counts for activation.
    fn partition(
        &self,
        topic: &Arc<str>,
        partition: &PartitionSample,
        previous: &mut PreviousOffsets,
    ) -> Result<(i64, i64), ScalerError> {
        let committed = partition.committed.clone()?;
        if committed == NO_OFFSET && !self.from_earliest {
            let lag = i64::from(!self.zero_without_offset);
            return Ok((lag, lag));
        }
        let latest = partition.latest.clone()?;
        if committed == NO_OFFSET {
            let start = partition.earliest.filter(|start| self.only_retained && *start >= 0).unwrap_or(0);
            let lag = if self.zero_without_offset { 0 } else { latest.saturating_sub(start).max(0) };
            return Ok((lag, lag));
        }
        if latest < 0 {
            return Ok((0, 0));
        }
        let least = if self.subtracts_lost_records { i64::MIN } else { 0 };
        let lag = latest.saturating_sub(committed).max(least);
        let persists =
            self.exclude_persistent && previous.is_same((Arc::clone(topic), partition.index), committed);
        Ok((if persists { 0 } else { lag }, lag))
    }

    /// Limits the lag so that there are not more replicas than partitions.
    fn capped(&self, total: i64, partitions: i64, with_lag: i64) -> i64 {
        let limited = self.limit_to_partitions_with_lag || self.even_distribution;
        if self.allow_idle_consumers && !limited {
            return total;
        }
        let threshold = self.threshold.max(1);
        let mut total = total;
        if self.even_distribution {
            let mut divisors = (1..=partitions).filter(|count| partitions % count == 0);
            let enough = divisors.find(|count| count.saturating_mul(threshold) >= total);
            total = enough.unwrap_or(partitions).saturating_mul(threshold);
        }
        let upper = if self.limit_to_partitions_with_lag { with_lag } else { partitions };
        if total / threshold > upper { upper.saturating_mul(threshold) } else { total }
    }
}
